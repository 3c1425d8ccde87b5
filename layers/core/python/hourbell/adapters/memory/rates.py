"""The places of rates in memory."""

from collections.abc import Sequence
from datetime import datetime

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.rates import Line, Rate
from hourbell.usecases.rate_port import MAX_MINUTES


class MemoryRates:
    """The `Rates` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._taken = store.taken

    def reserve(self, rate: Rate, wanted: Sequence[datetime]) -> list[datetime | None]:
        """Take a place for each instant: the first at or after it that is free."""
        line, minutes = Line(rate, wanted), 0
        while line.minute is not None and minutes < MAX_MINUTES:
            key = (rate.name, line.minute)
            filled = line.fill(self._taken.get(key, {}))
            if filled.places:
                self._taken[key] = filled.taken
                minutes += 1
            line.accept(filled)
        return line.places
