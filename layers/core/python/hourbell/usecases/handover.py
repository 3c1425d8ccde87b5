"""Finish the change from one version of a schedule to the next.

The change itself is one transaction (`Schedules.succeed`): from then on, rows of the
ended version after `ends_at` are left alone by pass and relay. What follows here can
be interrupted anywhere and done again by anybody: the call that began the change, the
next change, or a pass that finds the dispatch row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice, takewhile

from hourbell.domain.definition import (
    ScheduleState,
    Version,
    VersionRef,
)
from hourbell.domain.dispatch import Dispatch, completion_of
from hourbell.domain.errors import InvalidInput, Transient
from hourbell.domain.occurrence import (
    TRANSITIONS,
    Occurrence,
    RowKey,
    State,
    row_key,
)
from hourbell.domain.policies import CLOCK_SKEW
from hourbell.domain.schedule import next_planned, upcoming
from hourbell.domain.zones import TICK, release_at_hand
from hourbell.usecases.earlier_ahead import earlier_ahead, withdraw_earlier
from hourbell.usecases.following import post_follows
from hourbell.usecases.materialize import Plane, advance
from hourbell.usecases.ports import Clock, Write
from hourbell.usecases.unsent import ending
from hourbell.usecases.withdrawing import WAITING, stopping, withdraw


@dataclass(frozen=True, slots=True)
class Handover:
    """How a change ended.

    Attributes:
        version: the new version, with the instant from which on it owns times.
        standing: the ended version's occurrences after the change that stand: they
            are on their way, or were sent, and run.
    """

    version: Version
    standing: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class Foreseen:
    """How a handover would end if it were done now.

    Attributes:
        heir: the new version, with what it would own and count from.
        canceled: the ended version's occurrences that would be canceled.
        standing: occurrences after the change that would stand, of whatever version.
    """

    heir: Version
    canceled: tuple[Occurrence, ...]
    standing: tuple[Occurrence, ...]


@dataclass(frozen=True, slots=True)
class _Walk:
    """What walking back over the ended version's rows found.

    Attributes:
        standing: the latest row that stands; rows before it stay with its version.
        sequence: how many times are counted up to the change.
    """

    standing: Occurrence | None
    sequence: int


def finish_handover(plane: Plane, ref: VersionRef, clock: Clock) -> Handover | None:
    """Cancel what is not out of hand yet, and let the new version take over.

    Args:
        plane: the ports.
        ref: the new version.
        clock: read after the change was stored, which decides how far ahead rows of
            the ended version may have been materialized.

    Returns:
        how it ended, whoever did it; None when there is no such version.

    Raises:
        Transient: a store did not answer clearly; do it again.
    """
    versions = _versions(plane, ref)
    if versions is None:
        return None
    ended, version = versions
    rows = rows_ahead(plane, ended, clock.now())
    if version.effective_from is None:
        version = _hand_over(plane, ended, version, rows, clock.now())
        rows = plane.timeline.read(rows)
    return Handover(version, _standing(rows, version))


def finish_dispatched(plane: Plane, dispatch: Dispatch, clock: Clock) -> None:
    """Finish the handover that a dispatch row stands for, and settle the row.

    Raises:
        Transient: a store did not answer clearly; the row is still there.
    """
    ref = VersionRef(dispatch.schedule_id, dispatch.version)
    finish_handover(plane, ref, clock)
    settle(plane, dispatch, clock.now())


def settle(plane: Plane, dispatch: Dispatch, now: datetime) -> None:
    """Set the dispatch row of a finished handover DONE."""
    plane.timeline.settle([dispatch.done(now)])


def _versions(plane: Plane, ref: VersionRef) -> tuple[Version, Version] | None:
    """Return the ended version and the one after it."""
    before = VersionRef(ref.schedule_id, ref.version - 1)
    found = plane.schedules.versions([before, ref], consistent=True)
    ended, version = found.get(before), found.get(ref)
    return None if ended is None or version is None else (ended, version)


def _hand_over(
    plane: Plane,
    ended: Version,
    version: Version,
    rows: Mapping[RowKey, Occurrence],
    now: datetime,
) -> Version:
    withdraw_earlier(plane, ended, now)
    walk = _walk_back(plane, ended, rows, now)
    heir = _heir(plane, ended, version, walk, now)
    first = _first(plane, heir, now)
    # The dispatch row, which holds a watermark back, is of the change's own minute.
    begun = min(version.created_at, ended.ends_at or now)
    is_behind = plane.shard_map.is_crossed(begun, now)
    if is_behind and isinstance(first, Occurrence):
        unclear = post_follows(plane.timeline, plane.shard_map, [first], now)
        if unclear:
            raise Transient(f"no clear answer about the rows of {version.ref}")
    if plane.schedules.take_over(heir, ended.ref, first) is Write.APPLIED:
        if isinstance(first, Occurrence):
            _materialize(plane, first, now, is_behind=is_behind)
        return heir
    # Somebody else was first, and what is written once counts.
    stored = plane.schedules.versions([version.ref], consistent=True)
    heir = stored.get(version.ref, version)
    if heir.effective_from is None:
        raise Transient(f"the handover to {version.ref} is not clear")
    return heir


def _heir(
    plane: Plane, ended: Version, version: Version, walk: _Walk, now: datetime
) -> Version:
    """Return the new version as it takes over after a walk."""
    taken_over = _effective_from(ended, walk.standing)
    if _times_ahead(plane, ended, now) is None:
        # What stands cannot be looked up, so all that may stand is left to it.
        taken_over = max(taken_over, _reach(plane, ended, now) + TICK)
    return replace(
        version,
        effective_from=taken_over,
        base_sequence=walk.sequence if _goes_on_counting(ended, version) else 0,
    )


def foresee_handover(
    plane: Plane, ended: Version, version: Version, now: datetime
) -> Foreseen:
    """Say how a handover would end; nothing is stored.

    Args:
        plane: the ports.
        ended: the version in force, with `ends_at`.
        version: the one that would take over.
        now: the current instant.
    """
    rows = list(rows_ahead(plane, ended, now).values())
    recalled = {State.CANCELED, *TRANSITIONS[stopping(ended)].sources}
    kept = len(rows)
    while kept and rows[kept - 1].state in recalled:
        kept -= 1
    walk = _walked(ended, rows[kept - 1] if kept else None, rows[kept:])
    stands = [*earlier_ahead(plane, ended), *rows[:kept]]
    return Foreseen(
        _heir(plane, ended, version, walk, now),
        tuple(row for row in rows[kept:] if row.state is not State.CANCELED),
        tuple(row for row in stands if row.state is not State.CANCELED),
    )


def counted_until_end(plane: Plane, ended: Version, now: datetime) -> int:
    """Return how many times are counted up to `ends_at` of a version."""
    return _walked(ended, None, list(rows_ahead(plane, ended, now).values())).sequence


def rows_ahead(plane: Plane, ended: Version, now: datetime) -> dict[RowKey, Occurrence]:
    """Return the rows of the ended version's times after the change, in order.

    Rows can have left PLANNED up to the horizon of whoever did it, by a clock that
    may be ahead. The first time beyond is looked at too: it is the cursor.
    """
    times = _times_ahead(plane, ended, now)
    keys = [
        row_key(
            ended.schedule_id,
            ended.version,
            instant,
            plane.shard_map.shard_of(ended.schedule_id, instant),
        )
        for instant in times or ()
    ]
    found = plane.timeline.read(keys) if keys else {}
    return {key: found[key] for key in keys if key in found}


def _times_ahead(
    plane: Plane, ended: Version, now: datetime
) -> tuple[datetime, ...] | None:
    """Return the ended version's times that may have rows after the change.

    None when its rules make no sense to this release, such as a zone that is gone.
    """
    if ended.state is not ScheduleState.ACTIVE or ended.ends_at is None:
        return ()
    after, reach = _change_of(ended), _reach(plane, ended, now)
    try:
        times = upcoming(ended.timing, after)
        near = tuple(takewhile(lambda instant: instant <= reach, times))
        last = near[-1] if near else after
        return (*near, *islice(upcoming(ended.timing, last), 1))
    except InvalidInput:
        return None


def _change_of(ended: Version) -> datetime:
    """Return the instant after which an ended version's times are another's."""
    ends_at = ended.ends_at or ended.created_at
    return max(ends_at, (ended.effective_from or ends_at) - TICK)


def _reach(plane: Plane, ended: Version, now: datetime) -> datetime:
    """Return how far ahead rows of the ended version can have left PLANNED."""
    return max(now, ended.ends_at or now) + plane.horizon + 2 * CLOCK_SKEW


def _walk_back(
    plane: Plane,
    ended: Version,
    rows: Mapping[RowKey, Occurrence],
    now: datetime,
) -> _Walk:
    """Cancel the rows from the latest on, and stop at the first that stands.

    A pause or a cancel leaves no time to anybody, so that what has not left for the
    relay is canceled before a row that stands, too.

    What stands after a row that an interrupted walk of an update canceled left PLANNED
    since, by a slow pass. No relay lets it go, and the version must not own the time
    that was canceled.
    """
    canceled: list[Occurrence] = []
    since = _canceled_since(ended, rows)
    latest_first = iter(reversed(list(rows.values())))
    for row in latest_first:
        left = withdraw(plane, ended, row, now)
        if left is not None and since is not None and row.scheduled_for > since:
            continue
        if left is not None and left.state is not State.CANCELED:
            for earlier in latest_first:
                if ended.is_stopped and earlier.state in WAITING:
                    withdraw(plane, ended, earlier, now)
            return _walked(ended, left, canceled)
        canceled.append(row)
    return _walked(ended, None, canceled)


def _canceled_since(
    ended: Version, rows: Mapping[RowKey, Occurrence]
) -> datetime | None:
    """Return the first time that an earlier walk canceled, unless it was a stop's.

    A stop cancels before what stands, too, and leaves the times with their version.
    """
    if ended.is_stopped:
        return None
    over = (State.CANCELED, ending(ended))
    times = (r.scheduled_for for r in rows.values() if (r.state, r.reason) == over)
    return min(times, default=None)


def _walked(
    ended: Version, standing: Occurrence | None, canceled: Sequence[Occurrence]
) -> _Walk:
    """Return the result of a walk from the rows that it met."""
    if standing is not None:
        return _Walk(standing, standing.sequence)
    if canceled:
        first = min(canceled, key=lambda row: row.scheduled_for)
        return _Walk(None, first.sequence - 1 - _unseen(ended, first))
    return _Walk(None, _counted(ended))


def _unseen(ended: Version, first: Occurrence) -> int:
    """Return how many times after the change lie before the first row that is there.

    None, but for a change that is finished so late that rows have been deleted.
    """
    times = upcoming(ended.timing, _change_of(ended))
    return sum(1 for _ in takewhile(lambda each: each < first.scheduled_for, times))


def _counted(ended: Version) -> int:
    """Return how many times are counted up to the change when no row tells.

    Only `max_occurrences` looks at it, so counting stops there.
    """
    limit = ended.timing.max_occurrences
    counted = ended.base_sequence
    if limit is None or ended.state is not ScheduleState.ACTIVE:
        return counted
    if ended.effective_from is None or ended.ends_at is None:
        return counted
    try:
        for instant in upcoming(ended.timing, ended.effective_from - TICK):
            if counted >= limit or instant > ended.ends_at:
                break
            counted += 1
    except InvalidInput:
        return counted
    return counted


def _goes_on_counting(ended: Version, version: Version) -> bool:
    """Whether `max_occurrences` is the same, so that it counts over the change."""
    limits = (each.timing.max_occurrences for each in (ended, version))
    return len(set(limits)) == 1


def _effective_from(ended: Version, standing: Occurrence | None) -> datetime:
    """Return the instant just after the change and all that stands of it before.

    What stands of still earlier versions lies before the ended one's own beginning.
    """
    last = [instant for instant in (ended.ends_at,) if instant is not None]
    if standing is not None:
        last.append(standing.scheduled_for)
    if ended.effective_from is not None:
        last.append(ended.effective_from - TICK)
    return max(last) + TICK


def _first(plane: Plane, heir: Version, now: datetime) -> Occurrence | Dispatch | None:
    """Return the first row of a version that takes over.

    When it has no time at all, return the dispatch row that completes the schedule;
    None when it is not ACTIVE, or its rules make no sense to this release.
    """
    if heir.state is not ScheduleState.ACTIVE or heir.effective_from is None:
        return None
    try:
        planned = next_planned(
            heir.timing, heir.effective_from - TICK, heir.base_sequence
        )
    except InvalidInput:
        return None
    if planned is None:
        return completion_of(heir, heir.effective_from, plane.shard_map, now)
    instant, sequence = planned
    return Occurrence(
        schedule_id=heir.schedule_id,
        version=heir.version,
        scheduled_for=instant,
        shard=plane.shard_map.shard_of(heir.schedule_id, instant),
        tenant_id=heir.tenant_id,
        sequence=sequence,
        tzdb=release_at_hand(heir.tzdb),
        planned_at=now,
    )


def _materialize(
    plane: Plane, first: Occurrence, now: datetime, *, is_behind: bool
) -> None:
    """Take the first row through the steps if it is near."""
    try:
        advance(plane, [first], now, is_behind=is_behind)
    except Transient:
        # The row is there, and the next pass finds it.
        return


def _standing(
    rows: Mapping[RowKey, Occurrence], version: Version
) -> tuple[Occurrence, ...]:
    """Return the rows before the new version's time that still run."""
    taken_over = version.effective_from
    return tuple(
        row
        for row in rows.values()
        if row.state is not State.CANCELED
        and taken_over is not None
        and row.scheduled_for < taken_over
    )
