"""The seeded world: processes that work, fail and interleave on one memory store."""

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from hourbell.adapters.memory import (
    MemoryDeliveryQueues,
    MemoryDirectory,
    MemoryJobQueue,
    MemoryJobs,
    MemoryLedger,
    MemoryLoads,
    MemoryParking,
    MemoryRates,
    MemorySchedules,
    MemoryShardGroups,
    MemorySweepQueue,
    MemoryTimeline,
    MemoryWorkQueue,
    SeededIds,
)
from hourbell.domain.definition import Handler, Quotas, Routing, Tenant, Tier
from hourbell.domain.errors import HourbellError
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import run_pass

from tests.simulation.actions import Callers
from tests.simulation.calendar import STARTS, Calendar, long_outage
from tests.simulation.consumers import Consumers
from tests.simulation.faults import CHANCES, Crash
from tests.simulation.history import History
from tests.simulation.items import CLASS, Items
from tests.simulation.log import Log, Spec
from tests.simulation.outbox import OutboxRecords
from tests.simulation.processes import Process
from tests.simulation.rules import offset
from tests.simulation.shards import Sharding, counts_of
from tests.simulation.store import WatchedStore
from tests.simulation.workbook import Workbook

SHARDS, GROUPS = 2, 2
DEPTH = 2
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
WORKDAY = timedelta(minutes=30)
QUIET = timedelta(minutes=65)
# What may happen in the middle of something else.
TASKS = {"work", "stream", "sweep", "call", "job", "late write", "move", "consumer"}
QUOTA = 5
# Even where faults abound, some of everything goes well.
MOSTLY = 0.85
# How much likelier faults are when an outage is just over.
ROUGH = 4
TENANTS = (
    Tenant("gold", Tier.PREMIUM, quotas=Quotas(schedules=QUOTA)),
    Tenant("acme", Tier.STANDARD, quotas=Quotas(schedules=QUOTA)),
    Tenant("slow", Tier.BASIC, quotas=Quotas(schedules=QUOTA, catch_up_per_minute=2)),
)
ARN = "arn:aws:sqs:us-east-1:1"
HANDLERS = (
    ("ring", Routing.SHARED, None),
    ("own", Routing.DEDICATED, f"{ARN}:dedicated"),
    ("far", Routing.EXTERNAL, f"{ARN}:external"),
)


class TrueClock:
    """What the delivery queues go by."""

    def __init__(self, world: "World") -> None:
        self._world = world

    def now(self) -> datetime:
        return self._world.now


class World:
    """Everything there is in one run.

    Attributes:
        now: the true time.
        rates: the chance of each class of fault; empty while all is quiet.
        steps: tasks begun so far.
        released: keys of rows that were DEFERRED once.
        counts: faults by class, tasks by kind.
    """

    shard_count, group_count = SHARDS, GROUPS
    has_operator = True
    # How long after it could go on an occurrence may still be on its way at the end.
    patience = 15 * MINUTE

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now, self.zone, self.change = STARTS[seed % len(STARTS)]
        self.start = self.now
        self.log = Log()
        self.counts: Counter[str] = Counter()
        self.quota = QUOTA
        self.steps = self.depth = 0
        self.rates: dict[str, float] = self._draw_rates()
        self.log.calm = not self.rates
        self.faults: dict[str, float] = {}
        self.sharding = self._shard()
        self.released: set[Any] = set()
        self.items = Items(self)
        self.rough_until = self.now
        self._heap: list[tuple[datetime, int, str, Any]] = []
        self._events = 0
        self._make_ports()
        self.calendar = Calendar(self)
        self.callers = Callers(self)
        self.outbox = OutboxRecords(self)
        self.workbook = Workbook(self)
        self.consumers = self._make_consumers()
        kinds = ["materializer", "relay", "caller", "worker", "api"]
        kinds += ["mover"] if self.sharding.changes else []
        self.processes = [
            Process(self, kind, f"{kind[:3]}{n}") for kind in kinds for n in range(2)
        ]
        self.at(self.now, "tick")
        self.at(self.now + SECOND, "call")
        if self.has_operator:
            self.sharding.await_operator()

    def _make_consumers(self) -> Consumers:
        return Consumers(self)

    def _shard(self) -> Sharding:
        return Sharding(self, counts_of(self.seed))

    def _draw_rates(self) -> dict[str, float]:
        """Some seeds know no faults, some a few classes, some all of them."""
        kind = self.rng.choice(("calm", *("some",) * 4, *("all",) * 5))
        strength = self.rng.choice((0.3, 1.0, 2.0))
        if kind == "calm":
            return {}
        return {
            name: min(chance * strength, MOSTLY)
            for name, chance in CHANCES.items()
            if kind == "all" or self.rng.random() < 0.6
        }

    def _make_ports(self) -> None:
        self._make_stores()
        self.sharding.begin()
        self.tenants: dict[str, Tenant] = {}
        self.arns: dict[str, str] = {}
        for plain in TENANTS:
            tenant, name = self._limited(plain), plain.tenant_id
            self.tenants[name] = tenant
            self.arns[name] = f"arn:aws:iam::123456789012:user/{name}"
            self.directory.register_tenant(tenant, [f"123456789012:user/{name}"])
            for handler, routing, arn in HANDLERS:
                self.directory.register_handler(
                    Handler(name, handler, routing, queue_arn=arn)
                )

    def _limited(self, tenant: Tenant) -> Tenant:
        """Return a tenant with quotas of work, now and then."""
        running = self.rng.choice((None, None, 1, 2, 4))
        quotas = replace(
            tenant.quotas,
            # Of an outage of days, thousands would look for a place each half a minute.
            running=None if long_outage(self.seed) else running,
            retries_per_minute=self.rng.choice((None, None, 2, 6)),
        )
        return replace(tenant, quotas=quotas)

    def _make_stores(self) -> None:
        self.store = WatchedStore(self)
        self.schedules: Any = MemorySchedules(self.store)
        self.timeline: Any = MemoryTimeline(self.store)
        self.directory: Any = MemoryDirectory(self.store)
        self.groups: Any = MemoryShardGroups(self.store)
        self.sweep_queue: Any = MemorySweepQueue()
        self.parking: Any = MemoryParking(self.store)
        self.loads: Any = MemoryLoads(self.store)
        self.places: Any = MemoryRates(self.store)
        self.ledger: Any = MemoryLedger(self.store)
        self.work_queue: Any = MemoryWorkQueue()
        self.jobs: Any = MemoryJobs(self.store)
        self.job_queue: Any = MemoryJobQueue()
        self.queues: Any = MemoryDeliveryQueues(TrueClock(self))
        self.ids = SeededIds(self.seed)

    # --- what happens -----------------------------------------------------------

    def at(self, when: datetime, kind: str, what: Any = None) -> None:
        """Let something happen at a time."""
        self._events += 1
        heapq.heappush(self._heap, (when, self._events, kind, what))

    def strikes(self, name: str) -> bool:
        """Whether a fault of this class happens here."""
        if not self.rates:
            return False
        chance = self.rates.get(name, 0.0)
        if self.now < self.rough_until:
            chance *= ROUGH
        if not chance or self.rng.random() >= chance:
            return False
        self.count(name)
        return True

    def count(self, name: str) -> None:
        self.counts[name] += 1
        if name not in {"stale versions", "stale page", CLASS}:
            self.note(f"~ {name}")

    def note(self, text: str) -> None:
        """Write a line of the timeline."""
        indent = "    " * max(self.depth - 1, 0)
        self.log.lines.append(
            f"{self.steps:5} {self.now:%d %H:%M:%S.%f} {indent}{text}"
        )

    def run(self, steps: int) -> None:
        """Let so many tasks run, then the rest, at last without faults.

        When nobody calls the API of schedules any more, faults go on for a while: it
        is then that consumers have most to do.
        """
        while self.steps < steps:
            self._next()
        self.callers.closed = True
        self.note("from here on nobody makes or changes a schedule")
        end = self.now + WORKDAY
        while self._heap[0][0] <= end:
            self._next()
        self.rates, self.faults = {}, self.rates
        self.calendar.end_outage(None)
        self.note("from here on all is quiet")
        self.consumers.settle_down()
        end = self.now + QUIET
        while self._heap[0][0] <= end:
            self._next()
        while any(kind in {"stream", "sweep"} for _, _, kind, _ in self._heap):
            self._next()
        self.callers.jobs.settle()

    def others_until(self, when: datetime) -> None:
        """Let everything else happen until then, in the middle of a task."""
        while self.depth <= DEPTH and self._heap and self._heap[0][0] <= when:
            self._next()
        self.now = max(self.now, when)

    def another_acts(self) -> None:
        """Let a task of another process run now, in the middle of one."""
        if self.depth > DEPTH:
            return
        near = [each for each in self._heap if each[0] <= self.now + 20 * SECOND]
        near = [each for each in near if each[2] in TASKS]
        if near:
            chosen = self.rng.choice(sorted(near)[:4])
            self._heap.remove(chosen)
            heapq.heapify(self._heap)
            self._happen(*chosen[2:])
        elif not self.calendar.down:
            group = self.rng.randrange(self.sharding.now.groups)
            self._happen("work", (GroupWork(group, self.now), 2))

    def a_caller_acts(self) -> None:
        """Let a call of the API run now, in the middle of another task."""
        if self.depth <= DEPTH and not self.callers.closed:
            self._happen("extra call", None)

    def _next(self) -> None:
        when, _, kind, what = heapq.heappop(self._heap)
        self.now = max(self.now, when)
        self._happen(kind, what)
        if self.depth == 0:
            self._judge_step()

    def reached(self, name: str, *, after: bool) -> None:
        """Note that a process is before or after a port call; it may crash there."""

    def _happen(self, kind: str, what: Any) -> None:
        self._handlers()[kind](what)

    def _handlers(self) -> dict[str, Callable[[Any], None]]:
        handlers: dict[str, Callable[[Any], None]] = {
            "tick": self._tick,
            "work": self._work,
            "stream": self.outbox.relay_stream,
            "sweep": self.outbox.relay_sweep,
            "call": self._call,
            "extra call": self._extra_call,
            "job": self.callers.jobs.run,
            "move": self.sharding.move,
            "operator": self.sharding.operate,
            "late write": _write_late,
            "consumer": _act,
            "outage": self.calendar.begin_outage,
            "back": self.calendar.end_outage,
            "suspension": self.calendar.suspend,
            "readmission": self.calendar.readmit,
        }
        return handlers

    def task(self, kind: str, label: str, task: Callable[[Process, str], None]) -> bool:
        """Run a task in a free process of a kind; return False when none is free."""
        free = [p for p in self.processes if p.kind == kind and p.is_free]
        if not free:
            return False
        process = self.rng.choice(free)
        self.steps += 1
        self.counts[f"task: {kind}"] += 1
        self.depth += 1
        attempt = process.begin()
        self.note(f"[{attempt}] {label}")
        try:
            task(process, attempt)
        except Crash:
            self.note(f"[{attempt}] crashes")
            process.restart()
        finally:
            self.depth -= 1
            process.busy = False
        self.outbox.take_sweep()
        self.callers.jobs.take()
        self.sharding.take()
        for work in self.work_queue.take():
            self.at(self.now + SECOND, "work", (work, 2))
        return True

    # --- materializers ----------------------------------------------------------

    def _tick(self, _: Any) -> None:
        minute = self.now.replace(second=0, microsecond=0) + MINUTE
        self.at(minute + self.rng.uniform(0.1, 2) * SECOND, "tick")
        self.calendar.expire()
        if self.is_down("tick") or self.strikes("tick missed"):
            return
        self.callers.jobs.remind()
        for group in range(self.sharding.now.groups):
            for _ in range(2 if self.strikes("tick doubled") else 1):
                later = self.rng.uniform(0, 1.5) * SECOND
                self.at(self.now + later, "work", (GroupWork(group, self.now), 2))

    def _work(self, what: tuple[GroupWork, int]) -> None:
        work, tries = what
        done = False

        def scan(process: Process, attempt: str) -> None:
            nonlocal done
            deadline = process.clock.now() + 45 * SECOND
            report = run_pass(process.scanner, work, holder=attempt, deadline=deadline)
            done = True
            self.note(f"[{attempt}] leased={report.leased} {report.tally}")

        if self.is_down("materializer"):
            self.at(self.down["materializer"] + SECOND, "work", what)
            return
        try:
            if not self.task("materializer", f"pass of group {work.group}", scan):
                self.at(self.now + 3 * SECOND, "work", what)
                return
        except HourbellError as error:
            self.note(f"pass failed: {error}")
        if not done and tries:
            wait = self.rng.choice((1, 50))
            self.at(self.now + wait * SECOND, "work", (work, tries - 1))

    # --- callers and outages ----------------------------------------------------

    def _call(self, _: Any) -> None:
        if self.callers.closed:
            return
        wait = self.rng.choice((2, 5, 20, 120, 300, 600))
        self.at(self.now + self.rng.uniform(0.5, wait) * SECOND, "call")
        if not self.is_down("caller"):
            self.task("caller", "a call", self.callers.act)

    def _extra_call(self, _: Any) -> None:
        if not self.is_down("caller"):
            self.task("caller", "a call in between", self.callers.act)

    # --- judging ----------------------------------------------------------------

    @property
    def way(self) -> str:
        """Which way the clocks of its zone go soon."""
        assert self.change is not None
        ahead = offset(self.zone, self.change) > offset(self.zone, self.start)
        return "forward" if ahead else "back"

    def is_down(self, what: str) -> bool:
        return self.calendar.is_down(what)

    @property
    def down(self) -> dict[str, datetime]:
        """What is down, and until when."""
        return self.calendar.down

    def is_tracked(self, schedule_id: str) -> bool:
        return self.callers.is_tracked(schedule_id)

    def version_log(self, schedule_id: str) -> list[Any]:
        """Return a schedule's entries of the version log, the oldest first."""
        refs = self.store.versions
        found = [entry for ref, entry in refs.items() if ref.schedule_id == schedule_id]
        return sorted(found, key=lambda entry: entry.version)

    def model_spec(self, schedule_id: str, version: int) -> Spec:
        """Return what the calls say that a version says."""
        return History(self, schedule_id).owners[version].spec

    def short(self, schedule_id: str) -> str:
        """Return a schedule's name, for people."""
        found = self.store.schedules.get(schedule_id)
        return found.name if found else schedule_id[:8]

    def _judge_step(self) -> None:
        """The chain: an ACTIVE schedule has its cursor, or a record that it is over."""
        for schedule in self.store.schedules.values():
            if schedule.state != "ACTIVE" or schedule.handover:
                continue
            prefix = f"{schedule.schedule_id}.v{schedule.version}."
            planned = self.store.planned[schedule.schedule_id]
            if any(name.startswith(prefix) for name in planned):
                continue
            if not any(
                each.kind == "complete" and each.version == schedule.version
                for rows in self.store.dispatches.values()
                for each in rows.values()
                if each.schedule_id == schedule.schedule_id
            ):
                self.log.violate(
                    "the chain never breaks",
                    self.steps,
                    f"{schedule.name} v{schedule.version} has no cursor",
                    schedule.schedule_id,
                )


def _act(what: Callable[[], None]) -> None:
    """Let a consumer, or a queue, do something."""
    what()


def _write_late(write: Callable[[], Any]) -> None:
    """Let a request take effect that nobody waits for any more."""
    write()
