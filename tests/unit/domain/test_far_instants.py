"""Bounds at both ends of what a date can be, beyond all times of schedules."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.domain.schedule import Timing, never_fires, next_time, previous_time

from tests.unit.domain.test_schedule import at

FIRST = datetime.min.replace(tzinfo=UTC)
LAST = datetime.max.replace(tzinfo=UTC)
ZONES = ("Pacific/Kiritimati", "UTC", "Pacific/Niue")


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["0 0 * * *", "rate(1 day)"])
def test_a_start_in_the_first_year_bounds_nothing(expression: str, zone: str) -> None:
    bare = Timing(expression, zone, anchor=at("2026-01-01T00:00"))
    for start in (FIRST, FIRST + timedelta(microseconds=1)):
        timing = Timing(expression, zone, start_at=start, anchor=bare.anchor)
        now = at("2026-06-01T12:00")
        assert next_time(timing, now) == next_time(bare, now) is not None
        assert previous_time(timing, now) == previous_time(bare, now) is not None


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    "expression", ["0 0 * * *", "rate(1 day)", "at(2026-01-01T00:00:00)"]
)
def test_what_never_comes_after_the_last_instant_is_told(
    expression: str, zone: str
) -> None:
    timing = Timing(expression, zone, anchor=at("2026-01-01T00:00"))
    for after in (LAST, LAST - timedelta(seconds=1)):
        found = never_fires(timing, after)
        assert found is not None
        assert (found.field, found.code) == ("expression", "never_fires")
