"""What counting loads needs of the outside world."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Protocol


class Loads(Protocol):
    """How many occurrences fall on each UTC minute: a statistic over all tenants.

    It is an estimate: adding is not conditional, so that a repeated call counts twice,
    and one that failed may not count.
    """

    def add(self, counts: Mapping[datetime, int]) -> None:
        """Add to the counts of UTC minutes.

        Raises:
            Transient: some may not be added; do not repeat it.
        """
        ...

    def read(self, hours: Iterable[datetime]) -> dict[datetime, int]:
        """Return the counts of the minutes of up to 100 UTC hours, without zeros.

        An hour is named by its start. Counts are kept for nine days.
        """
        ...
