"""Faults that seeds of the simulation found, each as the shortest way to it."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Schedule, ScheduleState, Version, VersionRef
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Phase
from hourbell.usecases.change_schedule import edit, find_current, pause, resume
from hourbell.usecases.materialize import advance
from hourbell.usecases.release import ReleaseReport, release

from tests.unit.usecases.deferring import available, deferred, releases, stored
from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.jobs import ann_world, begin_pause, outcomes, run, watched
from tests.unit.usecases.resharding import ReshardingWorld
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, START, World, times

EVERY_MINUTE = Timing("* * * * *")


def crash() -> None:
    raise Crash


def the_planned(world: World) -> Any:
    """Return the only row that is PLANNED."""
    (row,) = [each for each in world.rows() if each.state is State.PLANNED]
    return row


def test_a_stop_accounts_for_what_follows_a_gap_row_that_nobody_obeyed_yet() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    world.clock.set(START + 20 * MINUTE)
    # A pass wrote its decision, about all up to 12:18, and was stopped ...
    moment = Moment(1, True, crash)
    timeline = Only("plan", moment.wrap(world.timeline), world.timeline)
    with pytest.raises(Crash):
        advance(
            replace(world.plane, timeline=timeline),
            [the_planned(world)],
            world.clock.now(),
        )
    # ... and no other came until the schedule was paused, ten minutes later.
    world.clock.advance(10 * MINUTE)
    pause(world.changes, caller(world), row.schedule_id, world.clock.now())
    for _ in range(3):
        world.clock.advance(MINUTE)
        world.scan()

    rows = world.rows()
    wanted = [START + n * MINUTE for n in range(1, 31)]
    told = [t for t in wanted if t in times(rows) or any(r.covers(t) for r in rows)]
    assert told == wanted


def test_a_dispatch_row_whose_occurrence_has_expired_is_settled() -> None:
    world = World()
    row = deferred(world)
    del world.store.rows[row.key.partition][row.key.sort]
    world.clock.set(available(row) + timedelta(days=15))

    report = release(world.plane, world.store.all_dispatches(), world.clock.now())

    assert report == ReleaseReport(vain=1)
    assert not releases(world)[0].is_open


def a_stray_deferred_row(world: ReshardingWorld) -> Occurrence:
    """Return a deferred row that lies under the old count, while rows are moved."""
    world.reshard(16)
    world.clock.advance(12 * MINUTE)
    row = deferred(world)
    while world.epochs.shard_map.twin(row.key) is None:
        row = deferred(world)
    world.work_off()
    # Nothing has been moved yet.
    assert world.phase is Phase.MOVING
    world.clock.advance(MINUTE)
    moving = world.plane.shard_map
    assert row.shard != moving.shard_of(row.schedule_id, row.scheduled_for)
    return row


def test_a_stray_release_is_canceled_where_it_lies() -> None:
    world = ReshardingWorld()
    row = a_stray_deferred_row(world)
    del world.store.versions[VersionRef(row.schedule_id, row.version)]
    world.clock.set(available(row))

    report = release(world.plane, releases(world, row), world.clock.now())

    assert report == ReleaseReport(canceled=1, settled=1)
    assert stored(world, row).state is State.CANCELED


def test_a_job_tells_what_it_did_whoever_changed_or_ended_the_schedule_since() -> None:
    world = ann_world()
    job = begin_pause(world)
    moment = Moment(1, False, crash)
    jobs = Only("advance", moment.wrap(world.jobs), world.jobs)
    # The first write says that it runs: the crash comes when it has done its items.
    moment.nth = 2
    with pytest.raises(Crash):
        run(world, job, watched(world, _ports(world) | {"jobs": jobs}))
    first, second, _ = world.store.schedules.values()
    now = world.clock.now()
    resume(world.changes, caller(world), first.schedule_id, now)
    pause(world.changes, caller(world), first.schedule_id, now)
    ended = replace(second, state=ScheduleState.CANCELED)
    world.store.schedules[second.schedule_id] = ended

    run(world, job)

    assert outcomes(world, job) == ["CHANGED"] * 3


def _ports(world: World) -> dict[str, Any]:
    names = ("schedules", "timeline", "groups", "directory", "jobs", "job_queue")
    return {name: getattr(world, name) for name in names}


class _Old:
    """Definitions whose eventual reads are from before a change."""

    def __init__(self, world: World) -> None:
        self._now = world.schedules
        self._versions = dict(world.store.versions)

    def versions(
        self, refs: Iterable[VersionRef], *, consistent: bool
    ) -> dict[VersionRef, Version]:
        if consistent:
            return self._now.versions(refs, consistent=True)
        return {ref: self._versions[ref] for ref in refs if ref in self._versions}


def test_a_time_that_an_interrupted_walk_canceled_is_the_new_versions() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.scan()
    planned = the_planned(world)
    assert planned.scheduled_for == START + 4 * MINUTE
    old = Only("versions", _Old(world), world.schedules)
    # An edit cancels 12:04, and is stopped before the new version takes over.
    moment = Moment(1, False, crash)
    schedules = Only("take_over", moment.wrap(world.schedules), world.schedules)
    _begin_edit(world, row.schedule_id, schedules)
    # A slow pass, with 12:04 and the old version in hand, goes on to 12:05.
    world.clock.advance(2 * MINUTE)
    advance(replace(world.plane, schedules=old), [planned], world.clock.now())
    late = world.store.row(replace(planned, scheduled_for=START + 5 * MINUTE).key)
    assert late is not None
    assert late.state is State.SCHEDULED
    for _ in range(4):
        world.relay_stream()
        world.relay_sweep()
        world.clock.advance(MINUTE)
        world.scan()

    sent = [json.loads(each.entry.body) for each in world.queues.accepted]
    told = sorted(each["time"] for each in sent)
    assert told == [f"2026-03-09T12:0{n}:00Z" for n in range(1, len(told) + 1)]
    assert len(told) >= 7


def _begin_edit(world: World, schedule_id: str, schedules: Any) -> None:
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    schedule: Schedule = find_current(changes, "acme", schedule_id)
    definition = replace(schedule.definition, payload_json='"new"')
    who, now = caller(world), world.clock.now()
    with pytest.raises(Crash):
        edit(changes, who, schedule, definition, now, description="", tags={})
