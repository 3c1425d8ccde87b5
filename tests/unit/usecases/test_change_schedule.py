"""Edit, pause, resume, cancel, as their caller sees them."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import (
    Schedule,
    ScheduleState,
    Tracking,
    Version,
    VersionRef,
)
from hourbell.domain.errors import (
    Conflict,
    InvalidInput,
    PreconditionFailed,
)
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import (
    Changed,
    cancel,
    edit,
    find_current,
    pause,
    resume,
)
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import advance

from tests.unit.usecases.world import (
    EVERYTHING,
    MINUTE,
    SECOND,
    START,
    World,
    times,
)

EVERY_MINUTE = Timing("* * * * *")
HOURLY = Timing("0 * * * *")
HALF_PAST = Timing("30 * * * *")


def caller(world: World, tenant: str = "acme") -> Caller:
    found = world.directory.find_tenant(tenant)
    assert found is not None
    return Caller(found, "1:user/ann", "arn:aws:iam::1:user/ann", "api 192.0.2.1")


def current(world: World, row: Occurrence) -> Schedule:
    return find_current(world.changes, "acme", row.schedule_id)


def version(world: World, row: Occurrence, number: int) -> Version:
    return world.store.versions[VersionRef(row.schedule_id, number)]


def change_timing(world: World, row: Occurrence, timing: Timing) -> Changed:
    schedule = current(world, row)
    definition = replace(schedule.definition, timing=timing)
    return change(world, schedule, definition)


def change(world: World, schedule: Schedule, definition: Any, **labels: Any) -> Changed:
    wanted = {"description": schedule.description, "tags": schedule.tags, **labels}
    now = world.clock.now()
    return edit(world.changes, caller(world), schedule, definition, now, **wanted)


def test_an_edit_makes_a_version_whose_times_follow_the_change() -> None:
    world = World()
    row = world.add(HOURLY)
    changed = change_timing(world, row, HALF_PAST)
    assert changed.schedule.version == 2
    assert changed.schedule.revision == 2
    assert not changed.schedule.handover
    old, new = version(world, row, 1), version(world, row, 2)
    assert old.effective_to == new.effective_from
    assert new.effective_from is not None
    assert START < new.effective_from <= START + SECOND
    assert times(world.rows(State.PLANNED)) == [START + 30 * MINUTE]
    (canceled,) = world.rows(State.CANCELED)
    assert canceled.reason == "SUPERSEDED"


def test_the_log_says_who_when_from_where_and_why() -> None:
    world = World()
    row = world.add(HOURLY)
    pause(
        world.changes,
        caller(world),
        row.schedule_id,
        START + SECOND,
        reason="stocktaking",
    )
    entry = version(world, row, 2)
    assert entry.state is ScheduleState.PAUSED
    assert entry.created_by == "arn:aws:iam::1:user/ann"
    assert entry.source == "api 192.0.2.1"
    assert entry.created_at == START + SECOND
    assert entry.reason == "stocktaking"


def test_what_is_on_its_way_untracked_stands_and_is_told() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    advance(world.plane, [row], START)
    changed = change_timing(world, row, Timing("*/2 * * * *"))
    standing = world.rows(State.SCHEDULED)
    assert times(standing) == [START + n * MINUTE for n in (1, 2, 3)]
    assert changed.already_dispatched == tuple(r.occurrence_id for r in standing)
    new = version(world, row, 2)
    assert new.effective_from is not None
    assert new.effective_from > START + 3 * MINUTE
    assert times(world.rows(State.PLANNED)) == [START + 4 * MINUTE]


def test_what_stands_of_still_earlier_versions_is_told_too() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    who = caller(world)
    told = [pause(world.changes, who, row.schedule_id, START).already_dispatched]
    for step in (resume, pause, cancel):
        world.clock.advance(SECOND)
        now = world.clock.now()
        told.append(step(world.changes, who, row.schedule_id, now).already_dispatched)
    standing = tuple(found.occurrence_id for found in world.rows(State.SCHEDULED))
    assert len(standing) == 3
    assert told == [standing] * 4


def test_what_of_earlier_versions_is_past_is_not_told() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    who = caller(world)
    pause(world.changes, who, row.schedule_id, START)
    world.clock.advance(MINUTE + SECOND)
    now = world.clock.now()
    resumed = resume(world.changes, who, row.schedule_id, now)
    later = [found for found in world.rows(State.SCHEDULED) if found.version == 1]
    ids = tuple(found.occurrence_id for found in later if found.scheduled_for > now)
    assert len(ids) == 2
    assert resumed.already_dispatched == ids


def test_what_no_worker_has_claimed_is_recalled_when_it_is_tracked() -> None:
    world = World()
    row = world.add(EVERY_MINUTE, tracking=Tracking.TRACKED)
    advance(world.plane, [row], START)
    world.relay_stream()
    changed = change_timing(world, row, Timing("*/2 * * * *"))
    assert changed.already_dispatched == ()
    assert len(world.rows(State.CANCELED)) == 4
    assert [r.version for r in world.rows(State.SCHEDULED)] == [2]
    assert times(world.rows(State.SCHEDULED)) == [START + 2 * MINUTE]


def test_a_new_time_within_the_horizon_is_materialized_at_once() -> None:
    world = World()
    row = world.add(HOURLY)
    change_timing(world, row, EVERY_MINUTE)
    assert times(world.rows(State.SCHEDULED)) == [START + n * MINUTE for n in (1, 2, 3)]


def test_labels_alone_change_no_occurrence_and_no_version() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    advance(world.plane, [row], START)
    before = world.store.all_rows()
    schedule = current(world, row)
    changed = change(
        world, schedule, schedule.definition, description="new", tags={"a": "b"}
    )
    assert changed.schedule.version == 1
    assert changed.schedule.revision == 2
    assert current(world, row).tags == {"a": "b"}
    assert world.store.all_rows() == before


def test_a_change_that_changes_nothing_is_none() -> None:
    world = World()
    schedule = current(world, world.add(HOURLY))
    changed = change(world, schedule, schedule.definition)
    assert not changed.changed
    assert changed.schedule == schedule


def test_a_rate_keeps_its_anchor_while_its_expression_stays() -> None:
    world = World()
    row = world.add(Timing("rate(7 minutes)", anchor=START))
    world.clock.advance(3 * MINUTE)
    schedule = current(world, row)
    definition = replace(
        schedule.definition, timing=Timing("rate(7 minutes)"), payload_json="2"
    )
    change(world, schedule, definition)
    assert times(world.rows(State.PLANNED)) == [START + 7 * MINUTE]
    change_timing(world, row, Timing("rate(5 minutes)"))
    assert times(world.rows(State.PLANNED)) == [START + 8 * MINUTE]


def test_an_edit_with_an_old_revision_is_refused_with_the_current_one() -> None:
    world = World()
    schedule = current(world, world.add(HOURLY))
    change(world, schedule, replace(schedule.definition, payload_json="1"))
    same = schedule.definition.payload_json
    attempts: list[tuple[str, dict[str, Any]]] = [("2", {}), (same, {"tags": {}})]
    for payload, labels in attempts:
        with pytest.raises(PreconditionFailed, match="current revision is 2"):
            change(
                world,
                schedule,
                replace(schedule.definition, payload_json=payload),
                **{"description": "x", **labels},
            )


def test_an_edit_to_what_never_fires_stores_nothing() -> None:
    world = World()
    row = world.add(HOURLY)
    before = (dict(world.store.schedules), world.store.all_rows())
    with pytest.raises(InvalidInput):
        change_timing(world, row, Timing("at(2020-01-01T00:00:00)"))
    assert (dict(world.store.schedules), world.store.all_rows()) == before


def test_a_paused_schedule_fires_nothing_and_resumes_with_its_next_time() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    for _ in range(3):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    who = caller(world)
    paused = pause(world.changes, who, row.schedule_id, world.clock.now())
    assert paused.schedule.state is ScheduleState.PAUSED
    standing = max(times(world.rows(State.ENQUEUED)))
    for _ in range(20):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    assert max(times(world.rows(State.ENQUEUED))) == standing
    now = world.clock.now()
    resumed = resume(world.changes, who, row.schedule_id, now)
    assert resumed.schedule.state is ScheduleState.ACTIVE
    assert resumed.schedule.version == 3
    newest = [r for r in world.store.all_rows() if r.version == 3]
    assert min(times(newest)) == now + MINUTE


def test_pausing_twice_and_resuming_what_runs_change_nothing() -> None:
    world = World()
    row = world.add(HOURLY)
    who = caller(world)
    assert not resume(world.changes, who, row.schedule_id, START).changed
    assert pause(world.changes, who, row.schedule_id, START).changed
    again = pause(world.changes, who, row.schedule_id, START)
    assert (again.changed, again.schedule.version) == (False, 2)


def test_a_pause_stops_an_overdue_backlog_with_its_reason() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.clock.advance(timedelta(minutes=10))
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    world.scan()
    assert {(r.state, r.reason) for r in world.rows()} == {(State.CANCELED, "PAUSED")}


def test_an_edit_leaves_an_overdue_backlog_to_its_own_version() -> None:
    world = World()
    row = world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(minutes=10))
    change_timing(world, row, HOURLY)
    world.scan()
    world.relay_stream()
    sent = world.rows(State.ENQUEUED)
    assert times(sent) == [START + n * MINUTE for n in range(1, 11)]
    assert {r.version for r in sent} == {1}
    assert times(world.rows(State.PLANNED)) == [START + 60 * MINUTE]


def test_a_canceled_schedule_is_kept_frees_its_name_and_quota_and_stays() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    who = caller(world)
    assert world.schedules.count("acme") == 1
    canceled = cancel(world.changes, who, row.schedule_id, START, reason="done")
    assert canceled.schedule.state is ScheduleState.CANCELED
    assert world.schedules.count("acme") == 0
    assert world.schedules.find_by_name("acme", canceled.schedule.name) is None
    assert current(world, row).state is ScheduleState.CANCELED
    assert not cancel(world.changes, who, row.schedule_id, START).changed
    for attempt in (pause, resume):
        with pytest.raises(Conflict) as refusal:
            attempt(world.changes, who, row.schedule_id, START)
        assert refusal.value.code == "schedule_canceled"
    with pytest.raises(Conflict):
        change_timing(world, row, HOURLY)
    world.clock.advance(timedelta(hours=1))
    world.scan()
    assert world.rows(State.PLANNED) == []


def test_a_paused_schedule_can_be_edited_and_stays_paused() -> None:
    world = World()
    row = world.add(HOURLY)
    who = caller(world)
    pause(world.changes, who, row.schedule_id, START)
    change_timing(world, row, EVERY_MINUTE)
    assert current(world, row).state is ScheduleState.PAUSED
    assert [r for r in world.store.all_rows() if r.version > 1] == []
    resume(world.changes, who, row.schedule_id, START)
    assert times([r for r in world.store.all_rows() if r.version == 4])


def test_the_numbers_of_times_go_on_over_an_edit() -> None:
    world = World()
    row = world.add(replace(EVERY_MINUTE, max_occurrences=5))
    advance(world.plane, [row], START)
    world.relay_stream()
    schedule = current(world, row)
    change(world, schedule, replace(schedule.definition, payload_json="2"))
    world.clock.advance(timedelta(minutes=3))
    for _ in range(10):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)
    sent = world.rows(State.ENQUEUED)
    assert [r.sequence for r in sent] == [1, 2, 3, 4, 5]
    assert [r.version for r in sent] == [1, 1, 1, 2, 2]
