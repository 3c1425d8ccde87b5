"""Drain what an outage left overdue, on the in-memory adapters.

Minutely schedules with the policy CATCH_UP are overdue by hundreds of times each;
beside them, strict schedules are due at the full hour that comes two minutes after the
outage. Passes run group after group as the materializer would run them, each with the
deadline of its function, by a clock that goes on from the outage's end as fast as the
real one.

Reported: how many overdue times there were and what became of them, how long the
longest pass took against its budget, the process's peak of memory with the whole store
in it, and the least lead of the strict occurrences: how long before its time each was
an outbox record.

Run: `python -m loadtest.bench.outage [--json] [--schedules N] [--minutes M]`.
"""

import argparse
import json
import resource
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from hourbell.adapters.memory import (
    MemoryDirectory,
    MemoryLedger,
    MemoryLoads,
    MemoryParking,
    MemoryRates,
    MemorySchedules,
    MemoryShardGroups,
    MemoryStore,
    MemorySweepQueue,
    MemoryTimeline,
    MemoryWorkQueue,
    SeededIds,
)
from hourbell.domain.definition import Handler, Quotas, Tenant, Tier
from hourbell.domain.misfire import MAX_CATCH_UP, Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.create_schedule import NewSchedule, Registry, create_schedule
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import PassReport, Scanner, run_pass
from hourbell.usecases.workplace import Workplace

START = datetime(2040, 1, 2, 0, 0, 30, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HORIZON = timedelta(seconds=180)
SHARDS, GROUPS = 16, 4
STRICT = 200
# What the function's timeout leaves when watermarks and lease are to be written.
BUDGET = timedelta(seconds=45)
MEMORY_LIMIT_MB = 300
MAX_PASSES = 400

TENANT = Tenant("acme", Tier.STANDARD, quotas=Quotas(schedules=10_000_000))
CALLER = Caller(TENANT, "1:user/bench", "arn:aws:iam::1:user/bench")


class RunningClock:
    """A clock that is set once and then goes on as the real one does."""

    def __init__(self, instant: datetime) -> None:
        self.set(instant)

    def set(self, instant: datetime) -> None:
        """Let it be this instant now."""
        self._instant, self._since = instant, perf_counter()

    def now(self) -> datetime:
        """Return the current instant."""
        return self._instant + timedelta(seconds=perf_counter() - self._since)


@dataclass(frozen=True, slots=True)
class World:
    """The ports in memory, and what drives them."""

    store: MemoryStore
    plane: Plane
    groups: MemoryShardGroups
    clock: RunningClock
    strict: set[str] = field(default_factory=set)

    @classmethod
    def new(cls) -> "World":
        """Make an empty one with a tenant and its handler."""
        store = MemoryStore()
        directory = MemoryDirectory(store)
        directory.register_tenant(TENANT, ["1:user/bench"])
        directory.register_handler(Handler(TENANT.tenant_id, "ring"))
        plane = Plane(
            MemorySchedules(store),
            MemoryTimeline(store),
            directory,
            ShardMap.constant(SHARDS, GROUPS),
            HORIZON,
            MemoryLoads(store),
            MemoryRates(store),
        )
        return cls(store, plane, MemoryShardGroups(store), RunningClock(START))

    def create(self, name: str, expression: str, ids: SeededIds) -> str:
        """Create a schedule as its tenant would; return its id."""
        request = NewSchedule(
            name,
            Timing(expression),
            "ring",
            body_hash=name,
            misfire=Misfire(MisfirePolicy.CATCH_UP, MAX_CATCH_UP),
        )
        registry = Registry(self.plane, self.groups, ids)
        return create_schedule(registry, CALLER, request, START).schedule.schedule_id

    def scan(self, group: int) -> tuple[PassReport, float]:
        """Scan a group once; return the report, and the seconds that it took."""
        started, now = perf_counter(), self.clock.now()
        scanner = Scanner(
            self.plane,
            self.groups,
            MemoryParking(self.store),
            MemorySweepQueue(),
            MemoryWorkQueue(),
            self.clock,
            Workplace.of(self.plane, MemoryLedger(self.store), SeededIds(), self.clock),
        )
        work = GroupWork(group, now)
        report = run_pass(scanner, work, holder="bench", deadline=now + BUDGET)
        # The relay's part is not measured here, and its records must not pile up.
        self.store.take_stream()
        return report, perf_counter() - started

    def overdue(self, until: datetime) -> int:
        """Return how many rows of the outage are undecided or not worked off."""
        rows = self.store.all_rows()
        return sum(r.state is State.PLANNED and r.scheduled_for < until for r in rows)


def measure(schedules: int, minutes: int) -> dict[str, Any]:
    """Let there be an outage of so many minutes, and drain it."""
    world, ids = World.new(), SeededIds()
    # The outage ends two minutes before a full hour.
    back = START.replace(second=20) + timedelta(minutes=58 + 60 * (minutes // 60))
    for number in range(schedules):
        world.create(f"minutely-{number}", "* * * * *", ids)
    for number in range(STRICT):
        world.strict.add(world.create(f"strict-{number}", "0 * * * *", ids))
    world.store.take_stream()
    world.clock.set(back)
    passes = _drain(world, back)
    return _report(world, passes, schedules, back)


def _drain(world: World, back: datetime) -> list[tuple[PassReport, float]]:
    passes: list[tuple[PassReport, float]] = []
    while len(passes) < MAX_PASSES:
        passes += [world.scan(group) for group in range(GROUPS)]
        if not world.overdue(back - MINUTE):
            break
    return passes


def _report(
    world: World,
    passes: list[tuple[PassReport, float]],
    schedules: int,
    back: datetime,
) -> dict[str, Any]:
    rows = world.store.all_rows()
    caught_up = [row for row in rows if row.lane is Lane.CATCHUP]
    fates = Counter(str(row.state) for row in caught_up)
    longest = max(seconds for _, seconds in passes)
    hour = back.replace(minute=0, second=0) + timedelta(hours=1)
    leads = [
        _lead(row, hour)
        for row in rows
        if row.schedule_id in world.strict and row.scheduled_for == hour
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report = {
        "bench": "outage",
        "schedules": schedules,
        "outage_minutes": (back - START) // MINUTE,
        "caught_up": len(caught_up),
        "fates": dict(sorted(fates.items())),
        "undecided": world.overdue(back - MINUTE),
        "passes": len(passes),
        "unfinished_passes": sum(not report.finished for report, _ in passes),
        "longest_pass_seconds": round(longest, 2),
        "budget_seconds": BUDGET.total_seconds(),
        "peak_memory_mb": round(peak),
        "memory_limit_mb": MEMORY_LIMIT_MB,
        "strict": len(leads),
        "least_strict_lead_seconds": round(min(leads, default=0.0), 1),
    }
    return report | {"kept": _is_kept(report)}


def _lead(row: Occurrence, hour: datetime) -> float:
    """Return how long before the hour a row of it was an outbox record."""
    scheduled_at = row.scheduled_at or hour + MINUTE
    return (hour - scheduled_at).total_seconds()


def _is_kept(report: dict[str, Any]) -> bool:
    limits = (
        report["undecided"] == 0,
        report["longest_pass_seconds"] <= report["budget_seconds"] + 1,
        report["peak_memory_mb"] <= MEMORY_LIMIT_MB,
        report["strict"] == STRICT,
        report["least_strict_lead_seconds"] > 0,
    )
    return all(limits)


def main() -> int:
    """Measure, print, and tell by the exit code whether the limits were kept."""
    parser = argparse.ArgumentParser(prog="bench outage", description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--schedules", type=int, default=360)
    parser.add_argument("--minutes", type=int, default=540)
    options = parser.parse_args()
    report = measure(options.schedules, options.minutes)
    if options.json:
        sys.stdout.write(json.dumps(report) + "\n")
    else:
        for name, value in report.items():
            sys.stdout.write(f"{name.replace('_', ' '):<28}{value}\n")
    return 0 if report["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
