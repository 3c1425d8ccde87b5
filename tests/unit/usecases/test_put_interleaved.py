"""A put by name, with others who cancel, pause, put and create in the middle of it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest
from hourbell.domain.definition import ScheduleState
from hourbell.domain.errors import Transient
from hourbell.domain.schedule import Timing
from hourbell.usecases.by_name import Condition, put_schedule
from hourbell.usecases.change_schedule import Changes, cancel, pause
from hourbell.usecases.create_schedule import NewSchedule, Registry, create_schedule

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import World

MINE = NewSchedule("bell", Timing("0 13 * * *"), "ring", "mine")
THEIRS = NewSchedule("bell", Timing("0 14 * * *"), "ring", "theirs")
ANYHOW = Condition()

Deed = Callable[[World], None]


def put(
    world: World,
    request: NewSchedule = MINE,
    *,
    registry: Registry | None = None,
    changes: Changes | None = None,
) -> object:
    return put_schedule(
        registry or Registry(world.plane, world.groups, world.ids),
        changes or world.changes,
        caller(world),
        request,
        world.clock.now(),
        condition=ANYHOW,
    )


def cancels(world: World) -> None:
    schedule_id = world.schedules.find_by_name("acme", "bell")
    if schedule_id is not None:
        cancel(world.changes, caller(world), schedule_id, world.clock.now())


def cancels_and_creates(world: World) -> None:
    cancels(world)
    registry = Registry(world.plane, world.groups, world.ids)
    create_schedule(registry, caller(world), THEIRS, world.clock.now())


def pauses(world: World) -> None:
    schedule_id = world.schedules.find_by_name("acme", "bell")
    if schedule_id is not None:
        pause(world.changes, caller(world), schedule_id, world.clock.now())


def puts(world: World) -> None:
    put(world, THEIRS)


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("deed", [cancels, cancels_and_creates, pauses, puts])
def test_whatever_others_do_meanwhile_a_name_has_one_schedule(
    deed: Deed, *, is_there: bool
) -> None:
    reached = 0
    for nth in range(1, 60):
        world = World()
        if is_there:
            put(world, THEIRS)
        moment = Moment(nth, after=False, action=partial(deed, world))
        plane = replace(
            world.plane,
            schedules=moment.wrap(world.schedules),
            timeline=moment.wrap(world.timeline),
        )
        registry = Registry(plane, world.groups, world.ids)
        changes = replace(world.changes, plane=plane)
        try:
            put(world, registry=registry, changes=changes)
        except Transient:
            put(world)
        if not moment.reached:
            break
        reached += 1
        judge(world)
    assert reached >= (5 if is_there else 2)


def judge(world: World) -> None:
    """Assert that one live schedule has the name, counts once, and has one cursor."""
    live = [
        each
        for each in world.store.schedules.values()
        if each.state in {ScheduleState.ACTIVE, ScheduleState.PAUSED}
    ]
    assert len(live) == world.schedules.count("acme") <= 1
    named = world.schedules.find_by_name("acme", "bell")
    assert [each.schedule_id for each in live] == ([named] if named else [])
    for schedule in live:
        assert schedule.definition.timing in {MINE.timing, THEIRS.timing}
        assert not schedule.handover
        planned = [
            row
            for row in world.rows()
            if row.schedule_id == named and row.state == "PLANNED"
        ]
        expected = 1 if schedule.state is ScheduleState.ACTIVE else 0
        assert len(planned) == expected
        assert all(row.version == schedule.version for row in planned)
