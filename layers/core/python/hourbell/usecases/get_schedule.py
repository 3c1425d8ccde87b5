"""Look at a schedule: its definition, its next time, and its latest occurrences."""

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, takewhile

from hourbell.domain.definition import Schedule, ScheduleState, Version
from hourbell.domain.errors import NotFound
from hourbell.domain.names import is_schedule_id
from hourbell.domain.occurrence import (
    CancelReason,
    Occurrence,
    RowKey,
    State,
    occurrence_id,
    row_key,
)
from hourbell.domain.retention import REMEMBERED, RETENTION
from hourbell.domain.schedule import next_time, previous_time, upcoming
from hourbell.domain.zones import TICK, TZDB_VERSION
from hourbell.usecases.gaps import Search, covering, told_by
from hourbell.usecases.ports import Schedules, Timeline
from hourbell.usecases.shard_ports import ShardMaps

LATEST = 5

# How many versions are looked at first; seldom has one before them a time to show.
VERSIONS = 3

# How many more at a time, where they have, and how many at most.
MORE_VERSIONS = 10
MAX_VERSIONS = VERSIONS + 2 * MORE_VERSIONS

# States of a time that has no row.
NONE = "NONE"
EXPIRED = "EXPIRED"

# How many times are counted by rule when no row tells their number.
MAX_COUNTED = 10_000

# How many times to come that were canceled one by one are passed over.
MAX_PASSED_OVER = 100


@dataclass(frozen=True, slots=True)
class Library:
    """What reading a schedule needs."""

    schedules: Schedules
    timeline: Timeline
    shards: ShardMaps


@dataclass(frozen=True, slots=True)
class Due:
    """A time that was due, with its row.

    Attributes:
        row: None when there is none: not yet, no longer, or since a gap row covers it.
        state: the row's state, or what the gap row tells; without either EXPIRED when
            rows of this age are deleted, else NONE.
        gap: the gap row that covers it.
        reason: why, as the gap row tells it.
        tzdb: release of the zone database that its version's times are computed by.
    """

    occurrence_id: str
    scheduled_for: datetime
    state: str
    row: Occurrence | None
    gap: Occurrence | None = None
    reason: str | None = None
    tzdb: str = TZDB_VERSION


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as its owner sees it.

    Attributes:
        version: the version in force, or about to be.
        next_run_at: None when nothing more comes, or while it is not ACTIVE.
        latest: up to five times of the latest versions, the latest first.
        next_tzdb: release of the zone database by which `next_run_at` is computed.
    """

    schedule: Schedule
    version: Version
    next_run_at: datetime | None
    latest: tuple[Due, ...]
    next_tzdb: str = TZDB_VERSION


def get_schedule(
    library: Library, tenant_id: str, schedule_id: str, now: datetime
) -> ScheduleView:
    """Return one of the tenant's schedules.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
        Transient: a store did not answer.
    """
    return view_of(library, find_schedule(library, tenant_id, schedule_id), now)


def check_id(schedule_id: str) -> None:
    """Refuse what cannot be an id without looking it up.

    Raises:
        NotFound: it cannot be one.
    """
    if not is_schedule_id(schedule_id):
        raise NotFound


def find_schedule(library: Library, tenant_id: str, schedule_id: str) -> Schedule:
    """Return the definition of one of the tenant's schedules.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
        Transient: a store did not answer.
    """
    check_id(schedule_id)
    schedule = library.schedules.find(schedule_id)
    if schedule is None or schedule.tenant_id != tenant_id:
        raise NotFound
    return schedule


def view_of(library: Library, schedule: Schedule, now: datetime) -> ScheduleView:
    """Return a schedule with its times around now.

    Times are computed from the rules, so they are right whatever the rows say. On
    both sides of a change each time is that of the version that owns it.

    Raises:
        NotFound: its version is not in the log.
        Transient: a store did not answer.
    """
    log, glances = _looked_at(library, schedule, now)
    if not log or log[0].version != schedule.version:
        raise NotFound
    nexts = [
        (each.following, each.tzdb) for each in glances if each.following is not None
    ]
    latest = [due for each in glances for due in each.latest][:LATEST]
    active = schedule.state is ScheduleState.ACTIVE
    following, tzdb = min(nexts) if active and nexts else (None, log[0].tzdb)
    return ScheduleView(schedule, log[0], following, tuple(latest), tzdb)


def version_log(
    library: Library,
    tenant_id: str,
    schedule_id: str,
    *,
    before: int | None,
    limit: int,
) -> tuple[tuple[Version, ...], bool]:
    """Return versions of one of the tenant's schedules, and whether there are more.

    Args:
        library: the ports.
        tenant_id: whose.
        schedule_id: which.
        before: only lower numbers; None for all.
        limit: at most so many, the newest first.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
        Transient: a store did not answer.
    """
    find_schedule(library, tenant_id, schedule_id)
    log = library.schedules.version_log(schedule_id, before=before, limit=limit + 1)
    return log[:limit], len(log) > limit


@dataclass(frozen=True, slots=True)
class _Glance:
    """The times of one version around now, the latest first."""

    following: datetime | None
    latest: tuple[Due, ...]
    tzdb: str


def _looked_at(
    library: Library, schedule: Schedule, now: datetime
) -> tuple[list[Version], list[_Glance]]:
    """Return the latest versions, and the times of those that produce some.

    So many as it takes to find the next time, and LATEST of those before it.
    """
    log: list[Version] = []
    found: dict[int, _Glance] = {}
    while not _is_enough(log, found.values(), now):
        page = library.schedules.version_log(
            schedule.schedule_id,
            before=log[-1].version if log else schedule.version + 1,
            limit=MORE_VERSIONS if log else VERSIONS,
        )
        if not page:
            break
        log += page
        for version in _intervals(log):
            if version.version not in found:
                found[version.version] = _glance(library, version, now)
    return log, list(found.values())


def _is_enough(
    log: Sequence[Version], glances: Collection[_Glance], now: datetime
) -> bool:
    """Whether versions before these have no time to show, or are too many."""
    if not log:
        return False
    oldest = log[-1]
    if oldest.version == 1 or len(log) >= MAX_VERSIONS:
        return True
    # What was sent before a change is still its own version's after it.
    owns_next = oldest.effective_from is not None and oldest.effective_from <= now
    return owns_next and sum(len(each.latest) for each in glances) >= LATEST


def _intervals(log: Sequence[Version]) -> list[Version]:
    """Return the versions that produce times, with intervals as far as known.

    While a handover is not finished, the ended version keeps what is not after the
    change, and the new one begins there.
    """
    shown = []
    for place, version in enumerate(log):
        start, end = version.effective_from, version.effective_to
        ended = log[place + 1] if place + 1 < len(log) else None
        if start is None and ended is not None and ended.ends_at is not None:
            start = ended.ends_at + TICK
        if end is None and version.ends_at is not None:
            end = version.ends_at + TICK
        if version.state is ScheduleState.ACTIVE and start is not None:
            shown.append(replace(version, effective_from=start, effective_to=end))
    return shown


def _glance(library: Library, version: Version, now: datetime) -> _Glance:
    following = _following(version, now)
    past = _past(version, now)
    # Times on both sides of now, the latest first, and the rows that they have.
    times = [*([following] if following else []), *past]
    rows = _rows(library, version, times)
    following = _pass_over(library, version, times, rows) if following else None
    ended = _ended(version, times, rows)
    if following is not None and (ended[0] or _is_canceled(rows.get(following))):
        following = None
    beyond = dict(zip(times, ended, strict=True))
    shown = [instant for instant in past if not beyond[instant]]
    if len(shown) < len(past):
        shown = _last_counted(version, now) or shown
        rows |= _rows(library, version, [each for each in shown if each not in beyond])
    search = Search(
        version, lambda wanted: _rows(library, version, wanted), now - RETENTION
    )
    gaps = covering(search, [instant for instant in shown if instant not in rows])
    latest = [
        _due(version, instant, rows.get(instant), gaps.get(instant), now)
        for instant in shown
    ]
    return _Glance(following, tuple(latest), version.tzdb)


def _pass_over(
    library: Library,
    version: Version,
    times: list[datetime],
    rows: dict[datetime, Occurrence],
) -> datetime | None:
    """Return the next time that nobody canceled alone.

    The times after the first one that are looked at are put before it, and their rows
    to the others.
    """
    following: datetime | None = times[0]
    for _ in range(MAX_PASSED_OVER):
        if following is None or not _is_canceled_alone(rows.get(following)):
            break
        following = _following(version, following)
        if following is not None:
            times.insert(0, following)
            rows |= _rows(library, version, [following])
    return following


def _last_counted(version: Version, now: datetime) -> list[datetime]:
    """Return the latest times within `max_occurrences`, the latest first.

    None where there are too many to be counted.
    """
    left = (version.timing.max_occurrences or 0) - version.base_sequence
    if left > MAX_COUNTED:
        return []
    times = islice(upcoming(version.timing, _start(version) - TICK), max(left, 0))
    last = deque(takewhile(lambda instant: instant <= now, times), maxlen=LATEST)
    return list(last)[::-1]


def _is_canceled(row: Occurrence | None) -> bool:
    return row is not None and row.state is State.CANCELED


def _is_canceled_alone(row: Occurrence | None) -> bool:
    """Whether somebody canceled this one time, and the schedule goes on after it."""
    return _is_canceled(row) and row is not None and row.reason == CancelReason.CANCELED


def _following(version: Version, now: datetime) -> datetime | None:
    after = max(now, _start(version) - TICK)
    found = next_time(version.timing, after)
    return found if found is not None and version.owns(found) else None


def _start(version: Version) -> datetime:
    return version.effective_from or version.created_at


def _past(version: Version, now: datetime) -> list[datetime]:
    """Return the version's latest times up to now, the latest first."""
    times: list[datetime] = []
    before = now + TICK
    if version.effective_to is not None:
        before = min(before, version.effective_to)
    while len(times) < LATEST:
        found = previous_time(version.timing, before)
        if found is None or not version.owns(found):
            break
        times.append(found)
        before = found
    return times


def _rows(
    library: Library, version: Version, times: Sequence[datetime]
) -> dict[datetime, Occurrence]:
    keys: list[RowKey] = [
        row_key(
            version.schedule_id,
            version.version,
            instant,
            library.shards.current().shard_of(version.schedule_id, instant),
        )
        for instant in times
    ]
    found = library.timeline.read(keys) if keys else {}
    return {row.scheduled_for: row for row in found.values()}


def _ended(
    version: Version, times: Sequence[datetime], rows: dict[datetime, Occurrence]
) -> list[bool]:
    """Tell of each time whether it lies beyond the version's `max_occurrences`."""
    limit = version.timing.max_occurrences
    if limit is None or not times:
        return [False] * len(times)
    newest = _number(version, times, rows, limit)
    return [newest - place > limit for place in range(len(times))]


def _number(
    version: Version,
    times: Sequence[datetime],
    rows: dict[datetime, Occurrence],
    limit: int,
) -> int:
    """Return the sequence number that the first of these consecutive times has.

    Rows carry theirs. Without a row it is counted, up to where all of the times lie
    beyond `max_occurrences`; or up to MAX_COUNTED, which tells nothing.
    """
    for place, instant in enumerate(times):
        if instant in rows:
            return rows[instant].sequence + place
    number = version.base_sequence
    enough = limit + len(times)
    all_times = upcoming(version.timing, _start(version) - TICK)
    for counted, instant in enumerate(all_times):
        if instant > times[0] or number >= enough:
            return number
        if counted == MAX_COUNTED:
            return 0
        number += 1
    return number


def _due(
    version: Version,
    instant: datetime,
    row: Occurrence | None,
    gap: Occurrence | None,
    now: datetime,
) -> Due:
    state: str = EXPIRED if now - instant > REMEMBERED else NONE
    reason = None
    told = None if gap is None else told_by(gap, version, instant)
    if told is not None:
        state, reason = told
    return Due(
        occurrence_id=occurrence_id(version.schedule_id, version.version, instant),
        scheduled_for=instant,
        state=row.state if row is not None else state,
        row=row,
        gap=gap if told is not None else None,
        reason=reason,
        tzdb=version.tzdb,
    )
