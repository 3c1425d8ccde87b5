"""What another release of the zone database does to the times of a schedule.

Two releases read the same local times at other instants only where their offsets are
apart, and near to where they begin or cease to be. So only there times are compared.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, islice, pairwise, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from hourbell.domain.cron import parse
from hourbell.domain.schedule import Timing, matches, under, upcoming
from hourbell.domain.zones import TICK, TZDB_VERSION, clock, resolve, transitions

SPAN: Final = timedelta(days=731)
"""How far ahead times are compared."""

SHOWN: Final = 5
"""How many moved times are told."""

LONGEST: Final = timedelta(hours=3)
"""How long old rules stay in force so that no local time is lost or comes twice."""

# Two days of every minute: from a day before the offsets part or meet, a month turns,
# or an excluded date begins or ends, to a day after it. Else dense times have no edges
# but those that come every day or week.
_COMPARED: Final = 2_880
_DAY: Final = timedelta(days=1)
# Each may be met at both of its instants.
_SAMPLE: Final = 2 * SHOWN


@dataclass(frozen=True, slots=True)
class Shift:
    """A local time that comes at another instant, or at none, under other rules.

    Attributes:
        local: what a clock in the zone shows, naive.
        before: its instant under the old rules, UTC; None if it has none.
        after: its instant under the new rules, UTC; None if it has none.
    """

    local: datetime
    before: datetime | None
    after: datetime | None

    @property
    def first(self) -> datetime:
        """The earlier one of its instants."""
        return min(each for each in (self.before, self.after) if each is not None)


@dataclass(frozen=True, slots=True)
class Replan:
    """How the present release takes over a schedule's times from an earlier one.

    Attributes:
        as_of: times up to it are the old rules', later ones the new rules'.
        shifts: the first times after it that move, at least one.
    """

    as_of: datetime
    shifts: tuple[Shift, ...]


def replan(
    timing: Timing, release: str, now: datetime, reach: datetime
) -> Replan | None:
    """Say how a schedule's times change under the present release.

    Args:
        timing: of its definition.
        release: the one that its version's times are computed by.
        now: the current instant.
        reach: how far ahead its occurrences may be on their way already.

    Returns:
        None when none of the times to come moves within `SPAN`.

    Raises:
        InvalidInput: the present release does not have the zone.
    """
    before, after = under(timing, release), under(timing, TZDB_VERSION)
    if before is after:
        return None
    as_of = take_over_at(before, after, now, reach)
    shifts = moved_times(before, after, as_of)
    return Replan(as_of, shifts) if shifts else None


def moved_times(before: Timing, after: Timing, since: datetime) -> tuple[Shift, ...]:
    """Return the first times after an instant that differ between two releases."""
    found: dict[Shift, None] = {}
    for start, end in _pieces(before, after, since + TICK, since + SPAN):
        found |= dict.fromkeys(_unlike(before, after, start, end))
        if len(found) >= SHOWN:
            break
    return tuple(sorted(found, key=lambda shift: shift.first)[:SHOWN])


def take_over_at(
    before: Timing, after: Timing, now: datetime, reach: datetime
) -> datetime:
    """Return up to when the old rules shall count.

    That is now where the releases agree today. Where their offsets are apart already,
    a local time that comes earlier under the new rules would be lost if it was still
    to come, and one that comes later would come twice. So it is after what may be on
    its way, and after each time that has begun under one of the rules; but where times
    are so dense that this takes over `LONGEST`, it is now.
    """
    if _is_rate(before):
        return now
    if not any(_apart(before.info, after.info, now - _DAY, now + LONGEST + _DAY)):
        return now
    end = now + LONGEST
    pairs = sorted(_pairs(before, after, now - _DAY, end + _DAY))
    as_of = reach
    for first, last in pairs:
        # Sorted by their first instant, none before it can be cut by a later as_of.
        if first <= as_of < last:
            as_of = last
    return as_of if as_of <= end else now


def _pairs(
    before: Timing, after: Timing, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield both instants of each local time that has two, in order."""
    old = {_wall(before, each): each for each in _times(before, start, end)}
    for instant in _times(after, start, end):
        other = old.get(_wall(after, instant), instant)
        if other != instant:
            yield min(instant, other), max(instant, other)


def _pieces(
    before: Timing, after: Timing, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the stretches in which times can differ, cut where dense times may."""
    cuts = {*_months(start, end), *_edges(before, start, end)}
    reached = start
    for low, high in _apart(before.info, after.info, start, end):
        first, last = max(low - _DAY, reached), min(high + _DAY, end)
        inside = sorted(cut for cut in {*cuts, high - _DAY} if first < cut < last)
        yield from pairwise([first, *inside, max(first, last)])
        reached = max(reached, last)


def _apart(
    before: ZoneInfo, after: ZoneInfo, start: datetime, end: datetime
) -> Iterator[tuple[datetime, datetime]]:
    """Yield the stretches in which two zones have other offsets."""
    changes = chain(transitions(before, start, end), transitions(after, start, end))
    turns = sorted({start, end, *(change.at for change in changes)})
    old, new = clock(before), clock(after)
    for low, high in pairwise(turns):
        if old.offset(low) != new.offset(low):
            yield low, high


def _months(start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield a day before each turn of a month."""
    month = start.year * 12 + start.month
    while True:
        turn = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC) - _DAY
        if turn >= end:
            return
        yield turn
        month += 1


def _edges(timing: Timing, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield a day before the excluded dates begin and end."""
    midnight = datetime.min.time()
    for dates in timing.exclude:
        for edge in (dates.first, dates.last + _DAY):
            cut = datetime.combine(edge, midnight, UTC) - _DAY
            if start < cut < end:
                yield cut


def _unlike(
    before: Timing, after: Timing, start: datetime, end: datetime
) -> Iterator[Shift]:
    """Yield the first local times of a stretch that move, and some of them twice."""
    old = list(islice(_times(before, start, end), _COMPARED))
    new = list(islice(_times(after, start, end), _COMPARED))
    # One list may end sooner: beyond that nothing is known.
    known = min(
        (each[-1] for each in (old, new) if len(each) == _COMPARED), default=end
    )
    alone = sorted(set(old) ^ set(new))
    was = set(old)
    for instant in islice(takewhile(lambda each: each <= known, alone), _SAMPLE):
        mine, other = (before, after) if instant in was else (after, before)
        local, partner = _wall(mine, instant), None
        if not _is_rate(mine):
            partner = _instant_of(other, local)
        pair = (instant, partner) if mine is before else (partner, instant)
        yield Shift(local, *pair)


def _instant_of(timing: Timing, local: datetime) -> datetime | None:
    """Return the instant at which a local time is one of the times."""
    instants = resolve(local, timing.info, timing.gap, timing.fold)
    return next((each for each in instants if matches(timing, each)), None)


def _is_rate(timing: Timing) -> bool:
    return parse(timing.expression).kind == "rate"


def _times(timing: Timing, start: datetime, end: datetime) -> Iterator[datetime]:
    """Yield the times of a timing in [start, end)."""
    return takewhile(lambda instant: instant < end, upcoming(timing, start - TICK))


def _wall(timing: Timing, instant: datetime) -> datetime:
    return instant.astimezone(timing.info).replace(tzinfo=None)
