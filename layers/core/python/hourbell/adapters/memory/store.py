"""The state that the in-memory adapters share."""

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from hourbell.domain.definition import Handler, Schedule, Tenant, Version, VersionRef
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.job import Job, Result
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.domain.parking import ParkedRow
from hourbell.domain.reminder import Reminder
from hourbell.domain.work import Attempt, DeadLetter, OverlapLane, Slot
from hourbell.usecases.job_ports import JobItem
from hourbell.usecases.ports import Backfill, Lease, Run
from hourbell.usecases.shard_ports import Epochs


@dataclass(slots=True)
class MemoryStore:
    """All tables in one place, so that a transaction can span them.

    Attributes:
        rows: per partition `<bucket>#<shard>`, the rows by sort key.
        dispatches: the dispatch rows, likewise.
        names: (tenant_id, name) -> schedule_id.
        counts: tenant_id -> how many schedules count against its quota.
        principals: normalized principal -> tenant_id.
        handlers: (tenant_id, name) -> handler.
        groups: the lease record of each shard group as it was last written.
        parked: (group, key) -> parked row.
        runs: (schedule_id, run) -> manual run.
        backfills: (schedule_id, scheduled_for) -> backfilled time.
        taken: (name of a rate, minute) -> by slot, how many places are taken.
        jobs: by job_id, and likewise their items and results.
        reminders: of open jobs, by their places.
        epochs: the list of shard counts, once it is stored.
        attempts: as the rows, by their own sort keys.
        lanes: by schedule_id.
        slots: (tenant_id, number) -> who runs there.
        letters: (tenant_id, key) -> dead letter.
        loads: UTC minute -> how many occurrences were counted on it.
        stream: the new image of every write of an occurrence, oldest first.
    """

    schedules: dict[str, Schedule] = field(default_factory=dict)
    versions: dict[VersionRef, Version] = field(default_factory=dict)
    rows: dict[str, dict[str, Occurrence]] = field(default_factory=dict)
    dispatches: dict[str, dict[str, Dispatch]] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    tenants: dict[str, Tenant] = field(default_factory=dict)
    principals: dict[str, str] = field(default_factory=dict)
    handlers: dict[tuple[str, str], Handler] = field(default_factory=dict)
    groups: dict[int, Lease] = field(default_factory=dict)
    parked: dict[tuple[int, RowKey], ParkedRow] = field(default_factory=dict)
    stream: list[Occurrence] = field(default_factory=list)
    runs: dict[tuple[str, str], Run] = field(default_factory=dict)
    backfills: dict[tuple[str, datetime], Backfill] = field(default_factory=dict)
    taken: dict[tuple[str, datetime], dict[int, int]] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    job_items: dict[str, tuple[JobItem, ...]] = field(default_factory=dict)
    job_results: dict[str, list[Result]] = field(default_factory=dict)
    reminders: dict[str, Reminder] = field(default_factory=dict)
    epochs: Epochs | None = None
    loads: Counter[datetime] = field(default_factory=Counter)
    attempts: dict[str, dict[str, Attempt]] = field(default_factory=dict)
    lanes: dict[str, OverlapLane] = field(default_factory=dict)
    slots: dict[tuple[str, int], Slot] = field(default_factory=dict)
    letters: dict[tuple[str, str], DeadLetter] = field(default_factory=dict)

    def row(self, key: RowKey) -> Occurrence | None:
        """Return the row under a key, if there is one."""
        return self.rows.get(key.partition, {}).get(key.sort)

    def has(self, key: RowKey) -> bool:
        """Whether there is a row of either kind under a key."""
        return self.row(key) is not None or self.dispatch(key) is not None

    def put_row(self, row: Occurrence) -> None:
        """Write a row whatever is there, and its new image to the stream."""
        key = row.key
        self.rows.setdefault(key.partition, {})[key.sort] = row
        self.stream.append(row)

    def dispatch(self, key: RowKey) -> Dispatch | None:
        """Return the dispatch row under a key, if there is one."""
        return self.dispatches.get(key.partition, {}).get(key.sort)

    def put_dispatch(self, row: Dispatch) -> None:
        """Write a dispatch row whatever is there; the stream's filter drops it."""
        key = row.key
        self.dispatches.setdefault(key.partition, {})[key.sort] = row

    def attempt(self, attempt: Attempt) -> Attempt | None:
        """Return what lies under the key of an attempt."""
        return self.attempts.get(attempt.key.partition, {}).get(attempt.sort)

    def put_attempt(self, attempt: Attempt) -> None:
        """Write an attempt whatever is there; the stream's filter drops it."""
        attempts = self.attempts.setdefault(attempt.key.partition, {})
        attempts[attempt.sort] = attempt

    def all_dispatches(self) -> list[Dispatch]:
        """Return every dispatch row, by bucket, shard and sort key."""
        return [
            rows[sort]
            for _, rows in sorted(self.dispatches.items())
            for sort in sorted(rows)
        ]

    def all_rows(self) -> list[Occurrence]:
        """Return every occurrence, by bucket, shard and sort key."""
        return [
            rows[sort] for _, rows in sorted(self.rows.items()) for sort in sorted(rows)
        ]

    def take_stream(self) -> list[Occurrence]:
        """Return the stream's records since the last call, and forget them."""
        records = list(self.stream)
        self.stream.clear()
        return records
