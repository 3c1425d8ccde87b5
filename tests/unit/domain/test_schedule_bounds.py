"""Schedules: what comes after the plain next and previous times."""

from __future__ import annotations

import copy
import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.dates import DateRange
from hourbell.domain.errors import InvalidInput
from hourbell.domain.expressions import CronExpression
from hourbell.domain.schedule import (
    Timing,
    anchored,
    matches,
    never_fires,
    next_planned,
    next_time,
    previous_time,
    validate,
)
from hourbell.domain.timing_json import MAX_EXCLUDED
from hourbell.domain.zones import TICK, Fold, Gap
from hourbell.domain.zones import zone as find_zone

from tests.unit.domain.test_schedule import NEW_YORK, at


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
        ({"expresion": "* * * * *"}, "timing.expresion", "unknown_field"),
        ({"expression": None}, "timing.expression", "missing"),
        ({"expression": 5}, "timing.expression", "wrong_type"),
        ({"zone": ["UTC"]}, "timing.zone", "wrong_type"),
        ({"dst": "SKIP"}, "timing.dst", "wrong_type"),
        ({"dst": {"gap": "skip"}}, "timing.dst.gap", "unknown_choice"),
        ({"dst": {"fold": 1}}, "timing.dst.fold", "wrong_type"),
        ({"dst": {"zone": "UTC"}}, "timing.dst.zone", "unknown_field"),
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
            "unknown_field",
        ),
        ({"exclude": ["2026-01-01"] * 367}, "timing.exclude", "out_of_range"),
    ],
)
def test_a_wrong_member_is_named(change: dict[str, Any], field: str, code: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Timing.from_dict(FULL | change, field="timing")

    (finding,) = caught.value.findings
    assert (finding.field, finding.code) == (field, code)


def test_all_wrong_entries_of_exclude_are_named_together() -> None:
    entries = ["2026-12-25", "25.12.", 5, {"from": "2026-12-25"}, {"to": "x"}]
    with pytest.raises(InvalidInput) as caught:
        Timing.from_dict({"expression": "* * * * *", "exclude": entries})

    fields = [finding.field for finding in caught.value.findings]
    assert fields == ["exclude[1]", "exclude[2]", "exclude[3].to", "exclude[4].from"]


@pytest.mark.parametrize("zone", ["UTC", NEW_YORK, "Pacific/Kiritimati"])
def test_a_rate_stays_in_the_local_years_1970_to_2199(zone: str) -> None:
    info = find_zone(zone)
    first = datetime(1970, 1, 1, tzinfo=info).astimezone(UTC)
    end = datetime(2200, 1, 1, tzinfo=info).astimezone(UTC)
    minute = timedelta(minutes=1)
    timing = Timing("rate(1 minute)", zone, anchor=at("1900-01-01T00:00"))

    assert next_time(timing, at("1950-01-01T00:00")) == first
    assert previous_time(timing, first) is None
    assert previous_time(timing, first + minute) == first
    assert not matches(timing, first - minute)
    assert matches(timing, first)
    last = end - minute
    assert next_time(timing, last - minute) == last
    assert next_time(timing, last) is None
    assert previous_time(timing, at("2300-01-01T00:00")) == last
    assert matches(timing, last)
    assert not matches(timing, end)
    daily = Timing("rate(1 day)", anchor=at("2199-12-31T12:00"))
    assert next_time(daily, at("2199-12-31T12:00")) is None


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
