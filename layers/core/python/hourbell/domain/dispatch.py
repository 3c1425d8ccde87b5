"""Dispatch rows: small outbox records in the bucket of their due time.

A dispatch row says that something must be done about a schedule or an occurrence
when it is due. It lies in the bucket of max(due, time of writing), so never behind the
scan, and holds the watermark back until it is DONE.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from hourbell.domain.definition import Version
from hourbell.domain.instants import ceil_second, compact_instant
from hourbell.domain.occurrence import Occurrence, RowKey, bucket_of
from hourbell.domain.policies import expires_at
from hourbell.domain.shards import ShardMap

# How long the call that began a handover has to finish it before a pass does.
HANDOVER_GRACE = timedelta(seconds=20)


class DispatchKind(StrEnum):
    """What is to be done."""

    HANDOVER = "handover"
    # Let an occurrence that waits go when its time is near, and see it enqueued.
    RELEASE = "release"
    # See that a row is taken on that may lie behind the watermark of its shard.
    FOLLOW = "follow"
    # See that an occurrence is worked on again whose worker is not heard of.
    WATCH = "watch"
    # See that the dead letter of an occurrence is sent.
    LETTER = "letter"
    # See that an occurrence ends whose message nobody can receive any more.
    UNCLAIMED = "unclaimed"
    # Nothing follows of a version: if it is still in force, its schedule is over.
    COMPLETE = "complete"


class DispatchState(StrEnum):
    """Whether it is done."""

    PENDING = "PENDING"
    DONE = "DONE"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """A dispatch row of the timeline.

    Attributes:
        version: of a handover, the version that takes over; of a completion, the one
            that has no further time.
        due: when it is to be done at the earliest; a whole second, UTC.
        scheduled_for: of a row that points at an occurrence, the occurrence's time.
        run: of such a row, what tells a manual run from others.
        number: of a release after a claim, which wait it ends; of a watch, the
            attempt; of a letter, the waits that there were; of one that looks after
            what is unclaimed, the sends. None for a first release.
    """

    kind: DispatchKind
    schedule_id: str
    version: int
    tenant_id: str
    due: datetime
    shard: int
    written_at: datetime
    state: DispatchState = DispatchState.PENDING
    expires_at: datetime | None = None
    scheduled_for: datetime | None = None
    run: str | None = None
    number: int | None = None

    @property
    def key(self) -> RowKey:
        """The row's place in the timeline."""
        sort = f"{compact_instant(self.due)}#{self.schedule_id}#v{self.version}"
        sort = f"{sort}#{self.kind}"
        if self.scheduled_for is not None:
            sort = f"{sort}#{compact_instant(self.scheduled_for)}"
        if self.run is not None:
            sort = f"{sort}#r{self.run}"
        if self.number is not None:
            sort = f"{sort}#n{self.number}"
        return RowKey(bucket_of(self.due), self.shard, sort)

    @property
    def is_open(self) -> bool:
        """Whether the row holds the watermark back."""
        return self.state is DispatchState.PENDING

    def done(self, now: datetime) -> "Dispatch":
        """Return the row as it is when nothing is left to do for it."""
        return replace(self, state=DispatchState.DONE, expires_at=expires_at(now))


def release_of(row: Occurrence, shard: int, now: datetime) -> Dispatch:
    """Return the dispatch row that lets a deferred occurrence go.

    It is due in the second of `available_at`, or now when that has passed: a row
    behind the scan would never be seen.

    Args:
        row: the occurrence, with `available_at`; after a claim with `waits` as it
            shall be.
        shard: that of the schedule in the dispatch row's own bucket.
        now: the current instant.
    """
    return Dispatch(
        DispatchKind.RELEASE,
        row.schedule_id,
        row.version,
        row.tenant_id,
        release_due(row, now),
        shard,
        now,
        scheduled_for=row.scheduled_for,
        run=row.run,
        number=row.waits or None,
    )


def pointing_at(
    row: Occurrence,
    kind: DispatchKind,
    due: datetime,
    number: int,
    shards: ShardMap,
    now: datetime,
) -> Dispatch:
    """Return a dispatch row about an occurrence, due in the second of an instant."""
    due = max(due, now).replace(microsecond=0)
    return Dispatch(
        kind,
        row.schedule_id,
        row.version,
        row.tenant_id,
        due,
        shards.shard_of(row.schedule_id, due),
        now,
        scheduled_for=row.scheduled_for,
        run=row.run,
        number=number,
    )


def letter_of(row: Occurrence, shards: ShardMap, now: datetime) -> Dispatch:
    """Return the dispatch row that sees to the dead letter of a DEAD row."""
    return pointing_at(row, DispatchKind.LETTER, now, row.waits, shards, now)


def release_due(row: Occurrence, now: datetime) -> datetime:
    """Return when the dispatch row of a deferred occurrence is due."""
    due = max(row.available_at or row.scheduled_for, now)
    return due.replace(microsecond=0)


def completion_of(
    version: Version, last: datetime | None, shards: ShardMap, now: datetime
) -> Dispatch:
    """Return the dispatch row that completes a schedule.

    Args:
        version: the version that has no further time.
        last: its last time, until which the schedule stays ACTIVE; None for none.
        shards: tells the shard of the dispatch row's bucket.
        now: the current instant.
    """
    due = now if last is None else max(last, now)
    due = due.replace(microsecond=0)
    return Dispatch(
        DispatchKind.COMPLETE,
        version.schedule_id,
        version.version,
        version.tenant_id,
        due,
        shards.shard_of(version.schedule_id, due),
        now,
    )


def follow_of(row: Occurrence, shards: ShardMap, now: datetime) -> Dispatch:
    """Return the dispatch row that sees to an overdue row behind the scan.

    It is due now, and must be there before the row.
    """
    due = now.replace(microsecond=0)
    return Dispatch(
        DispatchKind.FOLLOW,
        row.schedule_id,
        row.version,
        row.tenant_id,
        due,
        shards.shard_of(row.schedule_id, due),
        now,
        scheduled_for=row.scheduled_for,
    )


def handover_due(as_of: datetime) -> datetime:
    """Return the due time of the dispatch row of a handover that began at `as_of`.

    No time of the new version lies in an earlier bucket, so that the pending row
    holds the watermark back from the first row, however late that is written. A pass
    leaves it to the call that began it for HANDOVER_GRACE.
    """
    return ceil_second(as_of)
