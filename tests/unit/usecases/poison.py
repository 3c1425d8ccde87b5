"""Rows that no pass can take, and the repair of what is wrong with them."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hourbell.domain.definition import Tier, VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import Unreadable
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.domain.parking import ParkReason
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import Page, Sent
from hourbell.usecases.scan import PassReport

from tests.unit.usecases.faults import AnsweringQueues
from tests.unit.usecases.world import MINUTE, World

EVERY_TEN = Timing("*/10 * * * *")


@dataclass
class Damaged:
    """A port some of whose items cannot be read, as DynamoDB's say it.

    Attributes:
        versions_lost: refs of versions.
        rows_lost: keys of rows.
        tenants_lost: ids of tenants.
        handlers_lost: refs of handlers.
        lanes_lost: ids of the schedules whose lanes they are.
        calls: how often each method was called.
    """

    port: Any
    versions_lost: set[VersionRef] = field(default_factory=set)
    rows_lost: set[RowKey] = field(default_factory=set)
    tenants_lost: set[str] = field(default_factory=set)
    handlers_lost: set[tuple[str, str]] = field(default_factory=set)
    lanes_lost: set[str] = field(default_factory=set)
    calls: Counter[str] = field(default_factory=Counter)

    def __getattr__(self, name: str) -> Any:
        self.calls[name] += 1
        return getattr(self.port, name)

    def versions(self, refs: Iterable[VersionRef], *, consistent: bool) -> Any:
        wanted = list(refs)
        if self.versions_lost.intersection(wanted):
            raise Unreadable
        return self.port.versions(wanted, consistent=consistent)

    def tenants(self, tenant_ids: Iterable[str]) -> Any:
        wanted = list(tenant_ids)
        if self.tenants_lost.intersection(wanted):
            raise Unreadable
        return self.port.tenants(wanted)

    def named_handlers(self, refs: Iterable[tuple[str, str]]) -> Any:
        wanted = list(refs)
        if self.handlers_lost.intersection(wanted):
            raise Unreadable
        return self.port.named_handlers(wanted)

    def lane(self, schedule_id: str) -> Any:
        if schedule_id in self.lanes_lost:
            raise Unreadable
        return self.port.lane(schedule_id)

    def page(self, bucket: str, shard: int, **options: Any) -> Page:
        self.calls["page"] += 1
        return self._hide(self.port.page(bucket, shard, **options))

    def look_up(self, keys: Iterable[RowKey]) -> Page:
        self.calls["look_up"] += 1
        return self._hide(self.port.look_up(keys))

    def read(self, keys: Iterable[RowKey]) -> Any:
        return self.port.read([key for key in keys if key not in self.rows_lost])

    def _hide(self, page: Page) -> Page:
        lost = [row.key for row in page.rows if row.key in self.rows_lost]
        rows = tuple(row for row in page.rows if row.key not in lost)
        return replace(page, rows=rows, unreadable=(*page.unreadable, *lost))


class PoisonedWorld(World):
    """A world whose tables may be damaged."""

    def __post_init__(self) -> None:
        super().__post_init__()
        ports = (self.schedules, self.timeline, self.ledger)
        damaged: Any = tuple(map(Damaged, ports))
        self.damaged_schedules, self.damaged_timeline, self.damaged_ledger = damaged
        self.schedules, self.timeline, self.ledger = damaged
        directory: Any = Damaged(self.directory)
        self.damaged_directory = self.directory = directory
        self.answers: dict[str, Sent] = {}
        answering: Any = AnsweringQueues(self.queues, self.answers)
        self.relay_queues = answering
        self.add_tenant("zeta", Tier.STANDARD)

    @property
    def outbox(self) -> Any:
        return replace(super().outbox, queues=self.relay_queues)

    def minutes(self, count: int) -> list[PassReport]:
        """Let some minutes pass, each with its passes and the relay."""
        reports = []
        for _ in range(count):
            reports += self.scan()
            self.relay_stream()
            self.relay_sweep()
            self.clock.advance(MINUTE)
        return reports

    def pages(self) -> int:
        """Return how many pages were read since the last call."""
        calls: Counter[str] = self.damaged_timeline.calls
        return calls.pop("page", 0)


Act = Callable[[PoisonedWorld, Occurrence], None]


@dataclass(frozen=True)
class Poison:
    """One way for a row to be in the way.

    Attributes:
        spoil: makes it so, before the row is due.
        repair: takes the cause away.
        reason: what is told of it.
        patience: after how many minutes it is parked.
    """

    spoil: Act
    repair: Act
    reason: ParkReason
    patience: int = 15


def _forget_tenant(world: PoisonedWorld, row: Occurrence) -> None:
    del world.store.tenants[row.tenant_id]


def _tenant_back(world: PoisonedWorld, row: Occurrence) -> None:
    world.store.tenants[row.tenant_id] = replace(
        world.store.tenants["acme"], tenant_id=row.tenant_id
    )


def _forget_handler(world: PoisonedWorld, row: Occurrence) -> None:
    del world.store.handlers[row.tenant_id, "ring"]


def _handler_back(world: PoisonedWorld, row: Occurrence) -> None:
    ours = world.store.handlers["acme", "ring"]
    world.store.handlers[row.tenant_id, "ring"] = replace(ours, tenant_id=row.tenant_id)


def _damage_tenant(world: PoisonedWorld, row: Occurrence) -> None:
    world.damaged_directory.tenants_lost.add(row.tenant_id)


def _damage_handler(world: PoisonedWorld, row: Occurrence) -> None:
    world.damaged_directory.handlers_lost.add((row.tenant_id, "ring"))


def _mend_directory(world: PoisonedWorld, row: Occurrence) -> None:
    del row
    world.damaged_directory.tenants_lost.clear()
    world.damaged_directory.handlers_lost.clear()


def _in_zone(zone: str) -> Act:
    def move(world: PoisonedWorld, row: Occurrence) -> None:
        ref = VersionRef(row.schedule_id, 1)
        version = world.store.versions[ref]
        timing = replace(version.definition.timing, zone=zone)
        definition = replace(version.definition, timing=timing)
        world.store.versions[ref] = replace(version, definition=definition)

    return move


def _damage_version(number: int) -> Act:
    def damage(world: PoisonedWorld, row: Occurrence) -> None:
        lost = VersionRef(row.schedule_id, number)
        world.damaged_schedules.versions_lost.add(lost)

    return damage


def _mend_versions(world: PoisonedWorld, row: Occurrence) -> None:
    del row
    world.damaged_schedules.versions_lost.clear()


def _damage_row(world: PoisonedWorld, row: Occurrence) -> None:
    world.damaged_timeline.rows_lost.add(row.key)


def _mend_rows(world: PoisonedWorld, row: Occurrence) -> None:
    del row
    world.damaged_timeline.rows_lost.clear()


def _delete_queue(world: PoisonedWorld, row: Occurrence) -> None:
    world.answers[row.occurrence_id] = Sent.RETRY


def _queue_back(world: PoisonedWorld, row: Occurrence) -> None:
    del row
    world.answers.clear()


def _strand_handover(world: PoisonedWorld, row: Occurrence) -> None:
    """Leave a handover to a version behind that cannot be read."""
    _damage_version(2)(world, row)
    due, now = row.scheduled_for, world.clock.now()
    world.store.put_dispatch(
        Dispatch(DispatchKind.HANDOVER, row.schedule_id, 2, "zeta", due, row.shard, now)
    )


POISONS = {
    "tenant gone": Poison(_forget_tenant, _tenant_back, ParkReason.TENANT_GONE),
    "handler gone": Poison(_forget_handler, _handler_back, ParkReason.HANDLER_GONE),
    "tenant unreadable": Poison(
        _damage_tenant, _mend_directory, ParkReason.TENANT_GONE
    ),
    "handler unreadable": Poison(
        _damage_handler, _mend_directory, ParkReason.HANDLER_GONE
    ),
    "zone gone": Poison(
        _in_zone("US/Pacific-New"), _in_zone("UTC"), ParkReason.VERSION_INVALID
    ),
    "version unreadable": Poison(
        _damage_version(1), _mend_versions, ParkReason.VERSION_UNREADABLE
    ),
    "row unreadable": Poison(_damage_row, _mend_rows, ParkReason.ROW_UNREADABLE),
    "queue deleted": Poison(_delete_queue, _queue_back, ParkReason.UNSENT, patience=60),
    "handover faulty": Poison(
        _strand_handover, _mend_versions, ParkReason.DISPATCH_FAULTY
    ),
}
# Those in which the row itself stays undecided.
UNDECIDED = sorted(POISONS.keys() - {"queue deleted", "handover faulty"})
