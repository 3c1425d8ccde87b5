"""Find what versions before the ended one still have ahead of a change."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import takewhile

from hourbell.domain.definition import ScheduleState, Version
from hourbell.domain.errors import InvalidInput
from hourbell.domain.occurrence import (
    Occurrence,
    RowKey,
    State,
    row_key,
)
from hourbell.domain.schedule import upcoming
from hourbell.domain.zones import TICK
from hourbell.usecases.materialize import Plane
from hourbell.usecases.withdrawing import WAITING, withdraw


def earlier_ahead(plane: Plane, ended: Version) -> list[Occurrence]:
    """Return the rows after a change that stand and are of versions before the ended.

    There are some when changes follow each other within the horizon. A pause or a
    cancel lets none stand that no relay has got hold of.

    Args:
        plane: the ports.
        ended: the version that the change ends, with `ends_at`.
    """
    over = {State.CANCELED} | (WAITING if ended.is_stopped else frozenset())
    versions = list(_versions_ahead(plane, ended))
    stops = _stops(versions)
    return [
        row
        for row in _rows_ahead(plane, versions, ended)
        if row.state not in over
        # Its clock may have been ahead: what is unsent of the times up to it goes.
        if row.state is not State.SCHEDULED or row.scheduled_for > stops[row.version]
    ]


def withdraw_earlier(plane: Plane, ended: Version, now: datetime) -> None:
    """Cancel what is ahead of a pause or a cancel and no relay has got hold of.

    Each version's own rows are its handover's; what an edit left to a version before
    it, which may be slow to leave PLANNED, is nobody else's.

    Args:
        plane: the ports.
        ended: the version that the change ends, with `ends_at`.
        now: the current instant.

    Raises:
        Transient: a store did not answer clearly; do it again.
    """
    if ended.is_stopped:
        versions = list(_versions_ahead(plane, ended))
        for row in reversed(_rows_ahead(plane, versions, ended)):
            if row.state in WAITING:
                withdraw(plane, ended, row, now)


def _stops(versions: Sequence[Version]) -> dict[int, datetime]:
    """Return when the last pause or cancel was that a version's rows know of."""
    found: dict[int, datetime] = {}
    last = datetime.min.replace(tzinfo=UTC)
    for version in versions:
        if version.is_stopped and version.ends_at is not None:
            last = max(last, version.ends_at)
        found[version.version] = last
    return found


def _rows_ahead(
    plane: Plane, versions: Sequence[Version], ended: Version
) -> list[Occurrence]:
    keys: list[RowKey] = []
    for version in versions:
        keys[:0] = _keys_ahead(plane, version, ended)
    found = plane.timeline.read(keys) if keys else {}
    return [found[key] for key in keys if key in found]


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
    try:
        times = list(
            takewhile(lambda each: each < end, upcoming(version.timing, after))
        )
    except InvalidInput:
        # Rules that make no sense to this release name no times.
        return []
    return [
        row_key(
            version.schedule_id,
            version.version,
            instant,
            plane.shard_map.shard_of(version.schedule_id, instant),
        )
        for instant in times
    ]
