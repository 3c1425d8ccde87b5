"""Do one item of a job, or say what would become of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import NewSchedule, ScheduleState
from hourbell.domain.errors import (
    Conflict,
    HourbellError,
    InvalidInput,
    Transient,
)
from hourbell.domain.job import Job, Operation, Outcome, Refusal, Result, Target
from hourbell.domain.policies import CLOCK_SKEW
from hourbell.usecases import change_schedule
from hourbell.usecases.change_schedule import (
    Changed,
    Changes,
    find_current,
    is_so,
    refuse_ended,
)
from hourbell.usecases.create_schedule import (
    Registry,
    create_schedule,
    rehearse_create,
)
from hourbell.usecases.identify import Caller
from hourbell.usecases.job_ports import JobItem
from hourbell.usecases.replan_schedule import foresee_replan, replan_schedule
from hourbell.usecases.replay_letter import replay_letter
from hourbell.usecases.workplace import Workplace

MOST_FINDINGS: Final = 10
"""How much that is wrong with one item is told: results of 25 lie in one record."""

# The API's clock may be as far ahead as the worker's is behind.
_APART: Final = 2 * CLOCK_SKEW

_CHANGES: Final[Mapping[Operation, Callable[..., Changed]]] = {
    Operation.PAUSE: change_schedule.pause,
    Operation.RESUME: change_schedule.resume,
    Operation.CANCEL: change_schedule.cancel,
}
_BECOMES: Final = {
    Operation.PAUSE: ScheduleState.PAUSED,
    Operation.RESUME: ScheduleState.ACTIVE,
    Operation.CANCEL: ScheduleState.CANCELED,
}


@dataclass(frozen=True, slots=True)
class Bench:
    """What doing items needs."""

    registry: Registry
    changes: Changes
    workplace: Workplace


def do_item(
    bench: Bench, caller: Caller, job: Job, index: int, item: JobItem, now: datetime
) -> Result:
    """Do one item; doing it again tells the same.

    Args:
        bench: the ports.
        caller: the job's creator.
        job: as it stands, with the progress before this item.
        index: of the item.
        item: what to create or change.
        now: the current instant.

    Raises:
        Transient: a store did not answer.
        Permanent: a store refused, which is for our own log to tell.
    """
    try:
        if isinstance(item, NewSchedule):
            request = replace(item, idempotency_key=job.key_of(index))
            return _create(bench.registry, caller, job, index, request, now)
        if item.letter is not None:
            return replay_letter(bench.workplace, job, index, item.letter, now)
        if job.operation is Operation.REPLAN:
            return _replan(bench.changes, caller, job, index, item, now)
        if job.dry_run:
            return _foresee(bench.changes, caller, job, index, item)
        return _change(bench.changes, caller, job, index, item, now)
    except HourbellError as error:
        if error.status >= HourbellError.status:
            raise
        return _refused(job, index, item, refusal_of(error))


def refusal_of(error: HourbellError) -> Refusal:
    """Return what an item was refused for.

    A single finding's code is the refusal's own; several are an `invalid_input`, and
    the first MOST_FINDINGS of them are told.
    """
    findings = error.findings if isinstance(error, InvalidInput) else ()
    code = InvalidInput.default_code if len(findings) > 1 else error.code
    told = findings[:MOST_FINDINGS]
    return Refusal(error.status, code, error.message, told, error.members)


def failed_result(job: Job, index: int, item: JobItem, *, answered: bool) -> Result:
    """Return the result of an item that failed for a reason of ours.

    Why is for our own log. Without an answer it may, or may not, have been done.
    """
    kind, message = HourbellError, "Something went wrong on our side."
    if not answered:
        kind, message = Transient, "A dependency did not answer, however often asked."
    return _refused(job, index, item, Refusal(kind.status, kind.default_code, message))


def _create(
    registry: Registry,
    caller: Caller,
    job: Job,
    index: int,
    request: NewSchedule,
    now: datetime,
) -> Result:
    if not job.dry_run:
        schedule = create_schedule(registry, caller, request, now).schedule
        return Result(index, Outcome.CREATED, schedule.schedule_id, request.name)
    rehearsal = rehearse_create(
        registry, caller, request, now, pending=job.progress.changed
    )
    if rehearsal.refusals:
        refusal = refusal_of(InvalidInput(findings=rehearsal.refusals))
        return Result(index, Outcome.WOULD_REFUSE, None, request.name, refusal)
    return Result(index, Outcome.WOULD_CREATE, None, request.name)


def _change(
    changes: Changes,
    caller: Caller,
    job: Job,
    index: int,
    target: Target,
    now: datetime,
) -> Result:
    change, schedule_id = _CHANGES[job.operation], target.schedule_id
    found = find_current(changes, caller.tenant.tenant_id, schedule_id)
    if found.updated_at >= job.created_at - _APART and _did_it(
        changes, job, schedule_id
    ):
        # Others may have changed it back since: doing it again would undo that.
        return Result(index, Outcome.CHANGED, schedule_id, found.name)
    try:
        done = change(changes, caller, schedule_id, now, reason=job.reason)
    except Conflict:
        if not _did_it(changes, job, schedule_id):
            raise
        return Result(index, Outcome.CHANGED, schedule_id, target.name)
    changed = done.changed or _did_it(changes, job, schedule_id)
    outcome = Outcome.CHANGED if changed else Outcome.UNCHANGED
    return Result(index, outcome, schedule_id, done.schedule.name)


def _replan(
    changes: Changes,
    caller: Caller,
    job: Job,
    index: int,
    target: Target,
    now: datetime,
) -> Result:
    do = foresee_replan if job.dry_run else replan_schedule
    done = do(changes, caller, target.schedule_id, now)
    outcomes = (
        (Outcome.WOULD_NOT_CHANGE, Outcome.WOULD_CHANGE)
        if job.dry_run
        else (Outcome.UNCHANGED, Outcome.CHANGED)
    )
    outcome, name = outcomes[bool(done.shifts)], done.schedule.name
    return Result(index, outcome, target.schedule_id, name, shifts=done.shifts)


def _did_it(changes: Changes, job: Job, schedule_id: str) -> bool:
    """Whether this job had made the change before, and could not write it down.

    Others may have changed, or ended, the schedule since. A job of the same key that
    is no longer kept had the same id.
    """
    since = job.created_at - _APART
    log = changes.plane.schedules.version_log(schedule_id)
    return any(
        version.source == job.source and version.created_at >= since for version in log
    )


def _foresee(
    changes: Changes, caller: Caller, job: Job, index: int, target: Target
) -> Result:
    """Say what a change of state would do, judged from the schedule as it is."""
    schedule = find_current(changes, caller.tenant.tenant_id, target.schedule_id)
    if is_so(schedule, _BECOMES[job.operation]):
        outcome = Outcome.WOULD_NOT_CHANGE
    else:
        refuse_ended(schedule)
        outcome = Outcome.WOULD_CHANGE
    return Result(index, outcome, target.schedule_id, schedule.name)


def _refused(job: Job, index: int, item: JobItem, refusal: Refusal) -> Result:
    outcome = Outcome.WOULD_REFUSE if job.dry_run else Outcome.REFUSED
    if not isinstance(item, Target):
        return Result(index, outcome, None, item.name, refusal)
    name = None if item.letter is None else item.letter.occurrence_id
    return Result(
        index, outcome, item.schedule_id, item.name, refusal, occurrence_id=name
    )
