"""The misfire policy of a schedule, as callers write and read it."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from hourbell.api.documents import Answer, WholeBody, carried, one_of
from hourbell.domain.errors import Finding
from hourbell.domain.misfire import MAX_CATCH_UP, Misfire, MisfirePolicy
from hourbell.domain.policies import MISFIRE_THRESHOLD
from hourbell.domain.retention import RETENTION

THRESHOLD_SECONDS: Final = int(MISFIRE_THRESHOLD.total_seconds())
MIN_LATENESS_SECONDS: Final = THRESHOLD_SECONDS + 1
MAX_LATENESS_SECONDS: Final = int(RETENTION.total_seconds())


def _lateness(seconds: int) -> int:
    if MIN_LATENESS_SECONDS <= seconds <= MAX_LATENESS_SECONDS:
        return seconds
    message = (
        f"Allowed are {MIN_LATENESS_SECONDS} to {MAX_LATENESS_SECONDS} s: more than "
        f"the misfire threshold of {THRESHOLD_SECONDS} s, up to which nothing is late."
    )
    raise carried(Finding("", "out_of_range", message))


class MisfireFields(WholeBody):
    """What becomes of times that are reached too late."""

    policy: Annotated[
        Literal["SKIP", "FIRE_ONCE", "CATCH_UP"],
        Field(description="None of them runs, the latest one, the latest `limit`."),
    ] = "FIRE_ONCE"
    limit: Annotated[
        Annotated[int, Field(ge=1, le=MAX_CATCH_UP)] | None,
        Field(description="How many run; CATCH_UP needs it, no other policy has it."),
    ] = None
    max_lateness_seconds: Annotated[
        Annotated[
            int,
            Field(
                json_schema_extra={
                    "minimum": MIN_LATENESS_SECONDS,
                    "maximum": MAX_LATENESS_SECONDS,
                }
            ),
            AfterValidator(_lateness),
        ]
        | None,
        Field(description="What is later than this never runs; null for no bound."),
    ] = None

    @model_validator(mode="after")
    def _check_limit(self) -> Self:
        catches_up = self.policy == MisfirePolicy.CATCH_UP
        if catches_up and self.limit is None:
            message = f"CATCH_UP needs its limit, 1 to {MAX_CATCH_UP}: how many run."
            raise carried(Finding("misfire.limit", "missing", message, "null"))
        if not catches_up and self.limit is not None:
            message = f"{self.policy} has no limit; leave it out, or null."
            found = str(self.limit)
            raise carried(Finding("misfire.limit", "unexpected", message, found))
        return self

    def to_domain(self) -> Misfire:
        """Return the policy."""
        policy = MisfirePolicy(self.policy)
        return Misfire(policy, self.limit, self.max_lateness_seconds)


class MisfireAnswer(Answer):
    """What becomes of times that are reached too late."""

    policy: Annotated[str, one_of(MisfirePolicy)]
    limit: int | None
    max_lateness_seconds: int | None


def misfire_answer(misfire: Misfire) -> MisfireAnswer:
    """Return a policy with all its members."""
    return MisfireAnswer(
        policy=misfire.policy,
        limit=misfire.limit,
        max_lateness_seconds=misfire.max_lateness_seconds,
    )


def misfire_members(misfire: Misfire) -> dict[str, Any]:
    """Return a policy as a body has it; what is not set is left out."""
    members = misfire_answer(misfire).model_dump()
    return {name: value for name, value in members.items() if value is not None}
