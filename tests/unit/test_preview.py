"""Previews show what the clocks do to a schedule."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.domain.instants import parse_instant
from hourbell.domain.schedule import DateRange, Timing
from hourbell.domain.zones import Fold, Gap
from hourbell.usecases.preview import MAX_COUNT, preview, preview_times

NEW_YORK = "America/New_York"
NEXT_VALID = {"gap": Gap.NEXT_VALID}


def at(text: str) -> datetime:
    return parse_instant(f"{text}Z", field="test")


def notes(expression: str, after: str, count: int = 1, **more: Any) -> list[str]:
    """Return the notes of the last of the times."""
    timing = Timing(expression, **({"zone": NEW_YORK} | more))
    return list(preview(timing, at(after), count)[-1].notes)


def test_a_time_is_shown_in_both_clocks() -> None:
    (time,) = preview(Timing("30 9 * * *", "Asia/Kathmandu"), at("2026-07-01T00:00"), 1)

    assert time.as_dict() == {
        "utc": "2026-07-01T03:45:00Z",
        "local": "2026-07-01T09:30:00",
        "weekday": "Wednesday",
        "offset": "+05:45",
        "notes": [],
    }


def test_days_of_23_and_25_hours_are_not_skipped() -> None:
    times = preview_times(Timing("0 12 * * *", NEW_YORK), at("2026-03-07T00:00"), 3)

    assert [time.hour for time in times] == [17, 16, 16]


SKIPPED = "does not exist that day, skipped"
MOVED = "does not exist that day, runs at 03:00 instead"
FIRST = "01:30 comes twice on 2026-11-01: this is the first"
SECOND = "01:30 comes twice on 2026-11-01: this is the second"
FORWARD = "clocks go forward from 2026-03-08 02:00 to 03:00: "
BACK = "clocks go back from 2026-11-01 02:00 to 01:00: "


@pytest.mark.parametrize(
    ("expression", "more", "expected"),
    [
        ("30 2 * * *", {}, "02:30 " + SKIPPED),
        (
            "*/15 2,4 * * *",
            {},
            "02:00, 02:15, 02:30 and 1 more do not exist that day, skipped",
        ),
        (
            "30 2 * * *",
            NEXT_VALID,
            "02:30 " + MOVED,
        ),
        ("0 4 * * *", {}, "no time of the schedule is touched"),
        ("at(2026-03-09T04:00:00)", {}, "no time of the schedule is touched"),
        (
            "at(2026-03-08T02:30:00)",
            NEXT_VALID,
            "02:30 " + MOVED,
        ),
        ("rate(1 day)", {}, "a rate counts elapsed time"),
    ],
)
def test_a_gap_that_is_crossed_is_pointed_out(
    expression: str, more: dict[str, Any], expected: str
) -> None:
    assert notes(expression, "2026-03-08T06:30", **more) == [FORWARD + expected]


@pytest.mark.parametrize(
    ("fold", "count", "expected"),
    [
        (
            Fold.FIRST,
            1,
            [FIRST + ", the second does not run"],
        ),
        (Fold.FIRST, 2, [BACK + "01:30 comes twice, runs once, at the first instant"]),
        (
            Fold.SECOND,
            1,
            [
                BACK + "01:30 comes twice, runs once, at the second instant",
                SECOND + ", the first does not run",
            ],
        ),
        (
            Fold.BOTH,
            1,
            [FIRST + " of two runs"],
        ),
        (
            Fold.BOTH,
            2,
            [
                BACK + "01:30 comes twice, runs both times",
                SECOND + " of two runs",
            ],
        ),
    ],
)
def test_a_repeated_hour_is_pointed_out(
    fold: Fold, count: int, expected: list[str]
) -> None:
    assert notes("30 1 * * *", "2026-11-01T05:00", count, fold=fold) == expected


def test_several_times_in_a_repeated_hour_are_named_together() -> None:
    found = notes("*/30 1,4 * * *", "2026-11-01T05:30")

    assert found == [BACK + "01:00, 01:30 come twice, runs once, at the first instant"]


def test_a_day_that_does_not_exist_is_pointed_out() -> None:
    found = notes("0 9 * * *", "2011-12-30T00:00", zone="Pacific/Apia")

    assert found == [
        "clocks go forward from 2011-12-30 00:00 to 2011-12-31 00:00: 09:00 " + SKIPPED
    ]


def test_many_untouched_transitions_are_only_counted() -> None:
    found = notes("0 12 29 2 *", "2026-01-01T00:00")

    assert found == ["the clocks change 4 times in between: no time is touched"]


def test_transitions_that_do_touch_are_named_among_many() -> None:
    found = notes("30 2 10 3 *", "2023-03-11T00:00")

    assert found == [
        "clocks go forward from 2024-03-10 02:00 to 03:00: 02:30 " + SKIPPED,
        "the clocks change 4 times in between: no time is touched",
    ]


def test_the_rule_of_two_day_fields_is_pointed_out_once() -> None:
    times = preview(Timing("0 0 1,15 * 5"), at("2026-01-01T00:00"), 3)

    assert "either is enough" in times[0].notes[0]
    assert [len(time.notes) for time in times] == [1, 0, 0]


def test_excluded_dates_are_pointed_out_where_they_were_due() -> None:
    holidays = (
        DateRange(date(2026, 12, 24), date(2026, 12, 26)),
        DateRange.single(date(2026, 12, 27)),
        DateRange.single(date(2026, 12, 31)),
    )
    times = preview(Timing("0 */6 * * *", exclude=holidays), at("2026-12-23T12:00"), 15)

    assert times[1].notes == (
        "left out, as excluded: 2026-12-24, 2026-12-25, 2026-12-26 and more",
    )
    assert times[-1].notes == ()
    weekly = Timing("0 0 * * MON", exclude=holidays)
    assert preview(weekly, at("2026-12-23T12:00"), 1)[0].notes == ()


def test_an_excluded_day_that_a_fold_shows_twice_is_named_once_and_again() -> None:
    timing = Timing(
        "*/30 * * * *",
        "America/St_Johns",
        fold=Fold.BOTH,
        exclude=(DateRange.single(date(2009, 10, 31)),),
    )
    times = preview(timing, at("2009-10-31T02:00"), 2)

    assert times[0].notes[0] == "left out, as excluded: 2009-10-31"
    assert times[1].notes[0] == "left out, as excluded: 2009-10-31"


def test_fewer_times_come_when_they_are_used_up() -> None:
    ends = Timing("0 0 * * *", end_at=at("2026-01-03T00:00"))
    counted = Timing("0 0 * * *", max_occurrences=2)

    assert len(preview(ends, at("2026-01-01T00:00"), 10)) == 1
    assert len(preview(counted, at("2026-01-01T00:00"), 10)) == 2
    assert preview(Timing("at(2026-01-01T00:00:00)"), at("2026-01-01T00:00"), 10) == []


def test_a_rate_is_anchored_at_the_start() -> None:
    times = preview_times(Timing("rate(5 minutes)"), at("2026-01-01T00:00:07"), 2)

    assert times == [at("2026-01-01T00:05:07"), at("2026-01-01T00:10:07")]


@pytest.mark.parametrize("count", [0, -1, MAX_COUNT + 1, 10**100])
def test_the_count_is_capped(count: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        preview_times(Timing("* * * * *"), datetime(2026, 1, 1, tzinfo=UTC), count)

    assert caught.value.findings[0].field == "count"
    assert caught.value.code == "out_of_range"
