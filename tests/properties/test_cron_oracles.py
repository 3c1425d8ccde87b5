"""Cron against two other libraries and against a minute-by-minute reading of clocks.

The libraries judge naive local times only: with zones they break the contract (see
docs/time-rules.md). Each of their known disagreements is a predicate with its reason
below; an expression that none of them explains must agree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from croniter import CroniterError, croniter
from cronsim import CronSim, CronSimError
from hourbell.domain.cron import CronExpression, parse
from hourbell.domain.errors import InvalidInput
from hourbell.domain.schedule import (
    DateRange,
    Timing,
)
from hourbell.domain.zones import Fold, Gap
from hypothesis import event, given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

MONTHS = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
NUMBERS = {name: number for number, name in enumerate(MONTHS, start=1)}
NUMBERS |= {name: number for number, name in enumerate(WEEKDAYS)}

MINUTE = timedelta(minutes=1)


# --- random expressions, together with the values that they mean ------------------


@dataclass(frozen=True)
class Piece:
    """A field's text and, independently of the product's parser, its values."""

    text: str
    values: frozenset[int]


@st.composite
def items(
    draw: st.DrawFn, low: int, high: int, top: int, names: dict[int, str]
) -> Piece:
    def write(value: int) -> str:
        forms = [str(value), f"{value:02d}"]
        if value in names:
            forms += [names[value], names[value].lower()]
        return draw(st.sampled_from(forms))

    form = draw(st.sampled_from(["star", "every", "value", "value", "from", "range"]))
    step = draw(st.integers(1, high + 3))
    first = draw(st.integers(low, top))
    last = draw(st.integers(first, top))
    if form == "star":
        return Piece("*", frozenset(range(low, high + 1)))
    if form == "every":
        return Piece(f"*/{step}", frozenset(range(low, high + 1, step)))
    if form == "value":
        return Piece(write(first), frozenset({first}))
    if form == "from":
        end = max(first, high)
        return Piece(f"{write(first)}/{step}", frozenset(range(first, end + 1, step)))
    text = f"{write(first)}-{write(last)}"
    if draw(st.booleans()):
        return Piece(f"{text}/{step}", frozenset(range(first, last + 1, step)))
    return Piece(text, frozenset(range(first, last + 1)))


@st.composite
def fields(
    draw: st.DrawFn, low: int, high: int, top: int = 0, names: tuple[str, ...] = ()
) -> Piece:
    named = {NUMBERS[name]: name for name in names}
    some = st.lists(items(low, high, max(top, high), named), min_size=1, max_size=3)
    every = st.just([Piece("*", frozenset(range(low, high + 1)))])
    chosen = draw(st.one_of(every, some))
    values = frozenset[int]().union(*(piece.values for piece in chosen))
    return Piece(",".join(piece.text for piece in chosen), values)


@dataclass(frozen=True, repr=False)
class Cron:
    """A Unix expression and the sets of values of its fields."""

    minute: Piece
    hour: Piece
    day: Piece
    month: Piece
    weekday: Piece

    def __repr__(self) -> str:
        return f"Cron({self.text!r})"

    @property
    def text(self) -> str:
        parts = (self.minute, self.hour, self.day, self.month, self.weekday)
        return " ".join(piece.text for piece in parts)

    def means(self, local: datetime) -> bool:
        by_date = local.day in self.day.values
        weekdays = {value % 7 for value in self.weekday.values}
        by_weekday = local.isoweekday() % 7 in weekdays
        stars = (self.day.text[0], self.weekday.text[0])
        days = by_date and by_weekday if "*" in stars else by_date or by_weekday
        return (
            days
            and local.minute in self.minute.values
            and local.hour in self.hour.values
            and local.month in self.month.values
        )


crons = st.builds(
    Cron,
    minute=fields(0, 59),
    hour=fields(0, 23),
    day=fields(1, 31),
    month=fields(1, 12, names=MONTHS),
    weekday=fields(0, 6, top=7, names=WEEKDAYS),
)
EVERY = {
    name: Piece("*", frozenset(range(low, high + 1)))
    for name, low, high in (("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
}
# Most random dates miss a window of some days: these run on each.
daily = crons.map(lambda cron: replace(cron, **EVERY))
starts = st.datetimes(datetime(1990, 1, 1), datetime(2060, 1, 1)).map(
    lambda start: start.replace(second=0, microsecond=0)
)


# --- the two libraries ------------------------------------------------------------


def ranges(text: str) -> list[tuple[bool, bool]]:
    """Tell of each range in an expression: one value only? with a step?"""
    found = []
    for item in re.split(r"[ ,]", text.upper()):
        if parts := re.fullmatch(r"(\w+)-(\w+)(/\d+)?", item):
            first, last = (NUMBERS.get(end, end) for end in parts.group(1, 2))
            found.append((int(first) == int(last), parts[3] is not None))
    return found


def weekday_items(text: str) -> list[str]:
    return text.split()[4].split(",")


def one_value_range(text: str) -> bool:
    """croniter reads `3-3` as the whole field; here it is the value 3."""
    return any(single for single, _ in ranges(text))


def star_within_a_list(text: str) -> bool:
    """croniter sorts `5,*/2` so that the `*` comes first, and then takes AND.

    The Unix rule looks at the first character as written: OR holds here.
    """
    days = (text.split()[2], text.split()[4])
    return any(day[0] != "*" and "*" in day for day in days)


def sunday_seven_with_step(text: str) -> bool:
    """croniter reads `7/2` as `0/2`; here it runs from 7 to the field's end, 7."""
    return any(re.match(r"0?7/", item) for item in weekday_items(text))


def one_value_range_with_step(text: str) -> bool:
    """cronsim reads `3-3/5` as `3/5`; here the range ends where it says."""
    return any(single and stepped for single, stepped in ranges(text))


def weekday_from_with_step(text: str) -> bool:
    """cronsim lets `1/2` run to 7, and so adds Sunday; here a week ends at 6.

    7 is a second name of Sunday, not an eighth day: 1/2 is MON, WED, FRI.
    """
    return any(re.fullmatch(r"\w+/\d+", item) for item in weekday_items(text))


CRONITER_DIFFERS = (one_value_range, star_within_a_list, sunday_seven_with_step)
CRONSIM_DIFFERS = (one_value_range_with_step, weekday_from_with_step)


def ask_croniter(text: str, start: datetime) -> list[datetime] | None:
    try:
        # "The bug" is Vixie cron's rule of the leading `*`, which is the contract here.
        times = croniter(
            text, start, implement_cron_bug=True, max_years_between_matches=60
        )
        return [times.get_next(datetime) for _ in range(4)]
    except CroniterError:
        return None


def ask_cronsim(text: str, start: datetime) -> list[datetime] | None:
    try:
        times = CronSim(text, start)
        return [next(times) for _ in range(4)]
    except (CronSimError, StopIteration):
        return None


def ask_hourbell(text: str, start: datetime) -> list[datetime] | None:
    try:
        expression = parse(text)
    except InvalidInput as error:
        if error.code != "never_fires":
            raise
        return None
    assert isinstance(expression, CronExpression)
    walls = expression.walls_between(start + MINUTE, datetime(2199, 1, 1), 4)
    return list(walls)


@pytest.mark.parametrize(
    ("oracle", "explanations"),
    [(ask_croniter, CRONITER_DIFFERS), (ask_cronsim, CRONSIM_DIFFERS)],
    ids=["croniter", "cronsim"],
)
@given(cron=crons, start=starts)
def test_next_local_times_agree_with_a_library_unless_explained(
    oracle: Callable[[str, datetime], list[datetime] | None],
    explanations: tuple[Callable[[str], bool], ...],
    cron: Cron,
    start: datetime,
) -> None:
    ours = ask_hourbell(cron.text, start)

    reasons = [each.__name__ for each in explanations if each(cron.text)]
    event(f"explained by {reasons[0]}" if reasons else "judged")
    if not reasons:
        assert ours == oracle(cron.text, start)


@pytest.mark.parametrize(
    ("text", "oracle", "theirs", "ours"),
    [
        ("0 9 * * 3-3", ask_croniter, "2026-01-01", "2026-01-07"),
        ("0 9 5 * 3,*", ask_croniter, "2026-01-05", "2026-01-01"),
        ("0 9 * * 7/2", ask_croniter, "2026-01-01", "2026-01-04"),
        ("0 9 3-3/9 * *", ask_cronsim, "2026-01-12", "2026-02-03"),
        ("0 9 * * 1/6", ask_cronsim, "2026-01-04", "2026-01-05"),
    ],
)
def test_each_listed_disagreement_is_real(
    text: str,
    oracle: Callable[[str, datetime], list[datetime] | None],
    theirs: str,
    ours: str,
) -> None:
    start = datetime(2026, 1, 1)
    if text == "0 9 3-3/9 * *":
        start = datetime(2026, 1, 4)

    answer, other = ask_hourbell(text, start), oracle(text, start)

    assert answer is not None
    assert other is not None
    assert answer[0].date().isoformat() == ours
    assert other[0].date().isoformat() == theirs


# --- clocks, minute by minute -----------------------------------------------------

ZONES = (
    *("Africa/Cairo", "Africa/Casablanca", "America/Godthab", "America/New_York"),
    *("America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Gaza"),
    *("Asia/Kathmandu", "Asia/Tehran", "Australia/Lord_Howe", "Europe/Berlin"),
    *("Europe/Dublin", "Pacific/Apia", "Pacific/Chatham", "UTC"),
)
WINDOW = timedelta(hours=28)


def changes(name: str) -> list[datetime]:
    """Find the hours in which a zone's offset changes, by looking at every hour."""
    info = ZoneInfo(name)
    first, last = datetime(2009, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
    hours = range(0, int((last - first).total_seconds()) // 3600, 6)
    at = [first + timedelta(hours=hour) for hour in hours]
    offsets = [each.astimezone(info).utcoffset() for each in at]
    found = [
        later
        for later, before, after in zip(at[1:], offsets, offsets[1:], strict=False)
        if before != after
    ]
    return found or [first]


CHANGES = {name: changes(name) for name in ZONES}


@st.composite
def windows(draw: st.DrawFn) -> tuple[str, datetime, datetime]:
    """Draw a zone and a stretch of time around one of its transitions."""
    name = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(CHANGES[name]))
    shift = timedelta(minutes=draw(st.integers(-600, 600)))
    return name, change + shift - WINDOW, change + shift + WINDOW


def read_clock(
    cron: Cron, timing: Timing, start: datetime, end: datetime
) -> list[datetime]:
    """Walk (start, end) minute by minute and read the zone's clock at each."""
    info = ZoneInfo(timing.zone)
    found: list[datetime] = []
    instant, local = start, start.astimezone(info)
    while (instant := instant + MINUTE) < end:
        expected, local = local + MINUTE, instant.astimezone(info)
        runs = local.minute in cron.minute.values and (
            cron.means(local) and counts(local, timing.fold)
        )
        # A zone's clock never stops: what it jumps over is missing.
        while expected.replace(tzinfo=None) < local.replace(tzinfo=None):
            runs |= timing.gap is Gap.NEXT_VALID and cron.means(expected)
            expected += MINUTE
        day = local.date()
        if runs and not any(each.first <= day <= each.last for each in timing.exclude):
            found.append(instant)
    return found


def counts(local: datetime, fold: Fold) -> bool:
    early, late = local.replace(fold=0), local.replace(fold=1)
    # On an instant's own clock time the two differ only where it comes twice.
    if fold is Fold.BOTH or early.utcoffset() == late.utcoffset():
        return True
    return local.fold == (0 if fold is Fold.FIRST else 1)


@st.composite
def exclusions(draw: st.DrawFn, start: datetime) -> tuple[DateRange, ...]:
    if draw(st.booleans()):
        return ()
    first = start.date() + timedelta(days=draw(st.integers(0, 3)))
    last = first + timedelta(days=draw(st.integers(0, 1)))
    return (DateRange(first, last), DateRange.single(date(2020, 2, 29)))
