"""Parked rows in memory."""

from dataclasses import replace

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.occurrence import RowKey
from hourbell.domain.parking import ParkedRow
from hourbell.usecases.ports import ParkedPage, Write


class MemoryParking:
    """The `Parking` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._rows = store.parked

    def parked(self, group: int) -> tuple[ParkedRow, ...]:
        """Return all parked rows of a group in key order."""
        return tuple(
            self._rows[place] for place in sorted(self._rows) if place[0] == group
        )

    def page(self, group: int, *, after: str | None, limit: int) -> ParkedPage:
        """Return parked rows of a group beyond a place."""
        rows = [row for row in self.parked(group) if row.place > (after or "")]
        found = tuple(rows[:limit])
        return ParkedPage(found, found[-1].place if len(rows) > limit else None)

    def find(self, group: int, key: RowKey) -> ParkedRow | None:
        """Return a parked row."""
        return self._rows.get((group, key))

    def ask(self, row: ParkedRow) -> Write:
        """Store `asked_at` and `next_try_at` of a parked row."""
        stored = self.find(row.group, row.key)
        if stored is None or stored.tries != row.tries:
            return Write.LOST
        self._rows[row.group, row.key] = replace(
            stored, asked_at=row.asked_at, next_try_at=row.next_try_at
        )
        return Write.APPLIED

    def park(self, row: ParkedRow) -> Write:
        """Park a row unless it is parked."""
        if (row.group, row.key) in self._rows:
            return Write.EXISTS
        self._rows[row.group, row.key] = row
        return Write.APPLIED

    def put_off(self, row: ParkedRow) -> Write:
        """Store a parked row after one more try."""
        if not self._stands(row, row.tries - 1):
            return Write.LOST
        self._rows[row.group, row.key] = row
        return Write.APPLIED

    def unpark(self, row: ParkedRow) -> Write:
        """Forget a parked row."""
        if not self._stands(row, row.tries):
            return Write.LOST
        del self._rows[row.group, row.key]
        return Write.APPLIED

    def _stands(self, row: ParkedRow, tries: int) -> bool:
        stored = self.find(row.group, row.key)
        return stored is not None and (stored.tries, stored.asked_at) == (
            tries,
            row.asked_at,
        )
