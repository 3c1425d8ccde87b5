"""After an outage all futures of a page are planned before any gap is expanded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Tier
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.policies import PASS_CAP
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.materialize import Plane, advance
from hourbell.usecases.ports import GroupWork, Write
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.world import MINUTE, SECOND, START, World

COUNT = 8
RUNS = 300
MINUTES = 400
# What the outage left is over by then: 18:40 is two seconds late, and on time.
NOW = START + MINUTES * MINUTE + 2 * SECOND
FIRST = START + MINUTES * MINUTE


@dataclass
class Watched:
    """A timeline that notes in what order rows are inserted, and may end or be slow.

    Attributes:
        inserted: rows in the order in which they came to stand.
        each: how long a row takes.
        crash_at: after how many rows the process ends; None for never.
    """

    world: World
    each: timedelta = timedelta()
    crash_at: int | None = None
    inserted: list[Occurrence] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world.timeline, name)

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        answers = []
        for row in rows:
            if self.crash_at is not None and len(self.inserted) >= self.crash_at:
                raise Crash
            self.world.clock.advance(self.each)
            (answer,) = self.world.timeline.plan([row])
            self.inserted += [row] if answer is Write.APPLIED else []
            answers.append(answer)
        return answers


def stopped_world(count: int = COUNT) -> World:
    """Return a world after an outage of six hours: in one page, many gaps of 400."""
    world = World(shard_map=ShardMap.constant(1, 1))
    for _ in range(count):
        world.add(Timing("* * * * *"), misfire=Misfire(MisfirePolicy.CATCH_UP, RUNS))
    world.clock.set(NOW)
    return world


def world_plane(world: World, timeline: Watched) -> Plane:
    port: Any = timeline
    return replace(world.plane, timeline=port)


def is_future(row: Occurrence) -> bool:
    return row.state is State.PLANNED and row.decision is None


def futures(world: World) -> dict[str, list[datetime]]:
    """Return the on-time rows of each schedule."""
    found: dict[str, list[datetime]] = {}
    for row in world.rows():
        if row.scheduled_for >= FIRST and row.decision is None:
            found.setdefault(row.schedule_id, []).append(row.scheduled_for)
    return found


def go(world: World, timeline: Watched, is_over: Callable[[], bool] = bool) -> None:
    plane = world_plane(world, timeline)
    advance(plane, world.rows(State.PLANNED), world.clock.now(), is_over=is_over)


def test_every_future_is_planned_before_the_first_gap_is_expanded() -> None:
    world = stopped_world()
    timeline = Watched(world)
    go(world, timeline)
    expanded = next(
        place
        for place, row in enumerate(timeline.inserted)
        if row.state is not State.PLANNED
    )
    before, after = timeline.inserted[:expanded], timeline.inserted[expanded:]
    # Of each its gap row, 18:40 to 18:43 within the horizon, and 18:44 beyond it.
    assert len(before) == COUNT * (1 + 5)
    assert sum(map(is_future, before)) == COUNT * 5
    assert not any(map(is_future, after))
    assert len(after) == COUNT * RUNS
    # What is on time has left for the relay, all of it before the first run's insert.
    strict = [row for row in world.rows() if row.lane is Lane.STRICT]
    assert len(strict) == COUNT * 4
    assert {row.state for row in strict} == {State.SCHEDULED}


def test_no_future_is_written_twice() -> None:
    world = stopped_world()
    plane = world.plane
    tally = advance(plane, world.rows(State.PLANNED), NOW)
    assert tally.existed == 0
    # One gap row and five futures each.
    assert tally.planned == COUNT * 6
    assert tally.gaps == COUNT


def test_a_pass_whose_time_is_up_in_the_first_gap_has_planned_all_futures() -> None:
    world = stopped_world()
    timeline = Watched(world, each=timedelta(milliseconds=20))
    plane = world_plane(world, timeline)
    deadline = NOW + 5 * SECOND
    report = run_pass(
        replace(world.scanner, plane=plane),
        GroupWork(0, NOW),
        holder="m1",
        deadline=deadline,
    )
    assert not report.finished
    caught_up = [row for row in world.rows() if row.lane is Lane.CATCHUP]
    assert 0 < len({row.schedule_id for row in caught_up}) < COUNT
    assert len(futures(world)) == COUNT
    assert all(len(times) == 5 for times in futures(world).values())


def test_futures_of_gaps_beyond_the_cap_come_before_expansions_as_well() -> None:
    world = stopped_world()
    # Gaps of 300 each: the cap is used up with the seventh.
    assert 7 * RUNS > PASS_CAP
    timeline = Watched(world)
    plane = world_plane(world, timeline)
    run_pass(replace(world.scanner, plane=plane), GroupWork(0, NOW), holder="m1")
    expanded = next(
        place
        for place, row in enumerate(timeline.inserted)
        if row.state is not State.PLANNED
    )
    before = [row for row in timeline.inserted[:expanded] if is_future(row)]
    assert {row.schedule_id for row in before} == set(futures(world))
    assert len(futures(world)) == COUNT


def test_gaps_beyond_the_cap_are_taken_once_though_a_pass_meets_them_twice() -> None:
    """It meets them as followers of 12:01, and again in the bucket of 12:02."""
    world = stopped_world()
    (report,) = world.scan()
    assert report.finished
    assert (report.tally.gaps, report.tally.lost) == (COUNT, 0)


@pytest.mark.parametrize("crash_at", [0, 3, 6, 9, 12, 15, 30, 60, 500, 1_100])
def test_wherever_a_process_ends_the_next_one_makes_up_for_it(crash_at: int) -> None:
    world = stopped_world(4)
    with pytest.raises(Crash):
        go(world, Watched(world, crash_at=crash_at))
    # Soon enough for 18:40 to be on time still.
    for _ in range(3):
        world.clock.advance(15 * SECOND)
        world.scan()
    for schedule_id in futures(world):
        rows = [row for row in world.rows() if row.schedule_id == schedule_id]
        assert sum(row.lane is Lane.CATCHUP for row in rows) == RUNS
        # From 12:01 to 18:44 there is no time that no row speaks for.
        assert accounted_for(rows) == [START + n * MINUTE for n in range(1, 405)]


def accounted_for(rows: list[Occurrence]) -> list[datetime]:
    found = set()
    for row in rows:
        instant = row.scheduled_for
        last = instant if row.decision is None else row.decision.last
        while instant <= last:
            found.add(instant)
            instant += MINUTE
    return sorted(found)


def test_another_tenants_work_on_time_does_not_wait_for_the_gaps() -> None:
    world = stopped_world()
    world.add_tenant("small", Tier.STANDARD)
    world.add(Timing("* * * * *"), tenant="small")
    timeline = Watched(world)
    go(world, timeline)
    expanded = next(
        place
        for place, row in enumerate(timeline.inserted)
        if row.state is not State.PLANNED
    )
    small = [
        place for place, row in enumerate(timeline.inserted) if row.tenant_id == "small"
    ]
    assert max(small) < expanded
