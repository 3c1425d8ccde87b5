"""A world whose shard count changes, with processes that know of it sooner or later."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hourbell.adapters.memory.shards import (
    MemoryEpochBook,
    MemoryMoveQueue,
    MemoryRelocation,
)
from hourbell.domain.occurrence import Occurrence, minute_of
from hourbell.domain.policies import EPOCH_AGE
from hourbell.domain.shards import Phase, ShardMap, stable_hash
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.reshard import Mover, Plan, announce, move
from hourbell.usecases.scan import PassReport, run_pass
from hourbell.usecases.shard_ports import Epochs, MoveOrder
from hourbell.usecases.twins import TwinTimeline

from tests.unit.usecases.world import World

OPERATOR = "arn:aws:iam::123456789012:role/operator"


@dataclass
class AgingMaps:
    """What one process knows of the epochs: as old as it may be, as at worst."""

    world: "ReshardingWorld"
    read_at: datetime | None = None
    known: ShardMap | None = None

    def current(self) -> ShardMap:
        now = self.world.clock.now()
        if self.known is None or self.read_at is None or now - self.read_at > EPOCH_AGE:
            epochs = self.world.book.read()
            self.known = self.world.shard_map if epochs is None else epochs.shard_map
            self.read_at = now
        return self.known


@dataclass
class ReshardingWorld(World):
    """A world in which each process has maps of its own."""

    delayed: list[tuple[datetime, MoveOrder]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.book = MemoryEpochBook(self.store)
        self.relocation = MemoryRelocation(self.store)
        self.move_queue = MemoryMoveQueue()
        self.maps = AgingMaps(self)

    @property
    def plane(self) -> Plane:
        return self.plane_of(self.maps)

    def plane_of(self, maps: AgingMaps) -> Plane:
        twins = TwinTimeline(self.timeline, maps, self.relocation)
        return replace(super().plane, shards=maps, timeline=twins)

    @property
    def mover(self) -> Mover:
        return Mover(
            self.book,
            self.groups,
            self.relocation,
            self.move_queue,
            self.clock,
            self.shard_map,
        )

    @property
    def epochs(self) -> Epochs:
        stored = self.book.read()
        assert stored is not None
        return stored

    @property
    def phase(self) -> Phase:
        return self.epochs.shard_map.last.phase

    def reshard(self, shards: int, groups: int | None = None, **plan: Any) -> Epochs:
        return announce(self.mover, Plan(shards, groups, **plan), requested_by=OPERATOR)

    def take_orders(self) -> list[MoveOrder]:
        """Return the orders whose delay is over."""
        now = self.clock.now()
        self.delayed += [
            (now + delay, order) for order, delay in self.move_queue.orders
        ]
        self.move_queue.orders.clear()
        due = [order for at, order in self.delayed if at <= now]
        self.delayed = [each for each in self.delayed if each[0] > now]
        return due

    def work_off(self, mover: Mover | None = None) -> int:
        """Work off the orders that are due, and those that follow at once."""
        done = 0
        while orders := self.take_orders():
            for order in orders:
                move(mover or self.mover, order, deadline=self.clock.now())
                done += 1
        return done

    def scan_all(self, maps: AgingMaps | None = None) -> list[PassReport]:
        """Let every group of the newest epoch be scanned once."""
        scanner = replace(self.scanner, plane=self.plane_of(maps or self.maps))
        stored = self.book.read()
        shard_map = self.shard_map if stored is None else stored.shard_map
        return [
            run_pass(scanner, GroupWork(group, self.clock.now()), holder="m1")
            for group in range(shard_map.groups)
        ]

    def relay_all(self) -> None:
        self.relay_stream()
        self.relay_sweep()

    def astray(self) -> list[Occurrence]:
        """Return the rows that do not lie where the list of epochs says."""
        shard_map = self.epochs.shard_map
        return [
            row
            for row in self.store.all_rows()
            if row.shard
            != stable_hash(row.schedule_id)
            % shard_map.shards_at(minute_of(row.key.bucket))
        ]

    def twice(self) -> list[str]:
        """Return the occurrence ids that more than one row has."""
        ids = [row.occurrence_id for row in self.store.all_rows()]
        return sorted({each for each in ids if ids.count(each) > 1})

    def pass_minutes(self, minutes: int, maps: AgingMaps | None = None) -> None:
        """Let minutes pass, with a tick, the relay and the mover in each."""
        for _ in range(minutes):
            self.scan_all(maps)
            self.relay_all()
            self.work_off()
            self.clock.advance(timedelta(minutes=1))
