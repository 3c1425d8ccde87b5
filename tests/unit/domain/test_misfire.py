"""What becomes of times that were reached too late, against plain lists."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain import misfire as module
from hourbell.domain.misfire import (
    Decision,
    Misfire,
    MisfirePolicy,
    MissReason,
    Overdue,
    decide,
)
from hourbell.domain.schedule import Timing
from hypothesis import given
from hypothesis import strategies as st

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
EVERY_MINUTE = Timing("* * * * *")


def minutes(first: int, last: int) -> list[datetime]:
    return [NOON + n * MINUTE for n in range(first, last + 1)]


def at_noon(now: datetime, owned_until: datetime | None = None) -> Overdue:
    """The time of noon is overdue, and so is whatever is over a minute old."""
    return Overdue(NOON, 1, now, now - MINUTE, owned_until)


def runs_of(decision: Decision) -> list[datetime]:
    first = [NOON] if decision.lets_run(NOON) else []
    return [*first, *decision.run_times(EVERY_MINUTE, NOON)]


@pytest.mark.parametrize(
    ("misfire", "expected"),
    [
        (Misfire(MisfirePolicy.SKIP), []),
        (Misfire(), minutes(9, 9)),
        (Misfire(MisfirePolicy.CATCH_UP, 1), minutes(9, 9)),
        (Misfire(MisfirePolicy.CATCH_UP, 3), minutes(7, 9)),
        (Misfire(MisfirePolicy.CATCH_UP, 9), minutes(1, 9)),
        (Misfire(MisfirePolicy.CATCH_UP, 10), minutes(0, 9)),
        (Misfire(MisfirePolicy.CATCH_UP, 1000), minutes(0, 9)),
        # At 12:10:30 what is of 12:08 or later is at most 150 s late.
        (Misfire(MisfirePolicy.CATCH_UP, 1000, 150), minutes(8, 9)),
        (Misfire(MisfirePolicy.CATCH_UP, 1, 150), minutes(9, 9)),
        (Misfire(max_lateness_seconds=61), []),
    ],
)
def test_after_ten_minutes_the_policy_says_what_runs(
    misfire: Misfire, expected: Sequence[datetime]
) -> None:
    now = NOON + timedelta(minutes=10, seconds=30)

    decision = decide(EVERY_MINUTE, misfire, at_noon(now), 60)

    assert runs_of(decision) == expected
    assert decision.runs == len([each for each in expected if each != NOON])
    assert (decision.count, decision.last) == (9, NOON + 9 * MINUTE)
    assert (decision.following, decision.sequence) == (NOON + 10 * MINUTE, 10)


def test_a_time_alone_is_covered_by_itself() -> None:
    decision = decide(EVERY_MINUTE, Misfire(), at_noon(NOON + 61 * SECOND), 60)

    assert (decision.count, decision.last, decision.sequence) == (0, NOON, 1)
    assert decision.lets_run(NOON)
    assert decision.following == NOON + MINUTE


def test_a_time_of_exactly_the_threshold_is_not_covered() -> None:
    now = NOON + 2 * MINUTE

    assert decide(EVERY_MINUTE, Misfire(), at_noon(now), 60).count == 0
    assert decide(EVERY_MINUTE, Misfire(), at_noon(now + SECOND), 60).count == 1


def test_what_another_version_owns_is_not_covered() -> None:
    owned_until = NOON + 4 * MINUTE
    overdue = at_noon(NOON + timedelta(hours=1), owned_until)

    decision = decide(EVERY_MINUTE, Misfire(), overdue, 60)

    assert decision.last == NOON + 3 * MINUTE
    assert decision.following is None


def test_max_occurrences_ends_what_is_covered() -> None:
    timing = Timing("* * * * *", max_occurrences=5)
    overdue = at_noon(NOON + timedelta(hours=1))

    decision = decide(timing, Misfire(), overdue, 60)

    assert (decision.count, decision.sequence) == (4, 5)
    assert decision.following is None


@pytest.mark.parametrize("policy", MisfirePolicy)
def test_a_long_past_is_covered_in_parts_of_which_only_the_last_runs(
    policy: MisfirePolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_COVERED", 10)
    misfire = Misfire(policy, 3)
    now = NOON + timedelta(minutes=30, seconds=30)
    overdue, runs, parts = at_noon(now), [], []
    for _ in range(5):
        decision = decide(EVERY_MINUTE, misfire, overdue, 60)
        parts.append(decision.count)
        runs += [overdue.instant] * decision.lets_run(overdue.instant)
        runs += decision.run_times(EVERY_MINUTE, overdue.instant)
        if decision.following is None or decision.following >= overdue.before:
            break
        overdue = Overdue(
            decision.following, decision.sequence + 1, now, overdue.before
        )

    assert runs == minutes(30 - misfire.runs, 29)
    # Each part's first time is the one that was undecided; together they are all 30.
    assert sum(parts) + len(parts) == 30
    assert max(parts) <= 10 + misfire.runs


def test_runs_are_spaced_at_the_rate_from_the_next_whole_second() -> None:
    now = NOON + timedelta(minutes=10, microseconds=1)
    decision = decide(
        EVERY_MINUTE, Misfire(MisfirePolicy.CATCH_UP, 10), at_noon(now), 40
    )

    start = NOON + timedelta(minutes=10, seconds=1)
    seconds = [(decision.available_at(n) - start).total_seconds() for n in range(5)]
    assert seconds == [0, 1, 3, 4, 6]


def test_a_missed_time_says_why() -> None:
    late = NOON - timedelta(seconds=100)

    def reason(policy: MisfirePolicy, bound: int | None = None) -> MissReason:
        return Misfire(policy, 2, bound).reason(late, NOON)

    assert reason(MisfirePolicy.SKIP) is MissReason.SKIPPED
    assert reason(MisfirePolicy.FIRE_ONCE) is MissReason.LATER_ONE_RUNS
    assert reason(MisfirePolicy.CATCH_UP) is MissReason.BEYOND_LIMIT
    assert reason(MisfirePolicy.CATCH_UP, 99) is MissReason.TOO_LATE
    assert reason(MisfirePolicy.CATCH_UP, 100) is MissReason.BEYOND_LIMIT


def daily(days: float, misfire: Misfire, *, is_certain: bool = True) -> list[datetime]:
    """Return what of a daily schedule runs that was overdue for so many days."""
    timing = Timing("0 12 * * *")
    now = NOON + timedelta(days=days)
    overdue = Overdue(NOON, 1, now, now - MINUTE, None, is_certain)
    decision = decide(timing, misfire, overdue, 60)
    first = [NOON] if decision.lets_run(NOON) else []
    run = [*first, *decision.run_times(timing, NOON)]
    assert decision.runs == len(run) - len(first)
    return run


CATCH_UP = Misfire(MisfirePolicy.CATCH_UP, 1000)
HOUR = 1 / 24


@pytest.mark.parametrize(
    ("days", "misfire", "days_that_run"),
    [
        (14.9, CATCH_UP, range(15)),
        # The first one is forgotten, but certain not to have run.
        (15 - HOUR / 2, CATCH_UP, range(15)),
        (15.9, CATCH_UP, range(16)),
        # The second one is forgotten, too, and may have run.
        (16, CATCH_UP, range(2, 16)),
        (40, CATCH_UP, range(26, 40)),
        (16, Misfire(), range(15, 16)),
    ],
)
def test_what_may_have_run_and_been_deleted_does_not_run(
    days: float, misfire: Misfire, days_that_run: Sequence[int]
) -> None:
    expected = [NOON + timedelta(days=n) for n in days_that_run]
    assert daily(days, misfire) == expected


def test_the_first_one_does_not_run_either_if_it_may_have_run() -> None:
    assert daily(15.9, CATCH_UP, is_certain=False) == [
        NOON + timedelta(days=n) for n in range(1, 16)
    ]
    # The hour before the end of the retention is forgotten already.
    assert daily(15 - HOUR / 2, CATCH_UP, is_certain=False)[0] == NOON + timedelta(1)
    assert daily(14.9, CATCH_UP, is_certain=False)[0] == NOON


def test_what_is_forgotten_was_too_late() -> None:
    as_of = NOON + timedelta(days=14, hours=23)
    for policy in MisfirePolicy:
        misfire = Misfire(policy, 2)
        assert misfire.reason(NOON, as_of) is not MissReason.TOO_LATE
        assert misfire.reason(NOON, as_of + SECOND) is MissReason.TOO_LATE


POLICIES = st.builds(
    Misfire,
    st.sampled_from(MisfirePolicy),
    st.integers(1, 12),
    st.none() | st.integers(60, 3_000),
)


@given(
    POLICIES,
    st.integers(61, 4_000),
    st.none() | st.integers(1, 4_000),
    st.none() | st.integers(1, 70),
    st.integers(1, 6),
)
def test_a_decision_equals_what_plain_lists_say(
    misfire: Misfire,
    late: int,
    owned: int | None,
    allowed: int | None,
    step: int,
) -> None:
    timing = Timing(f"rate({step} minutes)", anchor=NOON, max_occurrences=allowed)
    now = NOON + late * SECOND
    owned_until = None if owned is None else NOON + owned * SECOND

    decision = decide(timing, misfire, at_noon(now, owned_until), 60)

    every = [NOON + n * step * MINUTE for n in range(200)]
    every = every[: max(allowed, 1)] if allowed is not None else every
    every = [t for t in every if t == NOON or owned_until is None or t < owned_until]
    past = [t for t in every if (now - t).total_seconds() > 60]
    run = past[len(past) - misfire.runs :] if misfire.runs < len(past) else past
    run = run if misfire.runs else []
    bound = misfire.max_lateness_seconds
    run = [t for t in run if bound is None or (now - t).total_seconds() <= bound]
    told = [NOON] if decision.lets_run(NOON) else []
    assert [*told, *decision.run_times(timing, NOON)] == run
    assert decision.count == len(past) - 1
    assert decision.last == past[-1]
    after = [t for t in every if t > past[-1]]
    assert decision.following == (after[0] if after else None)
