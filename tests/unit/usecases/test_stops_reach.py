"""How far pauses and cancels reach: faults that seeds of a simulation found."""

import json

from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import cancel, pause, resume
from hourbell.usecases.get_schedule import Library, get_schedule
from hourbell.usecases.materialize import advance

from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, START, World, times

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
