"""Reading versions so that one that cannot be read hides no other."""

from collections.abc import Iterable
from datetime import datetime

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.errors import Permanent
from hourbell.usecases.ports import Schedules

# How many versions after a row's own are looked at for a pause or a cancel.
MAX_SUCCESSORS = 100


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
    current: Version | None = version
    for _ in range(MAX_SUCCESSORS):
        if current is None or current.ends_at is None:
            return None
        if current.is_stopped and (since is None or current.ends_at >= since):
            return current
        ref = VersionRef(current.schedule_id, current.version + 1)
        current = read_versions(schedules, [ref], consistent=True)[0].get(ref)
    return None
