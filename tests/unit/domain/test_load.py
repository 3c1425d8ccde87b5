"""How loaded a minute is."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.load import NO_COUNTS, Counts, relative_loads, telling_hours

# A Monday. The last day is 2026-03-08T12:34 to 2026-03-09T12:33.
NOW = datetime(2026, 3, 9, 12, 34, 56, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def load(time: str, counts: dict[str, int]) -> float | None:
    counted = {at(minute): count for minute, count in counts.items()}
    (found,) = relative_loads([at(time)], counted, NOW)
    return found


def test_an_even_day_makes_every_minute_the_average_one() -> None:
    first = at("2026-03-08T12:34")
    counts = {first + timedelta(minutes=number): 7 for number in range(1440)}
    times = [NOW, at("2026-03-09T12:33") + timedelta(days=3), at("2027-01-01T00:00")]

    assert relative_loads(times, counts, NOW) == [1.0, 1.0, 1.0]


def test_a_minute_is_compared_with_the_mean_of_1440() -> None:
    # 1,440 in all are one a minute on average.
    counts = {"2026-03-09T09:00": 40, "2026-03-09T09:01": 1_400}

    assert load("2026-03-16T09:00:30", counts) == 40.0
    assert load("2026-03-16T09:02", counts) == 0.0


@pytest.mark.parametrize(
    ("past", "time"),
    [
        ("2026-03-08T12:34", "2026-03-09T12:34:57"),
        ("2026-03-09T12:33", "2026-03-10T12:33"),
        ("2026-03-08T23:59", "2026-03-09T23:59"),
        ("2026-03-09T00:00", "2026-03-10T00:00"),
    ],
)
def test_the_same_minute_of_the_last_24_hours_tells(past: str, time: str) -> None:
    assert load(time, {past: 1}) == 1440.0


@pytest.mark.parametrize("past", ["2026-03-08T12:33", "2026-03-09T12:34"])
def test_what_lies_outside_the_last_day_tells_nothing(past: str) -> None:
    assert load("2026-03-10T12:33", {past: 1}) is None


def test_the_larger_ratio_of_the_last_day_and_of_a_week_before_counts() -> None:
    # In the last day 720 of 1,440: 720. A week before 2 of 1,440: 2. And vice versa.
    counts = {
        "2026-03-09T09:00": 720,
        "2026-03-09T10:00": 720,
        "2026-03-02T09:00": 2,
        "2026-03-02T11:00": 1_438,
    }

    assert load("2026-03-10T09:00", counts) == 720.0
    assert load("2026-03-10T11:00", counts) == 1_438.0


def test_a_day_without_counts_does_not_stand_for_an_empty_minute() -> None:
    assert load("2026-03-10T09:00", {"2026-03-02T09:00": 3}) == 1440.0


def test_without_any_counts_nothing_is_known() -> None:
    assert load("2026-03-10T09:00", {}) is None


def test_a_ratio_has_two_decimals() -> None:
    counts = {"2026-03-09T09:00": 1, "2026-03-09T09:01": 6}

    # 1,440 / 7 = 205.714...
    assert load("2026-03-10T09:00", counts) == 205.71


def test_two_days_of_at_most_25_hours_each_tell() -> None:
    hours = telling_hours(NOW)

    assert hours[0] == at("2026-03-08T12:00")
    assert hours[24] == at("2026-03-09T12:00")
    assert hours[25] == at("2026-03-01T12:00")
    assert hours[-1] == at("2026-03-02T12:00")
    assert len(hours) == 50
    assert len(telling_hours(at("2026-03-09T12:00"))) == 48


def test_counts_add_up_by_minute() -> None:
    noon = at("2026-03-09T12:00")
    both = Counts.of(noon) + Counts.of(noon + timedelta(seconds=59))

    assert both == Counts({noon: 2})
    assert both + NO_COUNTS == NO_COUNTS + both == both
    assert (both + Counts.of(at("2026-03-09T12:01"))).by_minute == {
        noon: 2,
        at("2026-03-09T12:01"): 1,
    }
