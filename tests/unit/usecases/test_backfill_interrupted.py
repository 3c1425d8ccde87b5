"""Backfills that are cut short, repeated, or in the way of others.

Each case stops a backfill before or after one of its port calls and lets something
happen there: a crash, another backfill, a pass, an edit, a stop. Whatever it is, each
time has one id, nothing is half stored, and what should run runs.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hourbell.adapters.memory import FixedClock, SteppedClock
from hourbell.domain.errors import Conflict, Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.usecases.backfill_values import Outcome
from hourbell.usecases.change_schedule import Changes, cancel, pause
from hourbell.usecases.ports import Write

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_backfill import at, fill, go_on, miss, outcomes
from tests.unit.usecases.test_backfill_versions import act, edit
from tests.unit.usecases.test_change_schedule import HALF_PAST, HOURLY, caller
from tests.unit.usecases.world import MINUTE, SECOND, START, World

# A backfill of four times makes about so many calls.
CALLS = range(1, 16)
WANTED = [at(10), at(11), at(12), at(13)]


def world_with_a_missed_time() -> tuple[World, Occurrence]:
    """Return an hourly schedule of noon whose time at 13:00 was missed; it is 13:40."""
    world = World()
    row = world.add(HOURLY)
    world.clock.set(at(13, 0, 1))
    world.scan()
    miss(world, row)
    world.clock.set(at(13, 40))
    return world, row


def watched(world: World, moment: Moment) -> Changes:
    plane = replace(
        world.plane,
        schedules=moment.wrap(world.schedules),
        timeline=moment.wrap(world.timeline),
        directory=moment.wrap(world.directory),
    )
    return replace(world.changes, plane=plane, groups=moment.wrap(world.groups))


def check_whole(world: World, row: Occurrence) -> None:
    """Every backfilled time has one row, one dispatch row, and a record if it needs."""
    rows = [r for r in world.rows() if r.backfilled_at is not None]
    by_time = Counter(r.scheduled_for for r in rows)
    assert set(by_time.values()) <= {1}
    recorded = world.schedules.backfills(row.schedule_id, at(0), at(23))
    assert {(r.scheduled_for, r.version) for r in recorded} == {
        (r.scheduled_for, r.version) for r in rows if r.sequence == 0
    }
    spoken_for = {(d.scheduled_for, d.version) for d in world.store.all_dispatches()}
    assert {(r.scheduled_for, r.version) for r in rows} <= spoken_for


def ids_sent(world: World) -> list[str]:
    bodies = [each.entry.body for each in world.queues.accepted]
    return [body.split('"id":"')[1].split('"')[0] for body in bodies]


def check_settled(world: World, row: Occurrence) -> None:
    """All four times were sent, each under one id, and nothing is left open."""
    check_whole(world, row)
    rows = [r for r in world.rows() if r.scheduled_for <= at(13)]
    assert [(r.scheduled_for, r.state) for r in rows] == [
        (time, State.ENQUEUED) for time in WANTED
    ]
    ids = {each for each in ids_sent(world) if not each.endswith("T140000Z")}
    assert ids == {r.occurrence_id for r in rows}
    assert not any(each.is_open for each in world.store.all_dispatches())


@pytest.mark.parametrize("nth", CALLS)
@pytest.mark.parametrize("after", [False, True])
def test_a_crash_anywhere_leaves_whole_things_and_repeating_finishes(
    nth: int, after: bool
) -> None:
    world, row = world_with_a_missed_time()

    def crash() -> None:
        raise Crash

    moment = Moment(nth, after, crash)
    with pytest.raises(Crash):
        fill(world, row, at(10), changes=watched(world, moment))
    check_whole(world, row)
    world.clock.advance(7 * SECOND)
    again = fill(world, row, at(10))
    assert {item.outcome for item in again.items} <= {Outcome.CREATED, Outcome.EXISTS}
    assert [item.scheduled_for for item in again.items] == WANTED
    go_on(world, 6)
    check_settled(world, row)


@pytest.mark.parametrize("nth", CALLS)
@pytest.mark.parametrize("after", [False, True])
def test_two_at_once_create_each_time_once(nth: int, after: bool) -> None:
    world, row = world_with_a_missed_time()
    other: list[Any] = []
    moment = Moment(nth, after, lambda: other.append(fill(world, row, at(10))))
    mine = fill(world, row, at(10), changes=watched(world, moment))
    assert moment.reached
    created = [
        {i.scheduled_for for i in each.items if i.outcome is Outcome.CREATED}
        for each in (mine, other[0])
    ]
    assert not created[0] & created[1]
    assert created[0] | created[1] == set(WANTED)
    assert [i.occurrence_id for i in mine.items] == [
        i.occurrence_id for i in other[0].items
    ]
    go_on(world, 6)
    check_settled(world, row)


@pytest.mark.parametrize("nth", CALLS)
@pytest.mark.parametrize("after", [False, True])
def test_a_pass_in_between_changes_nothing(nth: int, after: bool) -> None:
    world, row = world_with_a_missed_time()

    def work() -> None:
        go_on(world, 0)
        world.scan()

    moment = Moment(nth, after, work)
    done = fill(world, row, at(10), changes=watched(world, moment))
    assert [item.outcome for item in done.items] == [Outcome.CREATED] * 4
    go_on(world, 6)
    check_settled(world, row)


@pytest.mark.parametrize("nth", CALLS)
@pytest.mark.parametrize("after", [False, True])
def test_an_edit_in_between_gives_no_time_a_second_id(nth: int, after: bool) -> None:
    world, row = world_with_a_missed_time()

    def overtake() -> None:
        edit(world, row, HALF_PAST, "2")
        fill(world, row, at(10), at(12))

    try:
        fill(world, row, at(10), changes=watched(world, Moment(nth, after, overtake)))
    except Transient:
        # It was judged by a log that is no more.
        fill(world, row, at(10))
    go_on(world, 6)
    check_whole(world, row)
    suffixes = Counter(each.rsplit(".", 1)[1] for each in set(ids_sent(world)))
    assert set(suffixes.values()) == {1}


# What is asked for after a pause is not stopped by it: so not before the first call.
@pytest.mark.parametrize("stop", [pause, cancel])
@pytest.mark.parametrize(
    ("nth", "after"), [(1, True), *product(range(2, CALLS.stop), [False, True])]
)
def test_after_a_stop_in_between_nothing_is_sent(
    stop: Callable[..., Any], nth: int, after: bool
) -> None:
    world, row = world_with_a_missed_time()
    moment = Moment(nth, after, lambda: act(world, row, stop))
    try:
        fill(world, row, at(10), changes=watched(world, moment))
    except (Conflict, Transient):
        assert moment.reached
    go_on(world, 6)
    check_whole(world, row)
    assert ids_sent(world) == []
    assert not any(each.is_open for each in world.store.all_dispatches())


class Answering:
    """The schedules port, but `record_backfill` does something else."""

    def __init__(self, world: World, record: Callable[..., Write]) -> None:
        self._port = world.schedules
        self.record_backfill = record

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


def with_record(world: World, record: Callable[..., Write]) -> Changes:
    schedules: Any = Answering(world, record)
    return replace(world.changes, plane=replace(world.plane, schedules=schedules))


def test_a_cancel_in_between_ends_the_call() -> None:
    world = World()
    row = world.add(HOURLY)

    def record(*arguments: Any, **more: Any) -> Write:
        cancel(world.changes, caller(world), row.schedule_id, START)
        return world.schedules.record_backfill(*arguments, **more)

    with pytest.raises(Conflict) as refusal:
        fill(world, row, at(10), changes=with_record(world, record))
    assert refusal.value.code == "schedule_canceled"
    assert world.store.backfills == {}


def test_what_is_taken_and_not_there_is_to_be_tried_again() -> None:
    world = World()
    row = world.add(HOURLY)
    changes = with_record(world, lambda *_, **__: Write.EXISTS)
    with pytest.raises(Transient):
        fill(world, row, at(10), changes=changes)


def test_a_missed_time_that_cannot_be_reopened_is_to_be_tried_again() -> None:
    world, row = world_with_a_missed_time()

    class Refusing:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def reopen(self, *_: Any) -> Write:
            return Write.LOST

    timeline: Any = Refusing()
    changes = replace(world.changes, plane=replace(world.plane, timeline=timeline))
    with pytest.raises(Transient):
        fill(world, row, at(12, 30), changes=changes)


def test_when_the_time_is_up_the_answer_says_where_to_go_on() -> None:
    world = World()
    row = world.add(HOURLY)
    clock = SteppedClock(START, 3 * SECOND)
    changes = replace(world.changes, clock=clock)
    first = fill(world, row, START - timedelta(hours=9), START, changes=changes)
    # The second is written at 0 s, then at 3 and 6; the budget is eight.
    assert [item.scheduled_for for item in first.items] == [at(3), at(4), at(5), at(6)]
    assert first.next_from == at(7)
    assert first.pace_from == START + 4 * SECOND
    second = fill(world, row, at(3), START)
    assert [item.outcome for item in second.items[:4]] == [Outcome.EXISTS] * 4
    assert [item.outcome for item in second.items[4:]] == [Outcome.CREATED] * 5


def test_however_slow_it_is_each_call_takes_a_time() -> None:
    world = World()
    row = world.add(HOURLY)
    clock = SteppedClock(START + MINUTE, MINUTE)
    changes = replace(world.changes, clock=clock)
    done = fill(world, row, at(9), START, changes=changes)
    assert [item.scheduled_for for item in done.items] == [at(9)]
    assert done.next_from == at(10)


def test_what_is_late_costs_nothing_where_nothing_is_written() -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(9), START)
    changes = replace(world.changes, clock=FixedClock(START + MINUTE))
    again = fill(world, row, at(9), START, changes=changes)
    assert [item.outcome for item in again.items] == [Outcome.EXISTS] * 3
    assert again.next_from is None


def test_when_the_release_gets_no_answer_the_next_pass_releases() -> None:
    world = World()
    row = world.add(HOURLY)

    class Deaf:
        """Reads once, for the judging, and not again for the release."""

        reads = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def read(self, keys: Any) -> Any:
            self.reads += 1
            if self.reads > 1:
                raise Transient
            return world.timeline.read(keys)

    timeline: Any = Deaf()
    changes = replace(world.changes, plane=replace(world.plane, timeline=timeline))
    done = fill(world, row, at(10), changes=changes)
    assert [each[2] for each in outcomes(done)] == ["created", "created"]
    assert len(world.rows(State.DEFERRED)) == 2
    go_on(world)
    assert len(ids_sent(world)) == 2
