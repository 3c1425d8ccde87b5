"""What workers send, and what they are answered."""

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Final, Literal, Self, TypeVar

from pydantic import AfterValidator, Field, model_validator

from hourbell.api.documents import (
    Answer,
    Instant,
    WholeBody,
    carried,
    judged,
    one_of,
)
from hourbell.domain.errors import Finding
from hourbell.domain.instants import format_instant
from hourbell.domain.occurrence import State, parse_occurrence_id
from hourbell.domain.retry import MAX_FAILURE_TEXT, ErrorClass, Failure
from hourbell.usecases.work_values import (
    MAX_ITEMS,
    MAX_LEASE_SECONDS,
    MIN_LEASE_SECONDS,
    USUAL_LEASE_SECONDS,
    Beat,
    Claimed,
    ClaimFault,
    ClaimOrder,
    Failed,
    Finished,
    Held,
    Outcome,
    SkipReason,
    WaitReason,
)
from hourbell.usecases.work_values import Answer as ClaimAnswer

MAX_WORKER: Final = 128
MAX_KIND: Final = 128
# More than anything is ever sent.
MAX_SEND: Final = 2**31 - 1
MAX_RETRY_AFTER_SECONDS: Final = 86_400
LEASE_FORM: Final = "^[A-Za-z0-9_-]+$"
OCCURRENCE_ID: Final = (
    r"^sch[0-9a-z]{26}\.v[1-9][0-9]{0,9}\.[0-9]{8}T[0-9]{6}Z(\.r[0-9a-f]{16})?$"
)

# What became of what a worker said, as the status of a request about it alone.
_STATUSES: Final = {
    Outcome.OK: HTTPStatus.OK,
    Outcome.NOT_FOUND: HTTPStatus.NOT_FOUND,
    Outcome.LEASE_LOST: HTTPStatus.CONFLICT,
    Outcome.UNAVAILABLE: HTTPStatus.SERVICE_UNAVAILABLE,
}

T = TypeVar("T", bound="ClaimItem | HeldItem")


def _token(value: str) -> str:
    if re.fullmatch(LEASE_FORM, value, re.ASCII):
        return value
    message = "Allowed are letters, digits, - and _ (ASCII)."
    raise carried(Finding("", "invalid_characters", message))


def _once(items: list[T]) -> list[T]:
    """Refuse occurrences that are named twice."""
    names = [each.occurrence_id for each in items]
    findings = tuple(_repeated(names))
    if findings:
        raise carried(*findings)
    return items


def _repeated(names: Sequence[str]) -> Iterator[Finding]:
    seen: set[str] = set()
    for index, name in enumerate(names):
        if name in seen:
            message = "It is named before; each occurrence may be named once."
            place = f"items.{index}.occurrence_id"
            yield Finding(place, "repeated_value", message, name[:80])
        seen.add(name)


OccurrenceId = Annotated[
    str,
    Field(json_schema_extra={"pattern": OCCURRENCE_ID}),
    judged(parse_occurrence_id),
]
LeaseToken = Annotated[
    str,
    Field(min_length=16, max_length=64, json_schema_extra={"pattern": LEASE_FORM}),
    AfterValidator(_token),
]
LeaseSeconds = Annotated[
    int,
    Field(
        ge=MIN_LEASE_SECONDS,
        le=MAX_LEASE_SECONDS,
        description="How long until the worker must be heard of.",
    ),
]


class ClaimItem(WholeBody):
    """An occurrence that a worker has a message of."""

    occurrence_id: OccurrenceId
    lease_token: Annotated[
        LeaseToken | None,
        Field(
            description="Drawn at random by the worker, so that it may repeat a claim "
            "whose answer was lost; null to be given one."
        ),
    ] = None
    send: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_SEND,
            description="The message's `data.send`. An old message that comes early is "
            "then known as one, and brings no new one; null if unknown.",
            examples=[1],
        ),
    ] = None


class HeldItem(WholeBody):
    """An occurrence that a worker has."""

    occurrence_id: OccurrenceId
    lease_token: LeaseToken

    @property
    def held(self) -> Held:
        """What the use cases take."""
        return Held(self.occurrence_id, self.lease_token)


class ErrorFields(WholeBody):
    """Why an attempt failed."""

    class_: Annotated[
        Literal["RETRYABLE", "PERMANENT", "THROTTLED"],
        Field(
            alias="class",
            description="It may pass; no attempt would succeed; the target is busy.",
        ),
    ]
    type: Annotated[
        str,
        Field(max_length=MAX_KIND, description="Such as the name of an exception."),
    ] = ""
    message: Annotated[str, Field(max_length=MAX_FAILURE_TEXT)] = ""
    retry_after_seconds: Annotated[
        Annotated[int, Field(ge=0, le=MAX_RETRY_AFTER_SECONDS)] | None,
        Field(description="Of THROTTLED: how long the target is to be left alone."),
    ] = None

    @model_validator(mode="after")
    def _check_retry_after(self) -> Self:
        if self.retry_after_seconds is not None and self.class_ != ErrorClass.THROTTLED:
            message = f"{self.class_} has no retry_after_seconds; THROTTLED has."
            place = "error.retry_after_seconds"
            found = str(self.retry_after_seconds)
            raise carried(Finding(place, "unexpected", message, found))
        return self

    def to_domain(self) -> Failure:
        """Return the failure."""
        return Failure(
            ErrorClass(self.class_), self.type, self.message, self.retry_after_seconds
        )


class FailedItem(HeldItem):
    """An attempt that failed."""

    error: ErrorFields


Items = Annotated[
    list[T], Field(min_length=1, max_length=MAX_ITEMS), AfterValidator(_once)
]


class ClaimWork(WholeBody):
    """The body of POST /v1/occurrences/claim."""

    worker: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_WORKER,
            description="What it calls itself, such as host and process.",
            examples=["host-1:4711"],
        ),
    ]
    lease_seconds: LeaseSeconds = USUAL_LEASE_SECONDS
    items: Items[ClaimItem]

    @property
    def orders(self) -> list[ClaimOrder]:
        """What is claimed."""
        return [
            ClaimOrder(each.occurrence_id, each.lease_token, each.send)
            for each in self.items
        ]


class ExtendLeases(WholeBody):
    """The body of POST /v1/occurrences/heartbeat."""

    lease_seconds: LeaseSeconds = USUAL_LEASE_SECONDS
    items: Items[HeldItem]


class CompleteWork(WholeBody):
    """The body of POST /v1/occurrences/complete."""

    items: Items[HeldItem]


class FailWork(WholeBody):
    """The body of POST /v1/occurrences/fail."""

    items: Items[FailedItem]

    @property
    def failed(self) -> list[Failed]:
        """What failed."""
        return [
            Failed(each.occurrence_id, each.lease_token, each.error.to_domain())
            for each in self.items
        ]


Code = Annotated[
    Literal["not_found", "lease_lost", "unavailable"] | None,
    Field(description="Null with 200."),
]


class ClaimedAnswer(Answer):
    """What became of a claim, and of the message with it.

    RUN: do the work, then delete the message. SKIP, BUSY, WAIT: delete it. ERROR, and
    SKIP for EXPIRED without a `state`: leave it. `lease_token`, `lease_expires_at` and
    `attempt` are of RUN, `state` of the others, where there is a row.
    """

    occurrence_id: str
    answer: Annotated[str, one_of(ClaimAnswer)]
    reason: Annotated[str, one_of(SkipReason, WaitReason, ClaimFault)] | None
    lease_token: str | None
    lease_expires_at: Instant | None
    attempt: int | None
    state: Annotated[str, one_of(State)] | None


class ClaimAnswers(Answer):
    """A result for each item, in their order."""

    results: list[ClaimedAnswer]


class BeatAnswer(Answer):
    """What became of a lease; with `cancel_requested` the worker should stop."""

    occurrence_id: str
    status: int
    code: Code
    lease_expires_at: Instant | None
    cancel_requested: bool


class BeatAnswers(Answer):
    """A result for each item, in their order."""

    results: list[BeatAnswer]


class CompletedAnswer(Answer):
    """What became of an occurrence that was completed."""

    occurrence_id: str
    status: int
    code: Code
    state: Annotated[str, one_of(State)] | None


class CompleteAnswers(Answer):
    """A result for each item, in their order."""

    results: list[CompletedAnswer]


class FailedAnswer(CompletedAnswer):
    """What follows a failed attempt.

    `available_at` is of RETRY_WAIT: when the occurrence comes again; `reason` of DEAD
    and CANCELED.
    """

    available_at: Instant | None
    reason: str | None


class FailAnswers(Answer):
    """A result for each item, in their order."""

    results: list[FailedAnswer]


def claim_answers(claimed: Sequence[Claimed]) -> ClaimAnswers:
    """Return the answer to a claim."""
    results = [
        ClaimedAnswer(
            occurrence_id=each.occurrence_id,
            answer=each.answer,
            reason=each.reason,
            lease_token=each.lease_token,
            lease_expires_at=_utc(each.lease_expires_at),
            attempt=each.attempt,
            state=each.state,
        )
        for each in claimed
    ]
    return ClaimAnswers(results=results)


def beat_answers(beats: Sequence[Beat]) -> BeatAnswers:
    """Return the answer to a heartbeat."""
    results = [
        BeatAnswer(
            occurrence_id=each.occurrence_id,
            status=_STATUSES[each.outcome],
            code=_code(each.outcome),
            lease_expires_at=_utc(each.lease_expires_at),
            cancel_requested=each.cancel_requested,
        )
        for each in beats
    ]
    return BeatAnswers(results=results)


def complete_answers(finished: Sequence[Finished]) -> CompleteAnswers:
    """Return the answer to a complete."""
    results = [
        CompletedAnswer(
            occurrence_id=each.occurrence_id,
            status=_STATUSES[each.outcome],
            code=_code(each.outcome),
            state=each.state,
        )
        for each in finished
    ]
    return CompleteAnswers(results=results)


def fail_answers(finished: Sequence[Finished]) -> FailAnswers:
    """Return the answer to a fail."""
    results = [
        FailedAnswer(
            occurrence_id=each.occurrence_id,
            status=_STATUSES[each.outcome],
            code=_code(each.outcome),
            state=each.state,
            available_at=_utc(each.available_at),
            reason=each.reason,
        )
        for each in finished
    ]
    return FailAnswers(results=results)


def _code(outcome: Outcome) -> Code:
    match outcome:
        case Outcome.NOT_FOUND:
            return "not_found"
        case Outcome.LEASE_LOST:
            return "lease_lost"
        case Outcome.UNAVAILABLE:
            return "unavailable"
    return None


def _utc(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
