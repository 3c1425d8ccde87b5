"""Run now: one occurrence beside the schedule's own times."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import Tier
from hourbell.domain.errors import Conflict, NotFound, Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import cancel, pause
from hourbell.usecases.ports import Write
from hourbell.usecases.run_now import Started, run_now

from tests.unit.usecases.test_change_schedule import caller, change, current
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

HOURLY = Timing("0 * * * *")


def run(world: World, row: Occurrence, key: str = "k", tenant: str = "acme") -> Started:
    now = world.clock.now()
    who = caller(world, tenant)
    return run_now(world.changes, who, row.schedule_id, now, key=key, reason="test")


def test_a_run_is_sent_at_once_with_an_id_of_its_own() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.advance(MINUTE / 7)
    started = run(world, row).occurrence
    assert started.state is State.SCHEDULED
    assert started.occurrence_id.startswith(f"{row.schedule_id}.v1.20260309T120008Z.r")
    world.relay_stream()
    (message,) = world.queues.accepted
    assert f'"id":"{started.occurrence_id}"' in message.entry.body
    assert message.entry.delay_seconds == 0
    assert world.rows(State.ENQUEUED)[0].occurrence_id == started.occurrence_id


def test_the_schedules_own_times_do_not_change() -> None:
    world = World()
    row = world.add(HOURLY)
    run(world, row)
    assert times(world.rows(State.PLANNED)) == [row.scheduled_for]


def test_the_same_key_runs_once_and_answers_as_it_is_by_now() -> None:
    world = World()
    row = world.add(HOURLY)
    first = run(world, row)
    world.relay_stream()
    world.clock.advance(5 * SECOND)
    again = run(world, row)
    assert again.replayed
    assert again.occurrence.occurrence_id == first.occurrence.occurrence_id
    assert again.occurrence.state is State.ENQUEUED
    assert len(world.rows(State.ENQUEUED)) == 1


def test_two_keys_in_one_second_are_two_runs() -> None:
    world = World()
    row = world.add(HOURLY)
    ids = {run(world, row, key).occurrence.occurrence_id for key in "ab"}
    assert len(ids) == 2


def test_a_run_keeps_its_place_when_an_edit_has_ended_its_version_since() -> None:
    world = World()
    row = world.add(HOURLY)
    started = run(world, row).occurrence
    world.clock.advance(SECOND)
    schedule = current(world, row)
    change(world, schedule, replace(schedule.definition, payload_json="2"))
    world.relay_stream()
    assert world.rows(State.ENQUEUED)[0].occurrence_id == started.occurrence_id


def test_a_pause_reaches_a_run_that_is_not_sent_yet() -> None:
    world = World()
    row = world.add(HOURLY)
    run(world, row)
    world.clock.advance(SECOND)
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    world.relay_stream()
    assert world.queues.accepted == []


def test_a_paused_schedule_can_be_run_and_a_canceled_one_not() -> None:
    world = World()
    row = world.add(HOURLY)
    pause(world.changes, caller(world), row.schedule_id, START)
    assert run(world, row).occurrence.version == 2
    world.relay_stream()
    assert len(world.queues.accepted) == 1
    cancel(world.changes, caller(world), row.schedule_id, START)
    with pytest.raises(Conflict) as refusal:
        run(world, row, "other")
    assert refusal.value.code == "schedule_canceled"
    assert run(world, row).replayed


def test_a_cancel_that_comes_in_between_wins() -> None:
    world = World()
    row = world.add(HOURLY)

    class Overtaken:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def record_run(self, *arguments: Any) -> Write:
            cancel(world.changes, caller(world), row.schedule_id, START)
            return world.schedules.record_run(*arguments)

    schedules: Any = Overtaken()
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    with pytest.raises(Conflict):
        run_now(changes, caller(world), row.schedule_id, START, key="k")
    assert world.store.runs == {}


def test_two_calls_with_one_key_at_once_make_one_run() -> None:
    world = World()
    row = world.add(HOURLY)

    class Second:
        """The other call comes first, between this one's read and write."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def record_run(self, *arguments: Any) -> Write:
            run(world, row)
            return world.schedules.record_run(*arguments)

    schedules: Any = Second()
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    assert run_now(changes, caller(world), row.schedule_id, START, key="k").replayed
    assert len(world.rows(State.SCHEDULED)) == 1


def test_what_is_taken_and_not_there_is_to_be_tried_again() -> None:
    world = World()
    row = world.add(HOURLY)

    class Taken:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def record_run(self, *_: Any) -> Write:
            return Write.EXISTS

    schedules: Any = Taken()
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    with pytest.raises(Transient):
        run_now(changes, caller(world), row.schedule_id, START, key="k")


def test_a_run_that_has_expired_is_not_run_again() -> None:
    world = World()
    row = world.add(HOURLY)
    run(world, row)
    world.store.rows.clear()
    with pytest.raises(NotFound) as refusal:
        run(world, row)
    assert refusal.value.code == "run_expired"


def test_without_its_handler_or_as_another_tenant_nothing_runs() -> None:
    world = World()
    row = world.add(HOURLY)
    world.add_tenant("bolt", Tier.BASIC)
    with pytest.raises(NotFound):
        run(world, row, tenant="bolt")
    world.store.handlers.clear()
    with pytest.raises(NotFound):
        run(world, row)
    assert world.store.runs == {}
