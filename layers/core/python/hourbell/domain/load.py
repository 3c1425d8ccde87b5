"""The load of a minute: what falls on it, compared with the average minute.

The load of a time to come is told from the minutes at the same time of day, UTC, that
are past: of the last day, and of the day a week before that.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from hourbell.domain.instants import floor_minute
from hourbell.domain.shards import MINUTE

DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)

# How long before the last day the days begin that are looked at.
_EARLIER: Final = (timedelta(0), timedelta(days=7))


@dataclass(frozen=True, slots=True)
class Counts:
    """How many occurrences fall on each of some UTC minutes."""

    by_minute: Mapping[datetime, int] = field(default_factory=dict)

    @classmethod
    def of(cls, instant: datetime) -> "Counts":
        """Count one occurrence."""
        return cls({floor_minute(instant): 1})

    def __add__(self, other: "Counts") -> "Counts":
        """Add up the counts of each minute."""
        if not self.by_minute or not other.by_minute:
            return self if self.by_minute else other
        merged = Counter(self.by_minute)
        merged.update(other.by_minute)
        return Counts(merged)


NO_COUNTS: Final = Counts()


def floor_hour(instant: datetime) -> datetime:
    """Return the start of the UTC hour that contains the instant."""
    return floor_minute(instant).replace(minute=0)


def telling_hours(now: datetime) -> list[datetime]:
    """Return the UTC hours whose counts tell loads at an instant: 50 at most."""
    hours: list[datetime] = []
    for start in _starts(now):
        hour = floor_hour(start)
        while hour < start + DAY:
            hours.append(hour)
            hour += HOUR
    return hours


def relative_loads(
    times: Iterable[datetime], counts: Mapping[datetime, int], now: datetime
) -> list[float | None]:
    """Return the load of each time: how many times the average minute of a day.

    Of the two days the one with the larger ratio counts. A day without any counts
    tells nothing.

    Args:
        times: instants from now on.
        counts: of the minutes of the `telling_hours`; those without are left out.
        now: the current instant.

    Returns:
        ratios of two decimals, in order; None when neither day tells anything.
    """
    starts = _starts(now)
    totals = [_total(counts, start) for start in starts]
    loads: list[float | None] = []
    for instant in times:
        into_day = (floor_minute(instant) - floor_minute(now)) % DAY
        ratios = [
            counts.get(start + into_day, 0) * (DAY // MINUTE) / total
            for start, total in zip(starts, totals, strict=True)
            if total
        ]
        loads.append(round(max(ratios), 2) if ratios else None)
    return loads


def _starts(now: datetime) -> Sequence[datetime]:
    """Return where the days begin, the last one's end being the current minute."""
    return [floor_minute(now) - DAY - earlier for earlier in _EARLIER]


def _total(counts: Mapping[datetime, int], start: datetime) -> int:
    return sum(
        count for minute, count in counts.items() if start <= minute < start + DAY
    )
