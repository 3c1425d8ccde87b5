"""A replan finds what a release moves, and takes over where nothing is lost."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from hourbell.domain.replanning import (
    LONGEST,
    SPAN,
    Replan,
    Shift,
    moved_times,
    replan,
    take_over_at,
)
from hourbell.domain.schedule import Timing, under, upcoming

ASUNCION = "America/Asuncion"
CASABLANCA = "Africa/Casablanca"
VANCOUVER = "America/Vancouver"
REACH = timedelta(seconds=184)
# Asuncion's clocks went back on 2026-03-22 by 2024b, and on no day by 2025a.
MARCH = datetime(2026, 3, 9, 12, tzinfo=UTC)


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


def planned(timing: Timing) -> Replan | None:
    return replan(timing, "2024b", MARCH, MARCH + REACH)


def test_a_daily_time_moves_by_the_hour_that_the_offsets_are_apart() -> None:
    plan = planned(Timing("0 9 * * *", ASUNCION))
    assert plan is not None
    assert plan.as_of == MARCH
    assert plan.shifts == tuple(
        Shift(datetime(2026, 3, day, 9), utc(2026, 3, day, 13), utc(2026, 3, day, 12))
        for day in range(22, 27)
    )


def test_a_single_time_moves() -> None:
    plan = planned(Timing("at(2026-07-01T09:00:00)", ASUNCION))
    assert plan is not None
    (shift,) = plan.shifts
    assert (shift.before, shift.after) == (utc(2026, 7, 1, 13), utc(2026, 7, 1, 12))


@pytest.mark.parametrize(
    ("text", "members"),
    [
        # Elapsed time knows no zone.
        ("rate(1 hour)", {"anchor": "2026-03-01T00:00:00Z"}),
        # Only in summer, when both have -3.
        ("0 9 * 1 *", {}),
        # Over before the offsets part.
        ("0 9 * * *", {"end_at": "2026-03-22T12:00:00Z"}),
        # Past.
        ("at(2026-03-01T09:00:00)", {}),
        # Beyond the span.
        ("cron(0 9 1 7 ? 2030)", {}),
    ],
)
def test_what_no_rule_moves_stays(text: str, members: dict[str, object]) -> None:
    timing = {"expression": text, "zone": ASUNCION, **members}
    assert planned(Timing.from_dict(timing)) is None


def test_zones_of_the_same_rules_are_not_even_looked_at() -> None:
    timing = Timing("* * * * *", "Europe/Berlin")
    assert replan(timing, "2024b", MARCH, MARCH) is None
    assert replan(Timing("0 9 * * *", ASUNCION), "2025a", MARCH, MARCH) is None
    assert replan(Timing("0 9 * * *", ASUNCION), "2031a", MARCH, MARCH) is None


def test_a_rate_moves_where_its_excluded_date_does() -> None:
    rate = Timing.from_dict(
        {
            "expression": "rate(1 hour)",
            "zone": ASUNCION,
            "anchor": "2026-03-01T00:00:00Z",
            "exclude": ["2026-06-01"],
        }
    )
    # The date lasts from 04:00 to 04:00 UTC by -4, from 03:00 to 03:00 by -3.
    assert moved_times(under(rate, "2024b"), rate, MARCH) == (
        Shift(datetime(2026, 5, 31, 23), utc(2026, 6, 1, 3), None),
        Shift(datetime(2026, 6, 2), None, utc(2026, 6, 2, 3)),
    )


PATTERNS = [
    *("0 * * * *", "*/20 * * * *", "30 0 * * *", "0 9-17 * * MON-FRI", "0 0 1 * *"),
    *("*/10 * 10-12 * *", "*/7 * * 3 *", "*/15 * * * SUN", "0 9 29 2 *"),
    *("cron(0/30 * ? * * 2027)", "cron(0 12 L * ? *)", "0 1 * 3,9,11 *"),
]
CHANGES = [
    ("2024b", ASUNCION, {}),
    ("2024b", ASUNCION, {"dst": {"gap": "NEXT_VALID", "fold": "BOTH"}}),
    ("2025c", "Europe/Chisinau", {"dst": {"fold": "SECOND"}}),
    (
        "2026a",
        VANCOUVER,
        {"exclude": ["2026-12-13", {"from": "2026-12-24", "to": "2027-01-06"}]},
    ),
    ("2026b", CASABLANCA, {}),
    ("2026e", "America/Havana", {"dst": {"gap": "NEXT_VALID"}}),
]


@pytest.mark.parametrize(("release", "zone", "members"), CHANGES)
@pytest.mark.parametrize("text", PATTERNS)
def test_the_first_moved_time_is_found_wherever_it_lies(
    text: str, release: str, zone: str, members: dict[str, object]
) -> None:
    after = Timing.from_dict({"expression": text, "zone": zone, **members})
    before, end = under(after, release), MARCH + SPAN
    old, new = (
        set(takewhile(lambda each: each < end, upcoming(each, MARCH)))
        for each in (before, after)
    )
    alone = min(old ^ new, default=None)
    found = moved_times(before, after, MARCH)
    firsts = [
        each
        for shift in found[:1]
        for each in (shift.before, shift.after)
        if each in old ^ new
    ]
    assert min(firsts, default=None) == alone


LATE = [
    # Earlier by the new rules: 09:00 was to come at 13:00, and should have at 12:00.
    ("2024b", ASUNCION, utc(2026, 4, 10, 11), 180),
    # Later by the new rules: 09:00 has come at 08:00, and should at 09:00.
    ("2026b", CASABLANCA, utc(2026, 10, 1, 7), 180),
]


@pytest.mark.parametrize("text", ["0 9 * * *", "0 9,12 * * *", "0 9-10 * * MON-FRI"])
@pytest.mark.parametrize(("release", "zone", "begin", "minutes"), LATE)
def test_each_local_time_comes_once_whenever_the_rules_change(
    text: str, release: str, zone: str, begin: datetime, minutes: int
) -> None:
    after = Timing(text, zone)
    before = under(after, release)
    start, end = begin - timedelta(days=1), begin + timedelta(days=2)
    old, new = (
        {_local(each, instant): instant for instant in _between(each, start, end)}
        for each in (before, after)
    )
    assert old.keys() == new.keys()
    for minute in range(minutes):
        now = begin + timedelta(minutes=minute)
        as_of = take_over_at(before, after, now, now + REACH)
        assert now < as_of <= now + LONGEST
        # What may be on its way already is the old rules'.
        assert as_of >= now + REACH
        comes = Counter[datetime]()
        comes.update(local for local, instant in old.items() if instant <= as_of)
        comes.update(local for local, instant in new.items() if instant > as_of)
        assert comes == dict.fromkeys(old, 1), now


def test_times_as_dense_as_the_shift_do_not_keep_the_old_rules_for_long() -> None:
    now = utc(2026, 4, 10, 12, 30)
    after = Timing("0 9-17 * * *", ASUNCION)
    assert take_over_at(under(after, "2024b"), after, now, now + REACH) == now


def test_a_rate_and_rules_that_agree_today_are_taken_over_at_once() -> None:
    rate = Timing("rate(1 day)", ASUNCION, anchor=MARCH)
    july = utc(2026, 7, 1)
    assert take_over_at(under(rate, "2024b"), rate, july, july + REACH) == july
    daily = Timing("0 9 * * *", ASUNCION)
    assert take_over_at(under(daily, "2024b"), daily, MARCH, MARCH + REACH) == MARCH


def _between(timing: Timing, start: datetime, end: datetime) -> list[datetime]:
    return list(takewhile(lambda each: each < end, upcoming(timing, start)))


def _local(timing: Timing, instant: datetime) -> datetime:
    return instant.astimezone(timing.info).replace(tzinfo=None)
