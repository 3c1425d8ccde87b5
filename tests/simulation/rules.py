"""The model's own time rules: minute by minute, for a handful of expressions.

Written from docs/time-rules.md and docs/policies.md, and sharing no code with what it
is to judge.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
INSTANT = timedelta(microseconds=1)
UTC_ZONE, NEW_YORK, LORD_HOWE = "UTC", "America/New_York", "Australia/Lord_Howe"

# By hand: since when, UTC, a zone's clock is so many minutes ahead. On Lord Howe
# clocks change by half an hour.
_OFFSETS = {
    UTC_ZONE: ((datetime(2025, 1, 1, tzinfo=UTC), 0),),
    NEW_YORK: (
        (datetime(2025, 11, 2, 6, tzinfo=UTC), -300),
        (datetime(2026, 3, 8, 7, tzinfo=UTC), -240),
        (datetime(2026, 11, 1, 6, tzinfo=UTC), -300),
        (datetime(2027, 3, 14, 7, tzinfo=UTC), -240),
    ),
    LORD_HOWE: (
        (datetime(2025, 10, 4, 15, 30, tzinfo=UTC), 660),
        (datetime(2026, 4, 4, 15, tzinfo=UTC), 630),
        (datetime(2026, 10, 3, 15, 30, tzinfo=UTC), 660),
        (datetime(2027, 4, 3, 15, tzinfo=UTC), 630),
    ),
}


def offset(zone: str, instant: datetime) -> timedelta:
    """Return how far a zone's clock is ahead of UTC."""
    found = [minutes for since, minutes in _OFFSETS[zone] if since <= instant]
    return timedelta(minutes=found[-1])


def wall(zone: str, instant: datetime) -> datetime:
    """Return what a zone's clock shows, without a zone."""
    return (instant + offset(zone, instant)).replace(tzinfo=None)


@dataclass(frozen=True)
class Rule:
    """When a schedule is due.

    Attributes:
        kind: every (n minutes of the hour), hourly (at minute n), daily (at hour and
            minute n), once (at a local time), rate (every n minutes from an anchor).
        start: no time before this instant.
        end: no time from this instant on.
        most: how many times at most, over all versions of the schedule.
        gap: SKIP or NEXT_VALID, for local times that do not exist.
        fold: FIRST, SECOND or BOTH, for local times that come twice.
        exclude: local dates, (first, last), on which nothing runs.
        aws: whether a cron is spelled in the form of AWS.
    """

    kind: str
    n: int = 0
    hour: int = 0
    zone: str = UTC_ZONE
    once: datetime | None = None
    anchor: datetime | None = None
    start: datetime | None = None
    end: datetime | None = None
    most: int | None = None
    gap: str = "SKIP"
    fold: str = "FIRST"
    exclude: tuple[tuple[date, date], ...] = ()
    aws: bool = False

    @property
    def expression(self) -> str:
        """The text that the product gets."""
        if self.kind == "once":
            return f"at({self.once:%Y-%m-%dT%H:%M:%S})"
        if self.kind == "rate":
            return f"rate({self.n} minute{'s' if self.n > 1 else ''})"
        hour = str(self.hour) if self.kind == "daily" else "*"
        minute = f"*/{self.n}" if self.kind == "every" else str(self.n)
        if self.aws:
            return f"cron({minute} {hour} * * ? *)"
        return f"{minute} {hour} * * *"

    def times(self, first: datetime, last: datetime) -> list[datetime]:
        """Return the times from `first` to `last`, both included, uncounted."""
        day = first.replace(hour=0, minute=0, second=0, microsecond=0)
        found: list[datetime] = []
        while day <= last:
            found += [t for t in _times_of_day(self, day) if first <= t <= last]
            day += DAY
        return found


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


@dataclass(frozen=True)
class Minute:
    """A minute of a zone's clock.

    Attributes:
        at: the instant at which it begins.
        shown: what the clock shows.
        comes_again: whether it is the first of two that look alike.
        came_before: whether it is the second of two.
        skipped: what the clock would have shown if it had not jumped to here.
    """

    at: datetime
    shown: datetime
    comes_again: bool
    came_before: bool
    skipped: tuple[datetime, ...]


@lru_cache(maxsize=256)
def minutes(zone: str, day: datetime) -> tuple[Minute, ...]:
    """Return the minutes of a UTC day."""
    found = []
    for count in range(24 * 60):
        at = day + count * MINUTE
        shown, before = wall(zone, at), wall(zone, at - MINUTE)
        missing = int((shown - before) / MINUTE) - 1
        skipped = tuple(before + (each + 1) * MINUTE for each in range(missing))
        found.append(
            Minute(at, shown, _is_twin(zone, at, 1), _is_twin(zone, at, -1), skipped)
        )
    return tuple(found)


def _is_twin(zone: str, at: datetime, way: int) -> bool:
    """Whether the clock shows the same later (1), or did so before (-1)."""
    return any(
        wall(zone, at) == wall(zone, at + way * step * MINUTE) for step in (30, 60)
    )


@lru_cache(maxsize=8192)
def _times_of_day(rule: Rule, day: datetime) -> tuple[datetime, ...]:
    if rule.kind == "rate":
        found = _beats(rule, day)
    else:
        found = [each.at for each in minutes(rule.zone, day) if _due(rule, each)]
    return tuple(t for t in found if _is_inside(rule, t))


def _beats(rule: Rule, day: datetime) -> list[datetime]:
    assert rule.anchor is not None
    period = rule.n * MINUTE
    count = max(1, (day - rule.anchor) // period)
    found, instant = [], rule.anchor + count * period
    while instant < day + DAY:
        if instant >= day:
            found.append(instant)
        instant += period
    return found


def _is_inside(rule: Rule, instant: datetime) -> bool:
    if rule.start is not None and instant < rule.start:
        return False
    if rule.end is not None and instant >= rule.end:
        return False
    if not rule.exclude:
        return True
    today = wall(rule.zone, instant).date()
    return not any(first <= today <= last for first, last in rule.exclude)


def _due(rule: Rule, minute: Minute) -> bool:
    if rule.gap == "NEXT_VALID" and any(_fits(rule, each) for each in minute.skipped):
        return True
    if minute.came_before and rule.fold == "FIRST":
        return False
    if minute.comes_again and rule.fold == "SECOND":
        return False
    return _fits(rule, minute.shown)


def _fits(rule: Rule, shown: datetime) -> bool:
    if rule.kind == "every":
        return shown.minute % rule.n == 0
    if rule.kind == "hourly":
        return shown.minute == rule.n
    if rule.kind == "daily":
        return (shown.hour, shown.minute) == (rule.hour, rule.n)
    return shown == rule.once
