"""What a pause or a cancel reaches, and changes of damaged schedules."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import (
    cancel,
    pause,
)
from hourbell.usecases.materialize import advance

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_change_schedule import (
    EVERY_MINUTE,
    caller,
    change,
    current,
)
from tests.unit.usecases.test_interrupted_changes import Wrapped, interrupted
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World


@pytest.mark.parametrize(("stop", "reason"), [(pause, "PAUSED"), (cancel, "CANCELED")])
def test_a_stop_reaches_the_backlog_of_versions_that_an_edit_had_ended(
    stop: Any, reason: str
) -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.clock.advance(timedelta(minutes=10))
    for payload in ("2", "3"):
        schedule = current(world, row)
        change(world, schedule, replace(schedule.definition, payload_json=payload))
    world.store.take_stream()
    world.clock.advance(SECOND)
    stop(world.changes, caller(world), row.schedule_id, world.clock.now())
    world.scan()
    old = [r for r in world.store.all_rows() if r.version == 1]
    assert {(r.state, r.reason) for r in old} == {(State.CANCELED, reason)}


def test_an_edit_alone_stops_no_backlog() -> None:
    world = World()
    row = world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(minutes=10))
    for payload in ("2", "3"):
        schedule = current(world, row)
        change(world, schedule, replace(schedule.definition, payload_json=payload))
    world.scan()
    old = [r for r in world.store.all_rows() if r.version == 1]
    assert State.CANCELED not in {r.state for r in old}
    assert len(old) >= 10


@pytest.mark.parametrize("stop", [pause, cancel])
@pytest.mark.parametrize("nth", range(1, 7))
@pytest.mark.parametrize("after", [False, True])
def test_nothing_overdue_is_sent_after_a_stop_inside_a_pass(
    stop: Any, nth: int, after: bool
) -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.clock.advance(timedelta(minutes=5))
    at = world.clock.now() + SECOND
    moment = Moment(
        nth,
        after,
        lambda: stop(world.changes, caller(world), row.schedule_id, at),
    )
    plane = replace(
        world.plane,
        timeline=moment.wrap(world.timeline),
        schedules=moment.wrap(world.schedules),
    )
    advance(plane, [row], world.clock.now())
    assert moment.reached
    world.relay_stream()
    for _ in range(5):
        world.clock.advance(MINUTE)
        world.scan()
        world.relay_stream()
        world.relay_sweep()
    assert world.queues.accepted == []


def test_a_stale_pass_sends_no_backlog_after_a_stop() -> None:
    world = World()
    row = world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(minutes=5))
    old = dict(world.store.versions)
    cancel(world.changes, caller(world), row.schedule_id, world.clock.now())

    def versions(refs: Any, *, consistent: bool) -> Any:
        if consistent:
            return world.schedules.versions(refs, consistent=True)
        return {ref: old[ref] for ref in refs if ref in old}

    world.clock.advance(SECOND)
    schedules: Any = Wrapped(world.schedules, versions=versions)
    advance(replace(world.plane, schedules=schedules), world.rows(), world.clock.now())
    report = world.relay_stream()
    # The backlog of five, and the three of the horizon.
    assert report.canceled == 8
    assert world.queues.accepted == []


def test_a_stop_reaches_a_record_that_waits_for_its_window() -> None:
    world = World()
    row = world.add(Timing("1 12 * * *"), window=7200)
    for _ in range(5):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    assert world.queues.accepted == []
    cancel(world.changes, caller(world), row.schedule_id, world.clock.now())
    for _ in range(130):
        world.clock.advance(MINUTE)
        world.scan()
        world.relay_stream()
        world.relay_sweep()
    assert world.queues.accepted == []


@pytest.mark.parametrize("stop", [pause, cancel])
def test_a_schedule_in_a_zone_that_is_gone_can_be_stopped(stop: Any) -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    spoil(world, row)
    done = stop(world.changes, caller(world), row.schedule_id, START)
    assert done.finished
    for _ in range(8):
        world.clock.advance(MINUTE)
        reports = world.scan()
    assert world.rows(State.PLANNED) == []
    assert sum(report.faulty for report in reports) == 0


def test_a_schedule_in_a_zone_that_is_gone_can_be_repaired() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    spoil(world, row)
    schedule = current(world, row)
    change(world, schedule, replace(schedule.definition, timing=EVERY_MINUTE))
    for _ in range(8):
        world.clock.advance(MINUTE)
        world.scan()
        world.relay_stream()
    assert len(world.queues.accepted) >= 4


def spoil(world: World, row: Occurrence) -> None:
    """Put a schedule into a zone that this release does not know."""
    schedule = world.store.schedules[row.schedule_id]
    timing = replace(schedule.definition.timing, zone="Mars/Base")
    definition = replace(schedule.definition, timing=timing)
    log = world.store.versions[schedule.ref]
    world.store.schedules[row.schedule_id] = replace(schedule, definition=definition)
    world.store.versions[schedule.ref] = replace(log, definition=definition)


@pytest.mark.parametrize("backlog", [True, False])
def test_a_new_limit_counts_from_its_edit_on(backlog: bool) -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    for _ in range(20):
        if not backlog:
            world.scan()
            world.relay_stream()
        world.clock.advance(MINUTE)
    schedule = current(world, row)
    limited = replace(EVERY_MINUTE, max_occurrences=10)
    change(world, schedule, replace(schedule.definition, timing=limited))
    for _ in range(30):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    assert len([r for r in world.rows(State.ENQUEUED) if r.version == 2]) == 10


def test_a_repeated_change_finishes_an_open_handover() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    advance(world.plane, [row], START)
    interrupted(world, row)
    again = pause(world.changes, caller(world), row.schedule_id, START)
    assert (again.changed, again.finished) == (False, True)
    assert not current(world, row).handover


def test_a_schedule_whose_last_time_is_under_way_can_get_another_payload() -> None:
    world = World()
    row = world.add(Timing("at(2026-03-09T12:01:00)"))
    world.scan()
    world.relay_stream()
    world.clock.advance(MINUTE + SECOND)
    schedule = current(world, row)
    done = change(world, schedule, replace(schedule.definition, payload_json="2"))
    assert done.schedule.version == 2
    assert len(world.queues.accepted) == 1
