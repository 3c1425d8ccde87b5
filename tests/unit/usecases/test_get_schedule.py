"""Reading a schedule: what comes next, and what became of the latest times."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hourbell.domain.definition import ScheduleState
from hourbell.domain.errors import NotFound
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.zones import TICK
from hourbell.usecases.get_schedule import (
    EXPIRED,
    MAX_COUNTED,
    NONE,
    Library,
    ScheduleView,
    get_schedule,
)

from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")


def add(world: World, timing: Timing) -> Occurrence:
    """Create a schedule, which owns the times strictly after now."""
    first = world.add(timing)
    ref = world.store.schedules[first.schedule_id].ref
    version = world.store.versions[ref]
    effective_from = version.effective_from + TICK
    world.store.versions[ref] = replace(version, effective_from=effective_from)
    return first


def view(world: World, row: Occurrence, tenant: str = "acme") -> ScheduleView:
    library = Library(world.schedules, world.timeline, world.shard_map)
    return get_schedule(library, tenant, row.schedule_id, world.clock.now())


def run(world: World, minutes: int) -> None:
    """Let time pass, scanned and relayed each minute."""
    for _ in range(minutes):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)


def change(world: World, row: Occurrence, **fields: Any) -> None:
    schedules, versions = world.store.schedules, world.store.versions
    schedule = schedules[row.schedule_id]
    if "effective_to" in fields:
        version = versions[schedule.ref]
        versions[schedule.ref] = replace(version, **fields)
    else:
        schedules[row.schedule_id] = replace(schedule, **fields)


def test_a_new_schedule_shows_its_next_time_and_no_past() -> None:
    world = World()
    first = add(world, Timing("0 13 * * *"))
    seen = view(world, first)
    assert seen.schedule.schedule_id == first.schedule_id
    assert seen.version.ref == seen.schedule.ref
    assert seen.next_run_at == first.scheduled_for
    assert seen.latest == ()


def test_the_five_latest_times_come_with_their_rows() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 8)
    seen = view(world, first)
    assert [due.scheduled_for for due in seen.latest] == [
        START + n * MINUTE for n in (8, 7, 6, 5, 4)
    ]
    assert {due.state for due in seen.latest} == {State.ENQUEUED}
    latest = seen.latest[0]
    assert latest.row is not None
    assert latest.occurrence_id == latest.row.occurrence_id
    assert latest.row.visible_at is not None
    assert seen.next_run_at == START + 9 * MINUTE


def test_no_time_before_the_creation_is_shown() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 2)
    assert [due.scheduled_for for due in view(world, first).latest] == [
        START + 2 * MINUTE,
        START + MINUTE,
    ]


def test_times_that_nobody_reached_are_shown_without_a_row() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    world.clock.advance(3 * MINUTE)
    seen = view(world, first)
    assert [due.state for due in seen.latest] == [NONE, NONE, State.PLANNED]
    assert seen.next_run_at == START + 4 * MINUTE


def test_times_older_than_the_retention_are_expired() -> None:
    world = World()
    first = add(world, Timing("0 0 1 * *"))
    world.store.rows.clear()
    world.clock.set(datetime(2026, 6, 16, tzinfo=UTC))
    assert [due.state for due in view(world, first).latest] == [NONE, EXPIRED, EXPIRED]
    world.clock.advance(SECOND)
    assert view(world, first).latest[0].state == EXPIRED


def test_a_one_time_schedule_ends() -> None:
    world = World()
    first = add(world, Timing("at(2026-03-09T12:01:00)"))
    assert view(world, first).next_run_at == START + MINUTE
    run(world, 2)
    seen = view(world, first)
    assert seen.next_run_at is None
    assert [due.state for due in seen.latest] == [State.ENQUEUED]


def test_the_present_instant_counts_as_past() -> None:
    world = World()
    first = add(world, Timing("at(2026-03-09T12:01:00)"))
    world.clock.advance(MINUTE)
    assert view(world, first).next_run_at is None
    assert len(view(world, first).latest) == 1


@pytest.mark.parametrize(
    "state", [ScheduleState.PAUSED, ScheduleState.COMPLETED, ScheduleState.CANCELED]
)
def test_nothing_comes_next_unless_it_is_active(state: ScheduleState) -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 2)
    change(world, first, state=state)
    seen = view(world, first)
    assert seen.next_run_at is None
    assert len(seen.latest) == 2


def test_times_outside_the_versions_interval_are_not_its_own() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 5)
    change(world, first, effective_to=START + 3 * MINUTE)
    seen = view(world, first)
    assert seen.next_run_at is None
    assert [due.scheduled_for for due in seen.latest] == [
        START + 2 * MINUTE,
        START + MINUTE,
    ]


def test_a_version_that_begins_later_runs_then() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    ref = world.store.schedules[first.schedule_id].ref
    later = START + 10 * MINUTE
    version = replace(world.store.versions[ref], effective_from=later)
    world.store.versions[ref] = version
    world.clock.advance(2 * MINUTE)
    seen = view(world, first)
    assert seen.next_run_at == later
    assert seen.latest == ()


@pytest.mark.parametrize(("passed", "more"), [(1, True), (2, True), (3, False)])
def test_max_occurrences_ends_it(passed: int, more: bool) -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=3))
    run(world, passed)
    seen = view(world, first)
    assert (seen.next_run_at is not None) is more
    assert len(seen.latest) == passed


def test_times_beyond_max_occurrences_were_never_due() -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=3))
    run(world, 6)
    assert [due.scheduled_for for due in view(world, first).latest] == [
        START + n * MINUTE for n in (3, 2)
    ]
    assert view(world, first).next_run_at is None


@pytest.mark.parametrize(("passed", "more"), [(2, True), (3, False), (90, False)])
def test_without_rows_the_times_are_counted(passed: int, more: bool) -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=3))
    world.store.rows.clear()
    world.clock.advance(passed * MINUTE + SECOND)
    assert (view(world, first).next_run_at is not None) is more


def test_an_exhausted_timing_is_counted_to_its_end() -> None:
    world = World()
    end = START + 4 * MINUTE
    first = add(world, Timing("* * * * *", max_occurrences=2, end_at=end))
    world.store.rows.clear()
    world.clock.advance(60 * MINUTE)
    assert [due.scheduled_for for due in view(world, first).latest] == [
        START + 2 * MINUTE,
        START + MINUTE,
    ]


def test_too_many_times_to_count_are_not_counted() -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=MAX_COUNTED * 2))
    world.store.rows.clear()
    world.clock.advance((MAX_COUNTED + 10) * MINUTE)
    assert view(world, first).next_run_at == world.clock.now() + MINUTE


def test_another_tenants_schedule_is_not_found() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    with pytest.raises(NotFound) as theirs:
        view(world, first, tenant="zenith")
    with pytest.raises(NotFound) as missing:
        view(world, replace(first, schedule_id="sch" + "0" * 26))
    assert (theirs.value.code, theirs.value.message) == (
        missing.value.code,
        missing.value.message,
    )


@pytest.mark.parametrize(
    "schedule_id", ["", "sch", "x" * 4000, "sch" + "u" * 26, "DEF"]
)
def test_what_cannot_be_an_id_is_not_looked_up(schedule_id: str) -> None:
    world = World()
    first = replace(add(world, EVERY_MINUTE), schedule_id=schedule_id)
    world.store.schedules[schedule_id] = next(iter(world.store.schedules.values()))
    with pytest.raises(NotFound):
        view(world, first)


def test_a_definition_without_its_version_is_not_found() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    world.store.versions.clear()
    with pytest.raises(NotFound):
        view(world, first)
