"""Single turns that parking takes: deadlines, dispatch rows, lost answers."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchKind, release_of
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import State
from hourbell.domain.parking import ParkReason
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import GroupWork, Write
from hourbell.usecases.release import release
from hourbell.usecases.scan import PassReport, Scanner, run_pass

from tests.unit.usecases.faults import UnclearTimeline
from tests.unit.usecases.poison import EVERY_TEN, POISONS
from tests.unit.usecases.test_parking import only, poisoned
from tests.unit.usecases.world import MINUTE, SECOND, START, World

HOUR = timedelta(hours=1)


def passes(world: World, scanner: Scanner, **options: Any) -> list[PassReport]:
    return [
        run_pass(scanner, GroupWork(group, world.clock.now()), holder="m1", **options)
        for group in range(world.shard_map.groups)
    ]


def test_without_time_left_no_parked_row_is_tried() -> None:
    world, _ = poisoned(POISONS["tenant gone"])
    world.minutes(27)
    world.clock.advance(HOUR)
    calls = 0

    class Late:
        """A timeline whose coming minutes take all the time."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def page(self, *args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls % 12 == 0:
                world.clock.advance(50 * SECOND)
            return world.timeline.page(*args, **options)

    timeline: Any = Late()
    plane = replace(world.plane, timeline=timeline)
    deadline = world.clock.now() + 45 * SECOND
    reports = passes(world, replace(world.scanner, plane=plane), deadline=deadline)
    assert not any(report.finished for report in reports)
    assert only(world).tries == 0


def strand(world: World, count: int) -> list[Dispatch]:
    """Leave dispatch rows of handovers behind, due at the start."""
    found = []
    for _ in range(count):
        row = world.add(EVERY_TEN)
        dispatch = Dispatch(
            DispatchKind.HANDOVER, row.schedule_id, 2, "acme", START, 0, START
        )
        world.store.put_dispatch(dispatch)
        found.append(dispatch)
    return sorted(found, key=lambda dispatch: dispatch.key)


def failing(world: World, schedule_id: str, took: timedelta) -> Scanner:
    """Return ports that do not answer about one schedule's second version."""

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def versions(self, refs: Any, *, consistent: bool) -> Any:
            wanted = list(refs)
            if any((r.schedule_id, r.version) == (schedule_id, 2) for r in wanted):
                world.clock.advance(took)
                raise Transient
            return world.schedules.versions(wanted, consistent=consistent)

    schedules: Any = Failing()
    return replace(world.scanner, plane=replace(world.plane, schedules=schedules))


def test_a_handover_that_never_gets_a_clear_answer_stops_no_other_and_is_parked() -> (
    None
):
    world = World()
    first, second = strand(world, 2)
    scanner = failing(world, first.schedule_id, timedelta())
    world.clock.advance(MINUTE)
    reports = passes(world, scanner)
    assert sum(report.handovers for report in reports) == 1
    assert [d.key for d in world.store.all_dispatches() if not d.is_open] == [
        second.key
    ]
    for _ in range(2):
        assert world.store.parked == {}
        world.clock.advance(HOUR)
        passes(world, scanner)
    ((key, parked),) = world.store.parked.items()
    assert key == (0, first.key)
    assert parked.reason is ParkReason.UNCLEAR


def test_a_pass_whose_time_is_up_leaves_the_dispatch_rows_that_follow() -> None:
    world = World()
    first, second = strand(world, 2)
    scanner = failing(world, first.schedule_id, 2 * MINUTE)
    world.clock.advance(3 * MINUTE)
    deadline = world.clock.now() + MINUTE
    work = GroupWork(0, world.clock.now())
    report = run_pass(scanner, work, holder="m1", deadline=deadline)
    assert not report.finished
    assert [d.key for d in world.store.all_dispatches() if d.is_open] == [
        first.key,
        second.key,
    ]
    assert world.store.groups[0].watermarks.get(0, START) <= START


def test_a_completion_that_others_keep_beating_is_parked_as_held() -> None:
    world = World()
    row = world.add(EVERY_TEN)
    world.store.put_dispatch(
        Dispatch(DispatchKind.COMPLETE, row.schedule_id, 1, "acme", START, 0, START)
    )

    class Beaten:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def complete(self, *_: Any, **__: Any) -> Write:
            return Write.LOST

    schedules: Any = Beaten()
    scanner = replace(world.scanner, plane=replace(world.plane, schedules=schedules))
    for _ in range(2):
        assert world.store.parked == {}
        world.clock.advance(15 * MINUTE)
        passes(world, scanner)
    ((_, parked),) = world.store.parked.items()
    assert (parked.reason, parked.tenant_id) == (ParkReason.HELD, "acme")


def deferred(world: World) -> tuple[Any, Dispatch]:
    """Return a deferred row of 12:10, and the dispatch row that speaks for it."""
    row = replace(
        world.add(EVERY_TEN),
        state=State.DEFERRED,
        available_at=START + 10 * MINUTE,
        queue="standard-strict",
    )
    world.store.put_row(row)
    return row, release_of(row, row.shard, START)


def reason_of(world: World, dispatch: Dispatch, plane: Any = None) -> str | None:
    now = dispatch.due + MINUTE
    report = release(plane or world.plane, [dispatch], now)
    return next((str(trouble.reason) for trouble in report.troubles), None)


def test_a_dispatch_row_tells_why_it_stays_pending() -> None:
    world = World()
    row, dispatch = deferred(world)
    assert reason_of(world, dispatch) is None
    assert reason_of(world, dispatch) == "UNSENT"
    world.store.put_row(replace(row, state=State.PLANNED))
    assert reason_of(world, dispatch) == "HELD"
    del world.store.rows[row.key.partition]
    assert reason_of(world, dispatch) == "TARGET_UNREADABLE"


def test_a_dispatch_row_whose_writes_are_unclear_says_so() -> None:
    world = World()
    _, dispatch = deferred(world)
    timeline: Any = UnclearTimeline(world.timeline, lambda _name, _place: True)
    plane = replace(world.plane, timeline=timeline)
    assert reason_of(world, dispatch, plane) == "UNCLEAR"

    class Unsettled:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def settle(self, dispatches: Any) -> list[Write]:
            return [Write.UNKNOWN for _ in dispatches]

    assert reason_of(world, dispatch) is None
    row = world.rows(State.SCHEDULED)[0]
    world.store.put_row(replace(row, state=State.ENQUEUED))
    timeline = Unsettled()
    plane = replace(world.plane, timeline=timeline)
    assert reason_of(world, dispatch, plane) == "UNCLEAR"


@pytest.mark.parametrize("write", ["plan", "move"])
def test_a_row_whose_writes_are_unclear_says_so(write: str) -> None:
    world = World()
    row = world.add(EVERY_TEN)
    timeline: Any = UnclearTimeline(world.timeline, lambda name, _: name == write)
    plane = replace(world.plane, timeline=timeline)
    tally = advance(plane, [row], START + 9 * MINUTE)
    assert [(t.key, t.reason) for t in tally.troubles] == [
        (row.key, ParkReason.UNCLEAR)
    ]
    assert tally.unknown == 1
