"""Make jobs, read them, stop them and let them go on."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hourbell.domain.errors import (
    Conflict,
    Forbidden,
    HourbellError,
    NotFound,
    Transient,
)
from hourbell.domain.job import (
    Creator,
    Job,
    JobState,
    Letters,
    Operation,
    Outcome,
    Progress,
    Result,
    Walk,
    derived_job_id,
    is_job_id,
    is_job_place,
)
from hourbell.domain.retention import RETENTION
from hourbell.usecases.identify import Caller
from hourbell.usecases.job_ports import JobItem, JobQueue, Jobs
from hourbell.usecases.paging import no_cursor, page_after
from hourbell.usecases.ports import Write

STALLED: Final = timedelta(minutes=5)
"""How long a running job may show no progress before a resume takes it over."""

MAX_READS: Final = 5
"""How many pages of results one call reads at most to fill one of its own."""

# The number of an item; no job has more of them than fit into it.
_INDEX: Final = re.compile("[0-9]{1,10}", re.ASCII)

# How often a change of a job is tried again when its worker was first.
_ATTEMPTS: Final = 10


@dataclass(frozen=True, slots=True)
class Office:
    """What making and steering jobs needs."""

    jobs: Jobs
    queue: JobQueue


@dataclass(frozen=True, slots=True)
class NewJob:
    """What the caller asks for, valid in its form.

    Attributes:
        key: names the request, so that repeating it makes one job.
        body_hash: SHA-256 of the request; equal for equal requests.
        items: what to do it to; none when `tags` find them.
        tags: what all schedules have that it is to be done to.
        letters: of a replay, which dead letters.
    """

    operation: Operation
    key: str
    body_hash: str
    items: tuple[JobItem, ...] = ()
    tags: Mapping[str, str] | None = None
    reason: str | None = None
    dry_run: bool = False
    letters: Letters | None = None

    @property
    def walk(self) -> Walk | None:
        """How its items are found; None when they are listed."""
        if self.letters is not None:
            return Walk({}, letters=self.letters)
        return None if self.tags is None else Walk(dict(self.tags))


@dataclass(frozen=True, slots=True)
class Accepted:
    """A job that is stored; `replayed` when an earlier request had made it."""

    job: Job
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class JobPage:
    """Jobs, the newest first; `after` is where the next page begins, if any."""

    jobs: tuple[Job, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class ResultPage:
    """Results in order; `after` is where the next page begins, if any."""

    results: tuple[Result, ...]
    after: str | None


def start_job(
    office: Office, caller: Caller, request: NewJob, now: datetime
) -> Accepted:
    """Store a job with its items, and hand it to a worker.

    Once it is stored it will be done: its reminder is stored with it.

    Raises:
        Conflict: the key was used for another request (`idempotency_key_reused`).
        Transient: a store did not answer; the request may be repeated.
    """
    job = _new_job(caller, request, now)
    replayed = office.jobs.create(job, request.items) is not Write.APPLIED
    if replayed:
        stored = office.jobs.find(job.job_id)
        if stored is None:
            raise Transient(f"{job.job_id} was taken and is not there")
        if stored.body_hash != request.body_hash:
            raise Conflict(
                "This Idempotency-Key was used for a request with another body.",
                code="idempotency_key_reused",
            )
        job = stored
    if job.state is JobState.PENDING:
        _hand_over(office, job)
    return Accepted(job, replayed)


def _hand_over(office: Office, job: Job) -> None:
    """Tell a worker of a job whose reminder is stored."""
    # Whoever hears of a failure makes the job again, without a key as another one.
    # Whether it passes by itself or is to be mended, the reminder outlasts it.
    with suppress(HourbellError):
        office.queue.put(job.job_id)


def get_job(jobs: Jobs, tenant_id: str, job_id: str) -> Job:
    """Return one of the tenant's jobs.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
    """
    job = jobs.find(job_id) if is_job_id(job_id) else None
    if job is None or job.tenant_id != tenant_id:
        raise NotFound
    return job


def list_jobs(jobs: Jobs, tenant_id: str, *, after: str | None, limit: int) -> JobPage:
    """Return a page of the tenant's jobs, the newest first.

    Raises:
        InvalidInput: no page ended at `after` (`invalid_cursor`).
    """
    page = page_after(
        after,
        limit,
        lambda most: jobs.of_tenant(tenant_id, before=after, limit=most),
        place_of=lambda job: job.place,
        is_place=is_job_place,
    )
    return JobPage(*page)


def job_results(
    jobs: Jobs,
    tenant_id: str,
    job_id: str,
    *,
    outcome: Outcome | None,
    after: str | None,
    limit: int,
) -> ResultPage:
    """Return a page of a job's results, in the order of its items.

    With an outcome a page may be short, or even empty, although there is more.

    Raises:
        NotFound: as `get_job`.
        InvalidInput: no page ended at `after` (`invalid_cursor`).
    """
    get_job(jobs, tenant_id, job_id)
    if after is not None and not _INDEX.fullmatch(after):
        raise no_cursor(after)
    start = int(after or 0)
    found: list[Result] = []
    for _ in range(MAX_READS):
        wanted = limit - len(found)
        page = jobs.results(job_id, start=start, limit=wanted)
        found += [each for each in page if outcome in {None, each.outcome}]
        if len(page) < wanted:
            return ResultPage(tuple(found), None)
        start = page[-1].index + 1
        if len(found) == limit:
            break
    return ResultPage(tuple(found), str(start))


def cancel_job(jobs: Jobs, tenant_id: str, job_id: str, now: datetime) -> Job:
    """Stop a job between two of its items; what is done stays.

    Raises:
        NotFound: as `get_job`.
        Forbidden: the platform started it.
        Conflict: it has ended already (`job_ended`).
        Transient: a store did not answer, or its worker is always first.
    """
    for _ in range(_ATTEMPTS):
        job = _steered(jobs, tenant_id, job_id)
        if job.state is JobState.CANCELED:
            return job
        if not job.is_open:
            raise _ended(job)
        # The step stays: the worker may still write down what it was at.
        stopped = replace(job, state=JobState.CANCELED, updated_at=now, finished_at=now)
        if jobs.advance(stopped, (), before=job) is Write.APPLIED:
            return stopped
    raise Transient(f"{job_id} is changed by others all the time")


def resume_job(office: Office, tenant_id: str, job_id: str, now: datetime) -> Job:
    """Let a job go on where it stopped: failed, canceled, or without a worker.

    One that is at work stays as it is.

    Raises:
        NotFound: as `get_job`.
        Forbidden: the platform started it.
        Conflict: all of it is done (`job_ended`).
        Transient: a store did not answer; a resume may be repeated.
    """
    for _ in range(_ATTEMPTS):
        job = _steered(office.jobs, tenant_id, job_id)
        if job.state is JobState.SUCCEEDED:
            raise _ended(job)
        if job.state is JobState.RUNNING and now - job.updated_at < STALLED:
            return job
        # Another step: whoever is still at the old one has lost.
        waiting = replace(
            job,
            state=JobState.PENDING,
            updated_at=now,
            finished_at=None,
            failure=None,
            step=job.step + 1,
        )
        if office.jobs.advance(waiting, (), before=job) is Write.APPLIED:
            _hand_over(office, waiting)
            return waiting
    raise Transient(f"{job_id} is changed by others all the time")


def _steered(jobs: Jobs, tenant_id: str, job_id: str) -> Job:
    """Return a job that the tenant may stop or resume."""
    job = get_job(jobs, tenant_id, job_id)
    if job.operation.is_platforms:
        raise Forbidden("The platform started this job; it can only be read.")
    return job


def _new_job(caller: Caller, request: NewJob, now: datetime) -> Job:
    tenant_id, walk = caller.tenant.tenant_id, request.walk
    return Job(
        job_id=derived_job_id(tenant_id, request.key),
        tenant_id=tenant_id,
        operation=request.operation,
        dry_run=request.dry_run,
        creator=Creator(caller.principal, caller.arn, caller.source),
        body_hash=request.body_hash,
        created_at=now,
        updated_at=now,
        expires_at=now + RETENTION,
        reason=request.reason,
        progress=Progress(len(request.items) if walk is None else None),
        walk=walk,
    )


def _ended(job: Job) -> Conflict:
    return Conflict(
        f"The job has ended: it is {job.state}.",
        code="job_ended",
        members={"state": job.state.value},
    )
