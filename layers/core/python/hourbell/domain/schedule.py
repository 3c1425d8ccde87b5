"""The timing of a schedule, and every question about its times.

All functions are pure: the same timing and instants give the same answer on every
machine, at any time. Local times go by the present release of the zone database unless
the timing names another (`under`). Times lie in the years 1970 to 2199.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, Self
from zoneinfo import ZoneInfo

from hourbell.domain.cron import Expression, parse
from hourbell.domain.dates import DateRange, DateSet
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.expressions import FIRST_WALL, AtExpression, CronExpression
from hourbell.domain.instants import ceil_second, format_instant, to_utc
from hourbell.domain.recurrence import EARLIEST, LATEST, Recurrence, recur
from hourbell.domain.timing_json import (
    MAX_EXCLUDED,
    MAX_OCCURRENCES,
    TimingMembers,
    read_timing,
    write_timing,
)
from hourbell.domain.zones import (
    LAST_YEAR,
    TICK,
    TZDB_VERSION,
    Fold,
    Gap,
    ZoneClock,
    clock,
    has_other_rules,
    resolve,
    zone,
)

__all__ = [
    "DateRange",
    "Timing",
    "anchored",
    "matches",
    "never_fires",
    "next_planned",
    "next_time",
    "previous_time",
    "under",
    "upcoming",
    "validate",
]

_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule runs.

    Attributes:
        expression: cron, at or rate (see `cron.parse`).
        zone: IANA name; local times and excluded dates are read in it.
        gap: rule for local times that do not exist.
        fold: rule for local times that repeat.
        start_at: no time before it; the instant itself counts. UTC.
        end_at: no time from it on; the instant itself does not count. UTC.
        max_occurrences: how many times at most, counted by `next_planned`.
        exclude: local dates on which nothing runs.
        anchor: UTC instant of a whole second that a rate counts from (its first time
            is one period later); `start_at` if None. Ignored by the other kinds.
        tzdb: release of the zone database that local times go by. No part of a
            definition: a version says which, and `under` sets it.
    """

    expression: str
    zone: str = "UTC"
    gap: Gap = Gap.SKIP
    fold: Fold = Fold.FIRST
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_occurrences: int | None = None
    exclude: tuple[DateRange, ...] = ()
    anchor: datetime | None = None
    tzdb: str = field(default=TZDB_VERSION, kw_only=True)
    bound: "_Bound | None" = field(default=None, init=False, repr=False, compare=False)

    @property
    def info(self) -> ZoneInfo:
        """The zone, by the rules of the timing's release.

        Raises:
            InvalidInput: code `unknown_zone`.
        """
        return zone(self.zone, release=self.tzdb)

    @classmethod
    def from_dict(cls, members: object, *, field: str = "") -> Self:
        """Read the JSON object that `to_dict` writes (form: `timing_json`).

        Checks types and forms only; `validate` checks the meaning.

        Args:
            members: the object.
            field: dotted path of the object, the prefix of its findings' fields.

        Raises:
            InvalidInput: with a finding for each member that is wrong or unknown.
        """
        return cls(**read_timing(members, field))

    def to_dict(self) -> dict[str, object]:
        """Return the timing as a JSON-ready object; defaults are left out."""
        return write_timing(
            TimingMembers(
                expression=self.expression,
                zone=self.zone,
                gap=self.gap,
                fold=self.fold,
                start_at=self.start_at,
                end_at=self.end_at,
                max_occurrences=self.max_occurrences,
                exclude=self.exclude,
                anchor=self.anchor,
            )
        )


def under(timing: Timing, release: str) -> Timing:
    """Return the timing as it is under a release of the zone database.

    It is the same object where the zone's rules are those of the present release, and
    otherwise one that is kept, so that asking again costs little.
    """
    if release == TZDB_VERSION or not has_other_rules(timing.zone, release):
        return timing
    return _under(timing, release)


@lru_cache(maxsize=4096)
def _under(timing: Timing, release: str) -> Timing:
    return replace(timing, tzdb=release)


def next_time(timing: Timing, after: datetime) -> datetime | None:
    """Return the first time strictly after an instant, UTC; None if there is none.

    `max_occurrences` is not looked at: see `next_planned`.

    Raises:
        InvalidInput: if the expression, the zone or a rate's anchor is not valid.
    """
    bound = timing.bound or _bind(timing)
    after = max(to_utc(after), bound.floor)
    found = bound.times.next(after)
    if bound.excluded:
        found = _skip(bound, found)
    return found if found is not None and found < bound.end else None


def previous_time(timing: Timing, before: datetime) -> datetime | None:
    """Return the last time strictly before an instant, UTC; None if there is none.

    Raises:
        InvalidInput: if the expression, the zone or a rate's anchor is not valid.
    """
    bound = timing.bound or _bind(timing)
    found = bound.times.previous(min(to_utc(before), bound.end))
    if bound.excluded:
        found = _skip_back(bound, found)
    return found if found is not None and found > bound.floor else None


def matches(timing: Timing, instant: datetime) -> bool:
    """Tell whether an instant is one of the times.

    True exactly for the instants that `next_time` and `previous_time` return.
    """
    utc = to_utc(instant)
    return utc > EARLIEST and next_time(timing, utc - TICK) == utc


def upcoming(timing: Timing, after: datetime) -> Iterator[datetime]:
    """Yield the times strictly after an instant, in order, UTC.

    `max_occurrences` is not looked at.
    """
    found = next_time(timing, after)
    while found is not None:
        yield found
        found = next_time(timing, found)


def next_planned(
    timing: Timing, after: datetime, sequence: int
) -> tuple[datetime, int] | None:
    """Return the next time to plan and its sequence number.

    Args:
        timing: the timing.
        after: time of the row that is planned already, or now for the first row.
        sequence: that row's number; 0 for the first row, which is number 1.

    Returns:
        None when the times are used up: end of the expression, `end_at`, or
        `max_occurrences`.
    """
    if timing.max_occurrences is not None and sequence >= timing.max_occurrences:
        return None
    found = next_time(timing, after)
    return None if found is None else (found, sequence + 1)


def anchored(timing: Timing, now: datetime) -> Timing:
    """Return the timing with a rate's anchor filled in.

    A rate without anchor counts from `start_at`, or else from now, rounded up to a
    whole second. Other kinds are returned as they are.
    """
    if timing.anchor is not None or parse(timing.expression).kind != "rate":
        return timing
    return replace(timing, anchor=ceil_second(timing.start_at or now))


def validate(timing: Timing, now: datetime) -> None:
    """Refuse a timing that is wrong or that would never run after now.

    Raises:
        InvalidInput: with everything that is wrong, or with the reason why no time
            comes (code `never_fires`).
    """
    findings = [
        *_findings_of(lambda: parse(timing.expression)),
        *_findings_of(lambda: zone(timing.zone)),
        *_bound_findings(timing),
        *_exclude_findings(timing),
    ]
    if findings:
        raise InvalidInput(findings=tuple(findings))
    if (reason := never_fires(anchored(timing, now), now)) is not None:
        raise InvalidInput(findings=(reason,))


def never_fires(timing: Timing, after: datetime) -> Finding | None:
    """Return why a timing has no time after an instant; None if it has one.

    Raises:
        InvalidInput: if the expression, the zone or a rate's anchor is not valid.
    """
    if next_time(timing, after) is not None:
        return None
    bound = timing.bound or _bind(timing)
    # Beyond the last time that there can be, local times may not even have a date.
    start = min(max(to_utc(after), bound.floor), LATEST)
    first = bound.times.next(start)
    if first is None:
        message = _why_no_local_time(timing, start)
    elif first >= bound.end:
        end = format_instant(bound.end)
        message = f"its first time, {format_instant(first)}, is not before {end}"
    else:
        message = "every time falls on an excluded date or after the end"
    text = f"{timing.expression!r} never fires: {message}."
    error = InvalidInput.of("expression", "never_fires", text, found=timing.expression)
    return error.findings[0]


class _Bound:
    """A timing made ready for questions; built once for each Timing."""

    __slots__ = ("clock", "end", "excluded", "floor", "times")

    def __init__(self, timing: Timing) -> None:
        expression, info = parse(timing.expression), timing.info
        self.times: Recurrence = recur(
            expression, info, timing.gap, timing.fold, _anchor_of(timing, expression)
        )
        self.clock: ZoneClock = clock(info)
        self.excluded = DateSet(timing.exclude)
        # Strictly after the floor means at start_at or later.
        self.floor = EARLIEST
        if timing.start_at is not None:
            # Compared first: nothing lies before the first instant of year 1.
            self.floor = max(to_utc(timing.start_at), EARLIEST + TICK) - TICK
        self.end = LATEST if timing.end_at is None else to_utc(timing.end_at)


def _bind(timing: Timing) -> _Bound:
    bound = _Bound(timing)
    # A cache, not part of the value: comparison, hash and repr leave it out.
    object.__setattr__(timing, "bound", bound)
    return bound


def _anchor_of(timing: Timing, expression: Expression) -> datetime | None:
    if expression.kind != "rate":
        return None
    anchor = timing.anchor or timing.start_at
    if anchor is None:
        message = "A rate needs an anchor or a start_at to count from."
        raise InvalidInput.of("anchor", "missing", message)
    return ceil_second(anchor)


def _skip(bound: _Bound, found: datetime | None) -> datetime | None:
    """Move a time on until its local date is not excluded."""
    while found is not None and (dates := _excluded(bound, found)) is not None:
        outside = bound.clock.first_outside(*_midnights(dates), found)
        found = None if outside is None else bound.times.next(outside - TICK)
    return found


def _skip_back(bound: _Bound, found: datetime | None) -> datetime | None:
    """Move a time back until its local date is not excluded."""
    while found is not None and (dates := _excluded(bound, found)) is not None:
        outside = bound.clock.last_outside(*_midnights(dates), found)
        found = None if outside is None else bound.times.previous(outside + TICK)
    return found


def _midnights(dates: DateRange) -> tuple[datetime, datetime]:
    midnight = datetime.min.time()
    return (
        datetime.combine(dates.first, midnight),
        datetime.combine(dates.last + _DAY, midnight),
    )


def _excluded(bound: _Bound, instant: datetime) -> DateRange | None:
    segment = bound.clock.at(instant)
    if segment is None:
        return None
    return bound.excluded.holding(segment.wall(instant).date())


def _findings_of(check: Callable[[], object]) -> tuple[Finding, ...]:
    try:
        check()
    except InvalidInput as error:
        return error.findings
    return ()


def _bound_findings(timing: Timing) -> Iterator[Finding]:
    start, end = timing.start_at, timing.end_at
    if start is not None and end is not None and end <= start:
        text = f"end_at {format_instant(end)} is not after start_at."
        yield Finding("end_at", "end_before_start", text, format_instant(end))
    count = timing.max_occurrences
    if count is not None and not 1 <= count <= MAX_OCCURRENCES:
        text = f"max_occurrences must lie between 1 and {MAX_OCCURRENCES:,}."
        yield Finding("max_occurrences", "out_of_range", text, str(count))
    if timing.anchor is not None and timing.anchor.microsecond:
        shown = format_instant(timing.anchor)
        text = f"The anchor must be a whole second; found {shown}."
        yield Finding("anchor", "invalid_timestamp", text, shown)


def _exclude_findings(timing: Timing) -> Iterator[Finding]:
    if len(timing.exclude) > MAX_EXCLUDED:
        count = len(timing.exclude)
        text = f"exclude takes at most {MAX_EXCLUDED} entries; found {count}."
        yield Finding("exclude", "out_of_range", text, str(count))
    for index, dates in enumerate(timing.exclude):
        if dates.last < dates.first:
            text = f"The range {dates} ends before it begins."
            suggestion = f"{dates.last} to {dates.first}"
            yield Finding(
                f"exclude[{index}]", "reversed_range", text, str(dates), suggestion
            )


def _why_no_local_time(timing: Timing, after: datetime) -> str:
    expression, info = parse(timing.expression), timing.info
    if isinstance(expression, AtExpression):
        if not resolve(expression.wall, info, timing.gap, timing.fold):
            return (
                f"{expression.wall.isoformat()} does not exist in {timing.zone}, where "
                "the clocks go forward over it (dst.gap NEXT_VALID would run it)"
            )
        return f"{expression.wall.isoformat()} is past"
    if isinstance(expression, CronExpression):
        wall = after.astimezone(info).replace(tzinfo=None)
        if expression.next_wall(wall) is not None:
            return (
                f"every local time falls into a gap of {timing.zone}, where the clocks "
                "go forward over it (dst.gap NEXT_VALID would run it)"
            )
        if expression.next_wall(FIRST_WALL - TICK) is not None:
            return "its last date is past"
    return f"no time comes before the end of {LAST_YEAR}"
