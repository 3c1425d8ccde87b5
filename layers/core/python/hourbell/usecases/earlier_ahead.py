"""Find what versions before the ended one still have ahead of a change."""

from collections.abc import Iterator
from itertools import takewhile

from hourbell.domain.definition import ScheduleState, Version
from hourbell.domain.occurrence import (
    TRANSITIONS,
    Occurrence,
    RowKey,
    State,
    Transition,
    row_key,
)
from hourbell.domain.schedule import upcoming
from hourbell.domain.zones import TICK
from hourbell.usecases.materialize import Plane

# What no relay has got hold of.
WAITING = TRANSITIONS[Transition.WITHDRAW].sources


def earlier_ahead(plane: Plane, ended: Version) -> list[Occurrence]:
    """Return the rows after a change that stand and are of versions before the ended.

    There are some when changes follow each other within the horizon. A pause or a
    cancel lets none stand that no relay has got hold of.

    Args:
        plane: the ports.
        ended: the version that the change ends, with `ends_at`.
    """
    keys: list[RowKey] = []
    for version in _versions_ahead(plane, ended):
        keys[:0] = _keys_ahead(plane, version, ended)
    found = plane.timeline.read(keys) if keys else {}
    rows = [found[key] for key in keys if key in found]
    over = {State.CANCELED} | (WAITING if ended.is_stopped else frozenset())
    return [row for row in rows if row.state not in over]


def _versions_ahead(plane: Plane, ended: Version) -> Iterator[Version]:
    """Yield the versions before the ended one that own times after the change."""
    version = ended
    while _begins_after(version, ended):
        page = plane.schedules.version_log(version.schedule_id, before=version.version)
        for version in page:
            yield version
            if not _begins_after(version, ended):
                return
        if not page:
            return


def _begins_after(version: Version, ended: Version) -> bool:
    """Whether somebody else owns times between the change and a version's first."""
    if version.effective_from is None or ended.ends_at is None:
        return False
    return version.effective_from - TICK > ended.ends_at


def _keys_ahead(plane: Plane, version: Version, ended: Version) -> list[RowKey]:
    """Return the keys of a version's own times after the change."""
    start, end = version.effective_from, version.effective_to
    if version.state is not ScheduleState.ACTIVE or start is None or end is None:
        return []
    after = max(start - TICK, ended.ends_at or start)
    times = upcoming(version.timing, after)
    return [
        row_key(
            version.schedule_id,
            version.version,
            instant,
            plane.shard_map.shard_of(version.schedule_id, instant),
        )
        for instant in takewhile(lambda instant: instant < end, times)
    ]
