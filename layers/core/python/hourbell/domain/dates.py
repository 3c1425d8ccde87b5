"""Ranges of calendar dates, for the days that a schedule leaves out."""

from bisect import bisect_right
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from hourbell.domain.zones import FIRST_YEAR, LAST_YEAR

_FIRST: Final = date(FIRST_YEAR - 1, 1, 1)
_LAST: Final = date(LAST_YEAR + 1, 12, 31)
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True, order=True)
class DateRange:
    """Dates from `first` to `last`, both included."""

    first: date
    last: date

    @classmethod
    def single(cls, day: date) -> "DateRange":
        """Make the range of one date."""
        return cls(day, day)

    def __str__(self) -> str:
        """Write the range as `2026-12-24 to 2026-12-26`, or as its one date."""
        if self.first == self.last:
            return self.first.isoformat()
        return f"{self.first.isoformat()} to {self.last.isoformat()}"


class DateSet:
    """Dates of several ranges, joined where they touch."""

    def __init__(self, ranges: tuple[DateRange, ...]) -> None:
        self._ranges: list[DateRange] = []
        for each in sorted(ranges):
            # Times lie in the years 1970 to 2199: further dates only overflow.
            self._add(DateRange(max(each.first, _FIRST), min(each.last, _LAST)))
        self._firsts = [each.first for each in self._ranges]

    def __bool__(self) -> bool:
        """Tell whether there is any date in the set."""
        return bool(self._ranges)

    def holding(self, day: date) -> DateRange | None:
        """Return the joined range that holds a date, if any."""
        index = bisect_right(self._firsts, day) - 1
        if index < 0 or self._ranges[index].last < day:
            return None
        return self._ranges[index]

    def _add(self, added: DateRange) -> None:
        if added.first > added.last:
            return
        if self._ranges and added.first <= self._ranges[-1].last + _DAY:
            previous = self._ranges.pop()
            added = DateRange(previous.first, max(previous.last, added.last))
        self._ranges.append(added)
