"""A memory store that remembers what was there, and judges every single write."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from hourbell.adapters.memory import MemoryStore
from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.instants import parse_compact
from hourbell.domain.occurrence import Occurrence, RowKey, partition_of
from hourbell.usecases.ports import Lease

from tests.simulation.rules import INSTANT

# The state table of design.md, as far as occurrences without workers go.
MOVES = {
    "PLANNED": {"SCHEDULED", "DEFERRED", "MISSED", "CANCELED"},
    "DEFERRED": {"SCHEDULED", "CANCELED"},
    "SCHEDULED": {"ENQUEUED", "CANCELED", "DEAD"},
    "ENQUEUED": set(),
    "MISSED": {"DEFERRED"},
    "CANCELED": set(),
    "DEAD": set(),
}
# Besides, of TRACKED ones.
WORK_MOVES = {
    "SCHEDULED": {
        *("RUNNING", "DEAD", "DEFERRED", "WAITING_OVERLAP", "SKIPPED_OVERLAP"),
    },
    "ENQUEUED": {
        *("RUNNING", "DEAD", "DEFERRED", "WAITING_OVERLAP", "SKIPPED_OVERLAP"),
        "CANCELED",
    },
    "RUNNING": {"SUCCEEDED", "RETRY_WAIT", "DEAD", "CANCELED"},
    "RETRY_WAIT": {"SCHEDULED", "CANCELED"},
    "WAITING_OVERLAP": {"SCHEDULED", "CANCELED"},
    "DEAD": {"DEFERRED"},
}
WAITING = {"DEFERRED", "RETRY_WAIT", "WAITING_OVERLAP"}
# How long ago a pass can have read what it judges by.
PASS = timedelta(seconds=110)
OPEN = {"PLANNED", "SCHEDULED"}
OUT_OF_HAND = {
    *("SCHEDULED", "ENQUEUED", "DEAD", "RUNNING", "SUCCEEDED", "RETRY_WAIT"),
    *("WAITING_OVERLAP", "SKIPPED_OVERLAP"),
}


class Remembering(dict[Any, Any]):
    """A table that calls back before each write, and keeps what was there before."""

    def __init__(
        self,
        now: Callable[[], datetime],
        judge: Callable[..., None],
        kept: Callable[[Any], Any] = lambda value: value,
    ) -> None:
        super().__init__()
        self._now = now
        self._judge = judge
        self._kept = kept
        self.previous: dict[Any, tuple[datetime, Any]] = {}
        self.born: dict[Any, datetime] = {}

    def __setitem__(self, key: Any, value: Any) -> None:
        old, value = self.get(key), self._kept(value)
        self._judge(key, old, value)
        self.previous[key] = (self._now(), old)
        self.born.setdefault(key, self._now())
        super().__setitem__(key, value)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]


# What a row may be that is put where one has expired: it tells times, or why not.
MAY_RETURN = frozenset({"PLANNED", "MISSED", "CANCELED"})


class WatchedStore(MemoryStore):
    """The store of a simulated world.

    Attributes:
        by_schedule: schedule_id -> occurrence_id -> row.
        planned: schedule_id -> ids of its PLANNED rows.
        previous: per key of a row or dispatch row, when it was last written, and what
            was there before.
        expired: rows whose place was taken anew after they had expired, by id.
    """

    def __init__(self, world: Any) -> None:
        super().__init__()
        self.world = world
        items = world.items
        self.versions = Remembering(self._now, self._judge_version, items.version)
        self.groups = Remembering(self._now, self._judge_group)
        self.schedules = Remembering(self._now, _accept, items.schedule)
        self.by_schedule: dict[str, dict[str, Occurrence]] = defaultdict(dict)
        self.planned: dict[str, set[str]] = defaultdict(set)
        self.previous: dict[RowKey, tuple[datetime, Any]] = {}
        self.expired: dict[str, Occurrence] = {}
        self.closed: dict[tuple[int, str], datetime] = {}
        self.is_moving = self.is_moved = False
        self.moved: dict[str, dict[str, Any]] = defaultdict(dict)
        self.opened: dict[int, dict[str, set[str]]] = defaultdict(
            lambda: defaultdict(set)
        )

    def put_row(self, row: Occurrence) -> None:
        """Judge a write, make it, and give its image to the stream."""
        row = self.world.items.row(row)
        old, key = self.row(row.key), row.key
        known = self.by_schedule[row.schedule_id].get(row.occurrence_id)
        if old is None and known is not None and not self.is_moving:
            self._judge_return(known, row)
        if known is not None and known.key in self.released:
            self.released.add(key)
        self._judge_row(old, row)
        self.previous[key] = (self._now(), old)
        self.rows.setdefault(key.partition, {})[key.sort] = row
        name = row.occurrence_id
        self.by_schedule[row.schedule_id][name] = row
        keep = self.planned[row.schedule_id]
        (keep.add if row.state == "PLANNED" else keep.discard)(name)
        self._mark_open(key, row.is_open)
        self.world.outbox.on_row(old, row)

    @contextmanager
    def moving(self, key: RowKey) -> Iterator["WatchedStore"]:
        """Take what is written meanwhile for a row that is moved from somewhere."""
        self.is_moving, self.is_moved, row = True, False, self.row(key)
        try:
            yield self
        finally:
            self.is_moving = False
        if self.is_moved:
            self._mark_open(key, is_open=False)
            if row is not None:
                self.moved[key.partition][key.sort] = (self._now(), row)

    def moved_from(self, bucket: str, shard: int) -> dict[str, Any]:
        """Return, of the rows that were moved away, when and what by sort key."""
        partition = partition_of(bucket, shard)
        there = self.rows.get(partition, {})
        moved = self.moved.get(partition, {})
        return {sort: each for sort, each in moved.items() if sort not in there}

    def _judge_return(self, known: Occurrence, row: Occurrence) -> None:
        """Judge a row that is put where none is, though there was one."""
        text = f"{row.occurrence_id} -> {row.state}, in {known.key} and {row.key}"
        if self.row(known.key) is not None:
            self._violate("one place for each row", text, row.schedule_id)
            return
        self.expired[row.occurrence_id] = known

    def put_dispatch(self, row: Dispatch) -> None:
        """Make a write of a dispatch row."""
        row = self.world.items.dispatch(row)
        old, key = self.dispatch(row.key), row.key
        self.previous[key] = (self._now(), old)
        self.dispatches.setdefault(key.partition, {})[key.sort] = row
        if row.is_open:
            self._judge_place(key, f"dispatch row {key.sort} is PENDING")
        self._mark_open(key, row.is_open)
        self.world.note(f"dispatch {row.kind} {key.sort} {row.state}")

    def expire(self, now: datetime, chance: float) -> int:
        """Delete some of what has expired, as DynamoDB does; return how many rows."""
        deleted = 0
        tables: tuple[dict[str, dict[str, Any]], ...] = (self.rows, self.dispatches)
        for table in tables:
            for rows in table.values():
                for sort, row in list(rows.items()):
                    over = row.expires_at is not None and row.expires_at <= now
                    if over and self.world.rng.random() < chance:
                        del rows[sort]
                        deleted += 1
                        self._judge_deletion(row)
        return deleted

    def _judge_deletion(self, row: Any) -> None:
        """What is deleted is over, and was for 15 days."""
        if row.is_open or row.state == "DEFERRED":
            text = f"{row.key.sort} is {row.state}"
            self._violate("only what is over expires", text, row.schedule_id)

    def is_passed(self, minute: datetime, shard: int) -> bool:
        """Whether all groups that have a shard in a minute are through with it."""
        marks = [
            record.watermarks.get(shard, record.floor)
            for group, record in self.groups.items()
            if self._has(group, shard, minute)
        ]
        return bool(marks) and minute < min(marks)

    def _has(self, group: int, shard: int, minute: datetime) -> bool:
        return shard in self.world.sharding.now.shards_of(group, minute)

    def _now(self) -> datetime:
        now: datetime = self.world.now
        return now

    def _violate(self, invariant: str, text: str, schedule: str | None = None) -> None:
        self.world.log.violate(invariant, self.world.steps, text, schedule)

    def _mark_open(self, key: RowKey, is_open: bool) -> None:
        keys = self.opened[key.shard][key.bucket]
        if not is_open and key.sort in keys:
            self.closed[key.shard, key.bucket] = self._now()
        (keys.add if is_open else keys.discard)(key.sort)
        if not keys:
            del self.opened[key.shard][key.bucket]

    def _judge_row(self, old: Occurrence | None, new: Occurrence) -> None:
        name = f"{new.occurrence_id} {old and old.state} -> {new.state}"
        if old is not None and new.state != old.state:
            self._judge_move(old, new, name)
        if self.world.is_tracked(new.schedule_id):
            self.world.workbook.on_row(old, new)
        if new.occurrence_id in self.expired and new.state not in MAY_RETURN:
            self._violate("what expired never runs again", name, new.schedule_id)
        ended = new.state in {"MISSED", "CANCELED", "DEAD"}
        if ended and not (new.reason and new.expires_at and new.finished_at):
            self._violate("an end has a reason", name, new.schedule_id)
        waited = old is not None and old.state in WAITING
        if new.is_open and not waited:
            self._judge_place(new.key, name)
        if waited and new.is_open:
            self._judge_release(new, name)

    def _judge_move(self, old: Occurrence, new: Occurrence, name: str) -> None:
        allowed = MOVES.get(str(old.state), set())
        if self.world.is_tracked(new.schedule_id):
            allowed = allowed | WORK_MOVES.get(str(old.state), set())
        if new.state not in allowed:
            self._violate("state table", name, new.schedule_id)
        if old.state == "MISSED" and new.backfilled_at is None:
            self._violate("terminal states stay", name, new.schedule_id)

    def _judge_place(self, key: RowKey, name: str) -> None:
        behind = self.is_passed(_minute(key.bucket), key.shard)
        if behind and not self._leads_there(key) and not self._is_followed(key):
            text = f"{name}, behind the watermark of shard {key.shard}"
            self._violate("nothing opens behind the watermark", text)

    def _is_followed(self, key: RowKey) -> bool:
        """Whether a dispatch row speaks for what lies behind a watermark.

        Across the beginning of an epoch the next time of a chain lies in another shard,
        which may have been passed.
        """
        instant, schedule_id, version, *_ = key.sort.split("#")
        return any(
            each.is_open
            and each.kind is DispatchKind.FOLLOW
            and (each.schedule_id, f"v{each.version}") == (schedule_id, version)
            and each.scheduled_for == parse_compact(instant)
            for rows in self.dispatches.values()
            for each in rows.values()
        )

    def _judge_release(self, row: Occurrence, name: str) -> None:
        """What is released lies behind the scan; a dispatch row must speak for it."""
        spoken = any(
            each.is_open
            and (each.schedule_id, each.version) == (row.schedule_id, row.version)
            and (each.scheduled_for, each.run) == (row.scheduled_for, row.run)
            for rows in self.dispatches.values()
            for each in rows.values()
        )
        if not spoken:
            text = f"{name}, and no dispatch row is PENDING"
            self._violate("a release has its dispatch row", text, row.schedule_id)

    def _leads_there(self, key: RowKey) -> bool:
        """Whether a parked row sets the watermark back to here once it is done."""
        schedule_id = key.sort.split("#")[1]
        return any(
            parked.sort.split("#")[1] == schedule_id and parked.bucket <= key.bucket
            for _, parked in self.parked
        )

    def _parked_sorts(self, bucket: str, shard: int) -> set[str]:
        """Return the sort keys of the parked rows of a bucket."""
        keys = [key for _, key in self.parked]
        return {k.sort for k in keys if (k.bucket, k.shard) == (bucket, shard)}

    def _is_set_back(self, shard: int, after: datetime, before: datetime) -> bool:
        """Whether a late writer or a parked row is why a watermark goes back."""
        parked = [_minute(key.bucket) for _, key in self.parked if key.shard == shard]
        # What the pass found open, others may have closed before it stored that.
        open_lately = set(self.opened[shard]) | {
            bucket
            for (its_shard, bucket), at in self.closed.items()
            if its_shard == shard and self._now() - at < PASS
        }
        return any(minute <= after for minute in parked) or any(
            after <= _minute(bucket) < before for bucket in open_lately
        )

    def _judge_group(self, group: int, old: Lease | None, new: Lease) -> None:
        if old is None:
            return
        for shard in sorted({*old.watermarks, *new.watermarks, *self.opened}):
            before = old.watermarks.get(shard, old.floor)
            after = new.watermarks.get(shard, new.floor)
            if after < before and not self._is_set_back(shard, after, before):
                text = f"shard {shard}: {before:%d %H:%M} -> {after:%d %H:%M}"
                self._violate("no watermark moves back", text)
            for bucket, every in self.opened[shard].items():
                minute = _minute(bucket)
                if not before <= minute < after or not self._has(group, shard, minute):
                    continue
                sorts = every - self._parked_sorts(bucket, shard)
                if self._holds(bucket, shard, sorts):
                    text = (
                        f"shard {shard}: {before:%d %H:%M} -> {after:%d %H:%M} "
                        f"over {bucket} {sorted(sorts)}"
                    )
                    self._violate("a watermark passes nothing open", text)

    def _holds(self, bucket: str, shard: int, sorts: set[str]) -> bool:
        """Whether something open there is not spoken for by a dispatch row."""
        for sort in sorts:
            row = self.row(RowKey(bucket, shard, sort))
            if row is not None and self._is_followed(row.key):
                continue
            if row is None or row.state == "PLANNED" or row.key not in self.released:
                return True
        return False

    @property
    def released(self) -> set[RowKey]:
        """Keys of rows that were DEFERRED once."""
        keys: set[RowKey] = self.world.released
        return keys

    def _judge_version(
        self, ref: VersionRef, old: Version | None, new: Version
    ) -> None:
        self.world.note(
            f"version {ref.version} of {self.world.short(ref.schedule_id)} {new.state} "
            f"owns [{_shown(new.effective_from)}, {_shown(new.effective_to)}) "
            f"ends {_shown(new.ends_at)} {new.ends_as or ''} {new.reason or ''}"
        )
        if old is None:
            return
        for name in ("effective_from", "effective_to", "ends_at", "ends_as"):
            before, after = getattr(old, name), getattr(new, name)
            if before is not None and after != before:
                text = f"{ref}: {name} {before} -> {after}"
                self._violate("intervals are written once", text, ref.schedule_id)
        if old.effective_from is None and new.effective_from is not None:
            self._judge_start(ref, new.effective_from)

    def _judge_start(self, ref: VersionRef, start: datetime) -> None:
        """Just after as_of, or after the last earlier occurrence that stands."""
        ended = self.versions[VersionRef(ref.schedule_id, ref.version - 1)]
        rows = [
            row
            for row in self.by_schedule[ref.schedule_id].values()
            if row.version < ref.version and row.state in OUT_OF_HAND
            if row.run is None and row.backfilled_at is None
        ]
        times = {row.scheduled_for for row in rows}
        assert ended.ends_at is not None
        # Clocks differ: the version that ends may own nothing, and begin after its end.
        starts = {time + INSTANT for time in times}
        if start not in starts | {ended.ends_at + INSTANT, ended.effective_from}:
            text = f"{ref} begins at {start}: neither as_of nor a standing time"
            self._violate("where a version begins", text, ref.schedule_id)
        sure = {row.scheduled_for for row in rows if not self._left_too_late(row)}
        late = [t for t in sure if t >= start]
        if late or start <= ended.ends_at:
            text = f"{ref} begins at {start}, as_of {ended.ends_at}, standing {late}"
            self._violate("where a version begins", text, ref.schedule_id)

    def born(self, ref: VersionRef) -> datetime:
        """Return when a version was stored."""
        versions: Any = self.versions
        at: datetime = versions.born[ref]
        return at

    def _left_too_late(self, row: Occurrence) -> bool:
        """Whether a row left PLANNED when its version had ended already.

        A slow pass can do that; no relay lets it go.
        """
        left = self.previous[row.key][0]
        heir = VersionRef(row.schedule_id, row.version + 1)
        return row.state == "SCHEDULED" and left >= self.born(heir)


def _accept(*_: Any) -> None:
    """Judge nothing."""


def _minute(bucket: str) -> datetime:
    return datetime.strptime(bucket, "%Y%m%dT%H%MZ").replace(tzinfo=UTC)


def _shown(instant: datetime | None) -> str:
    return "..." if instant is None else f"{instant:%H:%M:%S.%f}"
