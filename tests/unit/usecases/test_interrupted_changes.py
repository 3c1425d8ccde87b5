"""Changes that are interrupted, overtaken, or in the way of others."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import (
    Tier,
    Tracking,
    VersionRef,
)
from hourbell.domain.errors import (
    NotFound,
    PreconditionFailed,
    Transient,
)
from hourbell.domain.occurrence import Occurrence, State
from hourbell.usecases.change_schedule import (
    Changes,
    cancel,
    edit,
    find_current,
    pause,
    resume,
)
from hourbell.usecases.handover import finish_handover
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import Write

from tests.unit.usecases.faults import UnclearTimeline
from tests.unit.usecases.test_change_schedule import (
    EVERY_MINUTE,
    HOURLY,
    caller,
    change,
    current,
    version,
)
from tests.unit.usecases.test_get_schedule import Unreadable
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times


def test_the_numbers_go_on_when_no_row_tells_them() -> None:
    world = World()
    row = world.add(replace(EVERY_MINUTE, max_occurrences=20))
    world.clock.advance(timedelta(minutes=10))
    schedule = current(world, row)
    change(world, schedule, replace(schedule.definition, payload_json="2"))
    assert version(world, row, 2).base_sequence == 10


def test_another_tenants_schedule_is_not_there() -> None:
    world = World()
    row = world.add(HOURLY)
    world.add_tenant("bolt", Tier.BASIC)
    who = caller(world, "bolt")
    for attempt in (pause, resume, cancel):
        with pytest.raises(NotFound):
            attempt(world.changes, who, row.schedule_id, START)
    with pytest.raises(NotFound):
        find_current(world.changes, "bolt", row.schedule_id)


def test_a_condition_on_the_revision_holds_for_pause_resume_and_cancel() -> None:
    world = World()
    row = world.add(HOURLY)
    for attempt in (pause, resume, cancel):
        with pytest.raises(PreconditionFailed):
            attempt(world.changes, caller(world), row.schedule_id, START, revision=7)
    assert pause(
        world.changes, caller(world), row.schedule_id, START, revision=1
    ).changed


def test_a_change_after_an_interrupted_one_finishes_that_first() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def read(self, keys: Any) -> Any:
            raise Transient

    timeline: Any = Broken()
    changes = replace(world.changes, plane=replace(world.plane, timeline=timeline))
    half = pause(changes, caller(world), row.schedule_id, START)
    assert not half.finished
    assert current(world, row).handover
    world.clock.advance(SECOND)
    resumed = resume(world.changes, caller(world), row.schedule_id, world.clock.now())
    assert resumed.finished
    log = [version(world, row, number) for number in (1, 2, 3)]
    assert log[0].effective_to == log[1].effective_from
    assert log[1].effective_to == log[2].effective_from
    assert times(world.rows(State.SCHEDULED)) == [START + n * MINUTE for n in (1, 2, 3)]


def test_a_pass_finishes_what_a_call_left_only_after_its_grace() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    change_ = world.changes

    class Silent:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def take_over(self, *_: Any) -> Any:
            raise Transient

    schedules: Any = Silent()
    changes = replace(change_, plane=replace(world.plane, schedules=schedules))
    schedule = current(world, row)
    definition = replace(schedule.definition, payload_json="2")
    half = edit(
        changes,
        caller(world),
        schedule,
        definition,
        START,
        description="",
        tags={},
    )
    assert not half.finished
    assert sum(report.handovers for report in world.scan()) == 0
    world.clock.advance(21 * SECOND)
    assert sum(report.handovers for report in world.scan()) == 1
    assert not current(world, row).handover
    assert sum(report.handovers for report in world.scan()) == 0
    newest = [r for r in world.store.all_rows() if r.version == 2]
    assert min(times(newest)) == START + MINUTE


def test_changes_that_always_come_second_give_up_as_transient() -> None:
    world = World()
    row = world.add(HOURLY)

    class Losing:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def succeed(self, change: Any) -> Any:
            stored = world.store.schedules[row.schedule_id]
            world.store.schedules[row.schedule_id] = replace(
                stored, revision=stored.revision + 1
            )
            return Write.LOST

    schedules: Any = Losing()
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    with pytest.raises(Transient):
        pause(changes, caller(world), row.schedule_id, START)


def interrupted(world: World, row: Occurrence, attempt: Any = pause) -> None:
    """Begin a change whose handover does not get anywhere."""

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def read(self, keys: Any) -> Any:
            raise Transient

    timeline: Any = Broken()
    changes = replace(world.changes, plane=replace(world.plane, timeline=timeline))
    now = world.clock.now()
    assert not attempt(changes, caller(world), row.schedule_id, now).finished


def test_a_pass_leaves_rows_alone_that_a_handover_has_to_decide() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    interrupted(world, row)
    before = world.rows()
    tally = advance(world.plane, before, START)
    assert (tally.held, tally.scheduled, tally.canceled) == (1, 0, 0)
    assert world.rows() == before


def test_a_relay_leaves_records_alone_that_a_handover_has_to_decide() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    advance(world.plane, [row], START)
    interrupted(world, row)
    report = world.relay_stream()
    assert report.deferred == 3
    assert world.queues.accepted == []
    world.clock.advance(30 * SECOND)
    world.scan()
    world.relay_sweep()
    assert len(world.queues.accepted) > 0


def test_a_pause_stops_an_unsent_tracked_record_from_before_it() -> None:
    world = World()
    row = world.add(EVERY_MINUTE, tracking=Tracking.TRACKED)
    advance(world.plane, [row], START)
    world.clock.advance(MINUTE + SECOND)
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    report = world.relay_stream()
    assert report.canceled == 1
    assert world.queues.accepted == []
    assert {(r.state, r.reason) for r in world.rows()} == {(State.CANCELED, "PAUSED")}


def test_without_a_clear_answer_nothing_is_handed_over() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    unclear: Any = UnclearTimeline(world.timeline, lambda name, _: name == "move")
    changes = replace(world.changes, plane=replace(world.plane, timeline=unclear))
    assert not pause(changes, caller(world), row.schedule_id, START).finished
    assert version(world, row, 2).effective_from is None
    assert current(world, row).handover


class Wrapped:
    """A port of which some methods are replaced."""

    def __init__(self, port: Any, **methods: Any) -> None:
        self._port = port
        self._methods = methods

    def __getattr__(self, name: str) -> Any:
        return self._methods.get(name) or getattr(self._port, name)


def changes_with(world: World, **ports: Any) -> Changes:
    return replace(world.changes, plane=replace(world.plane, **ports))


def test_two_that_finish_one_handover_agree() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    advance(world.plane, [row], START)
    ref = VersionRef(row.schedule_id, 2)
    others: list[Any] = []

    def second(*arguments: Any) -> Write:
        """Let somebody else finish it first."""
        others.append(finish_handover(world.plane, ref, world.clock))
        return world.schedules.take_over(*arguments)

    schedules = Wrapped(world.schedules, take_over=second)
    mine = pause(
        changes_with(world, schedules=schedules), caller(world), row.schedule_id, START
    )
    assert mine.finished
    (other,) = others
    ids = tuple(r.occurrence_id for r in other.standing)
    assert mine.already_dispatched == ids
    assert len(mine.already_dispatched) == 3
    assert version(world, row, 1).effective_to == version(world, row, 2).effective_from


def test_a_handover_that_is_lost_and_not_done_is_left_to_a_pass() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    schedules = Wrapped(world.schedules, take_over=lambda *_: Write.LOST)
    half = pause(
        changes_with(world, schedules=schedules), caller(world), row.schedule_id, START
    )
    assert not half.finished
    assert current(world, row).handover


def test_there_is_no_handover_to_a_version_that_does_not_exist() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    assert (
        finish_handover(world.plane, VersionRef(row.schedule_id, 9), world.clock)
        is None
    )


def test_a_version_without_a_time_left_takes_over_without_a_row() -> None:
    world = World()
    row = world.add(replace(EVERY_MINUTE, max_occurrences=2))
    advance(world.plane, [row], START)
    schedule = current(world, row)
    done = change(world, schedule, replace(schedule.definition, payload_json="2"))
    assert done.finished
    assert version(world, row, 2).base_sequence == 2
    assert [r for r in world.store.all_rows() if r.version == 2] == []


def test_a_first_row_that_cannot_be_materialized_at_once_is_found_by_a_pass() -> None:
    world = World()
    row = world.add(HOURLY)

    def fail(*_: Any, **__: Any) -> Any:
        raise Transient

    timeline = Wrapped(world.timeline, plan=fail)
    schedule = current(world, row)
    definition = replace(schedule.definition, timing=EVERY_MINUTE)
    done = edit(
        changes_with(world, timeline=timeline),
        caller(world),
        schedule,
        definition,
        START,
        description="",
        tags={},
    )
    assert done.finished
    assert times(world.rows(State.PLANNED)) == [START + MINUTE]
    world.scan()
    assert times(world.rows(State.SCHEDULED)) == [START + n * MINUTE for n in (1, 2, 3)]


@pytest.mark.parametrize("attempt", [pause, cancel])
def test_a_change_whose_answer_was_lost_is_answered_again_as_it_was(
    attempt: Any,
) -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    world.relay_stream()
    first = attempt(world.changes, caller(world), row.schedule_id, START)
    assert [each[-7:] for each in first.already_dispatched] == [
        f"120{n}00Z" for n in (1, 2, 3)
    ]
    world.clock.advance(SECOND)
    again = attempt(world.changes, caller(world), row.schedule_id, START + SECOND)
    assert again == replace(first, changed=False)
    # By then, all that stood has run.
    world.clock.advance(4 * MINUTE)
    later = attempt(world.changes, caller(world), row.schedule_id, world.clock.now())
    assert later == replace(again, already_dispatched=())


def test_a_change_that_was_interrupted_is_finished_by_its_repetition() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    world.relay_stream()
    timeline: Any = Unreadable(world)
    broken = replace(world.changes, plane=replace(world.plane, timeline=timeline))
    half = pause(broken, caller(world), row.schedule_id, START)
    assert (half.finished, half.already_dispatched) == (False, ())
    unclear = pause(broken, caller(world), row.schedule_id, START)
    assert unclear == replace(half, changed=False)
    done = pause(world.changes, caller(world), row.schedule_id, START)
    assert (done.changed, done.finished) == (False, True)
    assert len(done.already_dispatched) == 3
    assert not done.schedule.handover
    assert done.schedule == current(world, row)
