"""Replay what a dead letter tells of: an item of a job."""

from datetime import datetime

from hourbell.domain.errors import Transient
from hourbell.domain.job import Job, Outcome, Result
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.work import DeadLetter
from hourbell.usecases.occurrences import replayed
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed
from hourbell.usecases.workplace import MAX_ROUNDS, Workplace


def replay_letter(
    place: Workplace, job: Job, index: int, letter: DeadLetter, now: datetime
) -> Result:
    """Replay an occurrence that is still dead by this death; again tells the same.

    It may be received when the job's pace has come to it. A letter whose occurrence
    is not dead any more, or dead anew, is forgotten: it was left by somebody who was
    interrupted, or is out of date.

    Args:
        place: the ports.
        job: as it stands, with the progress before this item.
        index: of the item.
        letter: of the job's tenant.
        now: the current instant.

    Raises:
        NotFound: its tenant or its handler is gone.
        Transient: the store did not answer, or others were first each time.
    """
    name = letter.occurrence_id
    for _ in range(MAX_ROUNDS):
        row = place.find(letter.tenant_id, [name]).get(name)
        if row is None or not _is_dead_by(row, letter):
            return _past(place, job, index, letter, row, now)
        if job.dry_run:
            return _result(index, Outcome.WOULD_CHANGE, letter)
        at = _next_at(job, now)
        if replayed(place, row, at, now) is not None:
            return _result(index, Outcome.CHANGED, letter, at)
    raise Transient(f"{name} is contended")


def _next_at(job: Job, now: datetime) -> datetime:
    """Return when the next occurrence may be received, by the job's pace."""
    return max(now, (job.walk and job.walk.next_at) or now)


def _is_dead_by(row: Occurrence, letter: DeadLetter) -> bool:
    return row.state is State.DEAD and row.finished_at == letter.died_at


def _past(
    place: Workplace,
    job: Job,
    index: int,
    letter: DeadLetter,
    row: Occurrence | None,
    now: datetime,
) -> Result:
    """Tell of a letter that is out of date, and forget it.

    What was replayed since the job was made, it has replayed itself and could not
    write down; or somebody else was first, which comes to the same. What it waits for
    by now, such as a retry, is not for the next occurrence to wait for.
    """
    if job.dry_run:
        return _result(index, Outcome.WOULD_NOT_CHANGE, letter)
    if place.ledger.do(Deed((), forgets=(letter,))) is not Write.APPLIED:
        raise Transient(f"the letter of {letter.occurrence_id} is not forgotten")
    if row is None or row.replayed_at is None or row.replayed_at < job.created_at:
        return _result(index, Outcome.UNCHANGED, letter)
    at = _next_at(job, now)
    return _result(index, Outcome.CHANGED, letter, min(row.available_at or at, at))


def _result(
    index: int,
    outcome: Outcome,
    letter: DeadLetter,
    available_at: datetime | None = None,
) -> Result:
    return Result(
        index,
        outcome,
        letter.schedule_id,
        occurrence_id=letter.occurrence_id,
        available_at=available_at,
    )
