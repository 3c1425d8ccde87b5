"""Each version is judged by its own release of the zone database, whatever is new."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.adapters.memory import FixedClock
from hourbell.domain.occurrence import CancelReason, State, occurrence_id
from hourbell.domain.schedule import Timing
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.backfill import backfill
from hourbell.usecases.backfill_values import BackfillRequest
from hourbell.usecases.change_schedule import pause
from hourbell.usecases.create_schedule import Registry, create_schedule
from hourbell.usecases.get_schedule import Library, ScheduleView, get_schedule
from hourbell.usecases.judging import objection
from hourbell.usecases.ownership import stretches

from tests.unit.usecases.jobs import new
from tests.unit.usecases.test_change_schedule import (
    caller,
    change,
    change_timing,
    current,
    version,
)
from tests.unit.usecases.test_foresee_update import foresee, nothing, payload_and, same
from tests.unit.usecases.test_replan import ASUNCION, DAILY, go_on, ran, replanned, utc
from tests.unit.usecases.world import MINUTE, World, times

JULY = utc(7, 1, 11, 55)


def view(world: World, schedule_id: str) -> ScheduleView:
    library = Library(world.schedules, world.timeline, world.shard_map)
    return get_schedule(library, "acme", schedule_id, world.clock.now())


def old_world() -> World:
    """Return a world in which 09:00 is 13:00 UTC by 2024b, and 12:00 since."""
    return World(clock=FixedClock(JULY))


def test_after_an_upgrade_an_old_version_goes_on_by_its_own_rules() -> None:
    world = World(clock=FixedClock(utc(3, 21, 11, 58)))
    world.add(DAILY, tzdb="2024b")
    for day in (21, 22, 23):
        go_on(world, utc(3, day, 14), 30 * MINUTE)
    # The clocks go back on the 22nd by these rules. By others the same 09:00 would
    # have come at 12:00 and, judged again, at 13:00.
    assert ran(world) == [utc(3, 21, 12), utc(3, 22, 13), utc(3, 23, 13)]
    assert {row.tzdb for row in world.rows()} == {"2024b"}


def test_a_row_is_what_its_versions_own_rules_produce() -> None:
    world = old_world()
    row = world.add(DAILY, tzdb="2024b")
    owner = version(world, row, 1)
    assert objection(row, owner) is None
    moved = replace(row, scheduled_for=utc(7, 2, 12))
    assert objection(moved, owner) is CancelReason.REPLANNED
    # Whoever planned that had other rules; it is not for these to judge.
    assert objection(replace(moved, tzdb=TZDB_VERSION), owner) is None


@pytest.mark.parametrize("release", ["2019c", "2031a"])
def test_a_release_without_its_rules_goes_by_the_nearest_and_its_rows_stand(
    release: str,
) -> None:
    world = old_world()
    row = world.add(DAILY, tzdb=release)
    hour = 13 if release == "2019c" else 12
    assert row.scheduled_for == utc(7, 1, hour)
    strange = replace(row, scheduled_for=utc(7, 2, 7))
    assert objection(strange, version(world, row, 1)) is None
    go_on(world, utc(7, 1, hour, 2))
    (planned,) = world.rows(State.PLANNED)
    assert planned.scheduled_for == utc(7, 2, hour)
    assert planned.tzdb == ("2024b" if release == "2019c" else TZDB_VERSION)


def test_a_schedule_is_shown_by_the_releases_of_its_versions() -> None:
    world = old_world()
    row = world.add(DAILY, tzdb="2024b")
    seen = view(world, row.schedule_id)
    assert (seen.next_run_at, seen.next_tzdb) == (utc(7, 1, 13), "2024b")
    go_on(world, utc(7, 1, 13, 5), 5 * MINUTE)
    replanned(world)
    world.clock.set(utc(7, 2, 11, 58))
    go_on(world, utc(7, 2, 12, 10))
    seen = view(world, row.schedule_id)
    assert [(each.scheduled_for, each.tzdb, each.state) for each in seen.latest] == [
        (utc(7, 2, 12), TZDB_VERSION, "ENQUEUED"),
        (utc(7, 1, 13), "2024b", "ENQUEUED"),
    ]
    assert (seen.next_run_at, seen.next_tzdb) == (utc(7, 3, 12), TZDB_VERSION)


def test_a_past_range_belongs_to_whichever_rules_held() -> None:
    world = old_world()
    row = world.add(DAILY, tzdb="2024b")
    go_on(world, utc(7, 1, 13, 5), 5 * MINUTE)
    replanned(world)
    schedule = world.store.schedules[row.schedule_id]
    parts = stretches(world.schedules, schedule, utc(6, 30, 11), utc(7, 3, 13))
    found = [
        (each.version.version, instant) for each in parts for instant in each.times()
    ]
    assert found == [
        # Before it was, the definition in force stands in, and its rules with it.
        (2, utc(6, 30, 12)),
        (1, utc(7, 1, 13)),
        (2, utc(7, 2, 12)),
        (2, utc(7, 3, 12)),
    ]


def test_a_backfill_finds_what_the_old_rules_made() -> None:
    world = old_world()
    row = world.add(DAILY, tzdb="2024b")
    go_on(world, utc(7, 1, 13, 5), 5 * MINUTE)
    replanned(world)
    world.clock.set(utc(7, 2, 11, 58))
    go_on(world, utc(7, 2, 12, 10))
    request = BackfillRequest(utc(7, 1, 11, 56), utc(7, 2, 12, 5))
    now = world.clock.now()
    done = backfill(world.changes, caller(world), row.schedule_id, request, now)
    assert [(each.occurrence_id, each.outcome) for each in done.items] == [
        (occurrence_id(row.schedule_id, 1, utc(7, 1, 13)), "exists"),
        (occurrence_id(row.schedule_id, 2, utc(7, 2, 12)), "exists"),
    ]


def test_another_timing_brings_the_present_release_and_all_else_keeps_its_times() -> (
    None
):
    # By the present release 09:00 has gone by, by 2024b it is still to come.
    world = World(clock=FixedClock(utc(7, 1, 12, 30)))
    row = world.add(DAILY, tzdb="2024b")
    schedule = current(world, row)
    change(world, schedule, schedule.definition, tags={"team": "ops"})
    assert version(world, row, 1).ends_at is None
    schedule = current(world, row)
    change(world, schedule, replace(schedule.definition, payload_json="2"))
    assert version(world, row, 2).tzdb == "2024b"
    assert times(world.rows(State.PLANNED)) == [utc(7, 1, 13)]
    change_timing(world, row, Timing("45 9 * * *", ASUNCION))
    assert version(world, row, 3).tzdb == TZDB_VERSION
    assert times(world.rows(State.PLANNED)) == [utc(7, 1, 12, 45)]


def test_an_edit_of_what_is_paused_does_not_keep_its_release() -> None:
    world = old_world()
    row = world.add(DAILY, tzdb="2024b")
    pause(world.changes, caller(world), row.schedule_id, JULY)
    schedule = current(world, row)
    change(world, schedule, replace(schedule.definition, payload_json="2"))
    assert version(world, row, 3).tzdb == TZDB_VERSION


def test_a_dry_run_of_an_update_shows_the_rules_that_would_hold() -> None:
    world = old_world()
    row = world.add(DAILY, tzdb="2024b")
    labeled = foresee(world, row.schedule_id, nothing)
    renewed = foresee(world, row.schedule_id, payload_and(same))
    later = payload_and(lambda timing: replace(timing, expression="30 9 * * *"))
    retimed = foresee(world, row.schedule_id, later)
    shown = [
        (each.tzdb, each.times[0].utc, each.times[0].local.hour)
        for each in (labeled, renewed, retimed)
    ]
    assert shown == [
        ("2024b", utc(7, 1, 13), 9),
        ("2024b", utc(7, 1, 13), 9),
        (TZDB_VERSION, utc(7, 1, 12, 30), 9),
    ]


def test_a_create_that_is_repeated_after_an_upgrade_finds_its_first_time() -> None:
    world = old_world()
    registry = Registry(world.plane, world.groups, world.ids)
    request = replace(new("bell", idempotency_key="k"), timing=DAILY)
    created = create_schedule(registry, caller(world), request, JULY)
    ref = created.version.ref
    aged = replace(world.store.versions[ref], tzdb="2024b")
    world.store.versions[ref] = aged
    again = create_schedule(
        registry, caller(world), request, JULY + timedelta(seconds=1)
    )
    assert again.version.tzdb == "2024b"
    assert again.first.scheduled_for == utc(7, 1, 13)
