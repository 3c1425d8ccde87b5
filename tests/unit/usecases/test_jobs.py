"""Making, reading, stopping and resuming jobs."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import Tier
from hourbell.domain.errors import Conflict, InvalidInput, NotFound, Transient
from hourbell.domain.job import Job, JobState, Operation, Outcome, Target
from hourbell.usecases.jobs import (
    NewJob,
    cancel_job,
    get_job,
    job_results,
    list_jobs,
    resume_job,
    start_job,
)
from hourbell.usecases.ports import Write

from tests.unit.usecases.jobs import (
    ann_world,
    begin_create,
    made,
    new,
    outcomes,
    run,
    start,
    stored,
    targets,
)
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, SECOND, START, World

REQUEST = NewJob(Operation.PAUSE, "key", "hash", (Target(f"sch{'0' * 26}"),))


@pytest.fixture
def world() -> World:
    return ann_world()


class Deaf:
    def put(self, job_id: str) -> None:
        raise Transient


class TestStart:
    def test_the_job_is_stored_whole_and_handed_over(self, world: World) -> None:
        accepted = start_job(world.office, caller(world), REQUEST, START)
        assert not accepted.replayed
        job = accepted.job
        assert world.store.jobs == {job.job_id: job}
        assert world.store.job_items[job.job_id] == REQUEST.items
        assert world.job_queue.take() == [job.job_id]
        assert (job.state, job.progress.total) == (JobState.PENDING, 1)
        assert job.creator.arn == "arn:aws:iam::1:user/ann"
        assert job.creator.source == "api 192.0.2.1"

    def test_the_same_key_and_body_is_the_same_job(self, world: World) -> None:
        first = start_job(world.office, caller(world), REQUEST, START)
        again = start_job(world.office, caller(world), REQUEST, START + MINUTE)
        assert (again.job, again.replayed) == (first.job, True)
        assert len(world.store.jobs) == 1

    def test_the_same_key_with_another_body_is_a_conflict(self, world: World) -> None:
        start_job(world.office, caller(world), REQUEST, START)
        other = replace(REQUEST, body_hash="other")
        with pytest.raises(Conflict) as caught:
            start_job(world.office, caller(world), other, START)
        assert caught.value.code == "idempotency_key_reused"

    def test_a_key_is_the_tenants_own(self, world: World) -> None:
        world.add_tenant("bolt", Tier.BASIC)
        mine = start_job(world.office, caller(world), REQUEST, START).job
        theirs = start_job(world.office, caller(world, "bolt"), REQUEST, START).job
        assert mine.job_id != theirs.job_id

    def test_a_job_that_no_worker_was_told_of_is_healed_by_a_repeat(
        self, world: World
    ) -> None:
        deaf: Any = Deaf()
        office = replace(world.office, queue=deaf)
        start_job(office, caller(world), REQUEST, START)
        again = start_job(world.office, caller(world), REQUEST, START)
        assert world.job_queue.take() == [again.job.job_id]

    def test_a_job_at_work_is_not_handed_over_again(self, world: World) -> None:
        job = start_job(world.office, caller(world), REQUEST, START).job
        run(world, job)
        world.job_queue.take()
        again = start_job(world.office, caller(world), REQUEST, START)
        assert again.job.state is JobState.SUCCEEDED
        assert world.job_queue.take() == []

    def test_a_job_that_is_taken_and_gone_is_no_success(self, world: World) -> None:
        class Gone:
            def create(self, *_: Any) -> Write:
                return Write.EXISTS

            def find(self, job_id: str) -> None:
                return None

        gone: Any = Gone()
        with pytest.raises(Transient, match="not there"):
            start_job(replace(world.office, jobs=gone), caller(world), REQUEST, START)


class TestReading:
    def test_anothers_job_is_not_there(self, world: World) -> None:
        job = begin_create(world)
        assert get_job(world.jobs, "acme", job.job_id) == job
        for tenant, job_id in (
            ("bolt", job.job_id),
            ("acme", f"job{'0' * 26}"),
            ("acme", "x"),
        ):
            with pytest.raises(NotFound):
                get_job(world.jobs, tenant, job_id)

    def test_jobs_are_listed_newest_first_page_by_page(self, world: World) -> None:
        made_jobs = [
            start_job(
                world.office,
                caller(world),
                replace(REQUEST, key=f"k{n}"),
                START + n * SECOND,
            ).job
            for n in range(5)
        ]
        found: list[Job] = []
        after = None
        for size in (2, 2, 1):
            page = list_jobs(world.jobs, "acme", after=after, limit=2)
            assert len(page.jobs) == size
            found += page.jobs
            after = page.after
        assert after is None
        assert found == made_jobs[::-1]
        assert list_jobs(world.jobs, "bolt", after=None, limit=9).jobs == ()

    @pytest.mark.parametrize("cursor", ["", "x", "20260309T120000000000Z.job"])
    def test_what_is_no_cursor_is_refused(self, world: World, cursor: str) -> None:
        job = begin_create(world)
        with pytest.raises(InvalidInput) as caught:
            list_jobs(world.jobs, "acme", after=cursor, limit=1)
        assert caught.value.code == "invalid_cursor"
        with pytest.raises(InvalidInput):
            job_results(
                world.jobs, "acme", job.job_id, outcome=None, after="x", limit=1
            )

    def test_results_come_in_order_page_by_page(self, world: World) -> None:
        job = start(world, "create", [new(f"bell-{n:02}") for n in range(30)])
        run(world, job)
        found, after = [], None
        while True:
            page = job_results(
                world.jobs, "acme", job.job_id, outcome=None, after=after, limit=7
            )
            found += [each.index for each in page.results]
            after = page.after
            if after is None:
                break
        assert found == list(range(30))

    def test_results_of_one_outcome(self, world: World) -> None:
        ids = made(world, 30)
        start_with = start(world, "pause", targets([*ids, f"sch{'0' * 26}"]))
        run(world, start_with)

        def wanted(outcome: Outcome, after: str | None = None) -> Any:
            return job_results(
                world.jobs,
                "acme",
                start_with.job_id,
                outcome=outcome,
                after=after,
                limit=2,
            )

        first = wanted(Outcome.REFUSED)
        # Five reads of two results each found none.
        assert (first.results, first.after) == ((), "10")
        last = wanted(Outcome.REFUSED, "25")
        assert [each.index for each in last.results] == [30]
        assert wanted(Outcome.CHANGED).after == "2"


class TestCancel:
    def test_a_job_without_worker_is_stopped_at_once(self, world: World) -> None:
        job = begin_create(world)
        stopped = cancel_job(world.jobs, "acme", job.job_id, START + SECOND)
        assert stopped.state is JobState.CANCELED
        assert stopped.finished_at == START + SECOND
        assert not run(world, job).begun
        assert cancel_job(world.jobs, "acme", job.job_id, START + MINUTE) == stopped

    def test_what_has_ended_cannot_be_stopped(self, world: World) -> None:
        job = begin_create(world)
        run(world, job)
        with pytest.raises(Conflict) as caught:
            cancel_job(world.jobs, "acme", job.job_id, START)
        assert caught.value.code == "job_ended"
        assert caught.value.members == {"state": "SUCCEEDED"}
        with pytest.raises(Conflict):
            resume_job(world.office, "acme", job.job_id, START)

    def test_another_writer_who_is_always_first_is_told_of(self, world: World) -> None:
        job = begin_create(world)

        class Busy:
            def find(self, job_id: str) -> Any:
                return world.jobs.find(job_id)

            def advance(self, *_: Any, **__: Any) -> Write:
                return Write.LOST

        busy: Any = Busy()
        with pytest.raises(Transient, match="all the time"):
            cancel_job(busy, "acme", job.job_id, START)
        with pytest.raises(Transient, match="all the time"):
            resume_job(replace(world.office, jobs=busy), "acme", job.job_id, START)


class TestResume:
    def test_a_canceled_job_does_the_rest(self, world: World) -> None:
        job = begin_create(world)
        cancel_job(world.jobs, "acme", job.job_id, START)
        world.job_queue.take()
        resumed = resume_job(world.office, "acme", job.job_id, START + SECOND)
        assert (resumed.state, resumed.finished_at) == (JobState.PENDING, None)
        assert world.job_queue.take() == [job.job_id]
        run(world, job)
        assert outcomes(world, job) == ["CREATED"] * 3

    def test_a_job_at_work_stays_as_it_is_until_it_stalls(self, world: World) -> None:
        job = begin_create(world)
        run(world, job, seconds=0)
        world.job_queue.take()
        nearly = START + 5 * MINUTE - SECOND
        at_work = resume_job(world.office, "acme", job.job_id, nearly)
        assert at_work.state is JobState.RUNNING
        assert world.job_queue.take() == []
        stalled = resume_job(world.office, "acme", job.job_id, START + 5 * MINUTE)
        assert stalled.state is JobState.PENDING
        assert world.job_queue.take() == [job.job_id]

    def test_a_resume_that_told_no_worker_may_be_repeated(self, world: World) -> None:
        job = begin_create(world)
        world.job_queue.take()
        deaf: Any = Deaf()
        resume_job(replace(world.office, queue=deaf), "acme", job.job_id, START)
        assert world.job_queue.take() == []
        resume_job(world.office, "acme", job.job_id, START)
        assert world.job_queue.take() == [job.job_id]
        assert stored(world, job).state is JobState.PENDING
