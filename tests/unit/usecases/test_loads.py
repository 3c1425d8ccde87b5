"""What passes add to the statistic of loads, and what is told from it."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import pytest
from hourbell.domain.errors import HourbellError, Permanent, Transient
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.usecases.loads import loads_of

from tests.unit.usecases.deferring import DAY
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")


class Broken:
    """A statistic that does not answer."""

    def __init__(self, fault: HourbellError) -> None:
        self._fault = fault

    def add(self, counts: Mapping[datetime, int]) -> None:
        raise self._fault

    def read(self, hours: Iterable[datetime]) -> dict[datetime, int]:
        raise self._fault


class Counting:
    """A statistic that remembers each addition."""

    def __init__(self) -> None:
        self.added: list[dict[datetime, int]] = []

    def add(self, counts: Mapping[datetime, int]) -> None:
        self.added.append(dict(counts))

    def read(self, hours: Iterable[datetime]) -> dict[datetime, int]:
        raise AssertionError


def test_a_pass_counts_what_it_materialized_by_its_minute() -> None:
    world = World()
    for _ in range(3):
        world.add(EVERY_MINUTE)
    world.add(Timing("at(2026-03-09T12:02:41)"))
    world.scan()
    # 12:01 to 12:03 lie within the horizon of 180 s.
    assert world.store.loads == {
        START + MINUTE: 3,
        START + 2 * MINUTE: 4,
        START + 3 * MINUTE: 3,
    }


def test_each_time_is_counted_once_by_whatever_many_passes() -> None:
    world = World()
    world.add(EVERY_MINUTE)
    for _ in range(5):
        world.scan()
        world.relay_stream()
        world.scan()
        world.clock.advance(MINUTE)
    assert world.store.loads == {START + n * MINUTE: 1 for n in range(1, 8)}


def test_a_pass_adds_once_and_an_idle_one_never() -> None:
    world, counting = World(), Counting()
    world.loads = counting  # type: ignore[assignment]
    first = world.add(EVERY_MINUTE)
    while world.shard_map.group_of(world.add(EVERY_MINUTE).shard) != (
        world.shard_map.group_of(first.shard)
    ):
        pass
    world.scan()
    groups = {world.shard_map.group_of(row.shard) for row in world.rows()}
    assert len(counting.added) == len(groups)
    world.scan()
    assert len(counting.added) == len(groups)


def test_what_is_deferred_counts_and_its_release_does_not() -> None:
    world = World()
    for _ in range(20):
        world.add(Timing("at(2026-03-09T12:01:00)"), window=DAY)
    world.scan()
    assert world.rows(State.DEFERRED)
    assert world.store.loads == {START + MINUTE: 20}
    for _ in range(3):
        world.clock.advance(timedelta(hours=8))
        world.scan()
    assert not world.rows(State.DEFERRED)
    assert world.store.loads == {START + MINUTE: 20}


def test_what_is_overdue_is_not_counted() -> None:
    world = World()
    world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(minutes=30, seconds=1))
    reports = world.scan()
    assert sum(report.tally.misfires for report in reports) == 29
    # Of 12:30 on it is on time: 12:30 to 12:33.
    assert world.store.loads == {START + n * MINUTE: 1 for n in range(30, 34)}


@pytest.mark.parametrize("fault", [Transient("no answer"), Permanent("no rights")])
def test_a_statistic_that_fails_stops_no_pass(fault: HourbellError) -> None:
    world = World()
    world.add(EVERY_MINUTE)
    world.loads = Broken(fault)  # type: ignore[assignment]
    reports = world.scan()
    assert len(world.rows(State.SCHEDULED)) == 3
    assert all(report.finished and report.kept for report in reports)
    assert sorted(report.counted for report in reports) == [False, True]


def test_the_lease_is_given_back_before_the_statistic_is_added_to() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    group = world.shard_map.group_of(first.shard)
    seen: list[bool] = []

    class Watching(Counting):
        def add(self, counts: Mapping[datetime, int]) -> None:
            now = world.clock.now()
            free = world.groups.acquire(group, "other", now=now, duration=SECOND)
            seen.append(free is not None)

    world.loads = Watching()  # type: ignore[assignment]
    world.scan()
    assert seen == [True]


@pytest.mark.parametrize("fault", [Transient("no answer"), Permanent("no rights")])
def test_loads_are_unknown_when_the_statistic_does_not_answer(
    fault: HourbellError,
) -> None:
    assert loads_of(Broken(fault), [START, START], START) == [None, None]


def test_without_times_nothing_is_read() -> None:
    assert loads_of(Counting(), [], START) == []


def test_a_load_is_read_from_what_passes_counted() -> None:
    world = World()
    for _ in range(3):
        world.add(Timing("0 * * * *"))
    for _ in range(24):
        world.clock.advance(timedelta(minutes=58))
        world.scan()
        world.relay_stream()
        world.clock.advance(timedelta(minutes=2))
    # From 12:00 to 11:59 three occurrences each at 13:00 to 11:00: 3 * 1,440 / 69.
    now = world.clock.now() + SECOND
    times = [now + timedelta(minutes=60), now + timedelta(minutes=61)]
    assert loads_of(world.loads, times, now) == [62.61, 0.0]
