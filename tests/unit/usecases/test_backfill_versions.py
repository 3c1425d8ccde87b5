"""Backfill around edits, pauses and resumes: whose are the times, who stops them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Schedule, VersionRef
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import cancel, pause, resume
from hourbell.usecases.ownership import stretches

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_backfill import (
    HOUR,
    at,
    fill,
    go_on,
    miss,
    outcomes,
    sent,
)
from tests.unit.usecases.test_change_schedule import (
    EVERY_MINUTE,
    HALF_PAST,
    HOURLY,
    caller,
    change,
    current,
)
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times


def act(world: World, row: Occurrence, verb: Any) -> None:
    verb(world.changes, caller(world), row.schedule_id, world.clock.now())


def edit(world: World, row: Occurrence, timing: Timing, payload: str) -> None:
    schedule = current(world, row)
    change(
        world,
        schedule,
        replace(schedule.definition, timing=timing, payload_json=payload),
    )


def test_each_time_runs_as_the_version_that_owns_it_says() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.set(at(13, 5))
    world.scan()
    world.relay_stream()
    second = next(r for r in world.rows() if r.scheduled_for == at(14))
    world.clock.set(at(14, 2))
    miss(world, second)
    edit(world, row, HALF_PAST, '"new"')
    world.clock.set(at(15, 10))
    done = fill(world, row, at(10), at(15))
    assert outcomes(done) == [
        ("v2.20260309T103000Z", "DEFERRED", "created"),
        ("v2.20260309T113000Z", "DEFERRED", "created"),
        ("v1.20260309T130000Z", "ENQUEUED", "exists"),
        ("v1.20260309T140000Z", "DEFERRED", "created"),
        ("v2.20260309T143000Z", "PLANNED", "exists"),
    ]
    go_on(world)
    assert sent(world) == {
        "v1.20260309T130000Z": {"n": 1},
        "v2.20260309T103000Z": "new",
        "v2.20260309T113000Z": "new",
        "v1.20260309T140000Z": {"n": 1},
        "v2.20260309T143000Z": "new",
    }


def test_after_another_edit_a_backfilled_time_keeps_its_first_id() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.advance(MINUTE)
    fill(world, row, at(10), at(12))
    edit(world, row, Timing("*/30 * * * *"), '"new"')
    go_on(world)
    done = fill(world, row, at(10), at(12))
    assert outcomes(done) == [
        ("v1.20260309T100000Z", "ENQUEUED", "exists"),
        ("v2.20260309T103000Z", "DEFERRED", "created"),
        ("v1.20260309T110000Z", "ENQUEUED", "exists"),
        ("v2.20260309T113000Z", "DEFERRED", "created"),
    ]
    go_on(world)
    assert sent(world)["v1.20260309T100000Z"] == {"n": 1}
    assert len(world.queues.accepted) == 4


def test_an_edit_after_a_backfill_stops_nothing_of_it() -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(10), at(12), pace_from=START + HOUR / 2)
    world.clock.advance(SECOND)
    edit(world, row, HALF_PAST, "2")
    go_on(world, 32)
    assert [id_ for id_ in sent(world) if id_.startswith("v1")] == [
        "v1.20260309T100000Z",
        "v1.20260309T110000Z",
    ]


def paused_at_half_past(world: World) -> Occurrence:
    """Return the row of an hourly schedule that was paused from 12:30 to now, 16:20."""
    row = world.add(HOURLY)
    world.clock.set(at(12, 30))
    act(world, row, pause)
    world.clock.set(at(16, 20))
    return row


def test_the_times_of_a_pause_can_be_made_up_for_while_it_lasts() -> None:
    world = World()
    row = paused_at_half_past(world)
    done = fill(world, row, at(12, 30), at(16))
    assert outcomes(done) == [
        (f"v2.20260309T{hour}0000Z", "DEFERRED", "created") for hour in (13, 14, 15)
    ]
    # The pause came before it was asked for.
    go_on(world)
    assert len(sent(world)) == 3


def test_the_times_of_a_pause_can_be_made_up_for_when_it_is_over() -> None:
    world = World()
    row = paused_at_half_past(world)
    fill(world, row, at(13), at(14))
    act(world, row, resume)
    world.clock.advance(HOUR)
    done = fill(world, row, at(12, 30))
    assert outcomes(done) == [
        ("v2.20260309T130000Z", "SCHEDULED", "exists"),
        ("v3.20260309T140000Z", "DEFERRED", "created"),
        ("v3.20260309T150000Z", "DEFERRED", "created"),
        ("v3.20260309T160000Z", "DEFERRED", "created"),
        ("v3.20260309T170000Z", "PLANNED", "exists"),
    ]
    go_on(world)
    assert len(sent(world)) == 5


@pytest.mark.parametrize(("stop", "reason"), [(pause, "PAUSED"), (cancel, "CANCELED")])
@pytest.mark.parametrize("edited", [False, True])
def test_a_stop_after_a_backfill_reaches_what_is_unsent_of_it(
    stop: Any, reason: str, edited: bool
) -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(9), at(12), pace_from=START + HOUR / 4)
    world.clock.advance(MINUTE)
    if edited:
        edit(world, row, HALF_PAST, "2")
    act(world, row, stop)
    go_on(world, 20)
    assert sent(world) == {}
    old = [r for r in world.rows() if r.scheduled_for < START]
    assert {(r.state, r.reason) for r in old} == {(State.CANCELED, reason)}
    assert not any(each.is_open for each in world.store.all_dispatches())


def test_what_a_resume_may_come_to_own_is_left_for_a_moment() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    act(world, row, pause)
    world.clock.set(at(12, 3, 19))
    fresh = fill(world, row, at(12, 1))
    assert outcomes(fresh) == [
        ("v2.20260309T120100Z", "DEFERRED", "created"),
        ("v2.20260309T120200Z", "DEFERRED", "created"),
        ("?", "not_settled", "skipped"),
    ]
    world.clock.set(at(12, 3, 20))
    settled = fill(world, row, at(12, 3))
    assert outcomes(settled) == [("v2.20260309T120300Z", "DEFERRED", "created")]


def test_a_handover_under_way_is_finished_first_but_not_for_a_dry_run() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.set(at(12, 30))

    def crash() -> None:
        raise Crash

    moment = Moment(1, after=False, action=crash)
    timeline = moment.wrap(world.timeline)
    broken = replace(world.changes, plane=replace(world.plane, timeline=timeline))
    with pytest.raises(Crash):
        pause(broken, caller(world), row.schedule_id, world.clock.now())
    assert current(world, row).handover
    world.clock.set(at(14, 10))
    before = dict(world.store.versions)
    with pytest.raises(Transient):
        fill(world, row, at(12, 30), dry_run=True)
    assert world.store.versions == before
    done = fill(world, row, at(12, 30))
    assert outcomes(done) == [
        ("v2.20260309T130000Z", "DEFERRED", "created"),
        ("v2.20260309T140000Z", "DEFERRED", "created"),
    ]
    assert not current(world, row).handover


def test_a_handover_that_cannot_be_finished_is_to_be_waited_for() -> None:
    world = World()
    row = world.add(HOURLY)
    schedule = current(world, row)
    world.store.schedules[row.schedule_id] = replace(schedule, handover=True)
    with pytest.raises(Transient):
        fill(world, row, at(10))
    assert world.store.backfills == {}


def test_times_beyond_the_number_of_occurrences_are_not_made_up_for() -> None:
    world = World()
    row = world.add(Timing("0 * * * *", max_occurrences=1))
    world.clock.set(at(14, 30))
    world.scan()
    done = fill(world, row, at(12, 30))
    assert outcomes(done) == [
        ("v1.20260309T130000Z", "SCHEDULED", "exists"),
        ("v1.20260309T140000Z", "not_reached", "skipped"),
    ]


def test_of_a_long_log_only_what_reaches_into_the_range_is_read() -> None:
    world = World()
    row = world.add(HOURLY)
    for number in range(130):
        world.clock.advance(20 * SECOND)
        edit(world, row, HOURLY, str(number))
    asked: list[int | None] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def version_log(self, *given: Any, before: int | None, limit: int) -> Any:
            asked.append(before)
            return world.schedules.version_log(*given, before=before, limit=limit)

    schedules: Any = Counting()
    schedule = current(world, row)
    now = world.clock.now()
    (last,) = stretches(schedules, schedule, now - SECOND, now)
    assert (last.version.version, last.is_owned) == (130, True)
    assert asked == [132]
    asked.clear()
    found = stretches(schedules, schedule, START - HOUR, now)
    assert asked == [132, 82, 32, 1]
    assert [each.version.version for each in found] == [131, *range(1, 131)]
    assert [each.is_owned for each in found] == [False, *[True] * 130]
    assert times([row]) == [at(13)]


def test_a_log_that_changes_in_between_is_to_be_read_again() -> None:
    world = World()
    row = world.add(HOURLY)
    stale = current(world, row)
    world.clock.advance(MINUTE)
    edit(world, row, HALF_PAST, "2")
    now = START + 2 * MINUTE
    for schedule in (stale, unlogged(stale)):
        with pytest.raises(Transient):
            stretches(world.schedules, schedule, START, now)
    ref = VersionRef(row.schedule_id, 1)
    world.store.versions[ref] = replace(world.store.versions[ref], effective_from=None)
    with pytest.raises(Transient):
        stretches(world.schedules, stale, START, now)


def unlogged(schedule: Schedule) -> Schedule:
    return replace(schedule, version=7)


def test_a_fortnight_of_minutes_is_not_expanded() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    old = timedelta(days=14, hours=23)
    done = fill(world, row, START - old, START, limit=3)
    assert len(done.items) == 3
    assert done.next_from == START - old + 3 * MINUTE
    assert done.skipped_before is None
