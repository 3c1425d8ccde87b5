"""Look at a schedule: its definition, its next time, and its latest occurrences."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from hourbell.domain.definition import Schedule, ScheduleState, Version
from hourbell.domain.errors import NotFound
from hourbell.domain.occurrence import Occurrence, RowKey, occurrence_id, row_key
from hourbell.domain.policies import RETENTION
from hourbell.domain.schedule import next_time, previous_time, upcoming
from hourbell.domain.shards import ShardMap
from hourbell.domain.zones import TICK
from hourbell.usecases.ports import Schedules, Timeline

LATEST = 5

# States of a time that has no row.
NONE = "NONE"
EXPIRED = "EXPIRED"

# How many times are counted by rule when no row tells their number.
MAX_COUNTED = 10_000

_ID = re.compile("sch[0-9a-hjkmnp-tv-z]{26}")


@dataclass(frozen=True, slots=True)
class Library:
    """What reading a schedule needs."""

    schedules: Schedules
    timeline: Timeline
    shard_map: ShardMap


@dataclass(frozen=True, slots=True)
class Due:
    """A time that was due, with its row.

    Attributes:
        row: None when there is none: not yet, or no longer.
        state: the row's state; without a row EXPIRED when rows of this age are
            deleted, else NONE.
    """

    occurrence_id: str
    scheduled_for: datetime
    state: str
    row: Occurrence | None


@dataclass(frozen=True, slots=True)
class ScheduleView:
    """A schedule as its owner sees it.

    Attributes:
        next_run_at: None when nothing more comes, or while it is not ACTIVE.
        latest: up to five times of the version in force, the latest first.
    """

    schedule: Schedule
    version: Version
    next_run_at: datetime | None
    latest: tuple[Due, ...]


def get_schedule(
    library: Library, tenant_id: str, schedule_id: str, now: datetime
) -> ScheduleView:
    """Return one of the tenant's schedules.

    Times are computed from the rules, so they are right whatever the rows say.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
        Transient: a store did not answer.
    """
    if not _ID.fullmatch(schedule_id):
        raise NotFound
    schedule = library.schedules.find(schedule_id)
    if schedule is None or schedule.tenant_id != tenant_id:
        raise NotFound
    version = _version(library, schedule)
    following = _following(version, now)
    past = _past(version, now)
    # Times on both sides of now, the latest first, and the rows that they have.
    times = [*([following] if following else []), *past]
    rows = _rows(library, version, times)
    ended = _ended(version, times, rows)
    if following is not None and ended[0]:
        following = None
    latest = [
        _due(version, instant, rows.get(instant), now)
        for instant, is_beyond in zip(times, ended, strict=True)
        if instant in past and not is_beyond
    ]
    active = schedule.state is ScheduleState.ACTIVE
    return ScheduleView(schedule, version, following if active else None, tuple(latest))


def _version(library: Library, schedule: Schedule) -> Version:
    found = library.schedules.versions([schedule.ref], consistent=True)
    version = found.get(schedule.ref)
    if version is None:
        raise NotFound
    return version


def _following(version: Version, now: datetime) -> datetime | None:
    after = max(now, version.effective_from - TICK)
    found = next_time(version.definition.timing, after)
    return found if found is not None and version.owns(found) else None


def _past(version: Version, now: datetime) -> list[datetime]:
    """Return the version's latest times up to now, the latest first."""
    times: list[datetime] = []
    before = now + TICK
    if version.effective_to is not None:
        before = min(before, version.effective_to)
    while len(times) < LATEST:
        found = previous_time(version.definition.timing, before)
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
            library.shard_map.shard_of(version.schedule_id, instant),
        )
        for instant in times
    ]
    found = library.timeline.read(keys) if keys else {}
    return {row.scheduled_for: row for row in found.values()}


def _ended(
    version: Version, times: Sequence[datetime], rows: dict[datetime, Occurrence]
) -> list[bool]:
    """Tell of each time whether it lies beyond the version's `max_occurrences`."""
    limit = version.definition.timing.max_occurrences
    if limit is None or not times:
        return [False] * len(times)
    newest = _number(version, times, rows)
    return [newest - place > limit for place in range(len(times))]


def _number(
    version: Version, times: Sequence[datetime], rows: dict[datetime, Occurrence]
) -> int:
    """Return the sequence number that the first of these consecutive times has.

    Rows carry theirs. Without a row it is counted, which gives up (in favour of
    "not yet at the end") after MAX_COUNTED.
    """
    for place, instant in enumerate(times):
        if instant in rows:
            return rows[instant].sequence + place
    counted = 0
    all_times = upcoming(version.definition.timing, version.effective_from - TICK)
    for instant in islice(all_times, MAX_COUNTED):
        if instant > times[0]:
            return counted
        counted += 1
    return counted if counted < MAX_COUNTED else 0


def _due(
    version: Version, instant: datetime, row: Occurrence | None, now: datetime
) -> Due:
    state: str = EXPIRED if now - instant > RETENTION else NONE
    return Due(
        occurrence_id=occurrence_id(version.schedule_id, version.version, instant),
        scheduled_for=instant,
        state=row.state if row is not None else state,
        row=row,
    )
