"""What passes through the ports: orders, answers, pages."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hourbell.domain.definition import Schedule, ScheduleState, Version
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey, Transition


class Write(StrEnum):
    """What became of one conditional write.

    APPLIED: it took effect. EXISTS: an insert found a row under its key.
    LOST: an update's condition did not hold (another writer was there, or no row).
    UNKNOWN: throttling, a conflict or an error outlasted the retries; it may or may
    not have taken effect, and must be tried again later.
    """

    APPLIED = "APPLIED"
    EXISTS = "EXISTS"
    LOST = "LOST"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Change:
    """One move of one row: `row` as it shall be, and the transition's name.

    The store writes the row's state and the fields that the transition declares,
    under the condition that the stored state is one of the transition's sources, and
    that each field named by `expects` is stored with the value that stands beside it;
    None, or 0 for a count, is that of a field that is not stored.
    """

    row: Occurrence
    transition: Transition
    expects: tuple[tuple[str, object], ...] = ()


def same_wait(row: Occurrence) -> tuple[tuple[str, object], ...]:
    """Return what a change expects that must not meet the row after a later claim."""
    return (("waits", row.waits),)


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of one bucket and shard in key order.

    Attributes:
        rows: the occurrences.
        after: pass it back to get the next page; None at the end.
        dispatches: the dispatch rows.
        unreadable: keys of rows that this code cannot read: damaged, or of another
            release. They are nobody's to act on, and must not be passed over.
    """

    rows: tuple[Occurrence, ...]
    after: RowKey | None
    dispatches: tuple[Dispatch, ...] = ()
    unreadable: tuple[RowKey, ...] = ()


class Creation(StrEnum):
    """What became of a create.

    EXISTS: the schedule_id is taken. NAME_TAKEN: another schedule of the tenant has
    the name. QUOTA_FULL: the tenant has as many schedules as it may. Except for
    CREATED nothing is stored.
    """

    CREATED = "CREATED"
    EXISTS = "EXISTS"
    NAME_TAKEN = "NAME_TAKEN"
    QUOTA_FULL = "QUOTA_FULL"


@dataclass(frozen=True, slots=True)
class Succession:
    """The change from one version of a schedule to the next.

    Attributes:
        schedule: the definition as it shall be: new version, new revision,
            `handover` True.
        version: the new version, without `effective_from`.
        ended: the version in force so far, with `ends_at` and `ends_as` set.
        dispatch: the row by which a pass finishes an interrupted handover.
        revision: the revision that must be stored still.
    """

    schedule: Schedule
    version: Version
    ended: Version
    dispatch: Dispatch
    revision: int


@dataclass(frozen=True, slots=True)
class Run:
    """A manual run: an occurrence that no rule can recompute.

    Attributes:
        key_hash: SHA-256 of tenant, schedule and idempotency key, hexadecimal; its
            first 16 characters are the occurrence's `run`.
        scheduled_for: when it was asked for, to the second.
        requested_by: ARN of the caller.
    """

    schedule_id: str
    key_hash: str
    version: int
    scheduled_for: datetime
    requested_by: str
    reason: str | None = None

    @property
    def run(self) -> str:
        """What tells it from other runs."""
        return self.key_hash[:16]


@dataclass(frozen=True, slots=True)
class Backfill:
    """A time that a backfill made an occurrence of, and that no rule can recompute.

    Attributes:
        version: under whose number it runs.
        requested_at: when.
        requested_by: ARN of the caller.
    """

    schedule_id: str
    scheduled_for: datetime
    version: int
    requested_at: datetime
    requested_by: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ListEntry:
    """What the list index tells of a schedule."""

    schedule_id: str
    name: str
    state: ScheduleState
    version: int
    revision: int
    created_at: datetime
    updated_at: datetime
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of a tenant's schedules, in order of name within each list shard.

    Attributes:
        entries: as the index has them; may be a moment old.
        after: pass it back to get the next page; None at the end.
    """

    entries: tuple[ListEntry, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to scan a shard group for a while.

    Attributes:
        generation: grows with every acquisition; a holder of an older one has lost.
        watermarks: per shard, the first minute that may still hold open rows.
        floor: the watermark of shards that have no own entry.
        passed_at: when the last pass that was finished began; None before the first.
        looked_at: when the last pass that was through with its second looks began;
            None before the first.
        looked_until: the first minute whose buckets have yet to have their last look;
            None before the first.
    """

    group: int
    holder: str
    generation: int
    expires_at: datetime
    floor: datetime
    watermarks: Mapping[int, datetime]
    passed_at: datetime | None = None
    looked_at: datetime | None = None
    looked_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One message for a delivery queue.

    Attributes:
        entry_id: unique within the send; letters, digits, `-`, `_`.
        body: the message, already encoded.
        delay_seconds: 0 to 900.
        group: the tenant, for fair queueing.
    """

    entry_id: str
    body: str
    delay_seconds: int
    group: str


class Sent(StrEnum):
    """What the queue said of one entry."""

    ACCEPTED = "ACCEPTED"
    RETRY = "RETRY"
    REFUSED = "REFUSED"


class Probe(StrEnum):
    """What became of a test message.

    NOT_FOUND: there is no such queue, as far as we are let to see. ACCESS_DENIED: the
    queue, or the key that encrypts it, does not let us send. REFUSED: the queue takes
    no such message, whatever our rights.
    """

    ACCEPTED = "ACCEPTED"
    NOT_FOUND = "NOT_FOUND"
    ACCESS_DENIED = "ACCESS_DENIED"
    REFUSED = "REFUSED"


@dataclass(frozen=True, slots=True)
class GroupWork:
    """The order to scan one shard group once.

    Attributes:
        group: which one.
        tick: the instant of the tick that asked for it.
    """

    group: int
    tick: datetime
