"""What follows a failed attempt: per class, attempts and deadline."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.domain.retry import (
    DeadReason,
    ErrorClass,
    Failure,
    Retry,
    Tried,
    backoff_seconds,
    verdict,
)

NOW = datetime(2026, 3, 9, 6, 30, tzinfo=UTC)
NAME = "sch0123456789abcdefghjkmnpqrs.v1.20260309T063000Z"
SECOND = timedelta(seconds=1)
POLICY = Retry(max_attempts=3, base_seconds=10, cap_seconds=60, deadline_seconds=600)


def tried(attempts: int = 1, begun: timedelta = timedelta(0)) -> Tried:
    return Tried(NAME, attempts + 7, attempts, NOW - begun)


TABLE = [
    # class, attempts so far, begun so long ago, what follows
    (ErrorClass.RETRYABLE, 1, 0, None),
    (ErrorClass.RETRYABLE, 2, 0, None),
    (ErrorClass.RETRYABLE, 3, 0, DeadReason.ATTEMPTS_USED_UP),
    (ErrorClass.RETRYABLE, 1, 600, DeadReason.DEADLINE_PASSED),
    (ErrorClass.RETRYABLE, 3, 600, DeadReason.ATTEMPTS_USED_UP),
    (ErrorClass.THROTTLED, 1, 0, None),
    (ErrorClass.THROTTLED, 3, 0, DeadReason.ATTEMPTS_USED_UP),
    (ErrorClass.THROTTLED, 1, 600, DeadReason.DEADLINE_PASSED),
    (ErrorClass.LEASE_EXPIRED, 1, 0, None),
    (ErrorClass.LEASE_EXPIRED, 3, 0, DeadReason.ATTEMPTS_USED_UP),
    (ErrorClass.LEASE_EXPIRED, 1, 600, DeadReason.DEADLINE_PASSED),
    (ErrorClass.PERMANENT, 1, 0, DeadReason.PERMANENT_ERROR),
    (ErrorClass.PERMANENT, 3, 0, DeadReason.PERMANENT_ERROR),
    (ErrorClass.PERMANENT, 1, 600, DeadReason.PERMANENT_ERROR),
]


@pytest.mark.parametrize(("error_class", "attempts", "age", "reason"), TABLE)
def test_what_follows_a_failure(
    error_class: ErrorClass, attempts: int, age: int, reason: DeadReason | None
) -> None:
    failure = Failure(error_class)

    found = verdict(POLICY, tried(attempts, age * SECOND), failure, NOW)

    assert found.reason is reason
    assert (found.retry_at is None) == (reason is not None)


def test_a_class_that_the_policy_does_not_name_is_not_retried() -> None:
    policy = Retry(retryable=(ErrorClass.THROTTLED,))

    found = verdict(policy, tried(), Failure(ErrorClass.RETRYABLE), NOW)

    assert found.reason is DeadReason.NOT_RETRYABLE


def test_a_throttling_target_is_left_alone_as_long_as_it_asks() -> None:
    failure = Failure(ErrorClass.THROTTLED, retry_after_seconds=500)

    assert verdict(POLICY, tried(), failure, NOW).retry_at == NOW + 500 * SECOND


def test_a_delay_that_leads_beyond_the_deadline_is_the_end() -> None:
    failure = Failure(ErrorClass.THROTTLED, retry_after_seconds=601)

    found = verdict(POLICY, tried(), failure, NOW)

    assert found.reason is DeadReason.DEADLINE_PASSED


def test_the_backoff_is_drawn_from_the_whole_range_and_doubles_up_to_the_cap() -> None:
    policy = Retry(max_attempts=9, base_seconds=10, cap_seconds=60)
    for attempts, longest in [(1, 10), (2, 20), (3, 40), (4, 60), (5, 60), (90, 60)]:
        drawn = {
            backoff_seconds(policy, NAME, number, attempts) for number in range(2_000)
        }
        assert drawn == set(range(1, longest + 1))


def test_the_backoff_is_the_same_whenever_it_is_drawn() -> None:
    assert len({backoff_seconds(POLICY, NAME, 8, 2) for _ in range(5)}) == 1


@pytest.mark.parametrize(
    "members",
    [
        {"max_attempts": 0},
        {"max_attempts": 101},
        {"base_seconds": 0},
        {"base_seconds": 20, "cap_seconds": 19},
        {"cap_seconds": 86_401},
        {"deadline_seconds": 59},
        {"deadline_seconds": 1_209_601},
    ],
)
def test_a_policy_out_of_bounds_names_the_member(members: dict[str, int]) -> None:
    with pytest.raises(InvalidInput) as caught:
        Retry(**members)  # type: ignore[arg-type]

    (finding,) = caught.value.findings
    name = list(members)[-1]
    assert (finding.field, finding.code) == (f"retry.{name}", "out_of_range")
    assert finding.found == str(members[name])
