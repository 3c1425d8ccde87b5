"""What the worker plane stores, on DynamoDB."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from hourbell.adapters.deeds import reject_repeats
from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import readable
from hourbell.adapters.dynamodb.dead_letters import LetterQuery, page_of
from hourbell.adapters.dynamodb.deeds import freeing, is_one_change, members_of
from hourbell.adapters.dynamodb.moves import update_of
from hourbell.adapters.dynamodb.reading import get_item, query
from hourbell.adapters.dynamodb.transactions import Update, first_refused
from hourbell.adapters.dynamodb.work_items import (
    decode_attempt,
    decode_lane,
    decode_running,
    lane_item_key,
)
from hourbell.adapters.sdk_errors import (
    SDK_ERRORS,
    SdkError,
    code_of,
    is_transient,
    is_unclear,
    translated,
)
from hourbell.domain.errors import Transient, Unreadable
from hourbell.domain.occurrence import RowKey
from hourbell.domain.work import Attempt, DeadLetter, OverlapLane, Slot
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed

log = logging.getLogger(__name__)

_CONDITION_FAILED: Final = "ConditionalCheckFailedException"


class DynamoLedger:
    """The `Ledger` port."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tables = database.tables

    def do(self, deed: Deed) -> Write:
        """Do all that a deed says, or nothing of it, in one transaction.

        A single change is a conditional update, at half the price. When one of its
        answers was lost, and then the condition fails, that may be its own doing:
        `Transient`.

        Raises:
            ValueError: the deed names a row or an item twice.
        """
        reject_repeats(deed)
        if is_one_change(deed):
            return self._update(update_of(self._tables.timeline, deed.changes[0]))
        members = members_of(self._tables, deed)
        freed = freeing(self._tables, deed)
        if freed is not None:
            refused = first_refused(self._database, [*members, freed])
            if refused is None:
                return Write.APPLIED
            if refused < len(members):
                return Write.LOST
            # All but the slot was as it should be, and the slot need not be.
        if not members:
            return Write.APPLIED
        refused = first_refused(self._database, members)
        return Write.APPLIED if refused is None else Write.LOST

    def lane(self, schedule_id: str) -> OverlapLane:
        """Return a schedule's lane by a consistent read."""
        item = get_item(
            self._database,
            self._tables.control,
            lane_item_key(schedule_id),
            consistent=True,
        )
        if item is None:
            return OverlapLane(schedule_id)
        try:
            return decode_lane(schedule_id, item)
        except Unreadable:
            # Callers go on with others, and tell nobody why.
            log.exception("an unreadable lane", extra={"row": str(item)})
            raise

    def slots(self, tenant_id: str) -> dict[int, Slot]:
        """Return the slots of a tenant that are taken, by number, consistently."""
        items = query(
            self._database,
            None,
            TableName=self._tables.control,
            KeyConditionExpression="#tenant = :tenant",
            ExpressionAttributeNames={"#tenant": layout.CONTROL.partition},
            ExpressionAttributeValues={
                ":tenant": {"S": layout.running_key(tenant_id)},
            },
            ConsistentRead=True,
        )
        return {slot.number: slot for slot in _taken(tenant_id, items)}

    def attempts(self, key: RowKey) -> tuple[Attempt, ...]:
        """Return the items of an occurrence's attempts, the oldest first."""
        items = query(
            self._database,
            None,
            TableName=self._tables.timeline,
            KeyConditionExpression="#partition = :partition "
            "AND begins_with(#sort, :attempts)",
            ExpressionAttributeNames={
                "#partition": layout.TIMELINE.partition,
                "#sort": layout.TIMELINE.sort,
            },
            ExpressionAttributeValues={
                ":partition": {"S": key.partition},
                ":attempts": {"S": layout.attempt_sort(key.sort)},
            },
            ConsistentRead=True,
        )
        # By their keys the tenth would come before the second.
        found = readable("attempt", decode_attempt, items)
        return tuple(sorted(found, key=lambda attempt: attempt.number))

    def letters(
        self,
        tenant_id: str,
        *,
        schedule_id: str | None = None,
        after: str | None,
        limit: int,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[Sequence[DeadLetter], str | None]:
        """Return a page of a tenant's dead letters, and what leads to the next one."""
        wanted = LetterQuery(tenant_id, schedule_id, since, until)
        return page_of(self._database, wanted, after, limit)

    def _update(self, update: Update) -> Write:
        """Make one conditional update, tried again while it is not decided."""
        arguments: dict[str, Any] = update.as_request()["Update"]
        perhaps_done = False
        last: Exception | None = None
        for _ in self._database.backoff.rounds():
            try:
                self._database.single.update_item(**arguments)
            except SDK_ERRORS as error:
                last = error
                if _is_refusal(error):
                    if perhaps_done:
                        break
                    return Write.LOST
                if not is_transient(error):
                    raise translated(error) from error
                perhaps_done |= is_unclear(error)
            else:
                return Write.APPLIED
        raise Transient("an update was not done in time, or was not seen") from last


def _is_refusal(error: SdkError) -> bool:
    return isinstance(error, ClientError) and code_of(error) == _CONDITION_FAILED


def _taken(tenant_id: str, items: Iterable[Mapping[str, Any]]) -> Iterator[Slot]:
    """Read slots; one that cannot be read is taken, whoever holds it."""
    for item in items:
        try:
            yield decode_running(tenant_id, item)
        except Unreadable:
            log.exception("an unreadable place", extra={"row": str(item)})
            number = item[layout.CONTROL.sort]["S"].removeprefix(layout.RUNNING)
            if number.isdecimal():
                yield Slot(tenant_id, int(number), "")
