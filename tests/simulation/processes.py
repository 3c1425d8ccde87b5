"""Processes, each with its own clock, its own ports, and a time to live."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hourbell.usecases.change_schedule import Changes
from hourbell.usecases.create_schedule import Registry
from hourbell.usecases.job_items import Bench
from hourbell.usecases.materialize import Plane
from hourbell.usecases.relay import Outbox
from hourbell.usecases.scan import Scanner
from hourbell.usecases.workplace import Workplace

from tests.simulation.faults import Crash, Port

HORIZON = timedelta(seconds=180)
MAX_SKEW = 2.0
# A function may be frozen past its timeout, yet never past the watermark's lag of two
# minutes; a caller is answered, or cut off, within 15 s.
LIVES = {
    "materializer": 100,
    "relay": 100,
    "caller": 15,
    "worker": 60,
    "mover": 100,
    "api": 15,
}
STALLS = {
    "materializer": (20, 95),
    "relay": (5, 95),
    "caller": (1, 12),
    "worker": (1, 50),
    "mover": (1, 95),
    "api": (1, 12),
}
# How long a frozen process is no use to anybody before it is found dead, in seconds.
FROZEN = (110, 300, 900, 3600)


class SkewedClock:
    """The `Clock` port: the true time, and so much more or less."""

    def __init__(self, world: Any, skew: timedelta) -> None:
        self.world = world
        self.skew = skew

    def now(self) -> datetime:
        reading: datetime = self.world.now + self.skew
        return reading


@dataclass(eq=False)
class Process:
    """A function's instance, of one kind."""

    world: Any
    kind: str
    name: str
    busy: bool = False
    tasks: int = 0
    began: datetime = field(init=False)
    frozen_until: datetime | None = None
    shards: Any = None
    twins: Any = None

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Be a new instance, on another machine."""
        world = self.world
        self.began = world.now
        skew = world.rng.uniform(-MAX_SKEW, MAX_SKEW)
        self.clock = SkewedClock(world, timedelta(seconds=round(skew, 3)))
        self.schedules = Port(self, "schedules", world.schedules)
        self.timeline = Port(self, "timeline", world.timeline)
        self.directory = Port(self, "directory", world.directory)
        self.groups = Port(self, "groups", world.groups)
        self.sweep_queue = Port(self, "sweep_queue", world.sweep_queue)
        self.parking = Port(self, "parking", world.parking)
        self.loads = Port(self, "loads", world.loads)
        self.rates = Port(self, "rates", world.places)
        self.ledger = Port(self, "ledger", world.ledger)
        self.queues = Port(self, "queues", world.queues)
        self.work_queue = Port(self, "work_queue", world.work_queue)
        self.jobs = Port(self, "jobs", world.jobs)
        self.job_queue = Port(self, "job_queue", world.job_queue)
        self.book = Port(self, "book", world.sharding.book)
        self.relocation = Port(self, "relocation", world.sharding.relocation)
        self.move_queue = Port(self, "move_queue", world.sharding.queue)
        world.sharding.equip(self)

    @property
    def is_free(self) -> bool:
        """Whether it can take a task."""
        if self.frozen_until is not None and self.frozen_until <= self.world.now:
            self.frozen_until = None
        return not self.busy and self.frozen_until is None

    def begin(self) -> str:
        """Begin a task; return a name that no other attempt has."""
        self.busy = True
        self.tasks += 1
        self.began = self.world.now
        return f"{self.name}-{self.tasks}"

    @property
    def plane(self) -> Plane:
        return Plane(
            self.schedules,
            self.twins,
            self.directory,
            self.shards,
            HORIZON,
            self.loads,
            self.rates,
        )

    @property
    def scanner(self) -> Scanner:
        return Scanner(
            self.plane,
            self.groups,
            self.parking,
            self.sweep_queue,
            self.work_queue,
            self.clock,
            self.workplace,
        )

    @property
    def workplace(self) -> Workplace:
        return Workplace.of(self.plane, self.ledger, self.world.ids, self.clock)

    @property
    def changes(self) -> Changes:
        return Changes(self.plane, self.groups, self.clock)

    @property
    def registry(self) -> Registry:
        return Registry(self.plane, self.groups, self.world.ids)

    @property
    def bench(self) -> Bench:
        return Bench(self.registry, self.changes, self.workplace)

    @property
    def outbox(self) -> Outbox:
        return Outbox(
            self.schedules,
            self.timeline,
            self.queues,
            self.clock,
            self.ledger,
            self.directory,
            self.plane.shards,
        )

    def enter(self, name: str) -> None:
        """Let time pass and others act before a call."""
        world = self.world
        world.now += timedelta(microseconds=world.rng.randrange(500, 20_000))
        if world.strikes("process frozen until it dies"):
            # Another instance is at work meanwhile; both frozen would be an outage.
            seconds = world.rng.choice(FROZEN)
            others = [p for p in world.processes if p.kind == self.kind and p != self]
            if all(each.frozen_until is None for each in others):
                self.frozen_until = world.now + timedelta(seconds=seconds)
            world.note(f"{self.name} freezes for {seconds} s before {name}")
            raise Crash
        if world.strikes("process stalls"):
            low, high = STALLS[self.kind]
            seconds = world.rng.uniform(low, high)
            world.note(f"{self.name} stalls {seconds:.0f} s before {name}")
            world.others_until(world.now + timedelta(seconds=seconds))
        self.between()
        if (world.now - self.began).total_seconds() > LIVES[self.kind]:
            world.count("timed out")
            raise Crash

    def leave(self, name: str) -> None:
        """Let others act after a call."""
        self.between()

    def between(self) -> None:
        """Let others act, perhaps."""
        world = self.world
        if world.strikes("another process acts"):
            world.another_acts()
        if world.strikes("a caller acts"):
            world.a_caller_acts()
