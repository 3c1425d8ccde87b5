"""The retry policy of a schedule, as callers write and read it."""

from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hourbell.api.documents import Answer, WholeBody, carried, one_of
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.retry import (
    MAX_ATTEMPTS,
    MAX_BACKOFF_SECONDS,
    MAX_DEADLINE_SECONDS,
    MIN_DEADLINE_SECONDS,
    RETRYABLE_CLASSES,
    USUAL_RETRY,
    ErrorClass,
    Retry,
)

Retried = Literal["RETRYABLE", "THROTTLED", "LEASE_EXPIRED"]
_CLASSES: Final[list[Retried]] = ["RETRYABLE", "THROTTLED", "LEASE_EXPIRED"]


def _each_once(classes: list[Any]) -> list[Any]:
    for index, name in enumerate(classes):
        if name in classes[:index]:
            message = "It stands in the list before; each may be there once."
            raise carried(Finding("", "repeated_value", message, name))
    return classes


class RetryFields(WholeBody):
    """What follows when an attempt fails; only a TRACKED schedule has it."""

    null_says: ClassVar[frozenset[str]] = frozenset({"deadline_seconds"})

    max_attempts: Annotated[
        int,
        Field(ge=1, le=MAX_ATTEMPTS, description="How many attempts there are in all."),
    ] = USUAL_RETRY.max_attempts
    base_seconds: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_BACKOFF_SECONDS,
            description="The longest wait after the first; it doubles each time.",
        ),
    ] = USUAL_RETRY.base_seconds
    cap_seconds: Annotated[
        int,
        Field(
            ge=1,
            le=MAX_BACKOFF_SECONDS,
            description="The longest wait at all; `base_seconds` or more.",
        ),
    ] = USUAL_RETRY.cap_seconds
    deadline_seconds: Annotated[
        Annotated[int, Field(ge=MIN_DEADLINE_SECONDS, le=MAX_DEADLINE_SECONDS)] | None,
        Field(
            description="How long after the first attempt began another one may "
            "begin; null for any time."
        ),
    ] = USUAL_RETRY.deadline_seconds
    retryable: Annotated[
        list[Retried],
        Field(
            max_length=len(_CLASSES),
            description="Failures of which classes are worth another attempt.",
            json_schema_extra={"uniqueItems": True},
        ),
        AfterValidator(_each_once),
    ] = Field(default=_CLASSES)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        try:
            self.to_domain()
        except InvalidInput as error:
            raise carried(*error.findings) from error
        return self

    def to_domain(self) -> Retry:
        """Return the policy.

        Raises:
            InvalidInput: the cap is below the base.
        """
        return Retry(
            self.max_attempts,
            self.base_seconds,
            self.cap_seconds,
            self.deadline_seconds,
            # In one order, so that equal policies are equal.
            tuple(each for each in RETRYABLE_CLASSES if each in self.retryable),
        )


class RetryAnswer(Answer):
    """What follows when an attempt fails."""

    max_attempts: int
    base_seconds: int
    cap_seconds: int
    deadline_seconds: int | None
    retryable: list[Annotated[str, one_of(ErrorClass)]]


def retry_answer(retry: Retry) -> RetryAnswer:
    """Return a policy with all its members."""
    return RetryAnswer(
        max_attempts=retry.max_attempts,
        base_seconds=retry.base_seconds,
        cap_seconds=retry.cap_seconds,
        deadline_seconds=retry.deadline_seconds,
        retryable=list(retry.retryable),
    )


def retry_members(retry: Retry) -> dict[str, Any]:
    """Return a policy as a body has it."""
    return retry_answer(retry).model_dump()
