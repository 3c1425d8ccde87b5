"""The weeks after a world's end: what nobody claimed ends when its queue let go of it.

Nobody wants anything any more. Minutes in which nothing can happen are passed over: the
groups' records are what passes of those minutes would have made of them.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from tests.simulation.log import Call
from tests.simulation.verdicts import UNCLAIMED, floor

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
# By when it is told of what own queues kept, and of what an external one may keep.
ENDS = (4 * DAY + 2 * HOUR + 2 * MINUTE, 14 * DAY + HOUR + 2 * MINUTE)
# How long passes work under faults then, and how long at most in all.
ROUGH, LONGEST = 4 * MINUTE, 120 * MINUTE
LEAST = 2 * MINUTE
LAST_LOOK = 4 * DAY + 2 * HOUR
OVER = {"SUCCEEDED", "DEAD", "CANCELED", "MISSED", "SKIPPED_OVERLAP"}


class Afterwards:
    """Lets weeks go by.

    Args:
        world: one that was judged, and in which all is quiet.
        rates: the faults under which what is left is found.
    """

    def __init__(self, world: Any, rates: dict[str, float] | None = None) -> None:
        self.world = world
        self.store = world.store
        self._rates = rates or {}
        self._end: datetime = world.now

    def live(self) -> None:
        """Let it all come, and judge it."""
        world = self.world
        world.note("what follows are weeks in which nobody wants anything")
        steps, counts = world.steps, Counter(world.counts)
        self._cancel_all()
        for ends in ENDS:
            self._pass_over(self._end + ends)
            world.rates, self._rates = self._rates, {}
            self._work(lambda: False, ROUGH if world.rates else LEAST)
            world.rates = {}
            self._work(self._is_done, LONGEST)
        self._judge()
        # How often faults strike is told of the time in which all the others do.
        counts[UNCLAIMED] = world.counts[UNCLAIMED]
        world.steps, world.counts = steps, counts

    def _cancel_all(self) -> None:
        """Cancel what schedules there are, so that no time is due any more."""
        world = self.world
        schedules = sorted(self.store.schedules.values(), key=lambda each: each.name)
        for schedule in schedules:
            if schedule.state not in {"ACTIVE", "PAUSED"}:
                continue
            number = len(world.log.calls) + 1
            call = Call(number, "cancel", schedule.name, world.now)
            call.schedule_id = schedule.schedule_id
            world.log.calls.append(call)
            while call.answered is None:
                self._ask(call)
        self._work(lambda: False, LEAST)

    def _ask(self, call: Call) -> None:
        def cancel(process: Any, attempt: str) -> None:
            self.world.callers.perform(process, attempt, call)

        if not self.world.task("caller", "cancel of all", cancel):
            self.world.now += MINUTE

    # --- time -------------------------------------------------------------------

    def _pass_over(self, until: datetime) -> None:
        """Let the time come; stop where something is to be done."""
        world = self.world
        while world.now < until:
            stop = max(world.now, min(until, self._next_open(world.now) + MINUTE))
            heap = world._heap
            if heap and heap[0][0] <= stop:
                world._next()
                continue
            world.now = stop
            self._skip()
            if stop < until:
                self._work(self._is_idle, LONGEST)

    def _work(self, is_done: Callable[[], bool], longest: timedelta) -> None:
        """Let ticks come, each minute, until all is done."""
        world, end = self.world, self.world.now + longest
        world.at(world.now, "tick")
        while world.now < end and not is_done():
            skip_last_looks(world)
            until = world.now + MINUTE
            while world._heap and world._heap[0][0] <= until:
                world._next()
            world.now = until
        heap = world._heap
        heap[:] = [each for each in heap if each[2] != "tick"]
        heapq.heapify(heap)

    def _skip(self) -> None:
        """Let groups be where passes over empty buckets would have brought them."""
        now = self.world.now
        last = floor(now) - 4 * MINUTE
        for group, record in list(self.store.groups.items()):
            shards = self.world.sharding.now.all_shards_of(group)
            marks = {
                shard: max(
                    record.watermarks.get(shard, record.floor),
                    min([last, *self._open(shard)]),
                )
                for shard in shards
            }
            self.store.groups[group] = replace(
                record,
                watermarks=record.watermarks | marks,
                looked_at=now - MINUTE,
            )

    def _open(self, shard: int) -> Iterator[datetime]:
        """Yield the minutes in which a shard has what holds a watermark."""
        parked = {(key.shard, key.bucket, key.sort) for _, key in self.store.parked}
        for bucket, sorts in self.store.opened[shard].items():
            if any((shard, bucket, sort) not in parked for sort in sorts):
                yield _minute(bucket)

    def _next_open(self, otherwise: datetime) -> datetime:
        minutes = [each for shard in self.store.opened for each in self._open(shard)]
        return min(minutes, default=otherwise + 30 * DAY)

    def _is_idle(self) -> bool:
        now: datetime = self.world.now
        return self._next_open(now) > now

    # --- what must come of it ---------------------------------------------------

    def _left(self) -> Iterator[Any]:
        """Yield the TRACKED rows that are not over, though no queue has them."""
        kept = self.world.consumers.messages.kept_until
        for schedule_id, rows in self.store.by_schedule.items():
            if not self.world.is_tracked(schedule_id):
                continue
            for name, row in rows.items():
                if row.state in OVER or self._is_forgotten(row):
                    continue
                until = kept.get((name, row.sends))
                if until is None or until + 2 * HOUR <= self.world.now:
                    yield row

    def _is_forgotten(self, row: Any) -> bool:
        """Whether nothing leads to a row any more.

        What a backfill makes before the beginning of its group has its last look where
        its release lies; it has none when that expired before.
        """
        if not self.world.calendar.slept:
            return False
        shards, minute = self.world.sharding.now, _minute(row.key.bucket)
        return any(
            minute < record.floor
            for group, record in self.store.groups.items()
            if row.key.shard in shards.all_shards_of(group)
        )

    def _untold(self) -> Iterator[Any]:
        for row in self.store.all_rows():
            if row.state == "DEAD" and row.told_at is None:
                yield row

    def _is_done(self) -> bool:
        """Whether nothing is left, and each bucket of the world was looked at."""
        records = self.store.groups.values()
        looked = [each.looked_until or each.floor for each in records]
        is_looked = min(looked) > floor(self._end)
        return is_looked and not any(self._left()) and not any(self._untold())

    def _judge(self) -> None:
        book = self.world.workbook
        for row in self._left():
            text = f"{row.occurrence_id} is {row.state}, sent {row.sends} times"
            book.violate("nothing waits for ever", text)
        for row in self._untold():
            book.violate("each death is told", f"{row.occurrence_id} is not")
        parked = {key for _, key in self.store.parked}
        for each in self.store.all_dispatches():
            is_late = each.is_open and each.due <= self.world.now - 3 * MINUTE
            if is_late and each.key not in parked:
                text = f"{each.schedule_id}.{each.key.sort}"
                book.violate("every dispatch row is settled", text)


def skip_last_looks(world: Any) -> None:
    """Pass over the last looks at minutes in which no row lies, where days have none.

    They lead to nothing, and there are as many as the days that were passed over have.
    """
    last = floor(world.now) - LAST_LOOK - 4 * MINUTE
    records = {
        group: record
        for group, record in world.store.groups.items()
        if (record.looked_until or record.floor) < last - HOUR
    }
    if not records:
        return
    used = _used(world.store.rows, world.store.dispatches)
    for group, record in records.items():
        until = record.looked_until or record.floor
        left = [last]
        for shard in world.sharding.now.all_shards_of(group):
            left += [each for each in used.get(shard, ()) if each >= until]
        if min([*record.watermarks.values(), min(left)]) >= until:
            world.store.groups[group] = replace(record, looked_until=min(left))


def _used(*tables: dict[str, Any]) -> dict[int, list[datetime]]:
    """Return in which minutes rows lie, by shard."""
    found: dict[int, list[datetime]] = {}
    for table in tables:
        for partition, rows in table.items():
            bucket, _, shard = partition.partition("#")
            if rows:
                found.setdefault(int(shard), []).append(_minute(bucket))
    return found


@cache
def _minute(bucket: str) -> datetime:
    return datetime.strptime(bucket, "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
