"""What follows when an attempt fails: another one, later, or the end."""

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from hourbell.domain.errors import Finding, InvalidInput

MAX_ATTEMPTS = 100
MAX_BACKOFF_SECONDS = 86_400
MIN_DEADLINE_SECONDS = 60
MAX_DEADLINE_SECONDS = 14 * 86_400
MAX_FAILURE_TEXT = 1_024


class ErrorClass(StrEnum):
    """What kind of failure ended an attempt.

    RETRYABLE: it may pass by itself. PERMANENT: no further attempt would succeed.
    THROTTLED: the target asks for patience, and may say for how long. LEASE_EXPIRED:
    the worker was not heard of until its lease ran out; no worker says it of itself.
    """

    RETRYABLE = "RETRYABLE"
    PERMANENT = "PERMANENT"
    THROTTLED = "THROTTLED"
    LEASE_EXPIRED = "LEASE_EXPIRED"


# What a policy may name as worth another attempt.
RETRYABLE_CLASSES = (
    ErrorClass.RETRYABLE,
    ErrorClass.THROTTLED,
    ErrorClass.LEASE_EXPIRED,
)


class DeadReason(StrEnum):
    """Why an occurrence is DEAD."""

    # The queue refuses its message for good.
    SEND_REFUSED = "SEND_REFUSED"
    PERMANENT_ERROR = "PERMANENT_ERROR"
    # Its policy does not retry failures of this class.
    NOT_RETRYABLE = "NOT_RETRYABLE"
    ATTEMPTS_USED_UP = "ATTEMPTS_USED_UP"
    DEADLINE_PASSED = "DEADLINE_PASSED"
    # The tenant's retries are used up for as long as the deadline allows.
    RETRY_BUDGET_USED_UP = "RETRY_BUDGET_USED_UP"
    # Nobody claimed it: its message was received too often, or is there no more.
    NEVER_CLAIMED = "NEVER_CLAIMED"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt ended badly.

    Attributes:
        kind: what the worker calls it, such as an exception's name.
        message: in the worker's words.
        retry_after_seconds: how long the target asks to be left alone.
    """

    error_class: ErrorClass
    kind: str = ""
    message: str = ""
    retry_after_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """A retry policy.

    Attributes:
        max_attempts: how many attempts an occurrence has in all.
        base_seconds: the longest wait after the first attempt; it doubles each time.
        cap_seconds: the longest wait at all.
        deadline_seconds: how long after its first attempt began another one may
            begin; None for any time.
        retryable: failures of which classes are worth another attempt.
    """

    max_attempts: int = 5
    base_seconds: int = 10
    cap_seconds: int = 900
    deadline_seconds: int | None = 86_400
    retryable: tuple[ErrorClass, ...] = RETRYABLE_CLASSES

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            InvalidInput: with a finding for each member out of bounds.
        """
        findings = [
            Finding(f"retry.{name}", "out_of_range", message, str(value))
            for name, value, least, most in (
                ("max_attempts", self.max_attempts, 1, MAX_ATTEMPTS),
                ("base_seconds", self.base_seconds, 1, MAX_BACKOFF_SECONDS),
                (
                    *("cap_seconds", self.cap_seconds),
                    *(self.base_seconds, MAX_BACKOFF_SECONDS),
                ),
                (
                    "deadline_seconds",
                    self.deadline_seconds,
                    MIN_DEADLINE_SECONDS,
                    MAX_DEADLINE_SECONDS,
                ),
            )
            if value is not None and not least <= value <= most
            for message in [f"Allowed is {least} to {most}."]
        ]
        if findings:
            raise InvalidInput(findings=tuple(findings))

    def deadline(self, begun_at: datetime | None) -> datetime | None:
        """Return until when another attempt may begin; None for any time."""
        if begun_at is None or self.deadline_seconds is None:
            return None
        return begun_at + timedelta(seconds=self.deadline_seconds)


USUAL_RETRY = Retry()


def backoff_seconds(
    policy: Retry, occurrence_id: str, attempt: int, attempts: int
) -> int:
    """Return how long to wait after an attempt: full jitter, the same every time.

    A whole number of seconds from 1 to min(cap, base * 2^(attempts - 1)), drawn from
    the occurrence and the attempt, so that whoever decides again decides the same.

    Args:
        policy: base and cap.
        occurrence_id: whose attempt.
        attempt: its number over all replays.
        attempts: its number since the last replay, from 1.
    """
    doublings = min(max(attempts - 1, 0), 17)
    longest = min(policy.cap_seconds, policy.base_seconds << doublings)
    digest = hashlib.sha256(f"{occurrence_id}#{attempt}".encode()).digest()
    return 1 + int.from_bytes(digest[:8]) % longest


@dataclass(frozen=True, slots=True)
class Verdict:
    """What follows a failed attempt.

    Attributes:
        retry_at: when the next one may begin; None when there is none.
        reason: why there is none.
    """

    retry_at: datetime | None
    reason: DeadReason | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """An attempt that failed.

    Attributes:
        attempt: its number over all replays.
        attempts: its number since the last replay, from 1.
        begun_at: when the first attempt since the last replay began.
    """

    occurrence_id: str
    attempt: int
    attempts: int
    begun_at: datetime | None


def verdict(policy: Retry, tried: Tried, failure: Failure, now: datetime) -> Verdict:
    """Decide what follows a failed attempt, but for the tenant's retry budget."""
    if failure.error_class is ErrorClass.PERMANENT:
        return Verdict(None, DeadReason.PERMANENT_ERROR)
    if failure.error_class not in policy.retryable:
        return Verdict(None, DeadReason.NOT_RETRYABLE)
    if tried.attempts >= policy.max_attempts:
        return Verdict(None, DeadReason.ATTEMPTS_USED_UP)
    seconds = backoff_seconds(
        policy, tried.occurrence_id, tried.attempt, tried.attempts
    )
    if failure.error_class is ErrorClass.THROTTLED:
        seconds = max(seconds, failure.retry_after_seconds or 0)
    retry_at = now + timedelta(seconds=seconds)
    deadline = policy.deadline(tried.begun_at)
    if deadline is not None and retry_at > deadline:
        return Verdict(None, DeadReason.DEADLINE_PASSED)
    return Verdict(retry_at)
