"""One scan of a shard group: materialize, sweep, and move the watermarks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hourbell.domain.dispatch import HANDOVER_GRACE, Dispatch, DispatchKind
from hourbell.domain.errors import HourbellError, Transient
from hourbell.domain.occurrence import Occurrence, RowKey, bucket_of
from hourbell.domain.policies import WATERMARK_LAG, is_stuck
from hourbell.domain.shards import MINUTE, minutes_between
from hourbell.usecases.complete import complete
from hourbell.usecases.handover import finish_dispatched
from hourbell.usecases.materialize import NOTHING, Plane, Tally, advance
from hourbell.usecases.ports import (
    Clock,
    GroupWork,
    Lease,
    Page,
    ShardGroups,
    SweepQueue,
    Write,
)
from hourbell.usecases.release import release

# Longer than the materializer may run (50 s), so that a lease outlives its holder's
# work, and shorter than a tick, so that a dead holder costs one pass.
LEASE_DURATION = timedelta(seconds=55)


@dataclass(frozen=True, slots=True)
class PassReport:
    """What one pass did.

    Attributes:
        leased: False when another holder has the group, or nothing was ever
            written to it; then all else is zero.
        tally: what materializing did.
        rows: rows read.
        swept: outbox records handed to the relay.
        released: deferred occurrences that became outbox records.
        handovers: interrupted handovers that were finished.
        completed: completion records that were worked off.
        unreadable: rows that this release cannot read; they hold the watermark back.
        faulty: dispatch rows that could not be worked off for a lasting reason.
        finished: False when the deadline ended the pass early.
        kept: False when the lease was lost before the watermarks were stored.
        oldest: the group's lowest watermark after the pass.
    """

    leased: bool
    tally: Tally = NOTHING
    rows: int = 0
    swept: int = 0
    released: int = 0
    handovers: int = 0
    completed: int = 0
    unreadable: int = 0
    faulty: int = 0
    finished: bool = True
    kept: bool = True
    oldest: datetime | None = None


def run_pass(
    plane: Plane,
    groups: ShardGroups,
    sweep_queue: SweepQueue,
    work: GroupWork,
    clock: Clock,
    *,
    holder: str,
    deadline: datetime | None = None,
) -> PassReport:
    """Scan a group's buckets from its watermarks to the horizon, under its lease.

    Args:
        plane: the ports of materializing.
        groups: leases and watermarks.
        sweep_queue: where stuck outbox records go.
        work: which group.
        clock: read anew for each page, since a pass may take most of a minute.
        holder: who asks; unique to this attempt.
        deadline: when to stop and save what was reached.

    Raises:
        Transient: a store or queue did not answer; the lease is given back and
            watermarks already reached are stored.
    """
    lease = groups.acquire(work.group, holder, now=clock.now(), duration=LEASE_DURATION)
    if lease is None:
        return PassReport(leased=False)
    scan = _Scan(plane, sweep_queue, clock, lease, deadline)
    started = clock.now()
    try:
        finished = scan.run(started)
    except Exception:
        # Whatever it is, the group must not stay leased to a pass that is over.
        groups.release(lease, scan.watermarks)
        raise
    kept = groups.release(lease, scan.watermarks, started if finished else None)
    return PassReport(
        leased=True,
        tally=scan.tally,
        rows=scan.rows,
        swept=scan.swept,
        released=scan.released,
        handovers=scan.handovers,
        completed=scan.completed,
        unreadable=scan.unreadable,
        faulty=scan.faulty,
        finished=finished,
        kept=kept is Write.APPLIED,
        oldest=scan.oldest(clock.now()),
    )


class _Scan:
    """The state of one pass."""

    def __init__(
        self,
        plane: Plane,
        sweep_queue: SweepQueue,
        clock: Clock,
        lease: Lease,
        deadline: datetime | None,
    ) -> None:
        self._plane = plane
        self._sweep_queue = sweep_queue
        self._clock = clock
        self._lease = lease
        self._deadline = deadline
        self.tally = NOTHING
        self.rows = 0
        self.swept = 0
        self.released = 0
        self.handovers = 0
        self.completed = 0
        self.unreadable = 0
        self.faulty = 0
        self.watermarks = dict(lease.watermarks)

    def run(self, started: datetime) -> bool:
        """Scan what is due soon, then what is left of the past, oldest first.

        So work that is on time never waits for a backlog.

        Returns:
            False when the deadline came first.
        """
        for minute in self._minutes(started):
            for shard in self._plane.shard_map.shards_of(self._lease.group, minute):
                if minute < self._watermark(shard):
                    continue
                if self._is_over():
                    return False
                self._visit(minute, shard, started)
        return not self._is_over()

    def _minutes(self, started: datetime) -> Iterator[datetime]:
        """Yield the minutes that may still get rows, then those that may be passed."""
        until = started + self._plane.horizon
        recent = started - WATERMARK_LAG
        yield from minutes_between(recent, until)
        yield from minutes_between(self.oldest(started), recent - MINUTE)

    def _is_over(self) -> bool:
        return self._deadline is not None and self._clock.now() >= self._deadline

    def oldest(self, now: datetime) -> datetime:
        """Return the lowest watermark of the group's shards."""
        shards = self._plane.shard_map.shards_of(self._lease.group, now)
        return min(map(self._watermark, shards), default=self._lease.floor)

    def _watermark(self, shard: int) -> datetime:
        return self.watermarks.get(shard, self._lease.floor)

    def _visit(self, minute: datetime, shard: int, started: datetime) -> None:
        """Work off one bucket of one shard, and pass it if it is done for good.

        Only a bucket that no writer can still add to may be passed, and only after
        a consistent read found nothing open in it.
        """
        settled = minute + MINUTE + WATERMARK_LAG <= started
        next_in_line = minute == self._watermark(shard)
        consistent = settled and next_in_line
        is_open = False
        for page in self._pages(minute, shard, consistent=consistent):
            rows, dispatches = page.rows, page.dispatches
            is_open |= any(row.is_open for row in rows)
            is_open |= any(dispatch.is_open for dispatch in dispatches)
            is_open |= bool(page.unreadable)
            self.unreadable += len(page.unreadable)
            now = self._clock.now()
            self.tally += advance(self._plane, rows, now, is_over=self._is_over)
            self._sweep(rows, now)
            self._release(dispatches, now)
            for dispatch in dispatches:
                self._work_off(dispatch, now)
        if consistent and not is_open:
            self.watermarks[shard] = minute + MINUTE

    def _pages(
        self, minute: datetime, shard: int, *, consistent: bool
    ) -> Iterator[Page]:
        bucket, after = bucket_of(minute), None
        while True:
            page = self._plane.timeline.page(
                bucket, shard, after=after, consistent=consistent
            )
            self.rows += len(page.rows) + len(page.dispatches)
            yield page
            if page.after is None:
                return
            after = page.after

    def _release(self, dispatches: tuple[Dispatch, ...], now: datetime) -> None:
        """Let deferred occurrences go whose dispatch rows are due."""
        previous = self._lease.passed_at
        report = release(self._plane, dispatches, now, previous=previous)
        self.released += report.released
        self.faulty += report.faulty
        self.tally += Tally(
            canceled=report.canceled, held=report.held, unknown=report.unclear
        )
        self._hand_over(report.stuck)

    def _work_off(self, dispatch: Dispatch, now: datetime) -> None:
        """Do what a dispatch row asks for that concerns a schedule as a whole."""
        if not dispatch.is_open or not _is_due(dispatch, now):
            return
        try:
            if dispatch.kind is DispatchKind.HANDOVER:
                finish_dispatched(self._plane, dispatch, self._clock)
                self.handovers += 1
            elif dispatch.kind is DispatchKind.COMPLETE:
                self.completed += complete(self._plane, dispatch, now)
        except Transient:
            raise
        except HourbellError:
            # A lasting fault of this one; it must not stop the others.
            self.faulty += 1

    def _sweep(self, rows: tuple[Occurrence, ...], now: datetime) -> None:
        previous = self._lease.passed_at
        self._hand_over([row.key for row in rows if is_stuck(row, now, previous)])

    def _hand_over(self, keys: Sequence[RowKey]) -> None:
        if keys:
            self._sweep_queue.put(keys)
            self.swept += len(keys)


def _is_due(dispatch: Dispatch, now: datetime) -> bool:
    """Whether it is the pass's turn: of a handover, when its call had time for it."""
    is_handover = dispatch.kind is DispatchKind.HANDOVER
    return now >= dispatch.due + (HANDOVER_GRACE if is_handover else timedelta(0))
