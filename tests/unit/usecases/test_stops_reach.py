"""How far pauses and cancels reach: faults that seeds of a simulation found."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hourbell.domain.occurrence import CancelReason, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import Changed, cancel, pause, resume
from hourbell.usecases.get_schedule import Library, get_schedule
from hourbell.usecases.materialize import advance

from tests.unit.usecases.test_change_schedule import caller, change_timing
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

EVERY_MINUTE = Timing("* * * * *")


def test_cancel_stops_what_an_earlier_pause_let_stand() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    who = caller(world)
    # The relay is down, so that three outbox records stand after the pause ...
    paused = pause(world.changes, who, row.schedule_id, world.clock.now())
    assert len(paused.already_dispatched) == 3
    world.clock.advance(MINUTE)
    resume(world.changes, who, row.schedule_id, world.clock.now())
    # ... and are a backlog, nine minutes old, when the schedule is canceled for good.
    world.clock.set(START + 12 * MINUTE)
    cancel(world.changes, who, row.schedule_id, world.clock.now())

    world.relay_stream()

    assert [json.loads(each.entry.body)["id"] for each in world.queues.accepted] == []


@pytest.mark.parametrize("stop", [pause, cancel])
def test_a_stop_right_after_an_edit_reaches_what_has_not_left_planned(
    stop: Callable[..., Changed],
) -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    first, second, third = world.rows(State.SCHEDULED)
    # The write for the second one is late, or lost.
    slow = replace(second, state=State.PLANNED, available_at=None, queue=None)
    world.store.put_row(slow)
    every_other = replace(EVERY_MINUTE, expression="*/2 * * * *")
    edited = change_timing(world, row, every_other)
    assert slow.occurrence_id in edited.already_dispatched
    world.clock.advance(SECOND)

    now = world.clock.now()
    done = stop(world.changes, caller(world), row.schedule_id, now)

    reasons = {pause: CancelReason.PAUSED, cancel: CancelReason.CANCELED}
    standing = (first.occurrence_id, third.occurrence_id)
    assert done.already_dispatched == standing
    # A pass with an old reading of the versions would let it go now.
    found = world.store.row(slow.key)
    assert found is not None
    assert (found.state, found.reason) == (State.CANCELED, reasons[stop])


def test_what_a_clock_ahead_has_paused_is_not_told_to_run() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    who, first = caller(world), world.rows(State.SCHEDULED)[0]
    world.clock.set(first.scheduled_for - SECOND)
    pause(world.changes, who, row.schedule_id, first.scheduled_for + SECOND)

    done = resume(world.changes, who, row.schedule_id, world.clock.now())

    told = set(done.already_dispatched)
    world.relay_stream()
    sent = {json.loads(each.entry.body)["id"] for each in world.queues.accepted}
    assert first.occurrence_id not in told
    assert told == sent


def test_pass_with_an_old_reading_leaves_what_stands_after_a_pause() -> None:
    world = World()
    planned = world.add(EVERY_MINUTE)
    world.scan()
    paused = pause(world.changes, caller(world), planned.schedule_id, START)
    assert planned.occurrence_id in paused.already_dispatched

    # An eventual read, or a pass that read before the pause and comes to write now.
    advance(world.plane, [planned], START)

    found = world.store.row(planned.key)
    assert found is not None
    assert found.state is State.SCHEDULED


def test_pause_in_an_outage_accounts_for_every_overdue_time() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    # No pass until 12:20, and a pause at 12:19.
    world.clock.set(START + 19 * MINUTE)
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    for _ in range(3):
        world.clock.advance(MINUTE)
        world.scan()

    library = Library(world.schedules, world.timeline, world.shard_map)
    view = get_schedule(library, "acme", row.schedule_id, world.clock.now())
    rows = world.rows()

    assert {due.state for due in view.latest} == {State.CANCELED}
    wanted = [START + n * MINUTE for n in range(1, 20)]
    told = [t for t in wanted if t in times(rows) or any(r.covers(t) for r in rows)]
    assert told == wanted
