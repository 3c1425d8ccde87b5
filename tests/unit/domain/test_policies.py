"""Decisions that depend on the clock."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hourbell.domain.policies import (
    delay_seconds,
    expires_at,
    is_misfire,
    is_sweep_due,
)

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead", "expected"),
    [
        (timedelta(seconds=-5), 0),
        (timedelta(0), 0),
        (timedelta(microseconds=1), 1),
        (timedelta(seconds=1), 1),
        (timedelta(seconds=1, microseconds=1), 2),
        (timedelta(seconds=899, milliseconds=999), 900),
        (timedelta(seconds=900), 900),
    ],
)
def test_a_delay_is_rounded_up_so_that_no_message_is_early(
    ahead: timedelta, expected: int
) -> None:
    assert delay_seconds(NOON + ahead, NOON) == expected


def test_a_due_time_is_a_misfire_only_after_the_threshold() -> None:
    assert not is_misfire(NOON, NOON + timedelta(seconds=60))
    assert is_misfire(NOON, NOON + timedelta(seconds=60, microseconds=1))


def test_a_finished_row_is_kept_for_at_least_fifteen_days() -> None:
    assert expires_at(NOON) - NOON >= timedelta(days=15)


def test_the_stream_has_ten_seconds_before_the_sweep_takes_a_record() -> None:
    scheduled_at = NOON
    due = NOON + timedelta(seconds=5)
    assert not is_sweep_due(scheduled_at, due, NOON + timedelta(seconds=9), None)
    assert is_sweep_due(scheduled_at, due, NOON + timedelta(seconds=10), None)


def test_a_record_whose_time_is_far_is_left_to_the_stream() -> None:
    due = NOON + timedelta(seconds=170)
    assert not is_sweep_due(NOON, due, NOON + timedelta(seconds=79), None)
    assert is_sweep_due(NOON, due, NOON + timedelta(seconds=80), None)


def swept(scheduled_at: datetime, due: datetime, passes: list[datetime]) -> list[int]:
    """Return which of the passes hand a record over."""
    previous = [None, *passes[:-1]]
    return [
        place
        for place, (at, before) in enumerate(zip(passes, previous, strict=True))
        if is_sweep_due(scheduled_at, due, at, before)
    ]


def test_a_lost_record_is_found_before_its_time_by_minutely_passes() -> None:
    for phase in range(60):
        scheduled_at = NOON - timedelta(seconds=150)
        passes = [scheduled_at + timedelta(seconds=phase + 60 * n) for n in range(1, 4)]
        in_time = [at for at in passes if at <= NOON]
        assert swept(scheduled_at, NOON, in_time)


def test_passes_hand_a_stuck_record_over_less_and_less_often() -> None:
    eligible = NOON + timedelta(seconds=10)
    passes = [eligible + timedelta(minutes=minute) for minute in range(80)]
    assert swept(NOON, NOON, passes) == [0, 1, 3, 7, 15, 31, 47, 63, 79]


def test_a_turn_that_no_pass_came_to_is_made_up_for_by_the_next() -> None:
    eligible = NOON + timedelta(seconds=10)
    # Minutes 1, 3, 7 and 15 have no pass.
    minutes = [0, 2, 4, 6, 8, 14, 20, 21, 22]
    passes = [eligible + timedelta(minutes=minute) for minute in minutes]
    taken = [minutes[place] for place in swept(NOON, NOON, passes)]
    assert taken == [0, 2, 4, 8, 20]


def test_whatever_the_rhythm_of_passes_a_stuck_record_comes_up_again() -> None:
    for step in range(1, 40):
        passes = [NOON + timedelta(minutes=step * n) for n in range(1, 60)]
        gaps = [b - a for a, b in pairwise(swept(NOON, NOON, passes))]
        assert max(gaps) * step <= 16 + step
