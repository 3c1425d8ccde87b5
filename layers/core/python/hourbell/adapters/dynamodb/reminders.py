"""The reminders of jobs on DynamoDB: one list, by when they are due."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, decode, encode, readable, reads
from hourbell.adapters.dynamodb.layout import CONTROL
from hourbell.adapters.dynamodb.models import ReminderItem
from hourbell.adapters.dynamodb.reading import filled, query
from hourbell.adapters.dynamodb.transactions import (
    Delete,
    Member,
    Put,
    write_together,
)
from hourbell.domain.job import Job
from hourbell.domain.reminder import Reminder, first_reminder, place_at
from hourbell.usecases.ports import Write


def put_first(database: Database, job: Job) -> Put:
    """Return the write of the reminder of a job that becomes PENDING."""
    return _put(database, first_reminder(job))


def due_reminders(
    database: Database, now: datetime, limit: int
) -> tuple[Reminder, ...]:
    """Return reminders that are due, the oldest first, by consistent reads."""

    def find(last: Item | None) -> list[Item]:
        # No place has a blank, and those of an instant go on with "#".
        first = " " if last is None else last[CONTROL.sort]["S"] + " "
        return query(
            database,
            limit,
            TableName=database.tables.control,
            KeyConditionExpression="#partition = :partition "
            "AND #sort BETWEEN :first AND :last",
            ExpressionAttributeNames={
                "#partition": CONTROL.partition,
                "#sort": CONTROL.sort,
            },
            ExpressionAttributeValues={
                ":partition": {"S": layout.REMINDERS},
                ":first": {"S": first},
                ":last": {"S": f"{place_at(now)}~"},
            },
            ConsistentRead=True,
        )

    return filled(
        limit, find, lambda items: readable("reminder", decode_reminder, items)
    )


def move_reminder(
    database: Database, reminder: Reminder, later: Reminder | None
) -> Write:
    """Put a later reminder in the place of one, or none, in one transaction."""
    is_there = ReminderItem.control_key.exists()
    before = Delete(database.tables.control, reminder_key(reminder), is_there)
    after: list[Member] = [] if later is None else [_put(database, later)]
    return write_together(database, before, *after)


def _put(database: Database, reminder: Reminder) -> Put:
    return Put(database.tables.control, CONTROL, encode_reminder(reminder))


def encode_reminder(reminder: Reminder) -> Item:
    """Write a reminder."""
    values = {
        "schema": layout.SCHEMA,
        "job_id": reminder.job_id,
        "due_at": reminder.due_at,
        "step": reminder.step,
        "tries": reminder.tries,
        "expires_at": reminder.expires_at,
    }
    return reminder_key(reminder) | encode(ReminderItem, values)


def reminder_key(reminder: Reminder) -> Item:
    """Return the key of a reminder."""
    values = {"control_key": layout.REMINDERS, "item": reminder.place}
    return encode(ReminderItem, values)


@reads("reminder")
def decode_reminder(item: Mapping[str, Any]) -> Reminder:
    """Read a reminder."""
    values = decode(ReminderItem, item)
    return Reminder(
        due_at=values["due_at"],
        job_id=values["job_id"],
        step=values["step"],
        expires_at=values["expires_at"],
        tries=values["tries"],
    )
