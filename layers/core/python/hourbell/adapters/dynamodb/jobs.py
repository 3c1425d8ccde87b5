"""Jobs on DynamoDB."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hourbell.adapters.chunks import chunks
from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, readable
from hourbell.adapters.dynamodb.expressions import assignments
from hourbell.adapters.dynamodb.job_items import (
    changing_values,
    decode_items,
    decode_job,
    decode_listed_job,
    decode_results,
    encode_items,
    encode_job,
    encode_listed_job,
    encode_results,
    job_item_key,
    job_items_key,
)
from hourbell.adapters.dynamodb.layout import CONTROL
from hourbell.adapters.dynamodb.models import JobItem
from hourbell.adapters.dynamodb.reading import batch_get, filled, get_item, query
from hourbell.adapters.dynamodb.reminders import (
    due_reminders,
    move_reminder,
    put_first,
)
from hourbell.adapters.dynamodb.transactions import (
    Member,
    Put,
    Update,
    put_together,
    write_together,
)
from hourbell.domain.job import CHUNK, Job, JobState, Result
from hourbell.domain.reminder import Reminder
from hourbell.usecases import job_ports
from hourbell.usecases.ports import Write

# Items of results that one Query reads: most hold 25 results, some fewer.
_PARTS: Final = 6


class DynamoJobs:
    """The `Jobs` port."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = database.tables.control

    def create(self, job: Job, items: Sequence[job_ports.JobItem]) -> Write:
        """Store a job, its place in the list, reminder and items in one transaction."""
        parts = [
            encode_items(job, place * CHUNK, part)
            for place, part in enumerate(chunks(items, CHUNK))
        ]
        stored = [encode_job(job), encode_listed_job(job), *parts]
        puts = [Put(self._table, CONTROL, each) for each in stored]
        return put_together(self._database, [*puts, put_first(self._database, job)])

    def find(self, job_id: str) -> Job | None:
        """Return a job by a consistent read."""
        key = job_item_key(job_id)
        item = get_item(self._database, self._table, key, consistent=True)
        return None if item is None else decode_job(item)

    def of_tenant(
        self, tenant_id: str, *, before: str | None, limit: int
    ) -> tuple[Job, ...]:
        """Return the tenant's jobs before the `place` of one, the newest first."""

        def find(last: Item | None) -> list[Item]:
            place = before if last is None else last[CONTROL.sort]["S"]
            return self._listed(tenant_id, place, limit)

        return filled(limit, find, self._listed_jobs)

    def _listed(self, tenant_id: str, before: str | None, limit: int) -> list[Item]:
        condition, bound = "", {}
        if before is not None:
            condition, bound = " AND #sort < :before", {":before": {"S": before}}
        return query(
            self._database,
            limit,
            TableName=self._table,
            KeyConditionExpression=f"#partition = :partition{condition}",
            ExpressionAttributeNames={"#partition": CONTROL.partition}
            | ({"#sort": CONTROL.sort} if bound else {}),
            ExpressionAttributeValues={
                ":partition": {"S": layout.job_list_key(tenant_id)},
                **bound,
            },
            ConsistentRead=True,
            ScanIndexForward=False,
        )

    def _listed_jobs(self, listed: Sequence[Item]) -> list[Job]:
        ids = readable("listed job", decode_listed_job, listed)
        keys = [job_item_key(each) for each in ids]
        items = batch_get(self._database, self._table, keys, consistent=True)
        found = readable("job", decode_job, items)
        return sorted(found, key=lambda job: job.place, reverse=True)

    def items(self, job_id: str, start: int) -> tuple[job_ports.JobItem, ...]:
        """Return items from an index on to the end of its chunk of 25."""
        first = start - start % CHUNK
        key = job_items_key(job_id, first)
        item = get_item(self._database, self._table, key, consistent=True)
        return () if item is None else decode_items(item)[start - first :]

    def advance(self, job: Job, results: Sequence[Result], *, before: Job) -> Write:
        """Store results and what changed of a job, if nobody was first."""
        update = Update(
            self._table,
            job_item_key(job.job_id),
            (JobItem.state == before.state) & (JobItem.step == before.step),
            assignments(JobItem, changing_values(job)),
        )
        puts: list[Member] = []
        if results:
            puts.append(Put(self._table, CONTROL, encode_results(job, results)))
        if job.state is JobState.PENDING:
            puts.append(put_first(self._database, job))
        return write_together(self._database, update, *puts)

    def results(self, job_id: str, *, start: int, limit: int) -> tuple[Result, ...]:
        """Return results in order from an index on."""
        found: list[Result] = []
        # An item that begins before `start` may reach beyond it.
        first = layout.job_results_sort(max(0, start - CHUNK + 1))
        while len(found) < limit:
            items = query(
                self._database,
                _PARTS,
                TableName=self._table,
                KeyConditionExpression="#partition = :partition "
                "AND #sort BETWEEN :first AND :last",
                ExpressionAttributeNames={
                    "#partition": CONTROL.partition,
                    "#sort": CONTROL.sort,
                },
                ExpressionAttributeValues={
                    ":partition": {"S": layout.job_key(job_id)},
                    ":first": {"S": first},
                    ":last": {"S": f"{layout.JOB_RESULTS}~"},
                },
                ConsistentRead=True,
            )
            for part in readable("part of a job's results", decode_results, items):
                found += [each for each in part if each.index >= start]
            if len(items) < _PARTS:
                break
            # The next key in order: what was read may hold no result that is readable.
            first = items[-1][CONTROL.sort]["S"] + " "
        return tuple(found[:limit])

    def reminders(self, now: datetime, *, limit: int) -> tuple[Reminder, ...]:
        """Return reminders that are due, the oldest first, by a consistent read."""
        return due_reminders(self._database, now, limit)

    def replace_reminder(self, reminder: Reminder, later: Reminder | None) -> Write:
        """Put a later reminder in the place of one, or none, in one transaction."""
        return move_reminder(self._database, reminder, later)
