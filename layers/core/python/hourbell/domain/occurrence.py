"""One scheduled time of one schedule version.

The timeline row *is* the occurrence: index, cursor, outbox record and ledger in one.
`hourbell.domain.states` holds the table of what may become of it.
"""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import Final

from hourbell.domain.errors import InvalidInput
from hourbell.domain.instants import compact_instant, parse_compact, to_utc
from hourbell.domain.misfire import Decision
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import Failure
from hourbell.domain.states import (
    OPEN,
    TERMINAL,
    TRANSITIONS,
    Move,
    State,
    Transition,
)

__all__ = [
    "OPEN",
    "TERMINAL",
    "TRANSITIONS",
    "CancelReason",
    "Lane",
    "Move",
    "Occurrence",
    "RowKey",
    "State",
    "Transition",
    "bucket_of",
    "jitter_seconds",
    "minute_of",
    "occurrence_id",
    "parse_occurrence_id",
    "partition_of",
    "row_key",
]

_OCCURRENCE_ID: Final = re.compile(
    r"(sch[0-9a-z]{26})\.v([1-9][0-9]{0,9})\.(\d{8}T\d{6}Z)(?:\.r([0-9a-f]{16}))?",
    re.ASCII,
)


class Lane(StrEnum):
    """Which queue of its tier an occurrence goes to."""

    STRICT = "strict"
    FLEXIBLE = "flexible"
    CATCHUP = "catchup"


class CancelReason(StrEnum):
    """Why a row was canceled."""

    SUPERSEDED = "SUPERSEDED"
    REPLANNED = "REPLANNED"
    PAUSED = "PAUSED"
    CANCELED = "CANCELED"
    # Its version does not exist, by a consistent read.
    ORPHANED = "ORPHANED"


@dataclass(frozen=True, slots=True, order=True)
class RowKey:
    """Where a row lies in the timeline.

    Attributes:
        bucket: the UTC minute of `scheduled_for`, `20260309T0630Z`.
        shard: stable hash of the schedule_id, modulo the bucket's shard count.
        sort: `<scheduled_for>#<schedule_id>#v<version>`.
    """

    bucket: str
    shard: int
    sort: str

    @property
    def partition(self) -> str:
        """The partition key, `<bucket>#<shard>`."""
        return partition_of(self.bucket, self.shard)

    @property
    def schedule_id(self) -> str:
        """Whose row it is."""
        return self.sort.split("#", 2)[1]

    @classmethod
    def parse(cls, partition: str, sort: str) -> "RowKey":
        """Read the key back from its two stored strings.

        Raises:
            ValueError: the partition is not `<bucket>#<shard>`.
        """
        bucket, _, shard = partition.partition("#")
        return cls(bucket, int(shard), sort)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A timeline row.

    All instants are UTC. Fields that a later state fills are None before it.

    Attributes:
        sequence: counts a version's times from 1; `max_occurrences` looks at it.
        tzdb: release of the zone database by which the time was computed.
        queue: key of the delivery queue, `<tier>-<lane>`.
        scheduled_at: when it left PLANNED.
        enqueued_at: when the queue accepted the message.
        visible_at: `enqueued_at` plus the delay it was sent with.
        sends: how many times a send of it was acknowledged.
        misfire: True when it was materialized later than the misfire threshold.
        expires_at: when the store may delete the row; set with a terminal state only.
        run: 16 hexadecimal characters that tell a manual run from others; None for
            what a rule produced.
        backfilled_at: when a backfill asked for it; None for all others.
        overlap: of a backfilled one, the policy that the backfill named for it, where
            its version has another; None where the version's holds.
        decision: of a gap row, what becomes of the overdue time before it and of
            those that it covers; None for all others.
        attempt: the number of the current or last attempt, over all replays; 0 before
            the first claim.
        attempts_before: how many attempts there were when it was last replayed.
        lease_token: of the current or last attempt: who shows it is its worker.
        lease_expires_at: until when its worker has it, unless it extends that.
        worker: what the worker calls itself.
        started_at: when the current or last attempt began.
        begun_at: when the first attempt since the last replay began, moved on by the
            waits that were nobody's failure; the deadline counts from it.
        slot: of a RUNNING one, which place of its tenant it takes; None without a
            limit.
        waits: how often it has waited after a claim: for a retry, a running one, a
            free place.
        failure: why the last attempt that ended badly did.
        cancel_requested_at: when its worker was asked to stop.
        replayed_at: when it was last replayed.
        told_at: of a DEAD one, when its dead letter was sent.
    """

    schedule_id: str
    version: int
    scheduled_for: datetime
    shard: int
    tenant_id: str
    sequence: int
    tzdb: str
    planned_at: datetime
    state: State = State.PLANNED
    available_at: datetime | None = None
    lane: Lane | None = None
    queue: str | None = None
    scheduled_at: datetime | None = None
    enqueued_at: datetime | None = None
    visible_at: datetime | None = None
    sends: int = 0
    misfire: bool = False
    reason: str | None = None
    finished_at: datetime | None = None
    expires_at: datetime | None = None
    run: str | None = None
    backfilled_at: datetime | None = None
    overlap: Overlap | None = None
    decision: Decision | None = None
    attempt: int = 0
    attempts_before: int = 0
    lease_token: str | None = None
    lease_expires_at: datetime | None = None
    worker: str | None = None
    started_at: datetime | None = None
    begun_at: datetime | None = None
    slot: int | None = None
    waits: int = 0
    failure: Failure | None = None
    cancel_requested_at: datetime | None = None
    replayed_at: datetime | None = None
    told_at: datetime | None = None

    @property
    def asked_at(self) -> datetime | None:
        """When somebody last asked for it by hand; None for what its rule alone made.

        What was asked for need not lie in its version's interval, and only a pause
        or a cancel after that instant stops it.
        """
        if self.replayed_at is not None:
            return self.replayed_at
        return self.planned_at if self.run is not None else self.backfilled_at

    @property
    def attempts(self) -> int:
        """How many attempts there were since the last replay."""
        return self.attempt - self.attempts_before

    @property
    def is_begun(self) -> bool:
        """Whether a worker has had it since the last replay: only a cancel stops it."""
        return self.begun_at is not None

    @property
    def occurrence_id(self) -> str:
        """The stable id, on which consumers deduplicate."""
        return occurrence_id(
            self.schedule_id, self.version, self.scheduled_for, self.run
        )

    @property
    def key(self) -> RowKey:
        """The row's place in the timeline."""
        return row_key(
            self.schedule_id, self.version, self.scheduled_for, self.shard, self.run
        )

    @property
    def is_open(self) -> bool:
        """Whether the row holds the watermark back."""
        return self.state in OPEN

    @property
    def weight(self) -> int:
        """How many rows it stands for: of a gap row, what it lets run too."""
        return 1 if self.decision is None else 1 + self.decision.runs

    def covers(self, instant: datetime) -> bool:
        """Whether it is a gap row that speaks for a time without a row."""
        decision = self.decision
        return decision is not None and self.scheduled_for <= instant <= decision.last


def occurrence_id(
    schedule_id: str, version: int, scheduled_for: datetime, run: str | None = None
) -> str:
    """Return `<schedule_id>.v<version>.<yyyymmddThhmmssZ>`; a run adds `.r<run>`."""
    text = f"{schedule_id}.v{version}.{compact_instant(scheduled_for)}"
    return text if run is None else f"{text}.r{run}"


def parse_occurrence_id(text: str) -> tuple[str, int, datetime, str | None]:
    """Split an id into (schedule_id, version, scheduled_for, run).

    Raises:
        InvalidInput: code `invalid_occurrence_id`.
    """
    parts = _OCCURRENCE_ID.fullmatch(text)
    if parts is None:
        message = "an occurrence id is <schedule_id>.v<version>.<yyyymmddThhmmssZ>"
        raise _invalid_id(message, text)
    try:
        instant = parse_compact(parts[3], field="occurrence_id")
    except InvalidInput as error:
        raise _invalid_id(error.message, text) from error
    return parts[1], int(parts[2]), instant, parts[4]


def _invalid_id(message: str, found: str) -> InvalidInput:
    return InvalidInput.of(
        "occurrence_id", "invalid_occurrence_id", message, found=found
    )


@lru_cache(maxsize=4096)
def bucket_of(instant: datetime) -> str:
    """Return the UTC minute that an instant lies in, as `yyyymmddThhmmZ`."""
    utc = to_utc(instant)
    return f"{utc.year:04d}{utc.month:02d}{utc.day:02d}T{utc.hour:02d}{utc.minute:02d}Z"


def minute_of(bucket: str) -> datetime:
    """Return the UTC minute that a bucket is named by.

    Raises:
        InvalidInput: it is no bucket's name.
    """
    return parse_compact(f"{bucket.removesuffix('Z')}00Z", field="bucket")


def partition_of(bucket: str, shard: int) -> str:
    """Return the partition key `<bucket>#<shard>`."""
    return f"{bucket}#{shard:04d}"


def row_key(
    schedule_id: str,
    version: int,
    scheduled_for: datetime,
    shard: int,
    run: str | None = None,
) -> RowKey:
    """Return the key of the row for this time; of a run, its own."""
    sort = f"{compact_instant(scheduled_for)}#{schedule_id}#v{version}"
    if run is not None:
        sort = f"{sort}#r{run}"
    return RowKey(bucket_of(scheduled_for), shard, sort)


def jitter_seconds(occurrence: str, window_seconds: int) -> int:
    """Return a delay in [0, window), the same for one occurrence_id every time.

    Derived from the id alone, so that a retry, a takeover or a failover of the
    materializer computes the same `available_at`.
    """
    if window_seconds <= 0:
        return 0
    digest = hashlib.sha256(occurrence.encode()).digest()
    return int.from_bytes(digest[:8]) % window_seconds
