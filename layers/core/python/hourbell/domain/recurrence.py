"""Expressions in a zone: the instants at which local times come.

A cron expression is searched segment by segment (see `zones`): each segment offers the
local times between two bounds, which already leave out the repeated hour that the
fold rule does not want; between two segments a gap may add one instant. So next and
previous are in order by construction and agree with each other.
"""

from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from hourbell.domain.expressions import (
    AtExpression,
    CronExpression,
    Expression,
    RateExpression,
)
from hourbell.domain.zones import (
    EPOCH,
    FIRST_YEAR,
    LAST_YEAR,
    MARGIN,
    TICK,
    Fold,
    Gap,
    Segment,
    ZoneClock,
    clock,
    resolve,
)

EARLIEST: Final = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC) - timedelta(days=2)
LATEST: Final = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) + timedelta(days=2)
"""No time lies outside these instants, whatever the zone."""

_FAR: Final = 2 * MARGIN

_UNKNOWN: Final = datetime.min


class Recurrence(Protocol):
    """The times of an expression, before bounds and exclusions."""

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after a UTC instant."""

    def previous(self, before: datetime) -> datetime | None:
        """Return the last time strictly before a UTC instant."""


def recur(
    expression: Expression,
    info: ZoneInfo,
    gap: Gap,
    fold: Fold,
    anchor: datetime | None,
) -> Recurrence:
    """Bind an expression to its zone.

    Args:
        expression: parsed expression.
        info: the zone that local times are read in; of a rate only the bounds.
        gap: rule for local times that do not exist.
        fold: rule for local times that repeat.
        anchor: UTC instant from which a rate counts; EARLIEST if None.
    """
    if isinstance(expression, CronExpression):
        return CronTimes(expression, clock(info), gap, fold)
    if isinstance(expression, AtExpression):
        return AtTimes(resolve(expression.wall, info, gap, fold))
    return RateTimes(expression, anchor or EARLIEST, info)


class AtTimes:
    """The instants (none, one or two) of an `at`."""

    def __init__(self, instants: tuple[datetime, ...]) -> None:
        self._instants = instants

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after a UTC instant."""
        rest = self._instants[bisect_right(self._instants, after) :]
        return rest[0] if rest else None

    def previous(self, before: datetime) -> datetime | None:
        """Return the last time strictly before a UTC instant."""
        rest = self._instants[: bisect_left(self._instants, before)]
        return rest[-1] if rest else None


class RateTimes:
    """The instants anchor + k * period, k >= 1, in the local years 1970 to 2199."""

    def __init__(
        self, expression: RateExpression, anchor: datetime, info: ZoneInfo
    ) -> None:
        self._period = expression.period
        self._anchor = min(anchor, LATEST)
        self._start = datetime(FIRST_YEAR, 1, 1, tzinfo=info).astimezone(UTC)
        self._end = datetime(LAST_YEAR + 1, 1, 1, tzinfo=info).astimezone(UTC)

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after a UTC instant."""
        if after >= self._end:
            return None
        passed = (max(after, self._start - TICK) - self._anchor) // self._period
        found = self._anchor + max(passed + 1, 1) * self._period
        return found if found < self._end else None

    def previous(self, before: datetime) -> datetime | None:
        """Return the last time strictly before a UTC instant."""
        if before <= self._start:
            return None
        passed = (min(before, self._end) - TICK - self._anchor) // self._period
        found = self._anchor + max(passed, 0) * self._period
        return found if passed >= 1 and found >= self._start else None


class CronTimes:
    """The instants of a cron expression in a zone."""

    def __init__(
        self, expression: CronExpression, segments: ZoneClock, gap: Gap, fold: Fold
    ) -> None:
        self._expression = expression
        self._segments = segments
        self._moves = gap is Gap.NEXT_VALID
        self._from_first = fold is Fold.FIRST
        self._to_second = fold is Fold.SECOND
        # The segment asked last, with its bounds: the next question mostly falls
        # into it too. One tuple, so that threads never see half of a change.
        self._recent = _NOWHERE

    def next(self, after: datetime) -> datetime | None:
        """Return the first time strictly after a UTC instant."""
        start, end, epoch, low, high, segment = self._recent
        if not start <= after < end:
            after = max(after, EARLIEST)
            asked = self._segments.at(after)
            if asked is None:
                return None
            start, end, epoch, low, high, segment = self._look_at(asked)
        wall = after - EPOCH + epoch
        found = self._expression.next_wall(wall if wall >= low else low - TICK)
        if found is not None and found < high:
            return found - epoch + EPOCH
        # Inside an hour that will repeat, earlier local times are still to come.
        known = wall < segment.repeats_from
        return self._next_beyond(segment, found if known else _UNKNOWN)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last time strictly before a UTC instant."""
        if before <= EARLIEST:
            return None
        before = min(before, LATEST)
        segment = self._segments.at(before - TICK)
        if segment is None:
            return None
        low, high = self._bounds(segment)
        wall = segment.wall(before)
        found = self._expression.previous_wall(min(wall, high))
        if found is not None and found >= low:
            return segment.instant(found)
        # Inside an hour that has repeated, later local times came before.
        known = wall > segment.repeated_until
        return self._previous_beyond(segment, found if known else _UNKNOWN)

    def _look_at(self, segment: Segment) -> "_View":
        low, high = self._bounds(segment)
        view = (segment.start, segment.end, segment.epoch, low, high, segment)
        self._recent = view
        return view

    def _bounds(self, segment: Segment) -> tuple[datetime, datetime]:
        low = segment.repeated_until if self._from_first else segment.wall_start
        high = segment.repeats_from if self._to_second else segment.wall_end
        return low, high

    def _next_beyond(self, segment: Segment, found: datetime | None) -> datetime | None:
        """Return the first time at or after the end of a segment.

        Args:
            segment: the segment that holds no more time.
            found: the next matching local time if the zone had no more transitions.
        """
        while found is not None:
            if found is not _UNKNOWN and found - segment.wall_end > _FAR:
                if self._skipped(found):
                    found = self._expression.next_wall(found)
                    continue
                # Nothing matches in between: go on shortly before it.
                following = self._segments.at(found.replace(tzinfo=UTC) - MARGIN)
            else:
                following = self._segments.after(segment)
                if following is not None and self._moved(segment, following):
                    return following.start
            if following is None:
                return None
            segment = following
            low, high = self._bounds(segment)
            found = self._expression.next_wall(low - TICK)
            if found is not None and found < high:
                return segment.instant(found)
        return None

    def _previous_beyond(
        self, segment: Segment, found: datetime | None
    ) -> datetime | None:
        """Return the last time before the start of a segment, or at it after a gap."""
        while found is not None:
            if found is not _UNKNOWN and segment.wall_start - found > _FAR:
                if self._skipped(found):
                    found = self._expression.previous_wall(found)
                    continue
                preceding = self._segments.at(found.replace(tzinfo=UTC) + MARGIN)
            else:
                preceding = self._segments.before(segment)
                if preceding is not None and self._moved(preceding, segment):
                    return segment.start
            if preceding is None:
                return None
            segment = preceding
            low, high = self._bounds(segment)
            found = self._expression.previous_wall(high)
            if found is not None and found >= low:
                return segment.instant(found)
        return None

    def _skipped(self, wall: datetime) -> bool:
        """Tell whether a local time is lost, without working out its year's segments.

        An expression can mean a gap every year: it has many such times and no other.
        """
        return not self._moves and self._segments.misses(wall)

    def _moved(self, segment: Segment, following: Segment) -> bool:
        """Tell whether a local time lost in the gap between two segments counts."""
        gap_start, gap_end = segment.wall_end, following.wall_start
        if not self._moves or gap_end <= gap_start:
            return False
        return bool(self._expression.walls_between(gap_start, gap_end, 1))


_View = tuple[datetime, datetime, datetime, datetime, datetime, Segment]

_NO_WALL: Final = datetime.min
_NOWHERE: Final[_View] = (
    LATEST,
    EARLIEST,
    _NO_WALL,
    _NO_WALL,
    _NO_WALL,
    Segment(
        start=LATEST,
        end=EARLIEST,
        epoch=_NO_WALL,
        offset=timedelta(),
        wall_start=_NO_WALL,
        wall_end=_NO_WALL,
        repeated_until=_NO_WALL,
        repeats_from=_NO_WALL,
    ),
)
