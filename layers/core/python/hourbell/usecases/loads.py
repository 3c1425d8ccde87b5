"""Count how many occurrences fall on each minute, and tell the load of a time."""

from collections.abc import Sequence
from datetime import datetime

from hourbell.domain.errors import HourbellError
from hourbell.domain.load import Counts, relative_loads, telling_hours
from hourbell.usecases.load_ports import Loads


def count_pass(loads: Loads, counts: Counts) -> bool:
    """Add what a pass materialized on time to the statistic; never raise.

    Returns:
        False when that failed; it is not tried again, since it is an estimate, and no
        occurrence waits for it.
    """
    if not counts.by_minute:
        return True
    try:
        loads.add(counts.by_minute)
    except HourbellError:
        return False
    return True


def loads_of(
    loads: Loads, times: Sequence[datetime], now: datetime
) -> list[float | None]:
    """Return the load of each time, see `relative_loads`; never raise.

    A load is all tenants' together; only the ratio may be shown, never a count.

    Returns:
        None for each time when the statistic did not answer.
    """
    if not times:
        return []
    try:
        counts = loads.read(telling_hours(now))
    except HourbellError:
        return [None] * len(times)
    return relative_loads(times, counts, now)
