"""Two materializers of one group, one stopped for longer than its lease."""

import functools
import itertools
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hourbell.adapters.memory import FixedClock
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import LEASE_DURATION, PassReport, run_pass

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_parking_crashes import watching
from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_FIVE = Timing("*/5 * * * *")
# How many overdue times run, by policy.
POLICIES = {
    Misfire(MisfirePolicy.SKIP): 0,
    Misfire(MisfirePolicy.FIRE_ONCE): 1,
    Misfire(MisfirePolicy.CATCH_UP, 3): 3,
}
OVERDUE = 42 * MINUTE
GROUP = 0


def overdue() -> tuple[World, dict[str, int]]:
    """Return a world whose eight times up to 12:40 are overdue, for each policy."""
    world = World(shard_map=ShardMap.constant(1, 1))
    rows = {
        world.add(EVERY_FIVE, misfire=misfire).schedule_id: runs
        for misfire, runs in POLICIES.items()
    }
    world.clock.advance(OVERDUE)
    return world, rows


def take_over(world: World, skew: timedelta, seen: list[PassReport]) -> None:
    """Let the lease of the one that is stopped run out, and the next tick come."""
    world.clock.advance(MINUTE)
    clock = FixedClock(world.clock.now() + skew)
    scanner = replace(world.scanner, clock=clock)
    seen.append(run_pass(scanner, GroupWork(GROUP, world.clock.now()), holder="next"))
    world.relay_stream()


def assert_one_chain(rows: list[Occurrence], start: datetime, runs: int) -> None:
    """Each time has one row, or a gap row that speaks for it; one row is ahead.

    Args:
        rows: of one schedule, of every five minutes.
        start: five minutes before its first time.
        runs: how many overdue times run.
    """
    spoken_for = Counter(itertools.chain.from_iterable(map(_times_of, rows)))
    last = max(spoken_for)
    steps = (last - start) // (5 * MINUTE)
    expected = {start + n * 5 * MINUTE for n in range(1, steps + 1)}
    # A time within a gap that runs has its own row besides.
    ran = [row for row in rows if row.lane is Lane.CATCHUP]
    assert set(spoken_for) == expected
    assert sum(spoken_for.values()) - len(expected) <= len(ran)
    assert [r.scheduled_for for r in rows if r.state is State.PLANNED] == [last]
    assert len(ran) == runs


def _times_of(row: Occurrence) -> list[datetime]:
    last = row.scheduled_for if row.decision is None else row.decision.last
    steps = (last - row.scheduled_for) // (5 * MINUTE)
    return [row.scheduled_for + n * 5 * MINUTE for n in range(max(steps, 0) + 1)]


@pytest.mark.parametrize("seconds", [-2, 0, 2])
def test_one_that_was_stopped_at_any_port_call_makes_no_row_and_no_second_chain(
    seconds: int,
) -> None:
    for number in itertools.count(2):
        nth, after = divmod(number, 2)
        world, schedules = overdue()
        seen: list[PassReport] = []
        act = functools.partial(take_over, world, seconds * SECOND, seen)
        moment = Moment(nth, bool(after), act)
        work = GroupWork(GROUP, world.clock.now())
        report = run_pass(watching(world, moment, pages=True), work, holder="stopped")
        world.relay_stream()
        if moment.calls < nth:
            break
        (other,) = seen
        assert other.leased
        # Before it had the lease, or after it gave it back, nothing was taken from it.
        assert report.kept or report.leased
        for _ in range(8):
            world.clock.advance(MINUTE)
            world.scan()
            world.relay_stream()
            world.relay_sweep()
        for schedule_id, runs in schedules.items():
            rows = [row for row in world.rows() if row.schedule_id == schedule_id]
            assert_one_chain(rows, START, runs)
            ran = [row for row in rows if row.lane is Lane.CATCHUP]
            assert all(row.state is State.ENQUEUED for row in ran)
    assert nth > 60


@pytest.mark.parametrize("seconds", [-2, 0, 2])
@pytest.mark.parametrize("taken", range(0, 60, 7))
def test_a_dead_holders_group_is_taken_over_within_two_ticks(
    taken: int, seconds: int
) -> None:
    world, _ = overdue()
    clock = FixedClock(world.clock.now() + taken * SECOND + seconds * SECOND)
    assert world.groups.acquire(GROUP, "dead", now=clock.now(), duration=LEASE_DURATION)
    # Ticks come on the minute; the other's clock is the one that is right.
    leased = []
    for _ in range(2):
        world.clock.advance(MINUTE)
        leased.append(world.scan("next")[0].leased)
    assert any(leased)


def test_a_watermark_of_one_that_lost_its_lease_is_not_stored() -> None:
    world, _ = overdue()
    world.scan()
    world.relay_stream()
    world.clock.advance(MINUTE)
    seen: list[PassReport] = []
    moment = Moment(2, after=True, action=lambda: take_over(world, SECOND, seen))
    work = GroupWork(GROUP, world.clock.now())
    report = run_pass(watching(world, moment), work, holder="stopped")
    assert (report.leased, report.kept) == (True, False)
    lease = world.store.groups[GROUP]
    assert lease.holder == "next"
    assert seen[0].oldest == min(lease.watermarks.values())
