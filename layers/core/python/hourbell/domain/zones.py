"""IANA zones, their gaps and folds, from the pinned tzdata package alone.

A zone is read as a row of segments: stretches of time with one UTC offset. Inside a
segment local and UTC time differ by a constant, so that finding the next time needs no
zone arithmetic; between two segments lies a gap (clocks go forward, local times are
missing) or a fold (clocks go back, local times repeat).
"""

import math
import re
import zoneinfo
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

import tzdata

from hourbell.domain.errors import InvalidInput
from hourbell.domain.zone_history import at_hand, past_rules

# The system's copy may be of any age: only the pinned package counts. PYTHONTZPATH
# would come too late for a process that is already running.
zoneinfo.reset_tzpath(())

TZDB_VERSION: Final[str] = tzdata.IANA_VERSION
"""The present release of the zone database, in IANA's form (`2026f`)."""

FIRST_YEAR: Final = 1970
LAST_YEAR: Final = 2199
"""Local years in which times are produced, both included: those of the AWS form."""

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_WALL: Final = datetime(1970, 1, 1)

TICK: Final = timedelta(microseconds=1)
"""The smallest step of an instant."""

MARGIN: Final = timedelta(days=3)
"""More than any offset and any change of one: what a jump over segments keeps."""

# No two changes of an offset since 1970 are closer together than 6.9 days (a test
# reads them all from the data files), so a five-day step misses none.
_PROBE: Final = timedelta(days=5)
_NAME: Final = re.compile(r"[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", re.ASCII)
_MAX_NAME: Final = 64


class Gap(StrEnum):
    """What happens to a local time that does not exist."""

    SKIP = "SKIP"
    NEXT_VALID = "NEXT_VALID"


class Fold(StrEnum):
    """At which of its two instants a local time that repeats counts."""

    FIRST = "FIRST"
    SECOND = "SECOND"
    BOTH = "BOTH"


class TransitionKind(StrEnum):
    """Whether a change of offset takes local time away or repeats it."""

    GAP = "gap"
    FOLD = "fold"


@dataclass(frozen=True, slots=True)
class Transition:
    """One change of a zone's UTC offset.

    Attributes:
        at: first instant with the new offset, UTC.
        kind: gap (clocks go forward) or fold (clocks go back).
        before: UTC offset until then.
        after: UTC offset from then on.
    """

    at: datetime
    kind: TransitionKind
    before: timedelta
    after: timedelta

    @property
    def wall_before(self) -> datetime:
        """Local time that the clock would have shown, naive."""
        return _shift(self.at, self.before)

    @property
    def wall_after(self) -> datetime:
        """Local time that the clock shows instead, naive."""
        return _shift(self.at, self.after)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of time with one UTC offset, cut at the turn of the UTC year too.

    Attributes:
        start: first instant, UTC.
        end: first instant after it, UTC.
        epoch: local time at 1970-01-01T00:00Z under this offset, naive: the bridge
            between local and UTC time, as two subtractions cost less than `replace`.
        offset: local time minus UTC.
        wall_start: local time at `start`, naive.
        wall_end: local time just before `end`, excluded, naive.
        repeated_until: local times before this one also came in the segment before.
        repeats_from: local times from this one on come again in the next segment.
    """

    start: datetime
    end: datetime
    epoch: datetime
    offset: timedelta
    wall_start: datetime
    wall_end: datetime
    repeated_until: datetime
    repeats_from: datetime

    def wall(self, instant: datetime) -> datetime:
        """Return the naive local time of an instant."""
        return instant - EPOCH + self.epoch

    def instant(self, wall: datetime) -> datetime:
        """Return the UTC instant of a naive local time."""
        return wall - self.epoch + EPOCH


class ZoneClock:
    """The segments of one zone, found when needed and kept by year."""

    def __init__(self, info: ZoneInfo) -> None:
        self._info = info
        self._years: dict[int, tuple[Segment, ...]] = {}

    def at(self, instant: datetime) -> Segment | None:
        """Return the segment that holds a UTC instant; None beyond the years kept.

        Segments exist from 1969 to 2200, a year more than local times need on
        either side.
        """
        year = instant.year
        if not FIRST_YEAR - 1 <= year <= LAST_YEAR + 1:
            return None
        segments = self._years.get(year)
        if segments is None:
            segments = self._years[year] = tuple(self._find(year))
        for segment in segments[:-1]:
            if instant < segment.end:
                return segment
        return segments[-1]

    def after(self, segment: Segment) -> Segment | None:
        """Return the next segment."""
        return self.at(segment.end)

    def before(self, segment: Segment) -> Segment | None:
        """Return the segment before."""
        return self.at(segment.start - TICK)

    def misses(self, wall: datetime) -> bool:
        """Tell whether a naive local time lies in a gap."""
        return _offset_of(wall, self._info, 0) < _offset_of(wall, self._info, 1)

    def first_outside(
        self, low: datetime, high: datetime, after: datetime
    ) -> datetime | None:
        """Return the first instant after `after` with a local time not in [low, high).

        A fold may show the time before `low` again. None beyond the years kept.
        """
        segment, instant = self.at(after), after + TICK
        while segment is not None:
            if not low <= segment.wall(instant) < high:
                return instant
            if high < segment.wall_end:
                return segment.instant(high)
            deep = segment.wall_end - low > MARGIN
            if deep and high - segment.wall_end > 2 * MARGIN:
                # No fold reaches back that far: go on shortly before the end.
                segment = self.at(high.replace(tzinfo=UTC) - MARGIN)
            else:
                segment = self.after(segment)
            instant = segment.start if segment else instant
        return None

    def last_outside(
        self, low: datetime, high: datetime, before: datetime
    ) -> datetime | None:
        """Return the last instant before `before` with a local time not in [low, high).

        A fold may have shown the time from `high` on already. None beyond the years
        kept.
        """
        instant = before - TICK
        segment = self.at(instant)
        while segment is not None:
            if not low <= segment.wall(instant) < high:
                return instant
            if low > segment.wall_start:
                return segment.instant(low) - TICK
            deep = high - segment.wall_start > MARGIN
            if deep and segment.wall_start - low > 2 * MARGIN:
                segment = self.at(low.replace(tzinfo=UTC) + MARGIN)
            else:
                segment = self.before(segment)
            instant = segment.end - TICK if segment else instant
        return None

    def _find(self, year: int) -> Iterator[Segment]:
        first = datetime(year, 1, 1, tzinfo=UTC)
        last = datetime(year + 1, 1, 1, tzinfo=UTC)
        cuts = [first, *self._changes(first, last), last]
        offsets = [self.offset(at) for at in (first - TICK, *cuts)]
        for index, (start, end) in enumerate(pairwise(cuts)):
            before, offset, after = offsets[index : index + 3]
            yield Segment(
                start=start,
                end=end,
                epoch=_EPOCH_WALL + offset,
                offset=offset,
                wall_start=_shift(start, offset),
                wall_end=_shift(end, offset),
                repeated_until=_shift(start, max(before, offset)),
                repeats_from=_shift(end, min(offset, after)),
            )

    def _changes(self, first: datetime, last: datetime) -> Iterator[datetime]:
        """Find the instants in (first, last) at which the offset changes."""
        # Labelled with the zone, UTC fields are what `fromutc` takes and what its
        # answer can be subtracted from: the cheapest way to an offset.
        low, end = (each.replace(tzinfo=self._info) for each in (first, last - TICK))
        before = self._ahead(low)
        while low < end:
            high = min(low + _PROBE, end)
            after = self._ahead(high)
            if after != before:
                yield first + timedelta(seconds=self._count(first, low, high))
            low, before = high, after

    def _count(self, first: datetime, low: datetime, high: datetime) -> int:
        """Count the seconds from `first` to the change between two labelled times."""
        before = self._ahead(low)
        start = low.replace(tzinfo=UTC) - first
        left, right = 0, math.ceil((high - low).total_seconds())
        while right - left > 1:
            middle = (left + right) // 2
            if self._ahead(low + timedelta(seconds=middle)) == before:
                left = middle
            else:
                right = middle
        return int(start.total_seconds()) + right

    def _ahead(self, labelled: datetime) -> timedelta:
        return self._info.fromutc(labelled) - labelled

    def offset(self, instant: datetime) -> timedelta:
        """Return local time minus UTC at an instant."""
        return instant.astimezone(self._info).utcoffset() or timedelta()


def zone(name: str, *, field: str = "zone", release: str = TZDB_VERSION) -> ZoneInfo:
    """Return the IANA zone of that name, from the pinned database or a past release.

    Args:
        name: an IANA name such as `America/New_York`; links are fine, abbreviations
            and offsets such as `+02:00` are not names.
        field: dotted path of the input, for the finding.
        release: whose rules; see `release_at_hand` for one that is not known.

    Raises:
        InvalidInput: code `unknown_zone`, with the nearest name if one is close.
    """
    found = None
    if len(name) <= _MAX_NAME:
        past = None if release == TZDB_VERSION else _past_zone(name, release)
        found = past or _zone(name)
    if found is not None:
        return found
    raise InvalidInput.of(
        field,
        "unknown_zone",
        f"{name[:_MAX_NAME]!r} is not an IANA zone name like America/New_York "
        f"(tzdb {TZDB_VERSION}).",
        found=name,
        suggestion=_nearest(name),
    )


def has_other_rules(name: str, release: str) -> bool:
    """Whether a zone's rules under a release are known to be others than today's."""
    return release != TZDB_VERSION and _past_zone(name, release) is not None


def release_at_hand(release: str) -> str:
    """Return the release by whose rules times of a release are computed.

    That is itself where it is known. For a release older than all known ones it is the
    oldest of them, for a newer one the present.
    """
    return TZDB_VERSION if release == TZDB_VERSION else _at_hand(release)


@lru_cache(maxsize=1024)
def clock(info: ZoneInfo) -> ZoneClock:
    """Return the shared segments of a zone."""
    return ZoneClock(info)


def resolve(
    local: datetime, info: ZoneInfo, gap: Gap = Gap.SKIP, fold: Fold = Fold.FIRST
) -> tuple[datetime, ...]:
    """Return the UTC instants at which a naive local time counts: none, one or two.

    In a gap NEXT_VALID gives the first instant after it. In a fold the instants come
    in order. Local times outside the years 1970 to 2199 give nothing.
    """
    if not FIRST_YEAR <= local.year <= LAST_YEAR:
        return ()
    first, second = _offset_of(local, info, 0), _offset_of(local, info, 1)
    early = (local - first).replace(tzinfo=UTC)
    if first == second:
        return (early,)
    if first < second:
        return () if gap is Gap.SKIP else (_gap_end(info, local, second),)
    late = (local - second).replace(tzinfo=UTC)
    return {
        Fold.FIRST: (early,),
        Fold.SECOND: (late,),
        Fold.BOTH: (early, late),
    }[fold]


def transitions(
    info: ZoneInfo, start: datetime, end: datetime
) -> tuple[Transition, ...]:
    """Return the changes of the zone's offset in (start, end], in order.

    Changes of an abbreviation alone are not transitions. Only the years 1970 to 2199
    are looked at.
    """
    return tuple(_transitions(clock(info), start, end))


def _transitions(
    segments: ZoneClock, start: datetime, end: datetime
) -> Iterator[Transition]:
    earliest = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
    latest = datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC)
    segment = segments.at(max(start, earliest))
    while segment is not None and segment.end <= min(end, latest):
        following = segments.after(segment)
        if following is not None and following.offset != segment.offset:
            forward = following.offset > segment.offset
            yield Transition(
                following.start,
                TransitionKind.GAP if forward else TransitionKind.FOLD,
                segment.offset,
                following.offset,
            )
        segment = following


def _gap_end(info: ZoneInfo, local: datetime, offset: timedelta) -> datetime:
    """Find the instant at which the gap that swallows `local` ends."""
    segments = clock(info)
    # Read with the offset after the gap, the missing time lies just before the gap.
    missing = (local - offset).replace(tzinfo=UTC)
    return next(_transitions(segments, missing, missing + timedelta(days=2))).at


def _offset_of(local: datetime, info: ZoneInfo, fold: int) -> timedelta:
    return local.replace(tzinfo=info, fold=fold).utcoffset() or timedelta()


@lru_cache(maxsize=2048)
def _zone(name: str) -> ZoneInfo | None:
    if _NAME.fullmatch(name) is None or name not in _names():
        return None
    # Not ZoneInfo(name): its cache may hold a zone read from the system's copy.
    return ZoneInfo.no_cache(name)


@lru_cache(maxsize=256)
def _at_hand(release: str) -> str:
    return at_hand(release) or TZDB_VERSION


@lru_cache(maxsize=4096)
def _past_zone(name: str, release: str) -> ZoneInfo | None:
    """Return a zone whose rules were others under a release than they are today."""
    known = _at_hand(release)
    rules = None if known == TZDB_VERSION else past_rules(name, known)
    return None if rules is None else ZoneInfo.from_file(BytesIO(rules), key=name)


@lru_cache(maxsize=1)
def _names() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


@lru_cache(maxsize=256)
def _nearest(name: str) -> str | None:
    wanted = name.strip().replace(" ", "_")[:_MAX_NAME].lower()
    names = {known.lower(): known for known in _names()}
    cities = {known.rpartition("/")[2]: full for known, full in names.items()}
    if wanted in names or wanted in cities:
        return names.get(wanted) or cities[wanted]
    close = get_close_matches(wanted, names, n=1, cutoff=0.8)
    return names[close[0]] if close else None


def _shift(instant: datetime, offset: timedelta) -> datetime:
    return instant - EPOCH + (_EPOCH_WALL + offset)
