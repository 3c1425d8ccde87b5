"""What the use cases need of the outside world.

One conformance suite (tests/conformance) holds every implementation to these
docstrings. Writes are conditional; what a condition decided is a return value.
Every method may raise `Transient` when the dependency did not answer in time.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol

from hourbell.domain.definition import (
    Handler,
    Schedule,
    Tenant,
    Version,
    VersionRef,
)
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.usecases.group_ports import ParkedPage, Parking, ShardGroups
from hourbell.usecases.port_values import (
    Backfill,
    Change,
    Creation,
    Entry,
    GroupWork,
    Lease,
    ListEntry,
    Listing,
    Page,
    Probe,
    Run,
    Sent,
    Succession,
    Write,
)

__all__ = [
    "Backfill",
    "Change",
    "Clock",
    "Creation",
    "DeliveryQueues",
    "Directory",
    "Entry",
    "GroupWork",
    "Ids",
    "Lease",
    "ListEntry",
    "Listing",
    "Page",
    "ParkedPage",
    "Parking",
    "Probe",
    "QueueProbe",
    "Run",
    "Schedules",
    "Sent",
    "ShardGroups",
    "Succession",
    "SweepQueue",
    "Timeline",
    "WorkQueue",
    "Write",
]


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

    def create(
        self, schedule: Schedule, version: Version, first: Occurrence, *, quota: int
    ) -> Creation:
        """Store definition, first version, first row and name in one transaction.

        The same transaction counts the schedule against the tenant's quota. When
        several conditions fail at once, EXISTS goes before NAME_TAKEN goes before
        QUOTA_FULL. Never does a create go beyond its quota; above 10,000 one may be
        refused up to 1 % early while others create and cancel.
        """
        ...

    def find_by_name(self, tenant_id: str, name: str) -> str | None:
        """Return the id of the tenant's schedule of that name, consistently."""
        ...

    def relabel(self, schedule: Schedule, *, revision: int) -> Write:
        """Store description, tags, revision and updated_at, if `revision` stands.

        Returns:
            APPLIED, or LOST when the stored revision is another one.
        """
        ...

    def succeed(self, change: Succession) -> Write:
        """Begin a change of version, in one transaction.

        Stores the definition if its revision is `change.revision` and no handover is
        under way; puts the new version if absent; sets `ends_at` and `ends_as` of the
        ended one if absent; puts the dispatch row. A change to CANCELED also frees
        the name and the quota.

        Returns:
            APPLIED, or LOST when one of the conditions failed.
        """
        ...

    def take_over(
        self,
        version: Version,
        ended: VersionRef,
        first: Occurrence | Dispatch | None,
    ) -> Write:
        """Set who owns which times, once, in one transaction.

        Sets `effective_from` and `base_sequence` of the new version if it has none,
        and the same instant as `effective_to` of the ended one, if absent; puts the
        first row of the new version if its key is free, or when no time follows the
        dispatch row that completes the schedule (there is neither when the version is
        not ACTIVE); clears the definition's `handover` if it still names this version.

        Returns:
            APPLIED, or LOST when the handover was finished by somebody else.
        """
        ...

    def complete(self, schedule: Schedule, *, revision: int) -> Write:
        """Store that a schedule is COMPLETED, and free its name and its quota.

        In one transaction, if `revision` stands and no handover is under way.

        Returns:
            APPLIED, or LOST when one of the conditions failed.
        """
        ...

    def record_run(
        self, run: Run, row: Occurrence, release: Dispatch | None = None
    ) -> Write:
        """Store a manual run, its row and its dispatch row in one transaction.

        Returns:
            APPLIED; EXISTS when a run with this `run` is there; LOST when the
            schedule is canceled or gone. Except for APPLIED nothing is stored.
        """
        ...

    def find_run(self, schedule_id: str, run: str) -> Run | None:
        """Return a manual run by a consistent read."""
        ...

    def record_backfill(
        self,
        backfill: Backfill,
        row: Occurrence,
        release: Dispatch,
        *,
        twin: RowKey | None = None,
    ) -> Write:
        """Store a backfilled time, its row and its dispatch row in one transaction.

        Args:
            backfill: the time.
            row: its row.
            release: its dispatch row.
            twin: where else the row may lie, while its shard count changes.

        Returns:
            APPLIED; EXISTS when the time was backfilled before, under whatever
            version, or has a row in either place; LOST when the schedule is canceled
            or gone. Except for APPLIED nothing is stored.
        """
        ...

    def backfills(
        self, schedule_id: str, first: datetime, last: datetime
    ) -> tuple[Backfill, ...]:
        """Return what was backfilled from `first` to `last`, both included, in order.

        By consistent reads.
        """
        ...

    def version_log(
        self, schedule_id: str, *, before: int | None = None, limit: int = 50
    ) -> tuple[Version, ...]:
        """Return versions with numbers below `before`, newest first, consistently."""
        ...

    def listing(
        self, tenant_id: str, *, prefix: str = "", after: str | None, limit: int
    ) -> Listing:
        """Return a page of the tenant's schedules whose names begin with `prefix`.

        Stable under changes: a schedule that exists all the while is listed exactly
        once, whatever is created, changed or canceled meanwhile. `limit` bounds what
        is read, so a page may be short or empty although there is more.

        Raises:
            InvalidInput: `after` is not what an earlier page gave (`invalid_cursor`).
        """
        ...

    def count(self, tenant_id: str) -> int:
        """Return how many schedules count against the tenant's quota.

        Exact when nobody creates or cancels meanwhile.
        """
        ...

    def find(self, schedule_id: str) -> Schedule | None:
        """Return the current definition by a consistent read."""
        ...

    def versions(
        self, refs: Iterable[VersionRef], *, consistent: bool
    ) -> dict[VersionRef, Version]:
        """Return those of the versions that exist; duplicates are read once.

        Raises:
            Unreadable: one of them cannot be read.
        """
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

    def unfinished(
        self, bucket: str, shard: int, *, after: RowKey | None = None
    ) -> Page:
        """Return, of one bucket and shard, what has no expiry, and all dispatch rows.

        By an eventual read; a page may be empty, and not be the last one.
        """
        ...

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Occurrence]:
        """Return those of the occurrences that exist, by consistent reads.

        What cannot be read is left out; a page names it.
        """
        ...

    def look_up(self, keys: Iterable[RowKey]) -> Page:
        """Return what lies under these keys, of either kind, by consistent reads.

        In no order, on one page; what cannot be read is named.
        """
        ...

    def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Insert dispatch rows where their keys are free; packed, not atomic.

        No key may occur twice in one call.

        Returns:
            one of APPLIED, EXISTS, UNKNOWN per row, in order.
        """
        ...

    def settle(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Set dispatch rows DONE, with their expiry, where they are PENDING.

        Packed, not atomic. No key may occur twice in one call.

        Returns:
            APPLIED, LOST (it is done already or gone) or UNKNOWN per row, in order.
        """
        ...

    def reopen(self, change: Change, release: Dispatch) -> Write:
        """Make a transition and put the dispatch row, in one transaction.

        Returns:
            APPLIED, or LOST when the state is none of the transition's sources or
            there is a dispatch row under the key; then neither is done.
        """
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

    def find_tenant(self, tenant_id: str) -> Tenant | None:
        """Return a tenant by a consistent read."""
        ...

    def list_tenants(self, *, after: str | None, limit: int) -> tuple[Tenant, ...]:
        """Return tenants with ids above `after`, in order of id.

        One that cannot be read is left out; fewer than `limit` only at the end.
        """
        ...

    def change_tenant(self, tenant: Tenant, *, revision: int) -> Write:
        """Store a tenant whose stored revision is `revision`: APPLIED or LOST."""
        ...

    def principals_of(self, tenant_id: str) -> tuple[str, ...]:
        """Return the principals registered on a tenant, in order."""
        ...

    def add_principal(self, tenant_id: str, principal: str) -> Write:
        """Register a principal; EXISTS when it is taken, by whatever tenant."""
        ...

    def remove_principal(self, tenant_id: str, principal: str) -> Write:
        """Take a principal off a tenant; LOST when it is not registered on it."""
        ...

    def named_handlers(
        self, refs: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], Handler]:
        """Return those of (tenant_id, name) that exist; may be up to 30 s old."""
        ...

    def handlers(
        self, tenant_id: str, *, after: str | None, limit: int
    ) -> tuple[Handler, ...]:
        """Return handlers with names above `after`, in order of name.

        One that cannot be read is left out; fewer than `limit` only at the end.
        """
        ...

    def change_handler(self, handler: Handler, *, revision: int) -> Write:
        """Store a handler whose stored revision is `revision`: APPLIED or LOST."""
        ...


class QueueProbe(Protocol):
    """Sends a test message to a queue that a tenant registers."""

    def verify(self, queue_arn: str, body: str) -> Probe:
        """Send one message and tell what the queue said."""
        ...


class DeliveryQueues(Protocol):
    """The queues that consumers receive from. Only the relay has them."""

    def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        """Send up to 10 entries and 1 MiB; answer per entry_id.

        RETRY for whatever may pass later (a throttled entry, a lost response);
        REFUSED when the queue says that the message itself is at fault.
        """
        ...


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
