"""Reading versions so that one that cannot be read hides no other."""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import datetime

from hourbell.domain.definition import ScheduleState, Version, VersionRef
from hourbell.domain.errors import Permanent
from hourbell.usecases.ports import Schedules

# How many versions after a row's own are looked at for a pause or a cancel: a
# schedule may be edited every minute of the longest flexible window.
MAX_SUCCESSORS = 2_000

# The most that are read at once.
_MAX_READ = 50


def read_versions(
    schedules: Schedules, refs: Iterable[VersionRef], *, consistent: bool
) -> tuple[dict[VersionRef, Version], frozenset[VersionRef]]:
    """Return the versions that exist, and the refs of those that cannot be read.

    All are read at once; only when that is refused for good, one by one.

    Raises:
        Transient: the store did not answer.
    """
    wanted = list(dict.fromkeys(refs))
    if not wanted:
        return {}, frozenset()
    try:
        return schedules.versions(wanted, consistent=consistent), frozenset()
    except Permanent:
        return _one_by_one(schedules, wanted, consistent=consistent)


def _one_by_one(
    schedules: Schedules, refs: Iterable[VersionRef], *, consistent: bool
) -> tuple[dict[VersionRef, Version], frozenset[VersionRef]]:
    found: dict[VersionRef, Version] = {}
    faulty: set[VersionRef] = set()
    for ref in refs:
        try:
            found |= schedules.versions([ref], consistent=consistent)
        except Permanent:
            faulty.add(ref)
    return found, frozenset(faulty)


_STOPS = frozenset({ScheduleState.PAUSED, ScheduleState.CANCELED})


def canceled_version(
    schedules: Schedules, version: Version, *, since: datetime | None = None
) -> Version | None:
    """Return the version from this one on that a cancel ended; see `stopped_version`.

    Raises:
        Transient: the store did not answer.
    """
    return _stopped(schedules, version, since, frozenset({ScheduleState.CANCELED}))


def stopped_version(
    schedules: Schedules, version: Version, *, since: datetime | None = None
) -> Version | None:
    """Return the first version from this one on that a pause or a cancel ended.

    A pause reaches every unsent row, also of versions that an edit had ended before.
    A successor that cannot be read ends the search: what it says is not known.

    Args:
        schedules: the version log.
        version: where the search begins.
        since: pauses and cancels before it do not count.

    Raises:
        Transient: the store did not answer.
    """
    return _stopped(schedules, version, since, _STOPS)


def _stopped(
    schedules: Schedules,
    version: Version,
    since: datetime | None,
    kinds: AbstractSet[ScheduleState],
) -> Version | None:
    for current in _from(schedules, version):
        if current.ends_as in kinds and _is_since(current, since):
            return current
    return None


def _is_since(version: Version, since: datetime | None) -> bool:
    """Whether a version ended at an instant or later; whenever, if that is None."""
    return since is None or (version.ends_at is not None and version.ends_at >= since)


def _from(schedules: Schedules, version: Version) -> Iterator[Version]:
    """Yield a version and its successors, reading more of them at a time."""
    yield version
    after, count = version.version, 1
    is_last = version.ends_at is None
    while not is_last and after < version.version + MAX_SUCCESSORS:
        numbers = range(after + 1, after + 1 + count)
        refs = [VersionRef(version.schedule_id, number) for number in numbers]
        found, _ = read_versions(schedules, refs, consistent=True)
        for successor in map(found.get, refs):
            if successor is None:
                return
            yield successor
            is_last = successor.ends_at is None
        after, count = after + count, min(2 * count, _MAX_READ)
