"""Values that are remembered for a while."""

from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from hourbell.usecases.ports import Clock

K = TypeVar("K")
V = TypeVar("V")

MAX_ENTRIES: Final = 10_000


class ExpiringCache(Generic[K, V]):
    """Remembers up to 10,000 values, each up to a maximum age.

    Only what was put is remembered: an absent value is always asked for again.
    """

    def __init__(self, clock: Clock, max_age_seconds: int) -> None:
        self._clock = clock
        self._max_age = timedelta(seconds=max_age_seconds)
        self._entries: OrderedDict[K, tuple[datetime, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return a value that is not too old, or None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        read_at, value = entry
        if self._clock.now() - read_at < self._max_age:
            return value
        del self._entries[key]
        return None

    def put(self, key: K, value: V, *, read_at: datetime | None = None) -> None:
        """Remember a value from now on; the oldest one makes room.

        Args:
            key: what it is found by.
            value: what is remembered.
            read_at: when reading it began, if its age counts from then.
        """
        self._entries.pop(key, None)
        if len(self._entries) >= MAX_ENTRIES:
            self._entries.popitem(last=False)
        self._entries[key] = (read_at or self._clock.now(), value)

    def forget(self, key: K) -> None:
        """Have a value asked for again."""
        self._entries.pop(key, None)
