"""Parked rows in memory."""

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.parking import ParkedRow
from hourbell.usecases.ports import Write


class MemoryParking:
    """The `Parking` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._rows = store.parked

    def parked(self, group: int) -> tuple[ParkedRow, ...]:
        """Return all parked rows of a group in key order."""
        return tuple(
            self._rows[place] for place in sorted(self._rows) if place[0] == group
        )

    def park(self, row: ParkedRow) -> Write:
        """Park a row unless it is parked."""
        if (row.group, row.key) in self._rows:
            return Write.EXISTS
        self._rows[row.group, row.key] = row
        return Write.APPLIED

    def put_off(self, row: ParkedRow) -> Write:
        """Store a parked row after one more try."""
        stored = self._rows.get((row.group, row.key))
        if stored is None or stored.tries != row.tries - 1:
            return Write.LOST
        self._rows[row.group, row.key] = row
        return Write.APPLIED

    def unpark(self, row: ParkedRow) -> Write:
        """Forget a parked row."""
        stored = self._rows.get((row.group, row.key))
        if stored is None or stored.tries != row.tries:
            return Write.LOST
        del self._rows[row.group, row.key]
        return Write.APPLIED
