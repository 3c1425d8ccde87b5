"""A timing's times: vectors, bounds, exclusions, anchors, checks and JSON."""

from __future__ import annotations

import copy
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
from hourbell.domain.expressions import CronExpression
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.schedule import (
    Timing,
    anchored,
    matches,
    never_fires,
    next_planned,
    next_time,
    previous_time,
    upcoming,
    validate,
)
from hourbell.domain.timing_json import MAX_EXCLUDED
from hourbell.domain.zones import TICK, Fold, Gap

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
    assert next_time(rate, early) == at("1969-12-31T00:00")
    assert next_time(rate, late) is None
    assert previous_time(rate, early) is None
    assert previous_time(rate, late) == at("2200-01-02T00:00")
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


def test_planned_times_are_numbered_and_end_with_max_occurrences() -> None:
    timing = Timing("0 0 * * *", max_occurrences=2)
    now = at("2026-01-01T12:00")

    one = next_planned(timing, now, 0)
    assert one == (at("2026-01-02T00:00"), 1)
    two = next_planned(timing, *one)
    assert two == (at("2026-01-03T00:00"), 2)
    assert next_planned(timing, *two) is None


def test_planning_ends_with_the_times() -> None:
    timing = Timing("at(2026-01-02T00:00:00)", max_occurrences=5)

    assert next_planned(timing, at("2026-01-02T00:00"), 1) is None


# --- validate -----------------------------------------------------------------------

NOW = at("2026-06-01T00:00")


def findings(timing: Timing) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as caught:
        validate(timing, NOW)
    return [(finding.field, finding.code) for finding in caught.value.findings]


@pytest.mark.parametrize(
    "timing",
    [
        Timing("0 9 * * *", "Europe/Berlin"),
        Timing("rate(5 minutes)"),
        Timing("at(2026-06-01T00:00:01)"),
        Timing("0 9 * * *", start_at=at("2030-01-01T00:00")),
        Timing("cron(0 9 1 1 ? 2190)"),
        Timing("at(2027-03-28T02:30:00)", "Europe/Berlin", gap=Gap.NEXT_VALID),
    ],
)
def test_a_timing_with_a_time_to_come_is_valid(timing: Timing) -> None:
    validate(timing, NOW)

    assert never_fires(anchored(timing, NOW), NOW) is None


def test_everything_that_is_wrong_is_found_at_once() -> None:
    timing = Timing(
        "0 24 * * *",
        "Europe/Berln",
        start_at=NOW,
        end_at=NOW,
        max_occurrences=0,
        exclude=(DateRange(date(2026, 1, 2), date(2026, 1, 1)),),
        anchor=NOW + TICK,
    )

    assert findings(timing) == [
        ("expression.hour", "invalid_expression"),
        ("zone", "unknown_zone"),
        ("end_at", "end_before_start"),
        ("max_occurrences", "out_of_range"),
        ("anchor", "invalid_timestamp"),
        ("exclude[0]", "reversed_range"),
    ]


def test_the_number_of_exclusions_is_capped() -> None:
    some = DateRange.single(date(2026, 1, 1))

    assert findings(Timing("* * * * *", exclude=(some,) * (MAX_EXCLUDED + 1))) == [
        ("exclude", "out_of_range")
    ]
    validate(Timing("* * * * *", exclude=(some,) * MAX_EXCLUDED), NOW)


@pytest.mark.parametrize(
    ("timing", "reason"),
    [
        (Timing("at(2026-05-31T23:59:59)"), "2026-05-31T23:59:59 is past"),
        (
            Timing("at(2027-03-28T02:30:00)", "Europe/Berlin"),
            "does not exist in Europe/Berlin",
        ),
        (Timing("cron(0 0 1 1 ? 2020)"), "its last date is past"),
        (
            Timing("30 2 25-31 3 */7", "Europe/Berlin"),
            "every local time falls into a gap of Europe/Berlin",
        ),
        (
            Timing("0 0 1 1 *", end_at=at("2026-12-31T00:00")),
            "its first time, 2027-01-01T00:00:00Z, is not before 2026-12-31",
        ),
        (
            Timing("0 0 1 1 *", exclude=(DateRange(date(2027, 1, 1), date.max),)),
            "every time falls on an excluded date",
        ),
        (
            Timing("rate(36525 days)", anchor=at("2150-01-01T00:00")),
            "no time comes before the end of 2199",
        ),
        (
            Timing("* * * * *", start_at=at("2300-01-01T00:00")),
            "its last date is past",
        ),
    ],
)
def test_a_timing_that_never_fires_is_refused_with_the_reason(
    timing: Timing, reason: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        validate(timing, NOW)

    (finding,) = caught.value.findings
    assert (finding.field, finding.code) == ("expression", "never_fires")
    assert reason in finding.message


# --- work is bounded ----------------------------------------------------------------


class CountingCalls:
    """Counts how often the evaluator looks for a local time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        for name in ("next_wall", "previous_wall"):
            monkeypatch.setattr(CronExpression, name, self.counting(name))

    def counting(self, name: str) -> Any:
        original = getattr(CronExpression, name)

        def counted(expression: CronExpression, wall: datetime) -> datetime | None:
            self.calls += 1
            found: datetime | None = original(expression, wall)
            return found

        return counted


EVERY_OTHER_DAY = tuple(
    DateRange.single(date(2026, 1, 1) + timedelta(days=2 * each))
    for each in range(MAX_EXCLUDED)
)


@pytest.mark.parametrize(
    ("timing", "most"),
    [
        (Timing("0 0 29 2 */7", NEW_YORK, fold=Fold.BOTH), 10),
        (Timing("cron(0 0 ? 2 1#5 *)", NEW_YORK, gap=Gap.NEXT_VALID), 10),
        (Timing("30 2 25-31 3 */7", "Europe/Berlin"), 600),
        (Timing("0 0 1-31/2 * *", NEW_YORK, exclude=EVERY_OTHER_DAY), 1_500),
        (
            Timing(
                "* * * * *",
                NEW_YORK,
                fold=Fold.BOTH,
                exclude=(DateRange(date(2026, 1, 1), date(2190, 1, 1)),),
            ),
            10,
        ),
        (Timing("* * * * *", NEW_YORK, exclude=EVERY_OTHER_DAY), 10),
    ],
)
def test_no_question_takes_long(
    timing: Timing, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = CountingCalls(monkeypatch)

    next_time(timing, at("2026-01-01T00:00"))
    forward = counted.calls
    previous_time(timing, at("2027-12-31T00:00"))

    assert 0 < forward <= most
    assert counted.calls - forward <= most


# --- JSON ---------------------------------------------------------------------------

FULL: dict[str, Any] = {
    "expression": "rate(5 minutes)",
    "zone": "Europe/Berlin",
    "dst": {"gap": "NEXT_VALID", "fold": "BOTH"},
    "start_at": "2026-01-01T00:00:00Z",
    "end_at": "2027-01-01T00:00:00Z",
    "max_occurrences": 10,
    "exclude": ["2026-12-25", {"from": "2026-12-30", "to": "2027-01-02"}],
    "anchor": "2026-01-01T00:00:01Z",
}


def test_json_is_read_and_written_back() -> None:
    timing = Timing.from_dict(FULL)

    assert timing.exclude[1] == DateRange(date(2026, 12, 30), date(2027, 1, 2))
    assert timing.fold is Fold.BOTH
    assert timing.to_dict() == FULL
    assert json.loads(json.dumps(timing.to_dict())) == FULL


def test_left_out_and_null_members_are_defaults() -> None:
    nothing = dict.fromkeys(FULL) | {"expression": "0 9 * * *"}

    assert Timing.from_dict(nothing) == Timing("0 9 * * *")
    assert Timing.from_dict({"expression": "0 9 * * *"}) == Timing("0 9 * * *")
    assert Timing("0 9 * * *").to_dict() == {
        "expression": "0 9 * * *",
        "zone": "UTC",
        "dst": {"gap": "SKIP", "fold": "FIRST"},
    }


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"expresion": "* * * * *"}, "timing.expresion", "unknown_member"),
        ({"expression": None}, "timing.expression", "missing"),
        ({"expression": 5}, "timing.expression", "wrong_type"),
        ({"zone": ["UTC"]}, "timing.zone", "wrong_type"),
        ({"dst": "SKIP"}, "timing.dst", "wrong_type"),
        ({"dst": {"gap": "skip"}}, "timing.dst.gap", "unknown_choice"),
        ({"dst": {"fold": 1}}, "timing.dst.fold", "wrong_type"),
        ({"dst": {"zone": "UTC"}}, "timing.dst.zone", "unknown_member"),
        ({"start_at": "tomorrow"}, "timing.start_at", "invalid_timestamp"),
        ({"end_at": 1_767_225_600}, "timing.end_at", "wrong_type"),
        ({"anchor": "2026-01-01"}, "timing.anchor", "invalid_timestamp"),
        ({"max_occurrences": True}, "timing.max_occurrences", "wrong_type"),
        ({"max_occurrences": 1.0}, "timing.max_occurrences", "wrong_type"),
        ({"max_occurrences": 0}, "timing.max_occurrences", "out_of_range"),
        ({"max_occurrences": 10**5000}, "timing.max_occurrences", "out_of_range"),
        ({"exclude": "2026-12-25"}, "timing.exclude", "wrong_type"),
        ({"exclude": ["25.12.2026"]}, "timing.exclude[0]", "invalid_date"),
        ({"exclude": ["2026-02-30"]}, "timing.exclude[0]", "invalid_date"),
        ({"exclude": [5]}, "timing.exclude[0]", "wrong_type"),
        ({"exclude": [{"from": "2026-01-01"}]}, "timing.exclude[0].to", "missing"),
        (
            {"exclude": [{"from": "x", "to": "2026-01-01"}]},
            "timing.exclude[0].from",
            "invalid_date",
        ),
        (
            {"exclude": [{"from": "2026-01-01", "to": "2026-01-01", "by": 1}]},
            "timing.exclude[0].by",
            "unknown_member",
        ),
        ({"exclude": ["2026-01-01"] * 367}, "timing.exclude", "out_of_range"),
    ],
)
def test_a_wrong_member_is_named(change: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Timing.from_dict(FULL | change, field="timing")

    (finding,) = caught.value.findings
    assert (finding.field, finding.code) == (field, code)


def test_all_wrong_members_are_named_together() -> None:
    with pytest.raises(InvalidInput) as caught:
        Timing.from_dict({"zone": 1, "dst": {"gap": "x", "fold": "y"}, "until": 0})

    fields = [finding.field for finding in caught.value.findings]
    assert fields == ["until", "expression", "zone", "dst.gap", "dst.fold"]


@pytest.mark.parametrize("members", [None, [], "0 9 * * *", 5])
def test_a_timing_that_is_no_object_is_refused(members: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        Timing.from_dict(members)

    assert caught.value.findings[0].field == "timing"


def test_a_timing_is_a_value_whatever_was_asked_of_it() -> None:
    asked, fresh = Timing("0 9 * * *"), Timing("0 9 * * *")
    next_time(asked, NOW)

    assert asked == fresh
    assert hash(asked) == hash(fresh)
    assert repr(asked) == repr(fresh)
    assert "bound" not in repr(asked)
    assert copy.deepcopy(fresh) == fresh


def test_a_range_of_dates_is_written_as_people_write_it() -> None:
    christmas = DateRange(date(2026, 12, 24), date(2026, 12, 26))

    assert str(christmas) == "2026-12-24 to 2026-12-26"
    assert str(DateRange.single(christmas.first)) == "2026-12-24"
