"""The statistic of loads in memory."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.load import floor_hour


class MemoryLoads:
    """The `Loads` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._counts = store.loads

    def add(self, counts: Mapping[datetime, int]) -> None:
        """Add to the counts of UTC minutes."""
        self._counts.update(counts)

    def read(self, hours: Iterable[datetime]) -> dict[datetime, int]:
        """Return the counts of the minutes of some UTC hours."""
        wanted = set(hours)
        return {
            minute: count
            for minute, count in self._counts.items()
            if floor_hour(minute) in wanted
        }
