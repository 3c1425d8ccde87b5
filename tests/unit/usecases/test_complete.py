"""Schedules that have no further time become COMPLETED."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.definition import Definition, ScheduleState, Tenant, Tier
from hourbell.domain.errors import Conflict
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import cancel, edit, pause, resume
from hourbell.usecases.identify import Caller

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

ANN = Caller(Tenant("acme", Tier.STANDARD), "1:user/ann", "arn:aws:iam::1:user/ann")
ONCE = Timing("at(2026-03-09T12:05:00)")
THRICE = Timing("* * * * *", max_occurrences=3)
UNTIL = Timing("* * * * *", end_at=START + 4 * MINUTE)


def state(world: World, row: Occurrence) -> ScheduleState:
    return world.store.schedules[row.schedule_id].state


def run_until(world: World, minutes: int) -> None:
    """Scan and relay every minute, from now on."""
    for _ in range(minutes):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)


@pytest.mark.parametrize(
    ("timing", "last"),
    [(ONCE, 5), (THRICE, 3), (UNTIL, 3)],
)
def test_a_schedule_is_active_until_its_last_time_and_completed_after(
    timing: Timing, last: int
) -> None:
    world = World()
    row = world.add(timing)
    end = START + last * MINUTE
    while world.clock.now() < end:
        assert state(world, row) is ScheduleState.ACTIVE
        run_until(world, 1)
    run_until(world, 1)

    assert state(world, row) is ScheduleState.COMPLETED
    assert world.rows(State.PLANNED) == []
    assert max(times(world.rows(State.ENQUEUED))) == end
    assert world.store.counts["acme"] == 0
    assert world.store.names == {}
    assert not [each for each in world.store.all_dispatches() if each.is_open]


def test_an_overdue_end_completes_too() -> None:
    for misfire in (Misfire(), Misfire(MisfirePolicy.SKIP)):
        for timing in (ONCE, THRICE, UNTIL):
            world = World()
            row = world.add(timing, misfire=misfire)
            world.clock.advance(timedelta(minutes=30))

            run_until(world, 2)

            assert state(world, row) is ScheduleState.COMPLETED
            assert world.store.counts["acme"] == 0


def test_whatever_came_since_makes_the_record_void() -> None:
    world = World()
    row = world.add(ONCE)
    world.clock.advance(3 * MINUTE)
    world.scan()
    schedule = world.store.schedules[row.schedule_id]
    later = replace(schedule.definition, timing=Timing("at(2026-03-09T12:30:00)"))

    edit(
        world.changes,
        ANN,
        schedule,
        later,
        world.clock.now(),
        description="",
        tags={},
    )
    run_until(world, 5)

    assert state(world, row) is ScheduleState.ACTIVE
    assert times(world.rows(State.PLANNED)) == [START + 30 * MINUTE]
    run_until(world, 30)
    assert state(world, row) is ScheduleState.COMPLETED


def test_a_pause_before_the_end_keeps_it_from_completing_until_it_is_resumed() -> None:
    world = World()
    row = world.add(ONCE)
    world.clock.advance(3 * MINUTE)
    world.scan()
    pause(world.changes, ANN, row.schedule_id, world.clock.now())
    run_until(world, 10)
    assert state(world, row) is ScheduleState.PAUSED

    resume(world.changes, ANN, row.schedule_id, world.clock.now())
    run_until(world, 2)

    assert state(world, row) is ScheduleState.COMPLETED
    assert world.store.counts["acme"] == 0
    # It stood when the pause came: its message was on its way.
    assert len(world.queues.accepted) <= 1


def test_a_completed_schedule_cannot_be_changed_and_a_cancel_leaves_it() -> None:
    world = World()
    row = world.add(ONCE)
    run_until(world, 8)
    schedule, now = world.store.schedules[row.schedule_id], world.clock.now()

    for change in (pause, resume):
        with pytest.raises(Conflict) as caught:
            change(world.changes, ANN, row.schedule_id, now)
        assert caught.value.code == "schedule_completed"
    wanted: Definition = replace(schedule.definition, payload_json="7")
    with pytest.raises(Conflict):
        edit(world.changes, ANN, schedule, wanted, now, description="", tags={})
    done = cancel(world.changes, ANN, row.schedule_id, now)
    assert not done.changed
    assert done.schedule.state is ScheduleState.COMPLETED
    assert world.store.counts["acme"] == 0


def raise_crash() -> None:
    raise Crash


def test_a_crash_at_any_call_loses_neither_the_time_nor_the_end() -> None:
    moments = 0
    for nth in range(1, 60):
        for after in (False, True):
            world = World()
            row = world.add(ONCE)
            world.clock.advance(3 * MINUTE)
            moment = Moment(nth, after, raise_crash)
            ports = ("timeline", "schedules", "directory", "groups")
            real = {name: getattr(world, name) for name in ports}
            for name in ports:
                setattr(world, name, moment.wrap(real[name]))
            for _ in range(3):
                try:
                    world.scan()
                except Crash:
                    moments += 1
                world.clock.advance(61 * SECOND)
            for name in ports:
                setattr(world, name, real[name])
            run_until(world, 3)
            assert state(world, row) is ScheduleState.COMPLETED, (nth, after)
            assert times(world.rows(State.ENQUEUED)) == [START + 5 * MINUTE]
            assert world.store.counts["acme"] == 0
    assert moments > 20
