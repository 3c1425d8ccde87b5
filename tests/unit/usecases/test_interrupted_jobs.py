"""A job's items are done once each, whoever works at it and whatever stops it."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hourbell.domain.definition import (
    ScheduleState,
    TenantState,
)
from hourbell.domain.errors import Transient
from hourbell.domain.job import Job, JobState, Progress, Result
from hourbell.usecases.change_schedule import pause, resume
from hourbell.usecases.jobs import cancel_job, resume_job

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.jobs import (
    MOST_CALLS,
    PORTS,
    ann_world,
    begin_create,
    begin_pause,
    begin_walk,
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
from tests.unit.usecases.world import MINUTE, SECOND, START, World


def crash() -> None:
    raise Crash


def at(world: World, nth: int, action: Callable[[], None], *, after: bool) -> Any:
    """Return a moment and the workshop whose calls it counts."""
    moment = Moment(nth, after, action)
    ports = {name: moment.wrap(getattr(world, name)) for name in PORTS}
    return moment, watched(world, ports)


BEGINNINGS = {
    "create": (begin_create, "CREATED", ScheduleState.ACTIVE),
    "pause": (begin_pause, "CHANGED", ScheduleState.PAUSED),
    "walk": (begin_walk, "CHANGED", ScheduleState.CANCELED),
}


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("kind", BEGINNINGS)
def test_a_crash_at_any_call_loses_nothing_and_tells_the_same(
    kind: str, after: bool
) -> None:
    begin, outcome, state = BEGINNINGS[kind]
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        job = begin(world)
        moment, shop = at(world, nth, crash, after=after)
        try:
            run(world, job, shop)
        except Crash:
            world.clock.advance(SECOND)
            run(world, job)
        done = stored(world, job)
        assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(3, 3))
        assert outcomes(world, job) == [outcome] * 3
        assert sorted(states(world).values()) == [state] * 3
        if not moment.reached:
            break
    assert 15 < nth < MOST_CALLS - 1


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_of_two_workers_one_loses_and_nothing_is_counted_twice(kind: str) -> None:
    begin, outcome, _ = BEGINNINGS[kind]
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        job = begin(world)
        moment, shop = at(world, nth, lambda: None, after=False)
        moment.action = lambda w=world, j=job: run(w, j)
        run(world, job, shop)
        done = stored(world, job)
        assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(3, 3))
        assert outcomes(world, job) == [outcome] * 3
        if not moment.reached:
            break
    assert 15 < nth < MOST_CALLS - 1


@pytest.mark.parametrize("kind", BEGINNINGS)
def test_a_cancel_at_any_call_keeps_what_is_done_and_a_resume_does_the_rest(
    kind: str,
) -> None:
    begin, outcome, _ = BEGINNINGS[kind]
    seen = set()
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        job = begin(world)
        moment, shop = at(world, nth, lambda: None, after=False)
        moment.action = lambda w=world, j=job: cancel_job(
            w.jobs, "acme", j.job_id, START
        )
        run(world, job, shop)
        if not moment.reached:
            break
        stopped = stored(world, job)
        seen.add(stopped.progress.done)
        assert stopped.state is JobState.CANCELED
        assert outcomes(world, job) == [outcome] * stopped.progress.done
        changed = [
            version for version in world.store.versions.values()
            if version.source == job.source
        ]  # fmt: skip
        assert len(changed) == stopped.progress.done
        world.job_queue.take()
        resume_job(world.office, "acme", job.job_id, START)
        assert world.job_queue.take() == [job.job_id]
        run(world, job)
        assert stored(world, job).state is JobState.SUCCEEDED
        assert outcomes(world, job) == [outcome] * 3
    assert seen == {0, 1, 2, 3}


def test_an_item_without_answer_has_tries_of_its_own_and_then_is_refused() -> None:
    world = ann_world()
    ids = made(world, 4)

    job = start(world, "pause", targets(ids))
    world.job_queue.take()
    slow = failing_at(world, ids[2], Transient())
    first = run(world, job, slow)
    assert (first.requeued, len(first.results)) == (True, 2)
    assert world.job_queue.take() == [job.job_id]
    for _ in range(2):
        with pytest.raises(Transient):
            run(world, job, slow)
        assert stored(world, job).progress == Progress(4, 2)
        assert stored(world, job).state is JobState.RUNNING
    last = run(world, job, slow, gives_up=True)
    assert (last.requeued, len(last.results)) == (True, 1)
    assert world.job_queue.take() == [job.job_id]
    run(world, job, slow)
    assert outcomes(world, job) == ["CHANGED", "CHANGED", "REFUSED", "CHANGED"]
    refusal = world.store.job_results[job.job_id][2].refusal
    assert refusal is not None
    assert (refusal.status, refusal.code) == (503, "unavailable")


@pytest.mark.parametrize("gives_up", [False, True])
def test_an_item_that_begins_a_later_chunk_gets_a_call_of_its_own_too(
    *, gives_up: bool
) -> None:
    world = ann_world()
    ids = made(world, 26)

    job = start(world, "pause", targets(ids))
    slow = failing_at(world, ids[25], Transient())
    report = run(world, job, slow, gives_up=gives_up)
    assert (report.requeued, len(report.results)) == (True, 25)
    with pytest.raises(Transient):
        run(world, job, slow)
    run(world, job)
    assert outcomes(world, job) == ["CHANGED"] * 26


def test_a_suspension_ends_a_job_between_two_chunks() -> None:
    done_before = set()
    for nth in range(1, MOST_CALLS, 10):
        world = ann_world()
        job = start(world, "create", [new(f"bell-{n}") for n in range(60)])
        moment, shop = at(world, nth, lambda: None, after=True)
        moment.action = lambda w=world: suspend(w)
        run(world, job, shop)
        if stored(world, job).state is JobState.SUCCEEDED:
            break
        assert stored(world, job).failure == "tenant_suspended"
        done_before.add(stored(world, job).progress.done)
        assert len(world.store.schedules) == stored(world, job).progress.done
        suspend(world, TenantState.ACTIVE)
        resume_job(world.office, "acme", job.job_id, START)
        run(world, job)
        assert outcomes(world, job) == ["CREATED"] * 60
    assert done_before == {0, 25, 50}


def test_when_time_is_up_the_job_is_saved_and_enqueued_again() -> None:
    world = ann_world()
    job = start(world, "create", [new(f"bell-{n}") for n in range(30)])
    world.job_queue.take()
    # The deadline passes while the fourth item is done.
    moment, shop = at(world, 25, lambda: None, after=True)
    moment.action = lambda: world.clock.advance(MINUTE)
    report = run(world, job, shop)
    assert report.requeued
    assert world.job_queue.take() == [job.job_id]
    done = stored(world, job).progress.done
    assert 0 < done < 25
    run(world, job)
    assert outcomes(world, job) == ["CREATED"] * 30


def test_beyond_its_time_no_item_is_begun() -> None:
    world = ann_world()
    job = begin_create(world)
    report = run(world, job, seconds=0)
    assert (report.requeued, report.results) == (True, [])
    assert not world.store.schedules


class Unwritten:
    """Jobs whose worker ends when items are done and nothing is written down."""

    def __init__(self, world: World) -> None:
        self._jobs = world.jobs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._jobs, name)

    def advance(self, job: Job, results: Sequence[Result], *, before: Job) -> Any:
        if results:
            raise Crash
        return self._jobs.advance(job, results, before=before)


def test_a_job_knows_its_change_again_by_a_clock_that_is_behind() -> None:
    world = ann_world()
    ids = made(world, 2)
    job = start(world, "pause", targets(ids))
    # The API's clock is ahead by nearly two seconds, and the worker's behind.
    world.clock.set(START - 3.9 * SECOND)
    with pytest.raises(Crash):
        run(world, job, watched(world, {"jobs": Unwritten(world)}))
    run(world, job)
    assert outcomes(world, job) == ["CHANGED"] * 2


@pytest.mark.parametrize("operation", ["pause", "resume"])
def test_what_others_changed_back_since_is_not_done_again(operation: str) -> None:
    world = ann_world()
    ids = made(world, 2)
    if operation == "resume":
        for each in ids:
            pause(world.changes, caller(world), each, START)
        world.clock.advance(MINUTE)
    was = states(world)
    job = start(world, operation, targets(ids))
    with pytest.raises(Crash):
        run(world, job, watched(world, {"jobs": Unwritten(world)}))
    world.clock.advance(SECOND)
    now = world.clock.now()
    change_back = resume if operation == "pause" else pause
    change_back(world.changes, caller(world), ids[0], now)
    run(world, job)
    assert outcomes(world, job) == ["CHANGED"] * 2
    assert states(world)["bell-000"] is was["bell-000"]
    assert states(world)["bell-001"] is not was["bell-001"]
