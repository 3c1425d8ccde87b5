"""Find the releases that wait in vain, since their occurrence will never come."""

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.policies import SECOND_LOOK
from hourbell.domain.retention import RETENTION
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.ports import Page, Schedules, Timeline
from hourbell.usecases.unsent import objection_to_sending
from hourbell.usecases.version_reads import read_versions


def waiting_in_vain(
    schedules: Schedules,
    timeline: Timeline,
    missing: Mapping[RowKey, Dispatch],
    now: datetime,
    twin_of: Callable[[RowKey], RowKey | None],
) -> set[RowKey]:
    """Return the keys of missing occurrences that nobody will write any more.

    A dispatch row is put before the row of a time that a gap lets run; a process that
    ends between them leaves it alone, and a pause or a cancel may keep every later one
    from writing that row. Certain it is when a consistent read found nothing under the
    key, and the version does not stand behind the time any more, or the time is so old
    that of its row nothing is left. Whoever wrote one all the same would put another
    dispatch row first: that is due at the time of writing at the earliest.

    Args:
        schedules: the version log.
        timeline: where the occurrences would lie.
        missing: pending releases by the keys of their occurrences, which an earlier
            read did not find.
        now: the current instant.
        twin_of: says where else an occurrence may lie.

    Raises:
        Transient: the store did not answer.
    """
    # Before that, who put it may be about to write the occurrence.
    old = {k: each for k, each in missing.items() if now >= each.due + SECOND_LOOK}
    if not old:
        return set()
    absent = {key: old[key] for key in absent_of(timeline, old, twin_of)}
    versions, faulty = read_versions(schedules, _refs(absent.values()), consistent=True)
    return {
        key
        for key, each in absent.items()
        if now >= each.due + RETENTION
        or (
            _ref(each) not in faulty
            and _is_disowned(schedules, key, each, versions.get(_ref(each)))
        )
    }


def absent_of(
    timeline: Timeline,
    keys: Collection[RowKey],
    twin_of: Callable[[RowKey], RowKey | None],
) -> set[RowKey]:
    """Return those of the keys under which there is nothing, nor in the other place.

    What cannot be read is there. The other place is looked at before and after, since
    a row may be moved meanwhile.
    """
    twins = {key: twin for key in keys if (twin := twin_of(key)) is not None}
    there: set[RowKey] = set()
    for part in (list(twins.values()), keys, list(twins.values())):
        found = timeline.look_up(part) if part else Page((), None)
        there |= {row.key for row in found.rows} | set(found.unreadable)
    return {key for key in keys if key not in there and twins.get(key) not in there}


def _ref(dispatch: Dispatch) -> VersionRef:
    return VersionRef(dispatch.schedule_id, dispatch.version)


def _refs(dispatches: Iterable[Dispatch]) -> list[VersionRef]:
    return [_ref(each) for each in dispatches]


def _is_disowned(
    schedules: Schedules, key: RowKey, dispatch: Dispatch, version: Version | None
) -> bool:
    """Whether the occurrence, if it were there, would be canceled and not sent."""
    row = Occurrence(
        dispatch.schedule_id,
        dispatch.version,
        dispatch.scheduled_for or dispatch.due,
        key.shard,
        dispatch.tenant_id,
        sequence=0,
        tzdb=TZDB_VERSION,
        planned_at=dispatch.written_at,
        state=State.DEFERRED,
        run=dispatch.run,
    )
    return objection_to_sending(schedules, row, version) is not None
