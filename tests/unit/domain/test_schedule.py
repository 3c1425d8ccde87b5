"""A timing's times: vectors, bounds, exclusions, anchors, checks and JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hourbell.domain.dates import DateRange, DateSet
from hourbell.domain.errors import InvalidInput
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.schedule import (
    Timing,
    anchored,
    matches,
    next_time,
    previous_time,
    upcoming,
)
from hourbell.domain.zones import Fold, Gap

VECTORS = json.loads(
    (Path(__file__).parents[2] / "vectors" / "cron.json").read_text("utf-8")
)


def at(text: str) -> datetime:
    return parse_instant(text if text.endswith("Z") else f"{text}Z", field="test")


def first(timing: Timing, after: str, count: int) -> list[str]:
    return [format_instant(time) for time in islice(upcoming(timing, at(after)), count)]


# --- reference vectors --------------------------------------------------------------


@pytest.mark.parametrize(
    "vector", VECTORS, ids=[f"{each['expression']} {each['zone']}" for each in VECTORS]
)
def test_next_times_are_those_of_the_reference_vector(vector: dict[str, Any]) -> None:
    start = at(vector["start"])
    timing = Timing(vector["expression"], vector["zone"], anchor=start)

    times = list(islice(upcoming(timing, start), 6))

    assert [format_instant(time) for time in times] == vector["expected"]
    assert all(matches(timing, time) for time in times)
    back = [previous_time(timing, time) for time in times[1:]]
    assert back == times[:-1]


def test_times_are_the_same_under_any_zone_of_the_process() -> None:
    program = (
        "import json, sys\n"
        "from itertools import islice\n"
        "from hourbell.domain.instants import parse_instant\n"
        "from hourbell.domain.schedule import Timing, previous_time, upcoming\n"
        "out = []\n"
        "for v in json.load(sys.stdin):\n"
        "    start = parse_instant(v['start'], field='start')\n"
        "    timing = Timing(v['expression'], v['zone'], anchor=start)\n"
        "    out += [str(t) for t in islice(upcoming(timing, start), 6)]\n"
        "    out.append(str(previous_time(timing, start)))\n"
        "print(json.dumps(out))\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TZ": name, "PYTHONTZPATH": "/nowhere"},
            input=json.dumps(VECTORS),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for name in ("UTC", "America/Los_Angeles", "Pacific/Apia")
    }

    assert len(answers) == 1
    assert len(json.loads(answers.pop())) > 400


# --- gaps and folds -----------------------------------------------------------------

NEW_YORK = "America/New_York"


def test_times_in_a_gap_can_run_once_when_it_ends() -> None:
    timing = Timing("*/20 2 * * *", NEW_YORK, gap=Gap.NEXT_VALID)

    assert first(timing, "2026-03-08T06:00:00", 2) == [
        "2026-03-08T07:00:00Z",
        "2026-03-09T06:00:00Z",
    ]
    assert matches(timing, at("2026-03-08T07:00:00"))
    assert previous_time(timing, at("2026-03-09T06:00:00")) == at("2026-03-08T07:00:00")


def test_a_time_at_the_end_of_the_gap_does_not_run_twice() -> None:
    timing = Timing("30 2,3 * * *", NEW_YORK, gap=Gap.NEXT_VALID)
    hourly = Timing("0 * * * *", NEW_YORK, gap=Gap.NEXT_VALID)

    assert first(timing, "2026-03-08T06:59:00", 2) == [
        "2026-03-08T07:00:00Z",
        "2026-03-08T07:30:00Z",
    ]
    assert first(hourly, "2026-03-08T05:30:00", 3) == [
        "2026-03-08T06:00:00Z",
        "2026-03-08T07:00:00Z",
        "2026-03-08T08:00:00Z",
    ]


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        (Fold.FIRST, ["05:00", "05:30", "07:00"]),
        (Fold.SECOND, ["06:00", "06:30", "07:00"]),
        (Fold.BOTH, ["05:00", "05:30", "06:00", "06:30", "07:00"]),
    ],
)
def test_a_repeated_hour_runs_as_the_fold_rule_says(
    fold: Fold, expected: list[str]
) -> None:
    timing = Timing("*/30 1,2 * * *", NEW_YORK, fold=fold)

    times = first(timing, "2026-11-01T04:00:00", len(expected))

    assert times == [f"2026-11-01T{time}:00Z" for time in expected]
    assert not matches(timing, at("2026-11-01T05:15:00"))


def test_a_question_from_inside_the_fold_is_answered_strictly_later() -> None:
    second = Timing("45 1 * * *", NEW_YORK, fold=Fold.SECOND)
    rare = Timing("cron(10 1 1 11 ? 2026)", NEW_YORK, fold=Fold.SECOND)

    # asked in the first pass, after 01:45 was shown for the first time
    assert next_time(second, at("2026-11-01T05:50:00")) == at("2026-11-01T06:45:00")
    assert next_time(rare, at("2026-11-01T05:50:00")) == at("2026-11-01T06:10:00")
    both = Timing("cron(50 1 1 11 ? 2026)", NEW_YORK, fold=Fold.BOTH)
    # asked in the second pass for what came later on the clock, but before
    assert previous_time(both, at("2026-11-01T06:10:00")) == at("2026-11-01T05:50:00")


def test_a_one_time_follows_the_same_rules() -> None:
    def times(wall: str, gap: Gap, fold: Fold) -> list[str]:
        return first(Timing(f"at({wall})", NEW_YORK, gap, fold), "2026-01-01T00:00", 3)

    gap, fold = "2026-03-08T02:30:00", "2026-11-01T01:30:00"
    assert times(gap, Gap.SKIP, Fold.FIRST) == []
    assert times(gap, Gap.NEXT_VALID, Fold.FIRST) == ["2026-03-08T07:00:00Z"]
    assert times(fold, Gap.SKIP, Fold.SECOND) == ["2026-11-01T06:30:00Z"]
    both = Timing(f"at({fold})", NEW_YORK, fold=Fold.BOTH)
    assert first(both, "2026-01-01T00:00", 3) == [
        "2026-11-01T05:30:00Z",
        "2026-11-01T06:30:00Z",
    ]
    assert previous_time(both, at("2027-01-01T00:00")) == at("2026-11-01T06:30:00")
    assert previous_time(both, at("2026-11-01T05:30:00")) is None


def test_an_offset_of_odd_seconds_still_gives_whole_local_minutes() -> None:
    # Liberia's clocks were 44 min 30 s behind until 1972.
    timing = Timing("0 9 * * *", "Africa/Monrovia")

    assert first(timing, "1972-01-05T12:00", 2) == [
        "1972-01-06T09:44:30Z",
        "1972-01-07T09:00:00Z",
    ]


# --- bounds and exclusions ----------------------------------------------------------


def test_start_is_included_and_end_is_not() -> None:
    timing = Timing(
        "0 * * * *", start_at=at("2026-01-01T02:00"), end_at=at("2026-01-01T05:00")
    )

    assert first(timing, "2025-01-01T00:00", 9) == [
        f"2026-01-01T0{hour}:00:00Z" for hour in (2, 3, 4)
    ]
    assert previous_time(timing, at("2030-01-01T00:00")) == at("2026-01-01T04:00")
    assert previous_time(timing, at("2026-01-01T02:00")) is None
    assert matches(timing, at("2026-01-01T02:00"))
    assert not matches(timing, at("2026-01-01T05:00"))


def test_excluded_dates_are_dates_of_the_zone() -> None:
    timing = Timing(
        "0 20 * * *",
        "America/Los_Angeles",
        exclude=(
            DateRange.single(date(2026, 12, 25)),
            DateRange(date(2026, 12, 26), date(2026, 12, 28)),
        ),
    )

    assert first(timing, "2026-12-25T00:00", 2) == [
        "2026-12-25T04:00:00Z",
        "2026-12-30T04:00:00Z",
    ]
    back = previous_time(timing, at("2026-12-30T04:00"))
    assert back == at("2026-12-25T04:00:00")
    assert not matches(timing, at("2026-12-26T04:00"))


def test_a_day_shown_twice_around_midnight_is_excluded_both_times() -> None:
    # At 00:01 on 1 November 2009 the clocks went back to 23:01 of 31 October.
    timing = Timing(
        "*/30 * * * *",
        "America/St_Johns",
        fold=Fold.BOTH,
        exclude=(DateRange.single(date(2009, 10, 31)),),
    )

    assert first(timing, "2009-10-31T01:30", 4) == [
        "2009-10-31T02:00:00Z",
        "2009-11-01T02:30:00Z",
        "2009-11-01T03:30:00Z",
        "2009-11-01T04:00:00Z",
    ]
    back = previous_time(timing, at("2009-11-01T03:30"))
    assert back == at("2009-11-01T02:30:00")
    assert previous_time(timing, at("2009-11-01T02:30")) == at("2009-10-31T02:00:00")


def test_the_day_before_an_excluded_one_is_shown_again_after_it() -> None:
    timing = Timing(
        "*/30 * * * *",
        "America/St_Johns",
        fold=Fold.BOTH,
        exclude=(DateRange(date(2009, 11, 1), date(2012, 1, 1)),),
    )

    # 23:30 of 31 October comes at 02:00 and, after one minute of November, at 03:00
    assert first(timing, "2009-11-01T01:45", 3) == [
        "2009-11-01T02:00:00Z",
        "2009-11-01T03:00:00Z",
        "2012-01-02T03:30:00Z",
    ]
    assert previous_time(timing, at("2012-01-02T03:30")) == at("2009-11-01T03:00")
    assert previous_time(timing, at("2009-11-01T03:00")) == at("2009-11-01T02:00")


def test_a_rate_and_a_one_time_leave_out_excluded_dates_too() -> None:
    holiday = (DateRange(date(2026, 12, 24), date(2026, 12, 26)),)
    rate = Timing(
        "rate(5 hours)", NEW_YORK, anchor=at("2026-12-24T00:00"), exclude=holiday
    )
    once = Timing("at(2026-12-25T09:00:00)", NEW_YORK, exclude=holiday)

    assert first(rate, "2026-12-24T03:00", 1) == ["2026-12-27T08:00:00Z"]
    assert next_time(once, at("2026-01-01T00:00")) is None
    assert previous_time(once, at("2027-01-01T00:00")) is None


def test_exclusions_of_all_time_end_the_search() -> None:
    for dates in (DateRange(date.min, date.max), DateRange(date(1960, 1, 1), date.max)):
        timing = Timing("* * * * *", exclude=(dates,))

        assert next_time(timing, at("2026-01-01T00:00")) is None
        assert previous_time(timing, at("2026-01-01T00:00")) is None


def test_ranges_of_dates_are_joined_where_they_touch() -> None:
    days = [date(2026, 1, day) for day in range(1, 10)]
    joined = DateSet(
        (
            DateRange(days[3], days[4]),
            DateRange(days[0], days[1]),
            DateRange.single(days[2]),
            DateRange(days[0], days[0]),
            DateRange(days[7], days[6]),
        )
    )

    assert joined.holding(days[1]) == DateRange(days[0], days[4])
    assert joined.holding(days[5]) is None
    assert joined.holding(days[7]) is None
    assert joined.holding(date(2025, 12, 31)) is None
    assert bool(joined)
    assert not DateSet(())


def test_times_lie_in_the_years_1970_to_2199() -> None:
    hourly, late = Timing("0 * * * *"), datetime.max.replace(tzinfo=UTC)
    early = datetime.min.replace(tzinfo=UTC)
    rate = Timing("rate(1 day)", anchor=early)

    assert next_time(hourly, early) == at("1970-01-01T00:00")
    assert next_time(hourly, late) is None
    assert previous_time(hourly, early) is None
    assert previous_time(hourly, late) == at("2199-12-31T23:00")
    assert not matches(hourly, early)
    assert previous_time(hourly, at("1970-01-01T00:00")) is None
    assert next_time(rate, early) == at("1970-01-01T00:00")
    assert next_time(rate, late) is None
    assert previous_time(rate, early) is None
    assert previous_time(rate, late) == at("2199-12-31T00:00")
    assert next_time(Timing("rate(1 day)", anchor=late), early) is None
    assert previous_time(Timing("rate(1 day)", anchor=late), late) is None


def test_times_at_the_far_ends_of_every_zone_are_found_without_error() -> None:
    for name in ("Etc/GMT+12", "Pacific/Kiritimati", "Europe/Berlin"):
        for gap, fold in ((Gap.SKIP, Fold.FIRST), (Gap.NEXT_VALID, Fold.SECOND)):
            timing = Timing("30 12 31 12 *", name, gap, fold)
            last = previous_time(timing, datetime.max.replace(tzinfo=UTC))
            earliest = next_time(timing, datetime.min.replace(tzinfo=UTC))

            assert last is not None
            assert earliest is not None
            assert last.year in {2199, 2200}
            assert next_time(timing, last) is None
            assert previous_time(timing, earliest) is None


# --- rates --------------------------------------------------------------------------


def test_a_rate_counts_elapsed_time_from_its_anchor() -> None:
    timing = Timing("rate(1 day)", NEW_YORK, anchor=at("2026-03-07T12:00"))

    assert next_time(timing, at("2020-01-01T00:00")) == at("2026-03-08T12:00")
    assert next_time(timing, at("2026-03-08T12:00")) == at("2026-03-09T12:00")
    assert previous_time(timing, at("2026-03-09T12:00")) == at("2026-03-08T12:00")
    assert previous_time(timing, at("2026-03-08T12:00")) is None
    assert not matches(timing, at("2026-03-07T12:00"))


def test_a_rate_without_anchor_counts_from_its_start_or_from_now() -> None:
    now = at("2026-01-01T00:00") + timedelta(microseconds=1)
    plain, started = Timing("rate(1 hour)"), Timing("rate(1 hour)", start_at=now)

    assert anchored(plain, now).anchor == at("2026-01-01T00:00:01")
    assert anchored(started, at("2020-01-01T00:00")).anchor == at("2026-01-01T00:00:01")
    assert next_time(started, now) == at("2026-01-01T01:00:01")
    assert anchored(started, now) is not started
    kept = anchored(started, now)
    assert anchored(kept, now) is kept
    cron = Timing("0 * * * *")
    assert anchored(cron, now) is cron
    with pytest.raises(InvalidInput) as caught:
        next_time(plain, now)
    assert caught.value.findings[0].field == "anchor"


# --- planning -----------------------------------------------------------------------
