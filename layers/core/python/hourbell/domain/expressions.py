"""The three kinds of expression, parsed: cron, at and rate.

Expressions know local wall time only. What a zone does to it is `recurrence`'s.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar, Final, Literal

from hourbell.domain.zones import FIRST_YEAR, LAST_YEAR, TICK

Syntax = Literal["unix", "aws"]

FIRST_WALL: Final = datetime(FIRST_YEAR, 1, 1)
LAST_WALL: Final = datetime(LAST_YEAR, 12, 31, 23, 59)

_LENGTHS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def month_length(year: int, month: int) -> int:
    """Return the number of days of a month."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 29 if month == 2 and leap else _LENGTHS[month - 1]


def shape_of(first_weekday: int, length: int) -> int:
    """Number the 28 possible calendar sheets of a month.

    Args:
        first_weekday: weekday of the 1st, Monday is 0.
        length: days in the month, 28 to 31.
    """
    return first_weekday * 4 + length - 28


def _shapes() -> bytes:
    weekday = FIRST_WALL.weekday()
    shapes = bytearray()
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        for month in range(1, 13):
            length = month_length(year, month)
            shapes.append(shape_of(weekday, length))
            weekday = (weekday + length) % 7
    return bytes(shapes)


MONTH_SHAPES: Final = _shapes()
"""Shape of each month from January of FIRST_YEAR on."""


@dataclass(frozen=True, slots=True)
class CronExpression:
    """A cron expression as bit sets: bit n of a set stands for the value n.

    Attributes:
        text: the expression as written, without blanks around it.
        syntax: `unix` (5 fields) or `aws` (`cron(...)`).
        minutes: bits 0 to 59.
        hours: bits 0 to 23.
        months: bits 1 to 12.
        years: bit n stands for the year 1970 + n, up to 2199.
        days: bits 1 to 31 of the matching days, one set for each month shape.
        either_day: the Unix rule "day-of-month OR day-of-week" is in force.
    """

    text: str
    syntax: Syntax
    minutes: int
    hours: int
    months: int
    years: int
    days: tuple[int, ...]
    either_day: bool = False

    kind: ClassVar[Literal["cron"]] = "cron"

    def next_wall(self, after: datetime) -> datetime | None:
        """Return the first matching local time strictly after a naive local time."""
        year, month, day = after.year, after.month, after.day
        days = self._days_of(year, month)
        if days >> day & 1:
            hour, minute = after.hour, after.minute
            if self.hours >> hour & 1 and (rest := self.minutes >> minute + 1):
                minute += (rest & -rest).bit_length()
                return datetime(year, month, day, hour, minute)
            if rest := self.hours >> hour + 1:
                hour += (rest & -rest).bit_length()
                return datetime(year, month, day, hour, _lowest(self.minutes))
        if rest := days >> day + 1:
            day += (rest & -rest).bit_length()
            return datetime(
                year, month, day, _lowest(self.hours), _lowest(self.minutes)
            )
        return self._first_after_month(year, month)

    def previous_wall(self, before: datetime) -> datetime | None:
        """Return the last matching local time strictly before a naive local time."""
        year, month, day = before.year, before.month, before.day
        days = self._days_of(year, month)
        if days >> day & 1:
            hour = before.hour
            # A time inside the minute lies after the minute's own start.
            inside = before.second > 0 or before.microsecond > 0
            rest = self.minutes & (1 << before.minute + inside) - 1
            if self.hours >> hour & 1 and rest:
                return datetime(year, month, day, hour, rest.bit_length() - 1)
            if rest := self.hours & (1 << hour) - 1:
                hour = rest.bit_length() - 1
                return datetime(year, month, day, hour, _highest(self.minutes))
        if rest := days & (1 << day) - 1:
            day = rest.bit_length() - 1
            return datetime(
                year, month, day, _highest(self.hours), _highest(self.minutes)
            )
        return self._last_before_month(year, month)

    def walls_between(
        self, start: datetime, end: datetime, limit: int
    ) -> tuple[datetime, ...]:
        """Return up to `limit` matching local times in [start, end)."""
        walls: list[datetime] = []
        wall = self.next_wall(start - TICK)
        while wall is not None and wall < end and len(walls) < limit:
            walls.append(wall)
            wall = self.next_wall(wall)
        return tuple(walls)

    def _days_of(self, year: int, month: int) -> int:
        index = year - FIRST_YEAR
        if index < 0 or not (self.years >> index & 1 and self.months >> month & 1):
            return 0
        return self.days[MONTH_SHAPES[index * 12 + month - 1]]

    def _first_after_month(self, year: int, month: int) -> datetime | None:
        if year < FIRST_YEAR:
            year, month = FIRST_YEAR, 0
        while rest := self.years >> year - FIRST_YEAR:
            skipped = _lowest(rest)
            if skipped:
                year, month = year + skipped, 0
            for candidate in range(month + 1, 13):
                if days := self._days_of(year, candidate):
                    hour, minute = _lowest(self.hours), _lowest(self.minutes)
                    return datetime(year, candidate, _lowest(days), hour, minute)
            year, month = year + 1, 0
        return None

    def _last_before_month(self, year: int, month: int) -> datetime | None:
        if year > LAST_YEAR:
            year, month = LAST_YEAR, 13
        while year >= FIRST_YEAR:
            rest = self.years & (2 << year - FIRST_YEAR) - 1
            if not rest:
                break
            latest = FIRST_YEAR + _highest(rest)
            if latest < year:
                year, month = latest, 13
            for candidate in range(month - 1, 0, -1):
                if days := self._days_of(year, candidate):
                    hour, minute = _highest(self.hours), _highest(self.minutes)
                    return datetime(year, candidate, _highest(days), hour, minute)
            year, month = year - 1, 13
        return None


@dataclass(frozen=True, slots=True)
class AtExpression:
    """One local time: `at(2027-01-31T09:00:00)`.

    Attributes:
        text: the expression as written, without blanks around it.
        wall: the local time, naive, whole seconds.
    """

    text: str
    wall: datetime

    syntax: ClassVar[Syntax] = "aws"
    kind: ClassVar[Literal["at"]] = "at"


@dataclass(frozen=True, slots=True)
class RateExpression:
    """Elapsed time from an anchor: `rate(5 minutes)`.

    Attributes:
        text: the expression as written, without blanks around it.
        period: elapsed time between two times; a day is 24 hours.
    """

    text: str
    period: timedelta

    syntax: ClassVar[Syntax] = "aws"
    kind: ClassVar[Literal["rate"]] = "rate"


Expression = CronExpression | AtExpression | RateExpression


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _highest(bits: int) -> int:
    return bits.bit_length() - 1
