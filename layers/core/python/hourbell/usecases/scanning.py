"""The steps of one pass over a shard group."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import HourbellError, Transient
from hourbell.domain.instants import floor_minute
from hourbell.domain.occurrence import (
    Occurrence,
    RowKey,
    bucket_of,
    minute_of,
)
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.policies import SECOND_LOOK, WATERMARK_LAG, is_stuck
from hourbell.domain.shards import MINUTE, NEVER, minutes_between
from hourbell.usecases.complete import complete
from hourbell.usecases.follow import follow
from hourbell.usecases.handover import finish_dispatched
from hourbell.usecases.late import late_keys
from hourbell.usecases.materialize import Plane, advance
from hourbell.usecases.open_rows import (
    due_times,
    is_due,
    is_unsent,
    open_keys,
    unreadable_trouble,
    unsent_trouble,
)
from hourbell.usecases.parking import (
    ParkingLot,
    is_waiting,
    leads_on,
    tried_at,
)
from hourbell.usecases.ports import (
    Clock,
    Lease,
    Page,
    Parking,
    ShardGroups,
    SweepQueue,
    WorkQueue,
)
from hourbell.usecases.release import release
from hourbell.usecases.tally import NOTHING, Tally
from hourbell.usecases.turns import Turns
from hourbell.usecases.walk import MAX_ROWS
from hourbell.usecases.watch import watch
from hourbell.usecases.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Scanner:
    """What a pass needs.

    Attributes:
        plane: the ports of materializing.
        groups: leases and watermarks.
        parking: parked rows.
        sweep_queue: where stuck outbox records go.
        work_queue: where the order for the rest of a backlog goes.
        clock: read anew for each page, since a pass may take most of a minute.
        workplace: the ports of the worker plane.
    """

    plane: Plane
    groups: ShardGroups
    parking: Parking
    sweep_queue: SweepQueue
    work_queue: WorkQueue
    clock: Clock
    workplace: Workplace


class Scan:
    """The state of one pass."""

    def __init__(
        self,
        scanner: Scanner,
        lease: Lease,
        watermarks: dict[int, datetime],
        lot: ParkingLot,
        deadline: datetime | None,
    ) -> None:
        self._plane = scanner.plane
        self._workplace = scanner.workplace
        self._sweep_queue = scanner.sweep_queue
        self._clock = scanner.clock
        self._lease = lease
        self._watermarks = watermarks
        self._lot = lot
        self._deadline = deadline
        self.tally = NOTHING
        self.rows = 0
        self.swept = 0
        self.released = 0
        self.vain = 0
        self.expired = 0
        self.unclaimed = 0
        self.handovers = 0
        self.completed = 0
        self.unreadable = 0
        self.faulty = 0
        self.late = 0
        self.looked_at: datetime | None = None
        self._turns = Turns(scanner.plane.directory)
        self._visits = 0
        self._pending: datetime | None = None
        self._began_at: datetime | None = None

    def run(self, started: datetime) -> bool:
        """Scan what is due soon, then what is left of the past, oldest first.

        So work that is on time never waits for a backlog. Between them come the second
        looks and what is parked, since both may set watermarks back. What is beyond the
        cap of its tenant comes last of all.

        Returns:
            False when the deadline came first.
        """
        recent = started - WATERMARK_LAG
        self._began_at = self.oldest
        return (
            self._scan(minutes_between(recent, started + self._plane.horizon), started)
            and self._look_again(started)
            and self._retry()
            and self._scan(minutes_between(self.oldest, recent - MINUTE), started)
            and self._take_later()
            and not self._is_over()
        )

    def _take_later(self) -> bool:
        """Go on with what was beyond its tenant's cap, while there is time.

        Returns:
            False when the deadline came first.
        """
        rows = self._turns.later
        for first in range(0, len(rows), MAX_ROWS):
            if self._is_over():
                return False
            part, now = rows[first : first + MAX_ROWS], self._clock.now()
            tally = advance(
                self._plane,
                part,
                now,
                is_over=self._is_over,
                is_behind=self._is_behind(part, now),
            )
            self.tally += replace(tally, troubles=())
        return True

    def pending_since(self, *, finished: bool) -> datetime | None:
        """Return when the open row that is due longest was due, or may have been."""
        found = [] if self._pending is None else [self._pending]
        # In a shard whose first bucket is still to come, nothing can be pending.
        if not finished and self.oldest <= self._clock.now():
            found.append(self.oldest)
        return min(found, default=None)

    def drain(self, started: datetime) -> timedelta | None:
        """Return how long the buckets left behind take at this pass's speed."""
        if not self._visits:
            return None
        recent = floor_minute(started - WATERMARK_LAG)
        behind = [(recent - mark) // MINUTE for mark in self._marks()]
        left = sum(max(0, minutes) for minutes in behind)
        return (self._clock.now() - started) / self._visits * left

    @property
    def has_progressed(self) -> bool:
        """Whether another pass would begin with less to do than this one."""
        before = self._lease.watermarks
        return bool(
            self.tally.moved
            or self.released
            or self.expired + self.unclaimed
            or self.handovers
            or self.completed
            or self._lot.parked
            or any(
                mark > before.get(shard, self._lease.floor)
                for shard, mark in self._watermarks.items()
            )
        )

    def _scan(self, minutes: Iterable[datetime], started: datetime) -> bool:
        """Visit the buckets of some minutes that no watermark has passed."""
        for minute in minutes:
            for shard in self._plane.shard_map.shards_of(self._lease.group, minute):
                if minute < self._watermark(shard):
                    continue
                if self._is_over():
                    return False
                self._visit(minute, shard, started)
        return True

    def _is_over(self) -> bool:
        return self._deadline is not None and self._clock.now() >= self._deadline

    @property
    def oldest(self) -> datetime:
        """The lowest watermark of the group's shards."""
        return min(self._marks())

    def _marks(self) -> list[datetime]:
        """Return the watermarks of the shards that have buckets to come."""
        shards = self._plane.shard_map.all_shards_of(self._lease.group)
        return list(map(self._watermark, shards)) or [NEVER]

    def _watermark(self, shard: int) -> datetime:
        """Return a shard's watermark: never where no bucket has the shard."""
        stored = self._watermarks.get(shard, self._lease.floor)
        shard_map = self._plane.shard_map
        return shard_map.next_bucket(self._lease.group, shard, stored)

    def _visit(self, minute: datetime, shard: int, started: datetime) -> None:
        """Work off one bucket of one shard, and pass it if it is done for good.

        Only a bucket that no writer can still add to may be passed, and only after
        a consistent read found nothing open in it.
        """
        settled = minute + MINUTE + WATERMARK_LAG <= started
        next_in_line = minute == self._watermark(shard)
        consistent = settled and next_in_line
        self._visits += 1
        waiting: set[RowKey] = set()
        troubles: dict[RowKey, Trouble] = {}
        for page in self._pages(minute, shard, consistent=consistent):
            waiting |= open_keys(page)
            self._note_pending(page)
            troubles |= self._work(page, self._lease.passed_at)
        if not consistent:
            return
        # First parked, then passed: never the reverse.
        lasting = [troubles[key] for key in sorted(waiting & troubles.keys())]
        tried = tried_at(self._lease, is_lowest=minute == self._began_at)
        self._lot.admit(lasting, self._clock.now(), tried_at=tried)
        if all(key in self._lot for key in waiting):
            self._watermarks[shard] = minute + MINUTE

    def _pages(
        self, minute: datetime, shard: int, *, consistent: bool
    ) -> Iterator[Page]:
        bucket, after = bucket_of(minute), None
        while True:
            page = self._plane.timeline.page(
                bucket, shard, after=after, consistent=consistent
            )
            yield page
            if page.after is None:
                return
            after = page.after

    def _note_pending(self, page: Page) -> None:
        """Remember the open row that is due longest, parked ones aside."""
        now = self._clock.now()
        found = [
            due for key, due in due_times(page) if due <= now and key not in self._lot
        ]
        if found:
            self._pending = min([*found, self._pending or now])

    def _look_again(self, started: datetime) -> bool:
        """Look once more at the buckets that became old since this was last done.

        What no watermark has passed yet needs none: it is read when it is older still.
        Where a late writer left something open, the watermark goes back to it.

        Returns:
            False when the deadline came first.
        """
        age, previous = MINUTE + SECOND_LOOK, self._lease.looked_at
        first = self._lease.floor
        if previous is not None:
            first = max(first, previous - age + MINUTE)
        for minute in minutes_between(first, started - age):
            for shard in self._plane.shard_map.shards_of(self._lease.group, minute):
                if minute >= self._watermark(shard):
                    continue
                if self._is_over():
                    return False
                for page in self._pages(minute, shard, consistent=True):
                    if self._found_late(page):
                        self._watermarks[shard] = minute
        self.looked_at = started
        return True

    def _found_late(self, page: Page) -> bool:
        """Count what a late writer left, and hand over the outbox records in it."""
        now = self._clock.now()
        keys = late_keys(self._plane, page, self._lot)
        late = [row for row in page.rows if row.key in keys]
        # As if for the first time: the sweep's turns so far missed them.
        self._hand_over([row.key for row in late if is_stuck(row, now, None)])
        self.late += len(keys)
        return bool(keys)

    def _retry(self) -> bool:
        """Try parked rows again whose time has come.

        Returns:
            False when the deadline came first.
        """
        due = self._lot.due(self._clock.now())
        if not due:
            return True
        if self._is_over():
            return False
        keys = [row.key for row in due]
        troubles = self._work(self._plane.timeline.look_up(keys), None)
        found = self._plane.timeline.look_up(keys)
        # Beyond its tenant's cap a row was not tried.
        untried = {row.key for row in self._turns.later}
        for row in due:
            trouble = troubles.get(row.key)
            if row.key in untried:
                continue
            if not is_waiting(row, found):
                self._lot.let_go(row)
                if leads_on(row, found):
                    self._set_back(row.key)
            elif trouble is not None or not self._is_over():
                self._lot.put_off(row, trouble, self._clock.now())
        return True

    def _set_back(self, key: RowKey) -> None:
        """Let the watermark begin anew at a row's bucket."""
        minute = minute_of(key.bucket)
        self._watermarks[key.shard] = min(self._watermark(key.shard), minute)

    def _work(self, page: Page, previous: datetime | None) -> dict[RowKey, Trouble]:
        """Work off some rows; return what is wrong with those that stay open.

        Args:
            page: the rows.
            previous: when the last finished pass began; for the sweep's backoff.
        """
        now = self._clock.now()
        self.rows += len(page.rows) + len(page.dispatches)
        self.unreadable += len(page.unreadable)
        tally = advance(
            self._plane,
            page.rows,
            now,
            is_over=self._is_over,
            turns=self._turns,
            is_behind=self._is_behind(page.rows, now),
        )
        self.tally += replace(tally, troubles=())
        self._hand_over([row.key for row in page.rows if is_stuck(row, now, previous)])
        troubles = [
            *tally.troubles,
            *self._release(page.dispatches, now, previous),
            *self._follow(page.dispatches, now, previous),
            *self._watch(page.dispatches, now, previous),
            *self._work_off_all(page.dispatches, now),
            *map(unsent_trouble, filter(is_unsent, page.rows)),
            *map(unreadable_trouble, page.unreadable),
        ]
        return {trouble.key: trouble for trouble in troubles}

    def _is_behind(self, rows: Iterable[Occurrence], now: datetime) -> bool:
        """Whether what follows one of the rows may lie behind the scan."""
        shard_map = self._plane.shard_map
        return any(shard_map.is_crossed(row.scheduled_for, now) for row in rows)

    def _release(
        self, dispatches: Sequence[Dispatch], now: datetime, previous: datetime | None
    ) -> tuple[Trouble, ...]:
        """Let deferred occurrences go whose dispatch rows are due."""
        report = release(self._plane, dispatches, now, previous=previous)
        self.released += report.released
        self.vain += report.vain
        self.faulty += report.faulty
        self.tally += Tally(
            canceled=report.canceled, held=report.held, unknown=report.unclear
        )
        self._hand_over(report.stuck)
        return report.troubles

    def _follow(
        self, dispatches: Sequence[Dispatch], now: datetime, previous: datetime | None
    ) -> tuple[Trouble, ...]:
        """See to rows that may lie behind the scan."""
        report = follow(
            self._plane,
            dispatches,
            now,
            previous=previous,
            is_over=self._is_over,
            turns=self._turns,
        )
        self.tally += report.tally
        self._hand_over(report.stuck)
        return report.troubles

    def _watch(
        self, dispatches: Sequence[Dispatch], now: datetime, previous: datetime | None
    ) -> tuple[Trouble, ...]:
        """Look after leases and dead letters."""
        place, is_over = self._workplace, self._is_over
        report = watch(place, dispatches, now, previous=previous, is_over=is_over)
        self.expired += report.expired
        self.unclaimed += report.unclaimed
        self.faulty += report.faulty
        self._hand_over(report.untold)
        return report.troubles

    def _work_off_all(
        self, dispatches: Iterable[Dispatch], now: datetime
    ) -> Iterator[Trouble]:
        """Work off the dispatch rows that are due, while there is time."""
        for dispatch in dispatches:
            if not dispatch.is_open or not is_due(dispatch, now):
                continue
            if self._is_over():
                return
            reason = self._work_off(dispatch, now)
            if reason is not None:
                yield Trouble(dispatch.key, reason, dispatch.due, dispatch.tenant_id)

    def _work_off(self, dispatch: Dispatch, now: datetime) -> ParkReason | None:
        """Do what a dispatch row asks for that concerns a schedule as a whole."""
        try:
            if dispatch.kind is DispatchKind.HANDOVER:
                finish_dispatched(self._plane, dispatch, self._clock)
                self.handovers += 1
            elif dispatch.kind is DispatchKind.COMPLETE:
                if not complete(self._plane, dispatch, now):
                    return ParkReason.HELD
                self.completed += 1
        except Transient:
            # If nothing answers any more, the next page says so.
            self.tally += Tally(unknown=1)
            return ParkReason.UNCLEAR
        except HourbellError:
            # A lasting fault of this one; it must not stop the others.
            self.faulty += 1
            return ParkReason.DISPATCH_FAULTY
        return None

    def _hand_over(self, keys: Sequence[RowKey]) -> None:
        if keys:
            self._sweep_queue.put(keys)
            self.swept += len(keys)
