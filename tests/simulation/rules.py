"""The model's own time rules: minute by minute, for a handful of expressions.

Written from docs/time-rules.md and docs/policies.md, and sharing no code with what it
is to judge.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
INSTANT = timedelta(microseconds=1)
NEW_YORK = "America/New_York"

# By hand: since when, UTC, New York is so many hours from UTC.
_OFFSETS = (
    (datetime(2025, 11, 2, 6, tzinfo=UTC), -5),
    (datetime(2026, 3, 8, 7, tzinfo=UTC), -4),
    (datetime(2026, 11, 1, 6, tzinfo=UTC), -5),
    (datetime(2027, 3, 14, 7, tzinfo=UTC), -4),
)
# How far around the world's beginning times are computed.
_BEFORE, _AFTER = timedelta(days=1), timedelta(days=3)


def offset(zone: str, instant: datetime) -> timedelta:
    """Return how far a zone's clock is ahead of UTC."""
    if zone == "UTC":
        return timedelta(0)
    return timedelta(hours=[hours for since, hours in _OFFSETS if since <= instant][-1])


def wall(zone: str, instant: datetime) -> datetime:
    """Return what a zone's clock shows, without a zone."""
    return (instant + offset(zone, instant)).replace(tzinfo=None)


@dataclass(frozen=True)
class Rule:
    """When a schedule is due.

    Attributes:
        kind: every (n minutes of the hour), hourly (at minute n), daily (at hour and
            minute n), once (at a local time), rate (every n minutes from an anchor).
        end: no time from this instant on.
        most: how many times at most, over all versions of the schedule.
    """

    kind: str
    n: int = 0
    hour: int = 0
    zone: str = "UTC"
    once: datetime | None = None
    anchor: datetime | None = None
    end: datetime | None = None
    most: int | None = None

    @property
    def expression(self) -> str:
        """The text that the product gets."""
        texts = {
            "every": f"*/{self.n} * * * *",
            "hourly": f"{self.n} * * * *",
            "daily": f"{self.n} {self.hour} * * *",
            "once": f"at({self.once:%Y-%m-%dT%H:%M:%S})" if self.once else "",
            "rate": f"rate({self.n} minute{'s' if self.n > 1 else ''})",
        }
        return texts[self.kind]

    def times(self, first: datetime, last: datetime) -> list[datetime]:
        """Return the times from `first` to `last`, both included, uncounted."""
        day = first.replace(hour=0, minute=0, second=0, microsecond=0)
        return [t for t in _times(self, day) if first <= t <= last]


def ceil_second(instant: datetime) -> datetime:
    """Return the instant, or the next whole second."""
    whole = instant.replace(microsecond=0)
    return whole if whole == instant else whole + timedelta(seconds=1)


def available_at(occurrence_id: str, due: datetime, window: int) -> datetime:
    """Return when an occurrence on time may be received."""
    digest = hashlib.sha256(occurrence_id.encode()).hexdigest()
    return due + timedelta(seconds=int(digest[:16], 16) % window if window else 0)


def spelled(instant: datetime) -> str:
    """Return an instant as ids have it."""
    return f"{instant:%Y%m%dT%H%M%SZ}"


@lru_cache(maxsize=4096)
def _times(rule: Rule, day: datetime) -> tuple[datetime, ...]:
    first, last = day - _BEFORE, day + _AFTER
    if rule.kind == "rate":
        assert rule.anchor is not None
        found, instant = [], rule.anchor + rule.n * MINUTE
        while instant <= last:
            found.append(instant)
            instant += rule.n * MINUTE
    else:
        minutes = int((last - first) / MINUTE)
        found = [first + k * MINUTE for k in range(minutes)]
        found = [instant for instant in found if _due(rule, instant)]
    return tuple(t for t in found if rule.end is None or t < rule.end)


def _due(rule: Rule, instant: datetime) -> bool:
    shown = wall(rule.zone, instant)
    if shown == wall(rule.zone, instant - HOUR):
        return False  # the second of two equal local times
    if rule.kind == "every":
        return shown.minute % rule.n == 0
    if rule.kind == "hourly":
        return shown.minute == rule.n
    if rule.kind == "daily":
        return (shown.hour, shown.minute) == (rule.hour, rule.n)
    return shown == rule.once
