"""Expressions: what parses, what is refused, and what the refusal says."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hourbell.domain.cron import (
    MAX_LENGTH,
    AtExpression,
    CronExpression,
    RateExpression,
    parse,
)
from hourbell.domain.errors import Finding, InvalidInput

VECTORS = Path(__file__).parents[2] / "vectors"
INVALID = [
    vector["value"]
    for vector in json.loads((VECTORS / "invalid.json").read_text("utf-8"))
    if vector["kind"] == "expression"
]


def cron(text: str) -> CronExpression:
    expression = parse(text)
    assert isinstance(expression, CronExpression)
    return expression


def refusal(text: str) -> Finding:
    with pytest.raises(InvalidInput) as caught:
        parse(text, field="timing.expression")
    (finding,) = caught.value.findings
    return finding


def dates(text: str, start: str, count: int) -> list[str]:
    walls = cron(text).walls_between(
        datetime.fromisoformat(start), datetime(2199, 12, 31), count
    )
    return [wall.date().isoformat() for wall in walls]


# --- what parses -------------------------------------------------------------------


def test_a_parsed_expression_is_shared_and_names_its_form() -> None:
    assert parse(" 0 9 * * MON-FRI ") == parse("0 9 * * MON-FRI")
    assert parse("0 9 * * *") is parse("0 9 * * *")
    forms = [
        (parse(text).syntax, parse(text).kind, parse(text).text)
        for text in ("@hourly", "cron(0 9 ? * 2 *)", "at(2027-01-31T09:00:00)")
    ]
    assert forms == [
        ("unix", "cron", "@hourly"),
        ("aws", "cron", "cron(0 9 ? * 2 *)"),
        ("aws", "at", "at(2027-01-31T09:00:00)"),
    ]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@Daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
        ("0 0 * * 7", "0 0 * * 0"),
        ("0 0 * * sun", "0 0 * * 0"),
        ("0 0 * * 5-7", "0 0 * * 0,5,6"),
        ("0 0 * * 3-3", "0 0 * * 3"),
        ("0 0 * * 1/2", "0 0 * * 1,3,5"),
        ("0 0 * * 7/2", "0 0 * * 0"),
        ("00\t06 * jan,Jul mon", "0 6 * 1,7 1"),
        ("5/15 * * * *", "5,20,35,50 * * * *"),
        ("1-7/3,20-24/2 * * * *", "1,4,7,20,22,24 * * * *"),
        ("*/90 * * * *", "0 * * * *"),
        ("cron(0 0 ? * SUN,3 *)", "cron(0 0 ? * 1,TUE *)"),
        ("cron(0 0 * * ? *)", "cron(0 0 ? * * *)"),
        ("cron( 0 0 l * ? 2026-2030 )", "cron(0 0 L * ? 2026,2027,2028,2029,2030)"),
    ],
)
def test_two_texts_mean_the_same_times(text: str, same: str) -> None:
    first, second = cron(text), cron(same)

    assert first.minutes == second.minutes
    assert first.hours == second.hours
    assert first.months == second.months
    assert first.years == second.years
    assert first.days == second.days


@pytest.mark.parametrize(
    ("text", "either"),
    [
        ("0 0 1 * 5", True),
        ("0 0 1-31 * 1", True),
        ("0 0 */2 * 1", False),
        ("0 0 1 * *", False),
        ("0 0 1 * */2", False),
        ("0 0 *,1 * 5", False),
        ("0 0 1,* * 5", True),
        ("cron(0 0 1 * ? *)", False),
    ],
)
def test_either_day_field_is_enough_unless_one_begins_with_a_star(
    text: str, either: bool
) -> None:
    assert cron(text).either_day is either


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("cron(0 9 L * ? *)", "2028-01-15", "2028-01-31 2028-02-29 2028-03-31"),
        ("cron(0 9 LW * ? *)", "2026-01-01", "2026-01-30 2026-02-27 2026-03-31"),
        # 1 August 2026 is a Saturday: Monday the 3rd, never back into July
        ("cron(0 9 1W * ? *)", "2026-07-15", "2026-08-03 2026-09-01 2026-10-01"),
        # 31 May 2026 is a Sunday: Friday the 29th; June has no 31st
        ("cron(0 9 31W 5,6,7 ? *)", "2026-05-01", "2026-05-29 2026-07-31 2027-05-31"),
        # 15 February 2026 is a Sunday, 14 March a Saturday
        ("cron(0 9 15W 2 ? 2026)", "2026-01-01", "2026-02-16"),
        ("cron(0 9 14W 3 ? 2026)", "2026-01-01", "2026-03-13"),
        ("cron(0 9 1,L 2 ? *)", "2026-01-01", "2026-02-01 2026-02-28 2027-02-01"),
        ("cron(0 9 ? * 2#1 *)", "2026-01-01", "2026-01-05 2026-02-02 2026-03-02"),
        ("cron(0 9 ? * MON#5 *)", "2026-01-01", "2026-03-30 2026-06-29 2026-08-31"),
        ("cron(0 9 ? * 6L *)", "2026-01-01", "2026-01-30 2026-02-27 2026-03-27"),
        ("cron(0 9 ? * FRIL,2 *)", "2026-01-27", "2026-01-30 2026-02-02 2026-02-09"),
        ("cron(0 9 ? * L *)", "2026-01-01", "2026-01-03 2026-01-10 2026-01-17"),
        ("cron(0 9 1 1 ? 2027/2)", "2026-01-01", "2027-01-01 2029-01-01 2031-01-01"),
        # 29 February from 29 February, and over 2100
        ("0 0 29 2 *", "2096-02-29", "2096-02-29 2104-02-29 2108-02-29"),
        ("0 0 29 2 */7", "2026-01-01", "2032-02-29 2060-02-29 2088-02-29"),
        # the last day of February, and the 31st of a month that has one
        ("cron(0 0 L 2 ? *)", "2026-01-01", "2026-02-28 2027-02-28 2028-02-29"),
        ("cron(0 0 31 * ? *)", "2026-04-01", "2026-05-31 2026-07-31 2026-08-31"),
    ],
)
def test_days_of_both_syntaxes(text: str, start: str, expected: str) -> None:
    assert dates(text, start, len(expected.split())) == expected.split()


def test_next_and_previous_local_times_walk_the_same_row() -> None:
    for text in ("*/7 */5 * * *", "59 23 31 12 *", "cron(15 6 29 2 ? 2000-2050/3)"):
        expression = cron(text)
        walls = expression.walls_between(
            datetime(2015, 12, 28), datetime(2050, 1, 1), 200
        )
        assert len(walls) > 1
        for first, second in pairwise(walls):
            assert expression.next_wall(first) == second
            assert expression.previous_wall(second) == first
            just_after = first + timedelta(microseconds=1)
            assert expression.previous_wall(just_after) == first
            assert expression.next_wall(just_after) == second


def test_local_times_lie_in_the_years_1970_to_2199() -> None:
    every = cron("* * * * *")

    assert every.next_wall(datetime(1, 1, 1)) == datetime(1970, 1, 1)
    assert every.next_wall(datetime(2199, 12, 31, 23, 59)) is None
    assert every.next_wall(datetime(9999, 12, 31)) is None
    assert every.previous_wall(datetime(9999, 1, 1)) == datetime(2199, 12, 31, 23, 59)
    assert every.previous_wall(datetime(1970, 1, 1)) is None
    assert every.previous_wall(datetime(1, 1, 1)) is None


def test_at_keeps_its_seconds_and_rate_its_elapsed_time() -> None:
    assert parse("at(2026-07-01T09:00:30)") == AtExpression(
        "at(2026-07-01T09:00:30)", datetime(2026, 7, 1, 9, 0, 30)
    )
    periods = {
        text: expression.period
        for text in ("rate(1 minute)", "rate(90 minutes)", "rate(2 days)")
        if isinstance(expression := parse(text), RateExpression)
    }
    assert periods == {
        "rate(1 minute)": timedelta(minutes=1),
        "rate(90 minutes)": timedelta(minutes=90),
        "rate(2 days)": timedelta(hours=48),
    }


# --- what is refused ---------------------------------------------------------------


@pytest.mark.parametrize("text", INVALID, ids=lambda text: repr(text[:30]))
def test_every_invalid_vector_is_refused_in_one_short_sentence(text: str) -> None:
    finding = refusal(text)

    assert finding.field.startswith("timing.expression")
    assert finding.code in {"invalid_expression", "never_fires"}
    assert 10 < len(finding.message) < 250
    assert len(finding.found) <= 80


@pytest.mark.parametrize(
    ("text", "field", "suggestion"),
    [
        # ranges that run backwards
        ("0 22-2 * * *", "hour", "22-23,0-2"),
        ("0 0 * * FRI-MON", "day_of_week", "FRI-SAT,SUN-MON"),
        ("0 0 * * SAT-SUN", "day_of_week", "SAT,SUN"),
        ("0 0 * * 7-1", "day_of_week", "0-1"),
        ("0 0 * NOV-FEB *", "month", "NOV-DEC,JAN-FEB"),
        ("0 22-2/2 * * *", "hour", None),
        ("cron(0 0 ? * 6-2 *)", "day_of_week", "6-7,1-2"),
        # numbers just outside
        ("0 24 * * *", "hour", "0"),
        ("0 0-24 * * *", "hour", "0-23"),
        ("0 24-25 * * *", "hour", None),
        ("60 * * * *", "minute", None),
        ("0 0 32 * *", "day_of_month", None),
        ("cron(0 0 ? * 0 *)", "day_of_week", "1"),
        # names
        ("0 0 * * MONDAY", "day_of_week", "MON"),
        ("0 0 * * TEU", "day_of_week", "TUE"),
        ("0 0 * SEPT *", "month", "SEP"),
        ("0 0 * XYZ *", "month", None),
        ("MON * * * *", "minute", None),
        # lists
        ("1,,2 * * * *", "minute", "1,2"),
        (", * * * *", "minute", None),
        # signs of the other syntax
        ("0 0 L * *", "day_of_month", None),
        ("0 0 ? * MON", "day_of_month", None),
        ("0 0 * * MON#1", "day_of_week", None),
        ("0 0 1,LW * *", "day_of_month", None),
        ("cron(0 0 ? * 2/2 *)", "day_of_week", "2,4,6"),
        # day fields of AWS's form
        ("cron(0 9 * * MON-FRI *)", "day_of_week", "cron(0 9 ? * MON-FRI *)"),
        ("cron(0 9 1 * * *)", "day_of_week", "cron(0 9 1 * ? *)"),
        ("cron(0 9 ? * ? *)", "day_of_week", "cron(0 9 * * ? *)"),
        ("cron(0 9 1 * 2 *)", "day_of_week", None),
    ],
)
def test_a_field_is_named_and_what_was_meant_is_suggested(
    text: str, field: str, suggestion: str | None
) -> None:
    finding = refusal(text)

    assert finding.field == f"timing.expression.{field}"
    assert finding.suggestion == suggestion


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("0 0 9 * * *", "0 9 * * *"),
        ("0 9 * * ? *", "cron(0 9 * * ? *)"),
        ("0 9 * *", None),
        ("@every 5m", "rate(5 minutes)"),
        ("@every 2h", "rate(2 hours)"),
        ("@reboot", None),
        ("@fortnightly", None),
        ("cron(0 0 * * ?)", "cron(0 0 * * ? *)"),
        ("cron(0 0 0 * * ? *)", "cron(0 0 * * ? *)"),
        ("cron(0 0)", None),
        ("cron(0 0 * * ? *", "cron(0 0 * * ? *)"),
        ("cron", None),
        ("rate 5 minutes", "rate(5 minutes)"),
        ("Cron(0 0 * * ? *)", "cron(0 0 * * ? *)"),
        ("every(5 minutes)", None),
        ("rate(5)", "rate(5 minutes)"),
        ("rate(1.5 hours)", "rate(90 minutes)"),
        ("rate(0.5 days)", "rate(12 hours)"),
        ("rate(5 seconds)", None),
        ("rate(0 minutes)", None),
        ("rate(36526 days)", None),
        ("rate(99999999999999999999 days)", None),
        ("at(2026-01-01T00:00:00Z)", "at(2026-01-01T00:00:00)"),
        ("at(2026-01-01 09:30)", "at(2026-01-01T09:30:00)"),
        ("at(2026-01-01)", "at(2026-01-01T00:00:00)"),
        ("at(tomorrow)", None),
        ("at(1969-12-31T23:59:59)", None),
        ("at(2026-02-30T00:00:00)", None),
    ],
)
def test_a_wrong_form_is_suggested_in_the_right_one(
    text: str, suggestion: str | None
) -> None:
    finding = refusal(text)

    assert finding.field == "timing.expression"
    assert finding.code == "invalid_expression"
    assert finding.suggestion == suggestion
    if suggestion is not None:
        assert parse(suggestion).text == suggestion


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("0 0 31 4 *", "cron(0 0 L 4 ? *)"),
        ("0 0 30 2 *", "cron(0 0 L 2 ? *)"),
        ("cron(0 0 31 2 ? *)", "cron(0 0 L 2 ? *)"),
        ("cron(0 0 29 2 ? 2027)", "cron(0 0 L 2 ? 2027)"),
        ("0 0 31 2 */2", None),
        ("cron(0 0 ? 2 1#5 2027-2031)", None),
        ("cron(0 0 30W 2 ? *)", None),
    ],
)
def test_a_date_that_no_calendar_has_is_refused_at_once(
    text: str, suggestion: str | None
) -> None:
    finding = refusal(text)

    assert finding.code == "never_fires"
    assert finding.suggestion == suggestion


@pytest.mark.parametrize(
    "text",
    ["cron(0 0 1 1 ? 2020)", "at(2026-03-08T02:30:00)", "at(1970-01-01T00:00:00)"],
)
def test_a_time_in_the_past_parses_because_the_past_depends_on_now(text: str) -> None:
    assert parse(text).text == text


def test_text_is_capped_before_it_is_looked_at() -> None:
    longest = "0" * 4 + ",0" * ((MAX_LENGTH - 12) // 2) + " * * * *"

    assert len(longest) == MAX_LENGTH
    assert cron(longest).minutes == 1
    assert "longer than 256" in refusal(longest + " ").message
    assert "longer than 256" in refusal("*" * 10_000_000).message


def test_digits_are_capped_and_ascii() -> None:
    assert cron("0005 * * * *").minutes == 1 << 5
    assert refusal("00005 * * * *").field == "timing.expression.minute"
    assert refusal("\u0665 * * * *").field == "timing.expression"
    assert refusal("0 0 * * *\n").field == "timing.expression"
