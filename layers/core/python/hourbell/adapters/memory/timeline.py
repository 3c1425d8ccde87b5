"""The timeline in memory."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hourbell.adapters.memory.moves import is_allowed, make
from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.dispatch import Dispatch, DispatchState
from hourbell.domain.occurrence import Occurrence, RowKey, partition_of
from hourbell.usecases.ports import Change, Page, Write


class MemoryTimeline:
    """The `Timeline` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    @property
    def stream(self) -> list[Occurrence]:
        """New images of all writes so far, oldest first; clear it when read."""
        return self._store.stream

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Insert rows where their keys are free."""
        _reject_repeats([row.key for row in rows])
        return [self._insert(row) for row in rows]

    def move(self, changes: Sequence[Change]) -> list[Write]:
        """Make conditional transitions.

        Raises:
            ValueError: a key occurs twice.
        """
        _reject_repeats([change.row.key for change in changes])
        return [self._apply(change) for change in changes]

    def page(
        self,
        bucket: str,
        shard: int,
        *,
        after: RowKey | None = None,
        limit: int = 1000,
        consistent: bool = False,
    ) -> Page:
        """Return up to `limit` rows of both kinds after `after`, in key order."""
        del consistent
        partition = partition_of(bucket, shard)
        rows = self._store.rows.get(partition, {})
        dispatches = self._store.dispatches.get(partition, {})
        first = "" if after is None else after.sort
        sorts = sorted(sort for sort in [*rows, *dispatches] if sort > first)
        taken, more = sorts[:limit], len(sorts) > limit
        return Page(
            tuple(rows[sort] for sort in taken if sort in rows),
            RowKey(bucket, shard, taken[-1]) if more else None,
            tuple(dispatches[sort] for sort in taken if sort in dispatches),
        )

    def unfinished(
        self, bucket: str, shard: int, *, after: RowKey | None = None
    ) -> Page:
        """Return what has no expiry, and all dispatch rows, in key order."""
        page = self.page(bucket, shard, after=after)
        rows = tuple(row for row in page.rows if row.expires_at is None)
        return replace(page, rows=rows)

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Occurrence]:
        """Return those of the occurrences that exist."""
        found = {key: self._store.row(key) for key in keys}
        return {key: row for key, row in found.items() if row is not None}

    def look_up(self, keys: Iterable[RowKey]) -> Page:
        """Return what lies under these keys, of either kind."""
        wanted = list(dict.fromkeys(keys))
        rows = [self._store.row(key) for key in wanted]
        dispatches = [self._store.dispatch(key) for key in wanted]
        return Page(
            tuple(row for row in rows if row is not None),
            None,
            tuple(each for each in dispatches if each is not None),
        )

    def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Insert dispatch rows where their keys are free."""
        _reject_repeats([dispatch.key for dispatch in dispatches])
        return [self._post(dispatch) for dispatch in dispatches]

    def settle(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Set dispatch rows DONE, with their expiry, where they are PENDING."""
        _reject_repeats([dispatch.key for dispatch in dispatches])
        return [self._settle(dispatch) for dispatch in dispatches]

    def reopen(self, change: Change, release: Dispatch) -> Write:
        """Make a transition and put the dispatch row, or do neither."""
        if self._store.dispatch(release.key) is not None:
            return Write.LOST
        answer = self._apply(change)
        if answer is Write.APPLIED:
            self._store.put_dispatch(release)
        return answer

    def _post(self, dispatch: Dispatch) -> Write:
        if self._store.dispatch(dispatch.key) is not None:
            return Write.EXISTS
        self._store.put_dispatch(dispatch)
        return Write.APPLIED

    def _settle(self, dispatch: Dispatch) -> Write:
        stored = self._store.dispatch(dispatch.key)
        if stored is None or not stored.is_open:
            return Write.LOST
        self._store.put_dispatch(
            replace(stored, state=DispatchState.DONE, expires_at=dispatch.expires_at)
        )
        return Write.APPLIED

    def _insert(self, row: Occurrence) -> Write:
        if self._store.row(row.key) is not None:
            return Write.EXISTS
        self._store.put_row(row)
        return Write.APPLIED

    def _apply(self, change: Change) -> Write:
        if not is_allowed(self._store, change):
            return Write.LOST
        make(self._store, change)
        return Write.APPLIED


def _reject_repeats(keys: list[RowKey]) -> None:
    if len(set(keys)) != len(keys):
        raise ValueError("a row key occurs twice in one call")
