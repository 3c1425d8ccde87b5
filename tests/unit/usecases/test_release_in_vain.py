"""A release whose occurrence never comes is settled, once that is certain."""

import contextlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import ScheduleState, VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchState, release_of
from hourbell.domain.errors import Permanent
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.parking import ParkReason
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Epoch, Phase, ShardMap
from hourbell.usecases.ports import Write
from hourbell.usecases.release import ReleaseReport, release

from tests.unit.usecases.deferring import releases
from tests.unit.usecases.faults import Crash, Crashing
from tests.unit.usecases.poison import EVERY_TEN, PoisonedWorld
from tests.unit.usecases.test_interrupted_changes import Wrapped
from tests.unit.usecases.test_parking import is_caught_up, only
from tests.unit.usecases.world import MINUTE, SECOND, START, World

HOUR = timedelta(hours=1)
DUE = START + 20 * MINUTE
# When whoever put the dispatch row is dead: a bucket's second look.
CERTAIN = DUE + 20 * MINUTE


def stranded(world: World) -> tuple[Occurrence, Dispatch]:
    """Leave a dispatch row of 12:20 behind whose occurrence of 12:10 is not there."""
    row = replace(
        world.add(EVERY_TEN), state=State.DEFERRED, available_at=DUE, queue="q"
    )
    shard = world.shard_map.shard_of(row.schedule_id, DUE)
    dispatch = release_of(row, shard, START)
    world.store.put_dispatch(dispatch)
    del world.store.rows[row.key.partition][row.key.sort]
    return row, dispatch


def end(world: World, row: Occurrence, state: ScheduleState, minutes: int) -> None:
    """End the row's version some minutes after the start, the handover done."""
    ref = VersionRef(row.schedule_id, 1)
    ended = START + minutes * MINUTE
    world.store.versions[ref] = replace(
        world.store.versions[ref], ends_at=ended, effective_to=ended, ends_as=state
    )


def go(world: World, dispatch: Dispatch, **ports: Any) -> ReleaseReport:
    now = world.clock.now()
    return release(replace(world.plane, **ports), [dispatch], now)


@pytest.mark.parametrize("state", [ScheduleState.PAUSED, ScheduleState.CANCELED])
def test_after_a_stop_nobody_writes_the_occurrence_and_its_release_is_settled(
    state: ScheduleState,
) -> None:
    world = World()
    row, dispatch = stranded(world)
    end(world, row, state, 15)
    world.clock.set(CERTAIN)
    assert go(world, dispatch) == ReleaseReport(vain=1)
    (settled,) = releases(world)
    assert settled.state is DispatchState.DONE
    assert settled.expires_at == CERTAIN + timedelta(days=15)
    assert go(world, settled) == ReleaseReport()


def test_who_put_the_release_may_be_about_to_write_the_occurrence() -> None:
    world = World()
    row, dispatch = stranded(world)
    end(world, row, ScheduleState.CANCELED, 15)
    world.clock.set(CERTAIN - SECOND)
    assert go(world, dispatch) == ReleaseReport(faulty=1)
    assert releases(world)[0].is_open


def test_an_edit_settles_what_its_ended_version_does_not_own() -> None:
    world = World()
    row, dispatch = stranded(world)
    # It ends before 12:10, or after.
    end(world, row, ScheduleState.ACTIVE, 11)
    world.clock.set(CERTAIN)
    assert go(world, dispatch) == ReleaseReport(faulty=1)
    end(world, row, ScheduleState.ACTIVE, 10)
    assert go(world, dispatch) == ReleaseReport(vain=1)


def test_without_its_version_no_occurrence_comes() -> None:
    world = World()
    row, dispatch = stranded(world)
    del world.store.versions[VersionRef(row.schedule_id, 1)]
    world.clock.set(CERTAIN)
    assert go(world, dispatch) == ReleaseReport(vain=1)


def test_while_the_version_stands_behind_the_time_its_release_stays() -> None:
    world = World()
    _, dispatch = stranded(world)
    world.clock.set(DUE + timedelta(days=15) - SECOND)
    assert go(world, dispatch) == ReleaseReport(faulty=1)
    # Older than any row is kept.
    world.clock.advance(SECOND)
    assert go(world, dispatch) == ReleaseReport(vain=1)


def test_a_handover_under_way_is_waited_for() -> None:
    world = World()
    row, dispatch = stranded(world)
    end(world, row, ScheduleState.PAUSED, 15)
    ref = VersionRef(row.schedule_id, 1)
    world.store.versions[ref] = replace(world.store.versions[ref], effective_to=None)
    world.clock.set(CERTAIN)
    assert go(world, dispatch) == ReleaseReport(faulty=1)


def test_one_of_two_places_is_enough_for_an_occurrence_to_be_there() -> None:
    before, after = Epoch(None, 4, 2), Epoch(START, 64, 2, Phase.MOVING)
    world = World(shard_map=ShardMap((before, after)))
    while True:
        row, dispatch = stranded(world)
        twin = world.shard_map.twin(row.key)
        if twin is not None:
            break
    end(world, row, ScheduleState.CANCELED, 15)
    world.clock.set(CERTAIN)
    world.store.put_row(replace(row, shard=twin.shard, state=State.DEFERRED))
    assert go(world, dispatch) == ReleaseReport(faulty=1)
    # With nothing in either it is not waited for, or no epoch could ever be settled.
    del world.store.rows[twin.partition][twin.sort]
    assert go(world, dispatch) == ReleaseReport(vain=1)


def test_a_version_that_cannot_be_read_tells_nothing() -> None:
    world = World()
    _, dispatch = stranded(world)
    world.clock.set(CERTAIN)

    def versions(*_: Any, **__: Any) -> Any:
        raise Permanent(code="unreadable_item")

    report = go(world, dispatch, schedules=Wrapped(world.schedules, versions=versions))
    assert report == ReleaseReport(faulty=1)
    assert releases(world)[0].is_open


def test_an_occurrence_that_cannot_be_read_is_there() -> None:
    world = PoisonedWorld()
    row, dispatch = stranded(world)
    world.store.put_row(row)
    world.damaged_timeline.rows_lost.add(row.key)
    end(world, row, ScheduleState.CANCELED, 15)
    world.clock.set(CERTAIN)
    assert go(world, dispatch) == ReleaseReport(faulty=1)
    # When it can be read again, it is canceled, and its release is done.
    world.damaged_timeline.rows_lost.clear()
    assert go(world, dispatch) == ReleaseReport(canceled=1, settled=1)


def test_settling_without_a_clear_answer_is_done_again() -> None:
    world = World()
    row, dispatch = stranded(world)
    end(world, row, ScheduleState.CANCELED, 15)
    world.clock.set(CERTAIN)
    lost = Wrapped(world.timeline, settle=lambda rows: [Write.UNKNOWN for _ in rows])
    report = go(world, dispatch, timeline=lost)
    assert (report.vain, report.unclear) == (0, 1)
    assert [each.reason for each in report.troubles] == [ParkReason.UNCLEAR]
    assert go(world, dispatch) == ReleaseReport(vain=1)


def test_a_parked_release_is_settled_and_let_go_when_it_is_certain() -> None:
    world = PoisonedWorld()
    row, _ = stranded(world)
    world.minutes(40)
    assert only(world).reason is ParkReason.TARGET_UNREADABLE
    end(world, row, ScheduleState.PAUSED, 41)
    reports = world.minutes(120)
    assert world.store.parked == {}
    assert sum(report.vain for report in reports) == 1
    assert not any(each.is_open for each in world.store.all_dispatches())
    is_caught_up(world)


def test_a_pause_between_a_release_and_its_occurrence_leaves_nothing_open() -> None:
    world = PoisonedWorld()
    policy = Misfire(MisfirePolicy.CATCH_UP, 200)
    row = world.add(Timing("* * * * *"), misfire=policy)
    tenant = world.store.tenants["acme"]
    quotas = replace(tenant.quotas, catch_up_per_minute=1)
    world.store.tenants["acme"] = replace(tenant, quotas=quotas)
    world.clock.advance(HOUR)
    plain = world.timeline
    # The first pass that lets the gap run ends when its dispatch rows are put.
    while not releases(world):
        ending: Any = Crashing(plain, ["post"], nth=1, after=True)
        world.timeline = ending
        with contextlib.suppress(Crash):
            world.minutes(1)
    world.timeline = plain
    waiting = [each for each in releases(world) if each.is_open]
    assert waiting, "nothing was deferred"
    end(world, row, ScheduleState.PAUSED, 70)
    world.clock.advance(2 * MINUTE)
    reports = world.minutes(300)
    assert sum(report.vain for report in reports) > 0
    assert not [each for each in releases(world) if each.is_open]
    assert world.store.parked == {}
    assert world.rows(State.DEFERRED) == []
