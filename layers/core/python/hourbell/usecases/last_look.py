"""Look at each bucket for the last time, when queues have let go of what is in it.

What was sent in time, and nobody claimed, ends there. What was sent later, or is still
to be sent, gets a dispatch row that looks after it. So does what a release let go long
after the last look at the occurrence's own bucket, such as a replay or a backfill: the
release itself lies in a bucket that is still to be looked at.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import Transient
from hourbell.domain.instants import floor_minute
from hourbell.domain.occurrence import Occurrence, RowKey, bucket_of
from hourbell.domain.policies import LAST_LOOK, UNCLAIMED_GRACE
from hourbell.domain.retention import RETENTION
from hourbell.domain.shards import MINUTE, minutes_between
from hourbell.usecases.ports import Lease, Page, Write
from hourbell.usecases.release import target_at
from hourbell.usecases.unclaimed import Seen, Versions, check_of, see_to
from hourbell.usecases.workplace import Workplace

# How many buckets of shards one pass looks at, so that it ends in time for the next one
# also when days of them have to be made up for.
MAX_LOOKS: Final = 1_000
# How many occurrences' versions are in memory at once: each has its payload.
MAX_READ: Final = 100

# What is put so long before an occurrence's own bucket has its last look is seen there.
_SURELY_SEEN: Final = LAST_LOOK - UNCLAIMED_GRACE


# By these what lies behind the scan is sent all the same.
_LETTING_GO: Final = frozenset({DispatchKind.RELEASE, DispatchKind.FOLLOW})


@dataclass(frozen=True, slots=True)
class LastLooks:
    """What came of the last looks of a pass.

    Attributes:
        until: the first minute whose buckets have yet to have theirs; None when that
            is as stored.
        unclaimed: occurrences that are DEAD since nobody can receive their message.
        faulty: those that could not be seen to for a lasting reason.
    """

    until: datetime | None = None
    unclaimed: int = 0
    faulty: int = 0


def look_last(
    place: Workplace, lease: Lease, oldest: datetime, is_over: Callable[[], bool]
) -> LastLooks:
    """Look at the buckets of a group that became so old, oldest first.

    Those that a watermark has yet to pass are left for later. Where one goes back, so
    do the last looks. When a dependency does not answer, the next pass goes on.

    Args:
        place: the ports.
        lease: of the group.
        oldest: the group's lowest watermark.
        is_over: asked before each bucket and each row: whether to stop here.
    """
    looks = _Looks(place, lease.group, is_over)
    first, last = _span(place, lease, oldest)
    until = first
    # What does not answer any more is asked again by the next pass.
    with suppress(Transient):
        for minute in minutes_between(first, last):
            if not looks.at(minute):
                break
            until = minute + MINUTE
    is_stored = until == (lease.looked_until or lease.floor)
    return LastLooks(None if is_stored else until, looks.unclaimed, looks.faulty)


def _span(
    place: Workplace, lease: Lease, oldest: datetime
) -> tuple[datetime, datetime]:
    """Return the first and the last minute to be looked at; none if they cross."""
    now = place.clock.now()
    first = lease.looked_until
    if first is None:
        # Whoever looks for the first time finds what rows are kept of.
        first = max(lease.floor, floor_minute(now - LAST_LOOK - RETENTION))
    ends = [now - LAST_LOOK - MINUTE, oldest - MINUTE]
    epoch = place.shard_map.unsettled
    if epoch is not None and epoch.since is not None:
        # A row that is moved between two reads would be seen by neither.
        ends.append(epoch.since - MINUTE)
    return min(first, oldest), min(ends)


class _Looks:
    """The last looks of one pass."""

    def __init__(
        self, place: Workplace, group: int, is_over: Callable[[], bool]
    ) -> None:
        self._place = place
        self._group = group
        self._is_over = is_over
        self._left = MAX_LOOKS
        self.unclaimed = 0
        self.faulty = 0

    def at(self, minute: datetime) -> bool:
        """Look at a minute's buckets; return whether all of them are done.

        Raises:
            Transient: the store did not answer.
        """
        for shard in self._place.shard_map.shards_of(self._group, minute):
            if not self._left or self._is_over():
                return False
            self._left -= 1
            for page in self._pages(bucket_of(minute), shard):
                rows = [*page.rows, *self._released(page)]
                for first in range(0, len(rows), MAX_READ):
                    if not self._see_to_all(rows[first : first + MAX_READ]):
                        return False
        return True

    def _pages(self, bucket: str, shard: int) -> Iterator[Page]:
        after: RowKey | None = None
        while True:
            page = self._place.timeline.unfinished(bucket, shard, after=after)
            yield page
            if page.after is None:
                return
            after = page.after

    def _released(self, page: Page) -> list[Occurrence]:
        """Return what was let go so late that its own bucket was looked at before."""
        shards = self._place.shard_map
        keys = {target_at(shards, each) for each in page.dispatches if _is_late(each)}
        return list(self._place.timeline.read(keys).values()) if keys else []

    def _see_to_all(self, rows: Sequence[Occurrence]) -> bool:
        """See to rows; return whether there was time for all, and all are written."""
        now, checks = self._place.clock.now(), {}
        versions = Versions.of(self._place, rows)
        for row in rows:
            if self._is_over():
                break
            seen = self._see_to(row, versions, now)
            self.unclaimed += seen.is_dead
            self.faulty += seen.is_faulty
            if seen.check is not None:
                checks[seen.check.key] = seen.check
        answers = self._place.timeline.post(list(checks.values())) if checks else []
        return Write.UNKNOWN not in answers and not self._is_over()

    def _see_to(self, row: Occurrence, versions: Versions, now: datetime) -> Seen:
        try:
            return see_to(self._place, row, versions, now)
        except Transient:
            # One that does not answer must not keep those behind it from their turn.
            soon = now + MINUTE
            return Seen(check=check_of(self._place, row, soon, now))


def _is_late(dispatch: Dispatch) -> bool:
    """Whether it let go what is not surely seen in its own bucket.

    That had its last look before, or none at all: what a backfill makes may lie before
    the beginning of its group. What is released anew after that is seen by then.
    """
    time = dispatch.scheduled_for
    if dispatch.kind not in _LETTING_GO or time is None:
        return False
    is_first = dispatch.number is None
    return (is_first and dispatch.written_at > time) or (
        dispatch.due - time >= _SURELY_SEEN
    )
