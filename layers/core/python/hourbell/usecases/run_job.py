"""Work at a job, chunk by chunk, until it is done or somebody stops it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import ScheduleState, TenantState
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.job import (
    CHUNK,
    Job,
    JobState,
    Operation,
    Progress,
    Result,
    Target,
    Walk,
)
from hourbell.usecases.identify import Caller
from hourbell.usecases.job_items import Bench, do_item, failed_result
from hourbell.usecases.job_ports import JobItem, JobQueue, Jobs
from hourbell.usecases.list_schedules import Filter, list_schedules
from hourbell.usecases.ports import Clock, Directory, Write

TENANT_REMOVED: Final = "tenant_removed"
TENANT_SUSPENDED: Final = "tenant_suspended"
PRINCIPAL_REMOVED: Final = "principal_removed"


@dataclass(frozen=True, slots=True)
class Workshop:
    """What working at jobs needs."""

    jobs: Jobs
    queue: JobQueue
    directory: Directory
    bench: Bench
    clock: Clock


@dataclass(slots=True)
class JobReport:
    """What one call did.

    Attributes:
        state: the job's afterwards; None when there is no such job.
        results: what became of the items that this call wrote down.
        begun: whether there was something to do for it.
        requeued: whether another call is to go on: time was up, or an item had no
            answer.
        faults: errors of our own code, each of which cost one item.
    """

    state: JobState | None = None
    results: list[Result] = field(default_factory=list)
    begun: bool = False
    requeued: bool = False
    faults: list[Exception] = field(default_factory=list)


def run_job(
    shop: Workshop, job_id: str, *, deadline: datetime, gives_up: bool = False
) -> JobReport:
    """Do the items of a job, as its creator, from where its progress stands.

    Results and progress are written together, under the condition that nobody else
    wrote progress since it was read. So of two workers one loses and stops; and a
    crash repeats one chunk, whose items tell the same again. An item that fails for
    good is refused and stops no other.

    Args:
        shop: the ports.
        job_id: which job.
        deadline: no further item is begun after it; the job is enqueued again.
        gives_up: whether the first item is refused when it gets no answer, because
            that was tried often enough; then others have their turn.

    Raises:
        Transient: a store or queue did not answer, for the job or the first item of
            the call. When it is another item's, what was done is written down and the
            job enqueued again, so that each item has tries of its own.
    """
    report = JobReport()
    job = _begin(shop, report, job_id)
    limits = _Limits(deadline, gives_up=gives_up)
    while job is not None and job.state is JobState.RUNNING:
        if report.requeued or shop.clock.now() >= deadline:
            report.requeued = True
            shop.queue.put(job_id)
            break
        job = _step(shop, report, job, limits)
    return report


@dataclass(frozen=True, slots=True)
class _Limits:
    """How long items are begun, and whether the first one's silence is an answer."""

    deadline: datetime
    gives_up: bool

    def wait_for_first(self, report: JobReport, results: Sequence[Result]) -> bool:
        """Whether an item without answer is the call's first, and to be waited for."""
        return not (results or report.results or self.gives_up)


def _begin(shop: Workshop, report: JobReport, job_id: str) -> Job | None:
    """Return the job as it is to be worked at; None when it is not."""
    job = shop.jobs.find(job_id)
    if job is None or not job.is_open:
        report.state = None if job is None else job.state
        return None
    report.begun = True
    if job.state is JobState.PENDING:
        running = replace(job, state=JobState.RUNNING, updated_at=shop.clock.now())
        job = _save(shop, report, running, (), before=job)
    return job


def _step(shop: Workshop, report: JobReport, job: Job, limits: _Limits) -> Job | None:
    """Do and write down one chunk; return the job after it, None when it was lost."""
    caller = _caller(shop.directory, job)
    if isinstance(caller, str):
        now = shop.clock.now()
        failed = replace(
            job,
            state=JobState.FAILED,
            failure=caller,
            updated_at=now,
            finished_at=now,
            step=job.step + 1,
        )
        return _save(shop, report, failed, (), before=job)
    if job.walk is not None and not (job.walk.rest or job.walk.finished):
        return _walk_on(shop, report, job, job.walk)
    items = _next_items(shop, job)
    try:
        results = _do(shop, report, job, caller, items, limits)
    except _Overtaken:
        return None
    after = _after(job, items, results, shop.clock.now())
    return _save(shop, report, after, results, before=job)


class _Overtaken(Exception):
    """Somebody else took the job over: nothing of this chunk is ours to write."""


def _do(
    shop: Workshop,
    report: JobReport,
    job: Job,
    caller: Caller,
    items: Sequence[JobItem],
    limits: _Limits,
) -> list[Result]:
    """Do items until there are no more, time is up, the job is stopped, or one fails.

    Raises:
        _Overtaken: another worker has the job.
        Transient: the first item got no answer.
    """
    results: list[Result] = []
    for item in items:
        now = shop.clock.now()
        if results and (now >= limits.deadline or _is_stopped(shop, job)):
            break
        so_far = replace(
            job,
            progress=job.progress.with_results(results),
            walk=job.walk and job.walk.paced(results),
        )
        index = so_far.progress.done
        try:
            results.append(do_item(shop.bench, caller, so_far, index, item, now))
        except Transient:
            if limits.wait_for_first(report, results):
                raise
            if not (results or report.results):
                results.append(failed_result(job, index, item, answered=False))
            report.requeued = True
            break
        except Exception as error:  # noqa: BLE001 - one faulty item must not stop the rest
            report.faults.append(error)
            results.append(failed_result(job, index, item, answered=True))
    return results


def _is_stopped(shop: Workshop, job: Job) -> bool:
    """Whether somebody canceled the job since it was read.

    Raises:
        _Overtaken: another worker has it.
    """
    current = shop.jobs.find(job.job_id)
    if current is None or current.step != job.step:
        raise _Overtaken
    return current.state is not job.state


def _save(
    shop: Workshop,
    report: JobReport,
    job: Job,
    results: Sequence[Result],
    *,
    before: Job,
) -> Job | None:
    """Write results and progress down; return the job as it is then.

    A job that was canceled meanwhile stays so, and keeps what was done.

    Returns:
        None when another worker was first.
    """
    answer = shop.jobs.advance(job, results, before=before)
    if answer is not Write.APPLIED:
        current = shop.jobs.find(job.job_id)
        if current is None or current.step != before.step or current.is_open:
            return None
        job = replace(
            job,
            state=current.state,
            finished_at=current.finished_at,
            failure=current.failure,
        )
        if shop.jobs.advance(job, results, before=current) is not Write.APPLIED:
            return None
    report.state = job.state
    report.results += results
    return job


def _after(
    job: Job, items: Sequence[JobItem], results: Sequence[Result], now: datetime
) -> Job:
    """Return the job after the first of some items."""
    progress, walk = job.progress.with_results(results), job.walk
    if walk is not None:
        rest = [each for each in items[len(results) :] if isinstance(each, Target)]
        walk = replace(walk.paced(results), rest=tuple(rest))
    return _moved(job, progress, walk, now)


def _moved(job: Job, progress: Progress, walk: Walk | None, now: datetime) -> Job:
    """Return the job one step further, ended if that was its last."""
    if walk is not None and walk.finished:
        progress = replace(progress, total=progress.done + len(walk.rest))
    ended = progress.done == progress.total
    return replace(
        job,
        state=JobState.SUCCEEDED if ended else JobState.RUNNING,
        updated_at=now,
        finished_at=now if ended else None,
        progress=progress,
        walk=walk,
        step=job.step + 1,
    )


def _next_items(shop: Workshop, job: Job) -> tuple[JobItem, ...]:
    """Return the next items, at most 25; none when all are done.

    Raises:
        Permanent: items that the job has are not stored.
    """
    if job.walk is not None:
        return job.walk.rest
    if job.progress.done == job.progress.total:
        # It was canceled while its last chunk was done.
        return ()
    items = shop.jobs.items(job.job_id, job.progress.done)
    if not items:
        raise Permanent(f"{job.job_id} has no item {job.progress.done}")
    return items


def _walk_on(shop: Workshop, report: JobReport, job: Job, walk: Walk) -> Job | None:
    """Find the next items that are wanted, and write them down before any is done.

    What is canceled, or replayed, is not found a second time, so a page that was not
    written down could not be told of after a crash.
    """
    find = _schedules if walk.letters is None else _letters
    rest, after = find(shop, job, walk)
    walk = replace(walk, after=after, finished=after is None, rest=rest)
    moved = _moved(job, job.progress, walk, shop.clock.now())
    return _save(shop, report, moved, (), before=job)


def _schedules(
    shop: Workshop, job: Job, walk: Walk
) -> tuple[tuple[Target, ...], str | None]:
    """Return schedules that are wanted, and what leads to more of them."""
    wanted = Filter(
        # What does not run, a replan leaves as it is.
        state=ScheduleState.ACTIVE if job.operation is Operation.REPLAN else None,
        tags=frozenset(f"{key}:{text}" for key, text in walk.tags.items()),
    )
    schedules = shop.bench.changes.plane.schedules
    page = list_schedules(
        schedules, job.tenant_id, wanted, after=walk.after, limit=CHUNK
    )
    rest = tuple(
        Target(entry.schedule_id, entry.name)
        for entry in page.entries
        # The filter's texts are alike for ("a", "b:c") and ("a:b", "c").
        if walk.tags.items() <= entry.tags.items()
        and entry.state is not ScheduleState.CANCELED
    )
    return rest, page.after


def _letters(
    shop: Workshop, job: Job, walk: Walk
) -> tuple[tuple[Target, ...], str | None]:
    """Return dead letters that are wanted, and what leads to more of them."""
    wanted = walk.letters
    if wanted is None:
        raise ValueError(f"{job.job_id} replays nothing")
    page, after = shop.bench.workplace.ledger.letters(
        job.tenant_id,
        schedule_id=wanted.schedule_id,
        after=walk.after,
        limit=CHUNK,
        since=wanted.since,
        until=wanted.until,
    )
    return tuple(Target(each.schedule_id, letter=each) for each in page), after


def _caller(directory: Directory, job: Job) -> Caller | str:
    """Return the creator as a caller of today, or the code of why it is none.

    The platform may act for a suspended tenant, whose schedules go on, too.
    """
    tenant = directory.find_tenant(job.tenant_id)
    if tenant is None:
        return TENANT_REMOVED
    if job.operation.is_platforms:
        return Caller(tenant, job.creator.principal, job.creator.arn, job.source)
    if tenant.state is TenantState.SUSPENDED:
        return TENANT_SUSPENDED
    registered = directory.tenant_of(job.creator.principal)
    if registered is None or registered.tenant_id != job.tenant_id:
        return PRINCIPAL_REMOVED
    return Caller(tenant, job.creator.principal, job.creator.arn, job.source)
