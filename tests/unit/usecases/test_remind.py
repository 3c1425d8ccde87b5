"""A job that is stored is done, whoever forgets it: its reminder comes to it."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.adapters.memory.clocks import SteppedClock
from hourbell.domain.errors import HourbellError, Permanent, Transient, Unreadable
from hourbell.domain.job import Job, JobState, Operation, Progress
from hourbell.usecases import remind as module
from hourbell.usecases.jobs import (
    NewJob,
    Office,
    cancel_job,
    resume_job,
    start_job,
)
from hourbell.usecases.ports import Write
from hourbell.usecases.remind import Reminded, remind

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.jobs import (
    MOST_CALLS,
    PORTS,
    ann_world,
    begin_create,
    begin_pause,
    new,
    outcomes,
    run,
    start,
    stored,
    watched,
)
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, SECOND, START, World

HOUR = timedelta(hours=1)
THREE = tuple(new(f"bell-{n}") for n in range(3))
REQUEST = NewJob(Operation.CREATE, "key", "hash", THREE)


def crash() -> None:
    raise Crash


class Deaf:
    """A queue that takes nothing."""

    def __init__(self, fault: type[HourbellError] = Transient) -> None:
        self._fault = fault

    def put(self, job_id: str) -> None:
        raise self._fault


def tick_at(world: World, now: datetime, office: Office | None = None) -> Reminded:
    """Let a tick see after jobs at an instant."""
    world.clock.set(now)
    return remind(office or world.office, world.clock, deadline=now + MINUTE)


def work(world: World) -> None:
    """Let workers have what is on the queue, until it is empty."""
    while taken := world.job_queue.take():
        for job_id in taken:
            run(world, world.store.jobs[job_id])


def told_minutes(world: World, until: timedelta) -> list[float]:
    """Let a tick come each minute to a job that nobody works at; return when it told.

    A job is told of at the first tick that is not before the reminder is due.
    """
    return [
        (now - START) / MINUTE
        for minute in range(1, int(until / MINUTE) + 1)
        if tick_at(world, now := START + minute * MINUTE).told
    ]


@pytest.mark.parametrize("fault", [Transient, Permanent])
def test_a_queue_that_takes_nothing_is_no_matter_of_the_caller(
    fault: type[HourbellError],
) -> None:
    world = ann_world()
    deaf = Office(world.jobs, Deaf(fault))
    accepted = start_job(deaf, caller(world), REQUEST, START)
    assert accepted.job.state is JobState.PENDING
    again = resume_job(deaf, "acme", accepted.job.job_id, START)
    assert again.state is JobState.PENDING
    assert tick_at(world, START + 5 * MINUTE).told == [accepted.job.job_id]
    work(world)
    assert outcomes(world, accepted.job) == ["CREATED"] * 3


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_of_a_start_leaves_no_job_undone(*, after: bool) -> None:
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        moment = Moment(nth, after, crash)
        office = Office(moment.wrap(world.jobs), moment.wrap(world.job_queue))
        try:
            start_job(office, caller(world), REQUEST, START)
        except Crash:
            pass
        else:
            break
        # What was put may be lost, too.
        world.job_queue.take()
        told = tick_at(world, START + 5 * MINUTE).told
        assert told == list(world.store.jobs)
        work(world)
        for job in list(world.store.jobs.values()):
            assert outcomes(world, job) == ["CREATED"] * 3
            assert stored(world, job).state is JobState.SUCCEEDED
    assert nth == 3


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_of_a_resume_leaves_no_job_undone(*, after: bool) -> None:
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        job = start(world, "create", THREE)
        world.job_queue.take()
        cancel_job(world.jobs, "acme", job.job_id, START)
        assert tick_at(world, START + 5 * MINUTE).told == []
        now = START + HOUR
        moment = Moment(nth, after, crash)
        office = Office(moment.wrap(world.jobs), moment.wrap(world.job_queue))
        try:
            resume_job(office, "acme", job.job_id, now)
        except Crash:
            pass
        else:
            break
        world.job_queue.take()
        tick_at(world, now + 5 * MINUTE)
        work(world)
        waits = stored(world, job).state is JobState.CANCELED
        assert waits == (not outcomes(world, job))
        # Before the job is PENDING again, the caller was told of nothing.
        assert waits == ((nth, after) in {(1, False), (1, True), (2, False)})
    assert nth == 4


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("begin", [begin_create, begin_pause])
def test_a_worker_that_dies_with_its_message_is_followed_by_another(
    begin: Any, *, after: bool
) -> None:
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        job = begin(world)
        moment = Moment(nth, after, crash)
        ports = {name: moment.wrap(getattr(world, name)) for name in PORTS}
        try:
            run(world, job, watched(world, ports))
        except Crash:
            world.job_queue.take()
            # A tick each minute; what is RUNNING is left alone for 55 of them.
            for minute in range(1, 61):
                tick_at(world, START + minute * MINUTE)
            work(world)
        done = stored(world, job)
        assert (done.state, done.progress) == (JobState.SUCCEEDED, Progress(3, 3))
        if not moment.reached:
            break
    assert 15 < nth < MOST_CALLS - 1


@pytest.mark.parametrize("after", [False, True])
def test_a_crash_at_any_call_of_a_tick_leaves_no_job_undone(*, after: bool) -> None:
    for nth in range(1, MOST_CALLS):
        world = ann_world()
        jobs = [
            start_job(
                world.office,
                caller(world),
                NewJob(Operation.CREATE, f"key-{n}", "hash", (new(f"bell-{n}"),)),
                START,
            ).job
            for n in range(3)
        ]
        world.job_queue.take()
        cancel_job(world.jobs, "acme", jobs[0].job_id, START)
        moment = Moment(nth, after, crash)
        office = Office(moment.wrap(world.jobs), moment.wrap(world.job_queue))
        try:
            tick_at(world, START + 5 * MINUTE, office)
        except Crash:
            pass
        else:
            break
        tick_at(world, START + 6 * MINUTE)
        work(world)
        states = [stored(world, job).state for job in jobs]
        assert states == ["CANCELED", "SUCCEEDED", "SUCCEEDED"]
    # The list; three jobs; of two the queue; three reminders.
    assert nth == 10


def test_a_pending_job_is_told_of_less_and_less_often() -> None:
    world = ann_world()
    begin_create(world)
    # After 5, 5, 10, 20, 40, 80, 160 and 320 minutes, then every six hours.
    expected = [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1360]
    assert told_minutes(world, timedelta(minutes=1400)) == expected


def test_a_running_job_is_left_to_its_queue_until_that_has_given_it_up() -> None:
    world = ann_world()
    job = begin_create(world)
    world.jobs.advance(
        _running(job, at=START + 30 * SECOND), (), before=stored(world, job)
    )
    # 55 minutes after 12:00:30; then after 5, 10 and 20 minutes more.
    assert told_minutes(world, timedelta(minutes=100)) == [56, 61, 71, 91]


def _running(job: Job, *, at: datetime) -> Job:
    return replace(job, state=JobState.RUNNING, updated_at=at)


def test_progress_makes_reminders_begin_anew() -> None:
    world = ann_world()
    job = begin_create(world)
    assert told_minutes(world, timedelta(minutes=21)) == [5, 10, 20]
    world.jobs.advance(
        _running(job, at=START + 22 * MINUTE), (), before=stored(world, job)
    )
    # Looked at after 40 minutes; due 55 after its progress, then 5 later.
    assert told_minutes(world, timedelta(minutes=83)) == [77, 82]


def test_nothing_is_kept_of_a_job_that_has_ended() -> None:
    world = ann_world()
    begin_create(world)
    work(world)
    assert len(world.store.reminders) == 1
    assert tick_at(world, START + 5 * MINUTE) == Reminded()
    assert world.store.reminders == {}


def test_nothing_is_kept_of_a_job_that_has_expired() -> None:
    world = ann_world()
    job = begin_create(world)
    del world.store.jobs[job.job_id]
    assert tick_at(world, START + 5 * MINUTE) == Reminded()
    assert world.store.reminders == {}


def test_a_job_that_cannot_be_read_keeps_no_other_waiting() -> None:
    world = ann_world()
    first, second = [
        start_job(
            world.office,
            caller(world),
            NewJob(Operation.CREATE, f"key-{n}", "hash", (new(f"bell-{n}"),)),
            START + n * SECOND,
        ).job
        for n in range(2)
    ]

    class Damaged:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.jobs, name)

        def find(self, job_id: str) -> Job | None:
            if job_id == first.job_id:
                raise Unreadable
            return world.jobs.find(job_id)

    office = Office(Damaged(), world.job_queue)
    world.job_queue.take()
    report = tick_at(world, START + 6 * MINUTE, office)
    assert report.told == world.job_queue.take() == [second.job_id]
    assert [type(each) for each in report.faults] == [Unreadable]
    # The first is seen after again, when the release that reads it may be there.
    assert tick_at(world, START + 11 * MINUTE).told == [second.job_id, first.job_id]


def test_a_queue_that_fails_leaves_the_reminders_to_the_next_tick() -> None:
    world = ann_world()
    job = begin_create(world)
    world.job_queue.take()
    report = tick_at(world, START + 5 * MINUTE, Office(world.jobs, Deaf()))
    assert (report.told, len(report.faults)) == ([], 1)
    assert tick_at(world, START + 6 * MINUTE).told == [job.job_id]


def test_of_two_ticks_one_moves_the_reminder() -> None:
    world = ann_world()
    job = begin_create(world)
    (reminder,) = world.jobs.reminders(START + 5 * MINUTE, limit=9)
    assert tick_at(world, START + 5 * MINUTE).told == [job.job_id]
    later = reminder.in_vain(START + 6 * MINUTE)
    assert world.jobs.replace_reminder(reminder, later) is Write.LOST
    assert len(world.store.reminders) == 1


def many(world: World, count: int) -> list[str]:
    """Make so many jobs, a millisecond apart, and lose their messages."""
    made = []
    for n in range(count):
        request = NewJob(Operation.CREATE, f"key-{n}", "hash", (new(f"bell-{n}"),))
        now = START + n * SECOND / 1_000
        made.append(start_job(world.office, caller(world), request, now).job.job_id)
    world.job_queue.take()
    return made


def test_one_tick_sees_after_the_jobs_of_a_burst() -> None:
    world = ann_world()
    made = many(world, 120)
    assert tick_at(world, START + 6 * MINUTE).told == made


def test_a_tick_takes_the_oldest_and_leaves_the_rest_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    world = ann_world()
    made = many(world, 4)
    assert tick_at(world, START + 6 * MINUTE).told == made[:3]
    assert tick_at(world, START + 7 * MINUTE).told == made[3:]


def test_what_there_is_no_time_for_is_left_to_the_next_tick() -> None:
    world = ann_world()
    made = many(world, 4)
    now = START + 6 * MINUTE
    # Read when it begins, and before each job: at 0, 1 and 2 seconds, then at 3.
    clock = SteppedClock(now, SECOND)
    report = remind(world.office, clock, deadline=now + 3 * SECOND)
    assert report.told == made[:2]
    assert remind(world.office, clock, deadline=now + 3 * SECOND) == Reminded()
    assert tick_at(world, now).told == made[2:]


def test_a_job_that_is_resumed_time_and_again_is_told_of_once() -> None:
    world = ann_world()
    job = begin_create(world)
    for n in range(9):
        resume_job(world.office, "acme", job.job_id, START + n * SECOND)
    world.job_queue.take()
    assert len(world.store.reminders) == 10
    assert tick_at(world, START + 6 * MINUTE).told == [job.job_id]
    (left,) = world.store.reminders.values()
    assert (left.step, left.due_at) == (9, START + 11 * MINUTE)


@pytest.mark.parametrize("stuck", [False, True])
def test_a_job_at_which_our_own_code_breaks_keeps_no_other_waiting(
    *, stuck: bool
) -> None:
    world = ann_world()
    first, second = many(world, 2)

    class Odd:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.jobs, name)

        def find(self, job_id: str) -> Job | None:
            if job_id == first:
                raise OverflowError
            return world.jobs.find(job_id)

        def replace_reminder(self, *arguments: Any) -> Write:
            if stuck and arguments[0].job_id == first:
                raise OverflowError
            return world.jobs.replace_reminder(*arguments)

    report = tick_at(world, START + 6 * MINUTE, Office(Odd(), world.job_queue))
    assert report.told == [second]
    assert [type(each) for each in report.faults] == [OverflowError] * (1 + stuck)
    # It is put off for five minutes, as one that cannot be read.
    assert tick_at(world, START + 7 * MINUTE).told == ([first] if stuck else [])
    told = [second] if stuck else [first, second]
    assert sorted(tick_at(world, START + 11 * MINUTE).told) == sorted(told)
