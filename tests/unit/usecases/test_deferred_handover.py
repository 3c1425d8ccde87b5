"""Changes of a schedule with a wide flexible window, all of whose rows wait."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import ScheduleState, Tracking, VersionRef
from hourbell.domain.dispatch import DispatchState
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import Changed, cancel, edit, pause, resume
from hourbell.usecases.release import release
from hourbell.usecases.version_reads import MAX_SUCCESSORS, stopped_version

from tests.unit.usecases.deferring import (
    DAY,
    HORIZON,
    available,
    deferred,
    releases,
    stored,
)
from tests.unit.usecases.test_change_schedule import caller, current
from tests.unit.usecases.test_interrupted_changes import Wrapped
from tests.unit.usecases.test_release import as_backfill, go
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

# The last of its times is 12:08.
ENDS = START + 9 * MINUTE
EVERY_MINUTE = Timing("* * * * *", end_at=ENDS)


def running(window: int = DAY, tracking: Tracking = Tracking.UNTRACKED) -> Any:
    """Return a world after four minutes, and the first row of its schedule.

    The rows of 12:01 to 12:06 have left PLANNED; it is 12:03:07.
    """
    world = World()
    row = world.add(EVERY_MINUTE, window=window, tracking=tracking)
    for _ in range(4):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    world.clock.set(START + 3 * MINUTE + 7 * SECOND)
    return world, row


def amend(
    world: World, row: Occurrence, timing: Timing | None, **labels: Any
) -> Changed:
    schedule = current(world, row)
    definition = schedule.definition
    if timing is not None:
        definition = replace(definition, timing=timing)
    wanted = {"description": "", "tags": {}} | labels
    now = world.clock.now()
    return edit(world.changes, caller(world), schedule, definition, now, **wanted)


def finish(world: World, window: int = DAY) -> None:
    """Let the rest of the times come, and then the end of all windows."""
    for _ in range(9):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    for _ in range(4):
        world.scan()
        world.relay_stream()
        world.relay_sweep()
        world.clock.advance(timedelta(seconds=window) / 3)
    world.scan()


SENT = re.compile(r'"id":"sch\w{26}\.v(\d+)\.20260309T12(\d\d)00Z"')


def sent(world: World) -> list[str]:
    """Return which minutes were sent, by which version, as `<minute> <version>`."""
    found = (SENT.search(message.entry.body) for message in world.queues.accepted)
    return sorted(f"{each[2]} {each[1]}" for each in found if each is not None)


def test_an_edit_of_the_description_cuts_nothing_off() -> None:
    world, row = running()
    before = world.store.all_rows()
    assert amend(world, row, None, description="louder").schedule.version == 1
    assert world.store.all_rows() == before
    finish(world)
    assert sent(world) == [f"0{minute} 1" for minute in range(1, 9)]
    assert world.rows(State.CANCELED) == []


def test_an_edit_of_the_timing_takes_only_what_is_after_it_and_not_out_of_hand() -> (
    None
):
    world, row = running()
    near = [row for row in world.rows() if row.state not in {"DEFERRED", "PLANNED"}]
    assert near == []
    done = amend(world, row, replace(EVERY_MINUTE, expression="*/2 * * * *"))
    assert done.already_dispatched == ()
    assert times(world.rows(State.CANCELED)) == [
        START + n * MINUTE for n in range(4, 8)
    ]
    finish(world)
    assert sent(world) == ["01 1", "02 1", "03 1", "04 2", "06 2", "08 2"]
    assert all(not each.is_open for each in releases(world))
    reasons = {row.reason for row in world.rows(State.CANCELED)}
    assert reasons == {"SUPERSEDED"}


Stop = Callable[..., Changed]


@pytest.mark.parametrize(("stop", "reason"), [(pause, "PAUSED"), (cancel, "CANCELED")])
@pytest.mark.parametrize("tracking", Tracking)
def test_what_is_deferred_when_a_schedule_stops_is_canceled_when_its_time_comes(
    stop: Stop, reason: str, tracking: Tracking
) -> None:
    world, row = running(tracking=tracking)
    stop(world.changes, caller(world), row.schedule_id, world.clock.now())
    waiting = world.rows(State.DEFERRED)
    assert times(waiting) == [START + n * MINUTE for n in (1, 2, 3)]
    finish(world)
    assert world.queues.accepted == []
    assert {row.state for row in world.rows()} == {State.CANCELED}
    assert {row.reason for row in world.rows()} == {reason}
    assert {each.state for each in releases(world)} == {DispatchState.DONE}


def test_a_resume_does_not_revive_what_the_pause_stopped() -> None:
    world, row = running()
    who = caller(world)
    pause(world.changes, who, row.schedule_id, world.clock.now())
    world.clock.advance(2 * MINUTE)
    resume(world.changes, who, row.schedule_id, world.clock.now())
    finish(world)
    assert sent(world) == ["06 3", "07 3", "08 3"]
    assert {(r.version, r.reason) for r in world.rows(State.CANCELED)} == {
        (1, "PAUSED")
    }


def test_a_pause_reaches_what_an_edit_had_left_to_its_version() -> None:
    world, row = running()
    amend(world, row, replace(EVERY_MINUTE, expression="*/2 * * * *"))
    world.clock.advance(20 * SECOND)
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    finish(world)
    assert world.queues.accepted == []
    assert {r.state for r in world.rows()} == {State.CANCELED}


def behind_a_record(world: World, row: Occurrence) -> tuple[Occurrence, Occurrence]:
    """Make the latest row an outbox record; return the deferred one before, and it."""
    *_, waiting, latest = world.rows(State.DEFERRED)
    record = replace(latest, state=State.SCHEDULED, scheduled_at=world.clock.now())
    world.store.put_row(record)
    assert waiting.scheduled_for > world.clock.now()
    assert waiting.schedule_id == record.schedule_id == row.schedule_id
    return waiting, record


@pytest.mark.parametrize("stop", [pause, cancel])
def test_a_stop_lets_nothing_wait_behind_a_record_that_is_on_its_way(
    stop: Stop,
) -> None:
    world, row = running()
    waiting, record = behind_a_record(world, row)
    done = stop(world.changes, caller(world), row.schedule_id, world.clock.now())
    assert done.already_dispatched == (record.occurrence_id,)
    assert stored(world, waiting).state is State.CANCELED
    finish(world)
    assert sent(world) == ["06 1"]


def test_an_edit_lets_what_waits_behind_a_record_run_and_names_it() -> None:
    world, row = running()
    waiting, record = behind_a_record(world, row)
    done = amend(world, row, replace(EVERY_MINUTE, expression="*/2 * * * *"))
    assert done.already_dispatched[-2:] == (
        waiting.occurrence_id,
        record.occurrence_id,
    )
    finish(world)
    assert sent(world) == [*(f"0{n} 1" for n in range(1, 7)), "08 2"]


def test_a_stop_right_after_an_edit_reaches_what_waits_for_times_still_to_come() -> (
    None
):
    world, row = running()
    waiting, record = behind_a_record(world, row)
    amend(world, row, replace(EVERY_MINUTE, expression="*/2 * * * *"))
    world.clock.advance(SECOND)
    done = pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    assert done.already_dispatched == (record.occurrence_id,)
    finish(world)
    assert stored(world, waiting).reason == "PAUSED"
    assert sent(world) == ["06 1"]


@pytest.mark.parametrize("edits", [1, 150])
def test_a_stop_reaches_back_over_all_the_edits_of_a_day(edits: int) -> None:
    world = World()
    row = deferred(world)
    log = world.store.versions
    first = log[VersionRef(row.schedule_id, 1)]
    for number in range(1, edits + 2):
        log[VersionRef(row.schedule_id, number)] = replace(
            first,
            version=number,
            effective_from=first.effective_from
            if number == 1
            else START + DAY * SECOND,
            effective_to=START + DAY * SECOND,
            ends_at=START + (MINUTE + number * SECOND),
            ends_as=ScheduleState.ACTIVE if number <= edits else ScheduleState.PAUSED,
        )
    world.clock.set(available(row) - HORIZON)
    assert go(world).canceled == 1
    assert stored(world, row).reason == "PAUSED"


def test_the_search_for_a_stop_reads_versions_in_growing_lots_and_ends() -> None:
    world = World()
    row = deferred(world)
    first = world.store.versions[VersionRef(row.schedule_id, 1)]
    lots: list[int] = []

    def versions(refs: Any, *, consistent: bool) -> Any:
        wanted = list(refs)
        lots.append(len(wanted))
        assert consistent
        return {r: replace(first, version=r.version, ends_at=START) for r in wanted}

    endless: Any = Wrapped(world.schedules, versions=versions)
    assert stopped_version(endless, replace(first, ends_at=START)) is None
    assert lots[:8] == [1, 2, 4, 8, 16, 32, 50, 50]
    assert MAX_SUCCESSORS <= sum(lots) < MAX_SUCCESSORS + 50


def test_what_a_handover_under_way_has_to_decide_is_held() -> None:
    world = World()
    row = deferred(world)
    world.clock.advance(2 * MINUTE)

    def fail(*_: Any) -> Any:
        raise Transient

    plane = replace(world.plane, schedules=Wrapped(world.schedules, take_over=fail))
    changes = replace(world.changes, plane=plane)
    pause(changes, caller(world), row.schedule_id, world.clock.now())
    world.clock.set(available(row) - HORIZON)
    assert go(world).held == 1
    assert stored(world, row).state is State.DEFERRED
    assert releases(world)[0].is_open
    # A pass finishes the handover, and the next one cancels the row.
    world.scan()
    assert go(world).canceled == 1
    assert stored(world, row).reason == "PAUSED"


@pytest.mark.parametrize(("asked", "stopped"), [(0, True), (2, False)])
def test_a_pause_stops_a_backfill_that_was_asked_for_before_it(
    asked: int, stopped: bool
) -> None:
    world = World()
    row = deferred(world)
    (dispatch,) = releases(world)
    backfilled = replace(as_backfill(row), backfilled_at=START + asked * MINUTE)
    world.store.put_row(backfilled)
    own = replace(dispatch, scheduled_for=backfilled.scheduled_for)
    world.clock.set(START + MINUTE)
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    world.clock.set(available(row))
    report = release(world.plane, [own], world.clock.now())
    assert (report.canceled, report.released) == (int(stopped), int(not stopped))
