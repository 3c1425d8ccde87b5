"""A new release of the zone database moves times once, and loses none of them."""

from copy import deepcopy
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Any

import pytest
from hourbell.adapters.memory import FixedClock
from hourbell.domain import zone_history
from hourbell.domain.definition import ScheduleState, Tracking, VersionRef
from hourbell.domain.errors import Conflict, Forbidden, NotFound, Transient
from hourbell.domain.job import Job, JobState, Progress
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.replanning import Shift
from hourbell.domain.schedule import Timing
from hourbell.domain.zone_history import ZonePatch
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.change_schedule import cancel, pause, resume
from hourbell.usecases.get_schedule import Library, get_schedule
from hourbell.usecases.identify import Operator
from hourbell.usecases.jobs import cancel_job, get_job, resume_job
from hourbell.usecases.start_replan import find_replan, start_replan

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.jobs import MOST_CALLS, outcomes, run, stored, suspend
from tests.unit.usecases.test_change_schedule import caller, change_timing, version
from tests.unit.usecases.test_interrupted_jobs import at, crash
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

ASUNCION = "America/Asuncion"
CASABLANCA = "Africa/Casablanca"
DAILY = Timing("0 9 * * *", ASUNCION)
DAY = timedelta(days=1)
ROOT = Operator("1:role/platform", "arn:aws:iam::1:role/platform", "api 192.0.2.9")


def utc(month: int, day: int, hour: int, minute: int = 0) -> datetime:
    return datetime(2026, month, day, hour, minute, tzinfo=UTC)


def start(world: World, key: str = "key", *, dry_run: bool = False) -> Job:
    tenant = world.store.tenants["acme"]
    now = world.clock.now()
    return start_replan(world.office, tenant, ROOT, key, now, dry_run=dry_run).job


def replanned(world: World, key: str = "key", *, dry_run: bool = False) -> Job:
    job = start(world, key, dry_run=dry_run)
    run(world, job)
    return stored(world, job)


def results(world: World, job: Job) -> Any:
    return world.store.job_results[job.job_id]


def versions(world: World, row: Occurrence) -> list[int]:
    refs = world.store.versions
    return sorted(ref.version for ref in refs if ref.schedule_id == row.schedule_id)


def go_on(world: World, until: datetime, step: timedelta = 2 * MINUTE) -> None:
    """Let the time pass, with a pass and a relay at each step."""
    while world.clock.now() < until:
        world.clock.advance(min(step, until - world.clock.now()))
        world.scan()
        world.relay_stream()


def ran(world: World) -> list[datetime]:
    return times(world.rows(State.ENQUEUED))


def test_a_replan_makes_one_version_by_system_that_says_why() -> None:
    world = World()
    row = world.add(DAILY, tzdb="2024b")
    job = replanned(world)
    assert (job.state, job.progress) == (JobState.SUCCEEDED, Progress(1, 1))
    old, new = version(world, row, 1), version(world, row, 2)
    assert versions(world, row) == [1, 2]
    assert (old.tzdb, new.tzdb) == ("2024b", TZDB_VERSION)
    assert new.definition == old.definition
    assert (new.created_by, new.source) == ("system", f"job {job.job_id}")
    assert new.reason is not None
    assert "2024b" in new.reason
    assert TZDB_VERSION in new.reason
    (result,) = results(world, job)
    assert (result.outcome, result.name) == ("CHANGED", "bell-0")
    assert len(result.shifts) == 5
    assert result.shifts[0] == Shift(
        datetime(2026, 3, 22, 9), utc(3, 22, 13), utc(3, 22, 12)
    )


def test_a_second_replan_finds_nothing_to_do() -> None:
    world = World()
    row = world.add(DAILY, tzdb="2024b")
    replanned(world)
    job = replanned(world, "again")
    assert job.progress == Progress(1, 0, 1)
    assert outcomes(world, job) == ["UNCHANGED"]
    assert versions(world, row) == [1, 2]


def test_a_dry_run_tells_the_same_and_changes_nothing() -> None:
    world = World()
    world.add(DAILY, tzdb="2024b")
    before = deepcopy((world.store.schedules, world.store.versions, world.rows()))
    job = replanned(world, dry_run=True)
    assert before == (world.store.schedules, world.store.versions, world.rows())
    foreseen = results(world, job)
    assert outcomes(world, job) == ["WOULD_CHANGE"]
    told = results(world, replanned(world, "really"))
    assert [each.shifts for each in foreseen] == [each.shifts for each in told]


UNMOVED = {
    "same rules": Timing("0 9 * * *", "Europe/Berlin"),
    "no times where they differ": Timing("0 9 * 1 *", ASUNCION),
    "elapsed time": Timing("rate(1 day)", ASUNCION, anchor=START),
}


@pytest.mark.parametrize("timing", UNMOVED.values(), ids=UNMOVED)
def test_what_no_release_moves_is_left_alone(timing: Timing) -> None:
    world = World()
    row = world.add(timing, tzdb="2024b")
    for dry_run, outcome in ((True, "WOULD_NOT_CHANGE"), (False, "UNCHANGED")):
        job = replanned(world, outcome, dry_run=dry_run)
        assert outcomes(world, job) == [outcome]
    assert versions(world, row) == [1]
    assert world.store.schedules[row.schedule_id].revision == 1


def test_what_the_present_release_cannot_tell_is_refused_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A name of its own: zones once read are kept.
    rules = files("tzdata.zoneinfo").joinpath("Etc", "GMT+3").read_bytes()
    gone = ZonePatch("2024b", "2025a", {"Mars/Gone": rules})
    monkeypatch.setattr(zone_history, "patches", lambda: (gone,))
    world = World(clock=FixedClock(utc(4, 10, 11, 58)))
    world.add(Timing("0 9 * * *", "Mars/Gone"), tzdb="2024b")
    job = replanned(world)
    (result,) = results(world, job)
    assert (result.outcome, result.refusal.code) == ("REFUSED", "unknown_zone")
    go_on(world, utc(4, 10, 12, 2))
    assert ran(world) == [utc(4, 10, 12)]


@pytest.mark.parametrize("state", [ScheduleState.PAUSED, ScheduleState.CANCELED])
def test_only_what_is_active_is_looked_at(state: ScheduleState) -> None:
    world = World()
    row = world.add(DAILY, tzdb="2024b")
    verb = pause if state is ScheduleState.PAUSED else cancel
    verb(world.changes, caller(world), row.schedule_id, START)
    job = replanned(world)
    assert (job.state, job.progress) == (JobState.SUCCEEDED, Progress(0))
    assert versions(world, row) == [1, 2]


def test_a_resume_makes_its_version_under_the_present_release() -> None:
    july = utc(7, 1, 11)
    world = World(clock=FixedClock(july))
    row = world.add(DAILY, tzdb="2024b")
    assert row.scheduled_for == utc(7, 1, 13)
    for verb in (pause, resume):
        verb(world.changes, caller(world), row.schedule_id, july)
    assert version(world, row, 3).tzdb == TZDB_VERSION
    assert times(world.rows(State.PLANNED)) == [utc(7, 1, 12)]


def test_until_the_offsets_part_nothing_is_moved_and_no_time_comes_twice() -> None:
    world = World(clock=FixedClock(utc(3, 21, 11, 57)))
    world.add(Timing("0 9,10 * * *", ASUNCION), tzdb="2024b")
    go_on(world, utc(3, 21, 11, 59))
    replanned(world)
    for day in (21, 22):
        go_on(world, utc(3, day, 14, 10), 30 * MINUTE)
    # At -3 all the time: by 2024b it were 13:00 and 14:00 from the 22nd on.
    assert ran(world) == [utc(3, day, hour) for day in (21, 22) for hour in (12, 13)]


BOUNDARIES = [
    # The run that the old rules still owe at 13:00 lies at 12:00 by the new ones.
    ("2024b", ASUNCION, utc(4, 10, 13), utc(4, 11, 12), utc(4, 10, 11, 50)),
    # The run that came at 08:00 by the old rules lies at 09:00 by the new ones.
    ("2026b", CASABLANCA, utc(10, 1, 8), utc(10, 2, 9), utc(10, 1, 7, 50)),
]


@pytest.mark.parametrize("tracking", Tracking)
@pytest.mark.parametrize(("release", "zone", "today", "tomorrow", "begin"), BOUNDARIES)
def test_at_the_turn_each_local_time_runs_once(
    release: str,
    zone: str,
    today: datetime,
    tomorrow: datetime,
    begin: datetime,
    tracking: Tracking,
) -> None:
    for minutes in (0, 6, 7, 9, 10, 11, 30, 66, 67, 69, 70, 71, 80):
        world = World(clock=FixedClock(begin - MINUTE))
        row = world.add(Timing("0 9 * * *", zone), tracking=tracking, tzdb=release)
        go_on(world, begin + minutes * MINUTE + SECOND, 3 * MINUTE)
        replanned(world)
        first, last = version(world, row, 1), version(world, row, 2)
        assert first.effective_to == last.effective_from
        go_on(world, begin + 85 * MINUTE, 3 * MINUTE)
        planned = times(world.rows(State.PLANNED))
        # What is within 184 seconds of the earlier one of its instants, the old rules
        # have begun: from 7 minutes on.
        expected = tomorrow - DAY if minutes < 7 else today
        assert (ran(world), planned) == ([expected], [tomorrow])


def test_what_is_on_its_way_stands() -> None:
    world = World(clock=FixedClock(utc(4, 10, 12, 50)))
    row = world.add(DAILY, tzdb="2024b")
    go_on(world, utc(4, 10, 12, 58))
    (sent,) = world.rows(State.ENQUEUED)
    assert (sent.version, sent.scheduled_for) == (1, utc(4, 10, 13))
    replanned(world)
    assert world.rows(State.ENQUEUED) == [sent]
    assert times(world.rows(State.PLANNED)) == [utc(4, 11, 12)]
    view = get_schedule(
        Library(world.schedules, world.timeline, world.shard_map),
        "acme",
        row.schedule_id,
        world.clock.now(),
    )
    assert (view.next_run_at, view.next_tzdb) == (utc(4, 10, 13), "2024b")


@pytest.mark.parametrize("verb", [pause, cancel])
def test_a_stop_reaches_what_is_left_to_the_old_rules(verb: Any) -> None:
    world = World(clock=FixedClock(utc(4, 10, 12, 10)))
    row = world.add(DAILY, tzdb="2024b")
    replanned(world)
    assert times(world.rows(State.PLANNED)) == [utc(4, 10, 13), utc(4, 11, 12)]
    world.clock.advance(MINUTE)
    verb(world.changes, caller(world), row.schedule_id, world.clock.now())
    go_on(world, utc(4, 10, 14))
    assert ran(world) == []
    assert set(times(world.rows(State.CANCELED))) == {utc(4, 10, 13), utc(4, 11, 12)}


def test_an_edit_tells_of_what_is_left_to_the_old_rules() -> None:
    world = World(clock=FixedClock(utc(4, 10, 12, 10)))
    row = world.add(DAILY, tzdb="2024b")
    replanned(world)
    world.clock.advance(MINUTE)
    changed = change_timing(world, row, Timing("0 12 * * *", ASUNCION))
    assert [each[-16:] for each in changed.already_dispatched] == ["20260410T130000Z"]
    go_on(world, utc(4, 10, 15, 10))
    # Noon at -3 is 15:00.
    assert ran(world) == [utc(4, 10, 13), utc(4, 10, 15)]


def test_a_single_time_of_the_turn_runs_by_the_old_rules() -> None:
    world = World(clock=FixedClock(utc(4, 10, 12, 10)))
    row = world.add(Timing("at(2026-04-10T09:00:00)", ASUNCION), tzdb="2024b")
    assert outcomes(world, replanned(world)) == ["UNCHANGED"]
    go_on(world, utc(4, 10, 13, 2))
    assert ran(world) == [utc(4, 10, 13)]
    assert versions(world, row) == [1]


def test_the_count_goes_on_over_a_replan() -> None:
    world = World(clock=FixedClock(utc(4, 8, 12, 10)))
    world.add(replace(DAILY, max_occurrences=3), tzdb="2024b")
    go_on(world, utc(4, 8, 13, 2))
    replanned(world)
    for day in (9, 10, 11):
        world.clock.set(utc(4, day, 11, 58))
        go_on(world, utc(4, day, 12, 2))
    assert ran(world) == [utc(4, 8, 13), utc(4, 9, 12), utc(4, 10, 12)]


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_makes_one_version_and_tells_the_same(
    after: bool,
) -> None:
    for nth in range(1, MOST_CALLS):
        world = World(clock=FixedClock(utc(4, 10, 12, 10)))
        rows = [world.add(DAILY, tzdb="2024b") for _ in range(2)]
        job = start(world)
        moment, shop = at(world, nth, crash, after=after)
        try:
            run(world, job, shop)
        except Crash:
            world.clock.advance(SECOND)
            run(world, job)
        done = stored(world, job)
        assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(2, 2))
        assert {each.shifts[0].after for each in results(world, job)} == {
            utc(4, 11, 12)
        }
        assert [versions(world, row) for row in rows] == [[1, 2], [1, 2]]
        go_on(world, utc(4, 10, 13, 4), 6 * MINUTE)
        assert ran(world) == [utc(4, 10, 13)] * 2
        assert times(world.rows(State.PLANNED)) == [utc(4, 11, 12)] * 2
        if not moment.reached:
            break
    assert 15 < nth < MOST_CALLS - 1


@pytest.mark.parametrize("verb", ["edit", "pause"])
def test_a_change_at_any_call_and_the_replan_do_not_get_in_each_others_way(
    verb: str,
) -> None:
    seen = set()
    for nth in range(1, MOST_CALLS):
        world = World(clock=FixedClock(utc(4, 10, 12, 10)))
        row = world.add(DAILY, tzdb="2024b")
        job = start(world)
        moment, shop = at(world, nth, lambda: None, after=False)

        def interfere(world: World = world, row: Occurrence = row) -> None:
            if verb == "pause":
                now = world.clock.now()
                pause(world.changes, caller(world), row.schedule_id, now)
            else:
                change_timing(world, row, Timing("0 15 * * *", ASUNCION))

        moment.action = interfere
        run(world, job, shop)
        if not moment.reached:
            break
        done, log = stored(world, job), versions(world, row)
        assert (done.state, done.progress.refused) == (JobState.SUCCEEDED, 0)
        assert version(world, row, log[-1]).tzdb == TZDB_VERSION
        seen.add((len(log), *outcomes(world, job)))
        go_on(world, utc(4, 10, 18, 2), 30 * MINUTE)
        # 15:00 at -3; 13:00 is what the old rules owe if the replan was first.
        replan_was_first = version(world, row, 2).created_by == "system"
        owed = [utc(4, 10, 13)] if replan_was_first and verb == "edit" else []
        after = [utc(4, 10, 18)] if verb == "edit" else []
        assert ran(world) == owed + after
    assert {(2, "UNCHANGED"), (3, "CHANGED")} <= seen


def test_whose_schedules_go_on_although_suspended_is_replanned_too() -> None:
    world = World()
    world.add(DAILY, tzdb="2024b")
    suspend(world)
    assert outcomes(world, replanned(world)) == ["CHANGED"]


def test_the_job_of_a_tenant_that_is_gone_fails() -> None:
    world = World()
    job = start(world)
    del world.store.tenants["acme"]
    run(world, job)
    assert stored(world, job).failure == "tenant_removed"


def test_the_same_key_makes_one_job_and_the_tenants_keys_are_its_own() -> None:
    world = World()
    job = start(world)
    assert start(world).job_id == job.job_id
    with pytest.raises(Conflict, match="Idempotency-Key"):
        start(world, dry_run=True)
    assert start(world, "other").job_id != job.job_id


def test_the_tenant_may_read_the_job_and_not_stop_it() -> None:
    world = World()
    job = start(world)
    read = get_job(world.jobs, "acme", job.job_id)
    assert read.creator.arn == "system"
    with pytest.raises(Forbidden):
        cancel_job(world.jobs, "acme", job.job_id, START)
    with pytest.raises(Forbidden):
        resume_job(world.office, "acme", job.job_id, START)
    assert stored(world, job) == job


def test_the_platform_finds_its_own_jobs_alone() -> None:
    world = World()
    job = start(world)
    assert find_replan(world.jobs, "acme", job.job_id) == job
    with pytest.raises(NotFound):
        find_replan(world.jobs, "globex", job.job_id)


def test_what_the_log_does_not_tell_yet_is_tried_again() -> None:
    world = World()
    row = world.add(DAILY, tzdb="2024b")
    job = start(world)
    del world.store.versions[VersionRef(row.schedule_id, 1)]
    with pytest.raises(Transient):
        run(world, job)
    assert stored(world, job).is_open
