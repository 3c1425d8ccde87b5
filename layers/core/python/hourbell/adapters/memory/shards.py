"""The list of shard counts, and the moving of rows, in memory."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.shards import ShardMap, stable_hash
from hourbell.domain.work import Attempt
from hourbell.usecases.ports import Write
from hourbell.usecases.shard_ports import Epochs, Misplaced, MoveOrder

# Rows that one call of `rows_from` looks at.
PAGE = 100


class MemoryEpochBook:
    """The `EpochBook` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def read(self) -> Epochs | None:
        """Return the list; None when none is stored."""
        return self._store.epochs

    def store(self, epochs: Epochs) -> Write:
        """Store the list, if what is stored has the revision before it."""
        stored = self._store.epochs
        if (0 if stored is None else stored.revision) != epochs.revision - 1:
            return Write.LOST
        self._store.epochs = epochs
        return Write.APPLIED


class MemoryShardMaps:
    """The `ShardMaps` port that never tells what is old."""

    def __init__(self, store: MemoryStore, initial: ShardMap) -> None:
        self._store = store
        self._initial = initial

    def current(self) -> ShardMap:
        """Return the map."""
        epochs = self._store.epochs
        return self._initial if epochs is None else epochs.shard_map


class MemoryMoveQueue:
    """The `MoveQueue` port: orders and their delays wait in a list."""

    def __init__(self) -> None:
        self.orders: list[tuple[MoveOrder, timedelta]] = []

    def put(self, orders: Sequence[MoveOrder], *, delay: timedelta) -> None:
        """Enqueue orders that come after a delay."""
        self.orders += [(order, delay) for order in orders]


class MemoryRelocation:
    """The `Relocation` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def rows_from(
        self, bucket: str, *, segment: int, segments: int, after: str | None
    ) -> tuple[tuple[Misplaced, ...], str | None]:
        """Walk through a part of the timeline."""
        found = sorted(
            (f"{partition}/{sort}", row)
            for rows in (
                self._store.rows,
                self._store.dispatches,
                self._store.attempts,
            )
            for partition, each in rows.items()
            if stable_hash(partition) % segments == segment
            for sort, row in each.items()
        )
        left = [each for each in found if each[0] > (after or "")]
        page, more = left[:PAGE], len(left) > PAGE
        taken = [_told(row) for _, row in page if row.key.bucket >= bucket]
        return tuple(taken), page[-1][0] if more else None

    def relocate(self, rows: Sequence[Misplaced], shards: Sequence[int]) -> list[Write]:
        """Move each row to its shard."""
        return [
            self._relocate(row, shard) for row, shard in zip(rows, shards, strict=True)
        ]

    def plan_apart(self, row: Occurrence, twin: RowKey) -> Write:
        """Insert a row if its key is free and there is nothing under the other."""
        if self._store.has(row.key) or self._store.has(twin):
            return Write.EXISTS
        self._store.put_row(row)
        return Write.APPLIED

    def _relocate(self, row: Misplaced, shard: int) -> Write:
        if isinstance(row.token, Attempt):
            return self._relocate_attempt(row.token, shard)
        key, store = row.key, self._store
        stored = store.row(key) or store.dispatch(key)
        place = replace(key, shard=shard)
        like = store.dispatch(place)
        if stored != row.token:
            return Write.LOST
        if like is not None and (like.is_open or not row.is_open):
            # One will do, unless it is done and the other is still to be worked off.
            del store.dispatches[key.partition][key.sort]
            return Write.APPLIED
        if store.has(place):
            return Write.LOST
        if isinstance(stored, Occurrence):
            del store.rows[key.partition][key.sort]
            store.put_row(replace(stored, shard=shard))
        elif isinstance(stored, Dispatch):
            del store.dispatches[key.partition][key.sort]
            store.put_dispatch(replace(stored, shard=shard))
        return Write.APPLIED

    def _relocate_attempt(self, attempt: Attempt, shard: int) -> Write:
        moved = replace(attempt, key=replace(attempt.key, shard=shard))
        if self._store.attempt(attempt) != attempt or self._store.attempt(moved):
            return Write.LOST
        del self._store.attempts[attempt.key.partition][attempt.sort]
        self._store.put_attempt(moved)
        return Write.APPLIED


def _told(row: Occurrence | Dispatch | Attempt) -> Misplaced:
    if isinstance(row, Attempt):
        key = replace(row.key, sort=row.sort)
        return Misplaced(key, is_open=False, is_leaving=False, token=row)
    is_leaving = isinstance(row, Occurrence) and row.state is State.SCHEDULED
    return Misplaced(row.key, row.is_open, is_leaving, row)
