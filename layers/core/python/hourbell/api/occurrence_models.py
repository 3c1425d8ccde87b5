"""What single occurrences are answered as, with their attempts."""

from collections.abc import Iterator
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from hourbell.api.documents import Answer, Instant, WholeBody, one_of
from hourbell.api.paging import fitting
from hourbell.api.requests import MAX_REASON
from hourbell.domain.instants import format_instant
from hourbell.domain.occurrence import TERMINAL, Lane, Occurrence, State
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.domain.work import Attempt, AttemptResult
from hourbell.usecases.work_values import Told


class GiveCancelReason(WholeBody):
    """The body of POST /v1/occurrences/{occurrence_id}/cancel."""

    reason: Annotated[
        str | None, Field(max_length=MAX_REASON, description="For our logs.")
    ] = None


class Current(StrEnum):
    """The result of an attempt that has none yet."""

    RUNNING = "RUNNING"


class FailureAnswer(Answer):
    """Why an attempt ended badly; LEASE_EXPIRED: its worker was not heard of."""

    class_: Annotated[
        Annotated[str, one_of(ErrorClass)], Field(serialization_alias="class")
    ]
    type: str
    message: str
    retry_after_seconds: int | None


class AttemptAnswer(Answer):
    """An attempt; `number` counts over all replays.

    `lease_expires_at` is of the current one; `finished_at` is null before its end, and
    where it is not kept.
    """

    number: int
    worker: str
    started_at: Instant | None
    finished_at: Instant | None
    lease_expires_at: Instant | None
    result: Annotated[str, one_of(Current, AttemptResult)]
    failure: FailureAnswer | None


class OccurrenceStateAnswer(Answer):
    """An occurrence as it stands.

    `attempt` is the number of its attempts since it was last replayed; `failure` why
    the last one ended badly that did; `reason` why it is over. Its row is kept until
    `expires_at`.
    """

    occurrence_id: str
    schedule_id: str
    version: int
    scheduled_for: Instant
    state: Annotated[str, one_of(State)]
    lane: Annotated[str, one_of(Lane)] | None
    queue: str | None
    available_at: Instant | None
    scheduled_at: Instant | None
    enqueued_at: Instant | None
    visible_at: Instant | None
    begun_at: Instant | None
    finished_at: Instant | None
    expires_at: Instant | None
    misfire: bool
    sends: int
    attempt: int
    failure: FailureAnswer | None
    reason: str | None
    cancel_requested: bool
    cancel_requested_at: Instant | None
    replayed_at: Instant | None


class OccurrenceToldAnswer(OccurrenceStateAnswer):
    """An occurrence with its attempts, the oldest first."""

    attempts: list[AttemptAnswer]


def state_answer(row: Occurrence) -> OccurrenceStateAnswer:
    """Describe an occurrence."""
    return OccurrenceStateAnswer(
        occurrence_id=row.occurrence_id,
        schedule_id=row.schedule_id,
        version=row.version,
        scheduled_for=format_instant(row.scheduled_for),
        state=row.state,
        lane=row.lane,
        queue=row.queue,
        available_at=_utc(row.available_at),
        scheduled_at=_utc(row.scheduled_at),
        enqueued_at=_utc(row.enqueued_at),
        visible_at=_utc(row.visible_at),
        begun_at=_utc(row.begun_at),
        finished_at=_utc(row.finished_at),
        expires_at=_utc(row.expires_at),
        misfire=row.misfire,
        sends=row.sends,
        attempt=row.attempts,
        failure=_failure(row.failure),
        reason=row.reason,
        cancel_requested=row.cancel_requested_at is not None,
        cancel_requested_at=_utc(row.cancel_requested_at),
        replayed_at=_utc(row.replayed_at),
    )


def told_answer(told: Told) -> OccurrenceToldAnswer:
    """Describe an occurrence with its attempts: the latest that there is room for."""
    latest = fitting(reversed(list(_attempts(told))))
    return OccurrenceToldAnswer(**dict(state_answer(told.row)), attempts=latest[::-1])


def _attempts(told: Told) -> Iterator[AttemptAnswer]:
    """Yield the attempts that are kept, and the one that stands on the row."""
    row, last = told.row, None
    for each in told.earlier:
        if each.number < row.attempt:
            yield _ended(each)
        else:
            last = each
    if last is not None and row.state is not State.RUNNING:
        yield _ended(last)
    elif row.attempt:
        yield _latest(row)


def _ended(attempt: Attempt) -> AttemptAnswer:
    return AttemptAnswer(
        number=attempt.number,
        worker=attempt.worker,
        started_at=format_instant(attempt.started_at),
        finished_at=format_instant(attempt.finished_at),
        lease_expires_at=None,
        result=attempt.result,
        failure=_failure(attempt.failure),
    )


def _latest(row: Occurrence) -> AttemptAnswer:
    is_current = row.state is State.RUNNING
    is_last = row.state in TERMINAL
    has_failed = row.state not in {State.RUNNING, State.SUCCEEDED}
    return AttemptAnswer(
        number=row.attempt,
        worker=row.worker or "",
        started_at=_utc(row.started_at),
        finished_at=_utc(row.finished_at) if is_last else None,
        lease_expires_at=_utc(row.lease_expires_at) if is_current else None,
        result=_result(row),
        failure=_failure(row.failure) if has_failed else None,
    )


def _result(row: Occurrence) -> str:
    if row.state in _STANDS:
        return _STANDS[row.state]
    failure = row.failure
    expired = failure is not None and failure.error_class is ErrorClass.LEASE_EXPIRED
    return AttemptResult.LEASE_EXPIRED if expired else AttemptResult.FAILED


# What a row's state says of the attempt that stands on it.
_STANDS: Final[dict[State, str]] = {
    State.RUNNING: Current.RUNNING,
    State.SUCCEEDED: AttemptResult.SUCCEEDED,
    State.CANCELED: AttemptResult.STOPPED,
}


def _failure(failure: Failure | None) -> FailureAnswer | None:
    if failure is None:
        return None
    return FailureAnswer(
        class_=failure.error_class,
        type=failure.kind,
        message=failure.message,
        retry_after_seconds=failure.retry_after_seconds,
    )


def _utc(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
