"""What the use cases need of the outside world.

One conformance suite (tests/conformance) holds every implementation to these
docstrings. Writes are conditional; what a condition decided is a return value.
Every method may raise `Transient` when the dependency did not answer in time.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from hourbell.domain.definition import (
    Handler,
    Schedule,
    Tenant,
    Version,
    VersionRef,
)
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
    under the condition that the stored state is one of the transition's sources.
    """

    row: Occurrence
    transition: Transition


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of one bucket and shard in key order.

    Attributes:
        after: pass it back to get the next page; None at the end.
    """

    rows: tuple[Occurrence, ...]
    after: RowKey | None


class Clock(Protocol):
    """The wall clock."""

    def now(self) -> datetime:
        """Return the current instant, UTC."""
        ...


class Ids(Protocol):
    """The source of randomness."""

    def schedule_id(self) -> str:
        """Return a new schedule id."""
        ...

    def token(self) -> str:
        """Return 32 random hexadecimal characters."""
        ...


class Schedules(Protocol):
    """Definitions and the version log."""

    def create(self, schedule: Schedule, version: Version, first: Occurrence) -> Write:
        """Store definition, first version and first row in one transaction.

        Returns:
            APPLIED, or EXISTS when the schedule_id is taken; then nothing is stored.
        """
        ...

    def find(self, schedule_id: str) -> Schedule | None:
        """Return the current definition by a consistent read."""
        ...

    def versions(
        self, refs: Iterable[VersionRef], *, consistent: bool
    ) -> dict[VersionRef, Version]:
        """Return those of the versions that exist; duplicates are read once."""
        ...


class Timeline(Protocol):
    """The rows of all occurrences."""

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Insert PLANNED rows where their keys are free; packed, not atomic.

        Returns:
            one of APPLIED, EXISTS, UNKNOWN per row, in order.
        """
        ...

    def move(self, changes: Sequence[Change]) -> list[Write]:
        """Make conditional transitions; packed, not atomic, not ordered.

        No key may occur twice in one call.

        Returns:
            one of APPLIED, LOST, UNKNOWN per change, in order.
        """
        ...

    def page(
        self,
        bucket: str,
        shard: int,
        *,
        after: RowKey | None = None,
        limit: int = 1000,
        consistent: bool = False,
    ) -> Page:
        """Return rows of one bucket and shard."""
        ...

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Occurrence]:
        """Return those of the rows that exist, by consistent reads."""
        ...


class Directory(Protocol):
    """Tenants, their principals and their handlers."""

    def tenant_of(self, principal: str) -> Tenant | None:
        """Return the tenant that a normalized principal is registered on."""
        ...

    def tenants(self, tenant_ids: Iterable[str]) -> dict[str, Tenant]:
        """Return those of the tenants that exist; may be up to 30 s old."""
        ...

    def handler(self, tenant_id: str, name: str) -> Handler | None:
        """Return a handler of a tenant."""
        ...

    def register_tenant(self, tenant: Tenant, principals: Sequence[str]) -> Write:
        """Create a tenant and its principals in one transaction.

        Returns:
            APPLIED, or EXISTS when the tenant or one of the principals is taken.
        """
        ...

    def register_handler(self, handler: Handler) -> Write:
        """Create a handler: APPLIED or EXISTS."""
        ...


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to scan a shard group for a while.

    Attributes:
        generation: grows with every acquisition; a holder of an older one has lost.
        watermarks: per shard, the first minute that may still hold open rows.
        floor: the watermark of shards that have no own entry.
    """

    group: int
    holder: str
    generation: int
    expires_at: datetime
    floor: datetime
    watermarks: Mapping[int, datetime]


class ShardGroups(Protocol):
    """Leases and watermarks of the shard groups."""

    def ensure(self, group: int, floor: datetime) -> None:
        """Create the group's record with this floor unless it exists.

        Called before the first row of a group is written, so that no scan can ever
        start later than a row.
        """
        ...

    def acquire(
        self, group: int, holder: str, *, now: datetime, duration: timedelta
    ) -> Lease | None:
        """Take the lease if it is free, expired, or the holder's own.

        Returns:
            the lease, or None while another holder's is alive, or no record exists.
        """
        ...

    def release(self, lease: Lease, watermarks: Mapping[int, datetime]) -> Write:
        """Store watermarks and give the lease back, if it is still this lease.

        Returns:
            APPLIED, or LOST when another holder took over.
        """
        ...


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


class DeliveryQueues(Protocol):
    """The queues that consumers receive from. Only the relay has them."""

    def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        """Send up to 10 entries and 1 MiB; answer per entry_id.

        RETRY for whatever may pass later (a throttled entry, a lost response);
        REFUSED when the queue says that the message itself is at fault.
        """
        ...


@dataclass(frozen=True, slots=True)
class GroupWork:
    """The order to scan one shard group once.

    Attributes:
        group: which one.
        tick: the instant of the tick that asked for it.
    """

    group: int
    tick: datetime


class WorkQueue(Protocol):
    """From tick to materializer."""

    def put(self, work: Sequence[GroupWork]) -> None:
        """Enqueue the orders.

        Raises:
            Transient: one of them was not accepted after retries.
        """
        ...


class SweepQueue(Protocol):
    """From whoever finds a stuck outbox record to the relay."""

    def put(self, keys: Sequence[RowKey]) -> None:
        """Enqueue keys of outbox records, in messages of up to 50 keys.

        Raises:
            Transient: one of the messages was not accepted after retries.
        """
        ...
