"""How a flexible window spreads occurrences, and what counts as late or deferred."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.definition import derived_schedule_id
from hourbell.domain.occurrence import jitter_seconds, occurrence_id
from hourbell.domain.policies import is_deferred, is_misfire

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
DAY = 86_400
OCCURRENCES, WINDOW = 20_000, 300
MEAN = OCCURRENCES / WINDOW


def of_many_schedules() -> Iterator[str]:
    """Yield the noon of 20,000 schedules of one tenant."""
    for number in range(OCCURRENCES):
        yield occurrence_id(derived_schedule_id("acme", f"bell-{number}"), 1, NOON)


def of_one_schedule() -> Iterator[str]:
    """Yield 20,000 minutes of one schedule, whose ids differ by their time only."""
    schedule_id = derived_schedule_id("acme", "bell")
    for number in range(OCCURRENCES):
        yield occurrence_id(schedule_id, 1, NOON + timedelta(minutes=number))


def chance_of_more_than(count: int) -> float:
    """Return the chance that one second of the window gets more than `count`.

    By the binomial distribution: each occurrence falls into it with 1 in WINDOW.
    """
    share = 1 / WINDOW
    return sum(
        math.exp(
            math.lgamma(OCCURRENCES + 1)
            - math.lgamma(hits + 1)
            - math.lgamma(OCCURRENCES - hits + 1)
            + hits * math.log(share)
            + (OCCURRENCES - hits) * math.log1p(-share)
        )
        for hits in range(count + 1, 3 * count)
    )


def test_by_chance_the_busiest_second_seldom_exceeds_half_above_the_mean() -> None:
    threshold = int(1.5 * MEAN)
    assert threshold == 100
    beyond = 1 - (1 - chance_of_more_than(threshold)) ** WINDOW
    # About one set of 20,000 in sixty: the threshold is a bound for most, not for all.
    assert 0.015 < beyond < 0.016


@pytest.mark.parametrize("ids", [of_many_schedules, of_one_schedule])
def test_the_busiest_second_gets_at_most_one_and_a_half_times_the_mean(
    ids: Callable[[], Iterator[str]],
) -> None:
    seconds = Counter(jitter_seconds(each, WINDOW) for each in ids())
    assert sum(seconds.values()) == OCCURRENCES
    assert set(seconds) == set(range(WINDOW)), "no second is left out, none beyond"
    assert max(seconds.values()) <= 1.5 * MEAN
    # A uniform spread has a standard deviation of sqrt(66.4) = 8.15 occurrences.
    spread = sum((count - MEAN) ** 2 for count in seconds.values()) / WINDOW
    assert 7 < math.sqrt(spread) < 9.3


def test_a_window_of_a_day_has_no_busy_hour() -> None:
    hours = Counter(jitter_seconds(each, DAY) // 3_600 for each in of_many_schedules())
    assert set(hours) == set(range(24))
    # 833 in the mean; five standard deviations are 141.
    assert all(abs(count - OCCURRENCES / 24) < 141 for count in hours.values())


@pytest.mark.parametrize("window", [0, 1, 2, 300, 841, DAY])
def test_a_jitter_is_within_its_window_and_always_the_same(window: int) -> None:
    ids = [occurrence_id("sch" + "0" * 26, 1, NOON + timedelta(n)) for n in range(99)]
    first = [jitter_seconds(each, window) for each in ids]
    assert [jitter_seconds(each, window) for each in ids] == first
    assert all(0 <= jitter < max(window, 1) for jitter in first)


def test_a_jitter_is_the_digests_first_eight_bytes_modulo_the_window() -> None:
    # echo -n sch00000000000000000000000000.v1.20260309T120000Z | sha256sum
    digest = "a34674d27dc8e066"
    known = "sch00000000000000000000000000.v1.20260309T120000Z"
    for window in (7, WINDOW, DAY):
        assert jitter_seconds(known, window) == int(digest, 16) % window


def test_a_row_of_a_days_window_reached_just_after_its_time_is_not_late() -> None:
    """Counted from scheduled_for, 61 s would already be a misfire."""
    reached = NOON + timedelta(seconds=61)
    assert not is_misfire(NOON, reached, DAY)
    assert is_misfire(NOON, reached)


@pytest.mark.parametrize("window", [0, 1, 300, DAY])
def test_lateness_begins_a_minute_after_the_windows_end(window: int) -> None:
    last = NOON + timedelta(seconds=window + 60)
    assert not is_misfire(NOON, last, window)
    assert is_misfire(NOON, last + timedelta(microseconds=1), window)


@pytest.mark.parametrize(
    ("ahead", "deferred"),
    [
        (timedelta(days=-1), False),
        (timedelta(0), False),
        (timedelta(seconds=840), False),
        (timedelta(seconds=840, microseconds=1), True),
        (timedelta(seconds=900), True),
        (timedelta(days=1), True),
    ],
)
def test_what_is_further_ahead_than_the_longest_delay_less_a_minute_is_deferred(
    ahead: timedelta, deferred: bool
) -> None:
    assert is_deferred(NOON + ahead, NOON) is deferred
