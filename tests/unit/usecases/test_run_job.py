"""What a job does to its items, and what it tells of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import (
    ScheduleState,
    Tier,
    VersionRef,
)
from hourbell.domain.errors import Permanent
from hourbell.domain.job import JobState, Outcome, Progress
from hourbell.usecases.change_schedule import cancel, pause
from hourbell.usecases.create_schedule import create_schedule
from hourbell.usecases.jobs import resume_job

from tests.unit.usecases.jobs import (
    HOURLY,
    ann_world,
    begin_create,
    begin_pause,
    failing_at,
    made,
    new,
    outcomes,
    run,
    start,
    states,
    stored,
    suspend,
    targets,
    watched,
)
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import START, World


def test_creates_are_done_in_chunks_and_as_the_creator() -> None:
    world = ann_world()
    job = start(world, "create", [new(f"bell-{n}") for n in range(60)])
    report = run(world, job)
    done = stored(world, job)
    assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(60, 60))
    assert done.finished_at == START
    # One to begin with, and one for each of 25, 25 and 10.
    assert done.step == 3
    assert outcomes(world, job) == ["CREATED"] * 60
    assert [each.index for each in report.results] == list(range(60))
    names = [each.name for each in report.results]
    assert names == [f"bell-{n}" for n in range(60)]
    for version in world.store.versions.values():
        assert version.created_by == "arn:aws:iam::1:user/ann"
        assert version.source == f"job {job.job_id}"


@pytest.mark.parametrize(
    ("operation", "state"), [("pause", "PAUSED"), ("cancel", "CANCELED")]
)
def test_a_change_reaches_each_and_tells_what_was_so_already(
    operation: str, state: str
) -> None:
    world = ann_world()
    ids = made(world, 3)
    change = pause if operation == "pause" else cancel
    change(world.changes, caller(world), ids[1], START)
    job = start(world, operation, targets(ids), reason="stocktaking")
    run(world, job)
    assert outcomes(world, job) == ["CHANGED", "UNCHANGED", "CHANGED"]
    assert set(states(world).values()) == {ScheduleState(state)}
    log = world.store.versions[VersionRef(ids[0], 2)]
    assert (log.reason, log.source) == ("stocktaking", f"job {job.job_id}")
    assert stored(world, job).progress == Progress(3, 2, 1, 0)


def test_what_is_paused_is_resumed() -> None:
    world = ann_world()
    ids = made(world, 2)
    pause(world.changes, caller(world), ids[0], START)
    job = start(world, "resume", targets(ids))
    run(world, job)
    assert outcomes(world, job) == ["CHANGED", "UNCHANGED"]


def test_an_item_that_cannot_be_done_is_refused_and_stops_no_other() -> None:
    world = ann_world()
    (mine,) = made(world, 1)
    world.add_tenant("bolt", Tier.BASIC)
    theirs = world.add(HOURLY, tenant="bolt").schedule_id
    job = start(world, "pause", targets([theirs, f"sch{'0' * 26}", mine]))
    run(world, job)
    assert outcomes(world, job) == ["REFUSED", "REFUSED", "CHANGED"]
    first, second, _ = world.store.job_results[job.job_id]
    assert first.refusal == second.refusal
    assert first.refusal is not None
    assert (first.refusal.status, first.refusal.code) == (404, "not_found")
    assert states(world)["bell-000"] is ScheduleState.PAUSED


def test_a_create_is_refused_as_the_single_one_would_be() -> None:
    world = ann_world()
    (taken,) = made(world, 1)
    items = [new("bell-000"), replace(new("b"), handler="gone"), new("c")]
    job = start(world, "create", items)
    run(world, job)
    first, second, third = world.store.job_results[job.job_id]
    assert first.refusal is not None
    assert second.refusal is not None
    assert (first.refusal.status, first.refusal.code) == (409, "name_taken")
    assert first.refusal.members["schedule_id"] == taken
    assert (second.refusal.status, second.refusal.code) == (400, "unknown_handler")
    assert second.refusal.findings[0].field == "handler"
    assert third.outcome is Outcome.CREATED
    assert stored(world, job).progress == Progress(3, 1, 0, 2)


def test_an_item_on_which_our_code_breaks_is_refused_and_told_to_the_log() -> None:
    world = ann_world()
    ids = made(world, 2)

    job = start(world, "pause", targets(ids))
    shop = failing_at(world, ids[0], Permanent("an item is not readable"))
    report = run(world, job, shop)
    assert outcomes(world, job) == ["REFUSED", "CHANGED"]
    assert [str(fault) for fault in report.faults] == ["an item is not readable"]
    refusal = world.store.job_results[job.job_id][0].refusal
    assert refusal is not None
    assert (refusal.status, refusal.code) == (500, "internal_error")
    assert "readable" not in refusal.message


def test_a_walk_takes_those_with_all_tags_and_no_canceled_ones() -> None:
    world = ann_world()
    registry, who = world.workshop.bench.registry, caller(world)

    def add(name: str, **tags: str) -> str:
        request = new(name, tags=tags)
        return create_schedule(registry, who, request, START).schedule.schedule_id

    for n in range(130):
        add(f"both-{n:03}", team="ops", floor="1")
        add(f"one-{n:03}", team="ops")
    gone = add("gone", team="ops", floor="1")
    cancel(world.changes, who, gone, START)
    job = start(world, "pause", tags={"team": "ops", "floor": "1"})
    assert stored(world, job).progress.total is None
    run(world, job)
    done = stored(world, job)
    assert done.progress == Progress(130, 130)
    paused = {n for n, state in states(world).items() if state is ScheduleState.PAUSED}
    assert paused == {f"both-{n:03}" for n in range(130)}
    names = [each.name for each in world.store.job_results[job.job_id]]
    assert sorted(str(name) for name in names) == sorted(paused)


def test_a_walk_does_not_take_a_key_for_a_part_of_a_value() -> None:
    world = ann_world()
    made(world, 1, tags={"team:dev": "ops"})
    job = start(world, "cancel", tags={"team": "dev:ops"})
    run(world, job)
    assert stored(world, job).progress == Progress(0)
    assert states(world) == {"bell-000": ScheduleState.ACTIVE}


def test_a_walk_that_finds_nothing_is_done() -> None:
    world = ann_world()
    job = start(world, "pause", tags={"team": "nobody"})
    run(world, job)
    done = stored(world, job)
    assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(0))


def test_schedules_made_and_canceled_during_a_walk_break_nothing() -> None:
    world = ann_world()
    ids = made(world, 60, tags={"team": "ops"})
    job = start(world, "pause", tags={"team": "ops"})
    who, registry = caller(world), world.workshop.bench.registry
    listed: list[str] = []

    class Moving:
        """Changes the list after each page of it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def listing(self, *args: Any, **kwargs: Any) -> Any:
            page = world.schedules.listing(*args, **kwargs)
            number = len(listed)
            listed.append(page.entries[0].schedule_id)
            cancel(world.changes, who, page.entries[-1].schedule_id, START)
            fresh = new(f"late-{number}", tags={"team": "ops"})
            create_schedule(registry, who, fresh, START)
            return page

    run(world, job, watched(world, {"schedules": Moving()}))
    done = stored(world, job)
    assert done.state is JobState.SUCCEEDED
    results = {each.schedule_id: each for each in world.store.job_results[job.job_id]}
    assert set(ids) <= set(results)
    assert len(results) == done.progress.total == done.progress.done
    refused = [each for each in results.values() if each.refusal]
    assert len(refused) == len(listed)
    for each in refused:
        assert each.refusal is not None
        assert each.refusal.code == "schedule_canceled"
    for schedule_id in set(results) - {each.schedule_id for each in refused}:
        assert schedule_id is not None
        found = world.store.schedules[schedule_id]
        assert found.state is ScheduleState.PAUSED


def test_a_dry_run_writes_nothing_but_the_job() -> None:
    world = ann_world()
    ids = made(world, 3)
    pause(world.changes, caller(world), ids[1], START)
    cancel(world.changes, caller(world), ids[2], START)
    before = (dict(world.store.schedules), dict(world.store.versions), world.rows())
    job = start(world, "pause", targets([*ids, f"sch{'0' * 26}"]), dry_run=True)
    run(world, job)
    assert outcomes(world, job) == [
        "WOULD_CHANGE",
        "WOULD_NOT_CHANGE",
        "WOULD_REFUSE",
        "WOULD_REFUSE",
    ]
    assert stored(world, job).progress == Progress(4, 1, 1, 2)
    after = (dict(world.store.schedules), dict(world.store.versions), world.rows())
    assert after == before


@pytest.mark.parametrize(
    ("operation", "foretold", "outcome"),
    [
        ("pause", "WOULD_REFUSE", "REFUSED"),
        ("resume", "WOULD_REFUSE", "REFUSED"),
        ("cancel", "WOULD_NOT_CHANGE", "UNCHANGED"),
    ],
)
def test_a_dry_run_foretells_what_becomes_of_a_completed_schedule(
    operation: str, foretold: str, outcome: str
) -> None:
    for dry_run, expected in ((True, foretold), (False, outcome)):
        world = ann_world()
        ids = made(world, 1)
        over = replace(world.store.schedules[ids[0]], state=ScheduleState.COMPLETED)
        world.store.schedules[ids[0]] = over
        job = start(world, operation, targets(ids), dry_run=dry_run)
        run(world, job)
        assert outcomes(world, job) == [expected]
        (result,) = world.store.job_results[job.job_id]
        if result.refusal is not None:
            assert result.refusal.code == "schedule_completed"


def test_the_dry_run_of_creates_counts_them_against_the_quota() -> None:
    world = ann_world()
    tenant = world.directory.find_tenant("acme")
    assert tenant is not None
    small = replace(tenant, quotas=replace(tenant.quotas, schedules=2), revision=2)
    world.directory.change_tenant(small, revision=1)
    (taken,) = made(world, 1)
    assert taken
    items = [new("bell-000"), new("b"), new("c")]
    job = start(world, "create", items, dry_run=True)
    run(world, job)
    assert outcomes(world, job) == ["WOULD_REFUSE", "WOULD_CREATE", "WOULD_REFUSE"]
    codes = [
        each.refusal.code
        for each in world.store.job_results[job.job_id]
        if each.refusal is not None
    ]
    assert codes == ["name_taken", "quota_exceeded"]
    assert len(world.store.schedules) == 1


@pytest.mark.parametrize(
    ("failure", "spoil"),
    [
        ("tenant_suspended", suspend),
        ("tenant_removed", lambda world: world.store.tenants.clear()),
        ("principal_removed", lambda world: world.store.principals.clear()),
        (
            "principal_removed",
            lambda world: world.store.principals.update({"1:user/ann": "bolt"}),
        ),
    ],
)
def test_a_creator_who_may_no_longer_call_does_nothing_more(
    failure: str, spoil: Callable[[World], None]
) -> None:
    world = ann_world()
    world.add_tenant("bolt", Tier.BASIC)
    job = begin_pause(world)
    known, tenants = dict(world.store.principals), dict(world.store.tenants)
    spoil(world)
    run(world, job)
    failed = stored(world, job)
    assert (failed.state, failed.failure) == (JobState.FAILED, failure)
    assert failed.finished_at == START
    assert set(states(world).values()) == {ScheduleState.ACTIVE}
    world.store.principals.update(known)
    world.store.tenants.update(tenants)
    assert resume_job(world.office, "acme", job.job_id, START).failure is None
    run(world, job)
    assert outcomes(world, job) == ["CHANGED"] * 3


def test_a_job_that_ended_or_never_was_is_left_alone() -> None:
    world = ann_world()
    job = begin_create(world)
    run(world, job)
    report = run(world, job)
    assert (report.begun, report.state) == (False, JobState.SUCCEEDED)
    missing = replace(job, job_id=f"job{'0' * 26}")
    assert run(world, missing).state is None


def test_items_that_are_missing_are_a_fault_and_no_success() -> None:
    world = ann_world()
    job = begin_create(world)
    world.store.job_items[job.job_id] = ()
    with pytest.raises(Permanent):
        run(world, job)
    assert stored(world, job).state is JobState.RUNNING
