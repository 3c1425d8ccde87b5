"""Find the gap rows that speak for times without a row of their own.

A gap row lies under the first time that it covers, and between it and a covered time
no row lies but what a backfill made. So of the times before one without a row, those
are without, too, as far back as the gap reaches, and those before it have their rows:
whose border is found by halving, here in hundredths.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Final

from hourbell.domain.definition import Version
from hourbell.domain.occurrence import CancelReason, Occurrence, State
from hourbell.domain.schedule import previous_time
from hourbell.domain.zones import TICK

NEAR: Final = 20
"""How many times before one without a row are looked at one by one."""

SPREAD: Final = 60
"""How many of the times before those are looked at, evenly spread."""

# Each is a read of up to NEAR + SPREAD keys, and leaves a sixtieth of the times.
_ROUNDS: Final = 4
# Outages one upon the other, so close that the spread misses what lay between.
_OUTAGES: Final = 3

Read = Callable[[Sequence[datetime]], Mapping[datetime, Occurrence]]
"""Returns the rows of times of a version, as far as there are."""


@dataclass(frozen=True, slots=True)
class Search:
    """Where gap rows are looked for.

    Attributes:
        version: whose times they are, with its interval.
        kept_from: rows of times since then are still there.
    """

    version: Version
    read: Read
    kept_from: datetime


def covering(
    search: Search, instants: Sequence[datetime]
) -> dict[datetime, Occurrence]:
    """Return the gap rows that cover times without a row, by time.

    Args:
        search: where to look.
        instants: own times of the version without a row, the latest first.

    Raises:
        Transient: the store did not answer.
    """
    found: dict[datetime, Occurrence] = {}
    row: Occurrence | None = None
    for instant in instants:
        if row is None or row.scheduled_for > instant:
            row = _row_before(search, instant)
        if row is None:
            break
        if row.covers(instant):
            found[instant] = row
    return found


def told_by(
    gap: Occurrence, version: Version, instant: datetime
) -> tuple[State, str | None] | None:
    """Return what a gap row tells of a time that it covers, and why.

    Until it is worked off, a pause or a cancel may still reach it: PLANNED. None when
    the time ran, and its own row is no longer there; or if it is no gap row.
    """
    decision = gap.decision
    if decision is None:
        return None
    if gap.state is State.PLANNED:
        return State.PLANNED, None
    # Replanned, it was worked off all the same; backfilled, it had been before.
    was_reached = gap.backfilled_at or gap.reason == CancelReason.REPLANNED
    if gap.state is State.CANCELED and not was_reached:
        return State.CANCELED, gap.reason
    if decision.lets_run(instant):
        return None
    return State.MISSED, version.definition.misfire.reason(instant, decision.as_of)


def _row_before(search: Search, instant: datetime) -> Occurrence | None:
    """Return the latest row before a time, but for what a backfill made."""
    start: datetime | None = None
    found: Occurrence | None = None
    for _ in range(_OUTAGES):
        found = _narrowed(search, start, instant) or found
        decision = None if found is None else found.decision
        if decision is None or decision.last >= instant or not decision.following:
            break
        # A gap of an earlier outage: look in what came after it.
        start = decision.following
    return found


def _narrowed(
    search: Search, start: datetime | None, end: datetime
) -> Occurrence | None:
    """Return the latest row from `start` on that lies before times without a row."""
    found: Occurrence | None = None
    for _ in range(_ROUNDS):
        times, dense = _probes(search, start, end)
        rows = search.read(times) if times else {}
        place = next((n for n, each in enumerate(times) if _is_firm(rows, each)), None)
        if place is not None:
            found = rows[times[place]]
            start = found.scheduled_for + TICK
        if (place is not None and place < dense) or len(times) == dense:
            break
        end = times[-1] if place is None else times[place - 1]
    return found


def _is_firm(rows: Mapping[datetime, Occurrence], instant: datetime) -> bool:
    row = rows.get(instant)
    return row is not None and (row.backfilled_at is None or row.decision is not None)


def _probes(
    search: Search, start: datetime | None, end: datetime
) -> tuple[list[datetime], int]:
    """Return times in [start, end), the latest first, and how many are without gaps.

    They are all when there are no more than those.
    """
    near = list(islice(_own_times(search, start, end), NEAR))
    bounds = (search.version.effective_from, start)
    low = max(search.kept_from, *(each for each in bounds if each is not None))
    if len(near) < NEAR or near[-1] <= low:
        return near, len(near)
    step = (near[-1] - low) / SPREAD
    spread = [
        next(_own_times(search, start, near[-1] - number * step + TICK), None)
        for number in range(1, SPREAD + 1)
    ]
    times = dict.fromkeys([*near, *(each for each in spread if each is not None)])
    return list(times), len(near)


def _own_times(
    search: Search, start: datetime | None, end: datetime
) -> Iterator[datetime]:
    """Yield the version's own times in [start, end), the latest first."""
    version = search.version
    found = previous_time(version.timing, end)
    while found is not None and version.owns(found):
        if start is not None and found < start:
            return
        yield found
        found = previous_time(version.timing, found)
