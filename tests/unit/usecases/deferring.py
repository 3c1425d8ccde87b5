"""Worlds with occurrences whose time is beyond the queue's longest delay."""

import hashlib
from datetime import datetime, timedelta

from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing

from tests.unit.usecases.world import MINUTE, World

DAY = 86_400
# What a relay may still have to do when a record is made: design's 900 s less 60 s.
LONGEST = timedelta(seconds=840)
HORIZON = timedelta(seconds=180)


def expected_jitter(occurrence_id: str, window: int) -> timedelta:
    """Return what the rule says: SHA-256's first eight bytes, modulo the window."""
    digest = hashlib.sha256(occurrence_id.encode()).hexdigest()
    return timedelta(seconds=int(digest[:16], 16) % window if window else 0)


def expected_time(row: Occurrence, window: int) -> datetime:
    """Return when a row's message may be received."""
    return row.scheduled_for + expected_jitter(row.occurrence_id, window)


def deferred(world: World, window: int = DAY) -> Occurrence:
    """Return a row of a minute ahead of a schedule of its own, in state DEFERRED."""
    while True:
        due = world.clock.now() + MINUTE
        first = world.add(Timing(f"at({due:%Y-%m-%dT%H:%M:%S})"), window=window)
        world.scan()
        row = world.store.row(first.key)
        assert row is not None
        if row.state is State.DEFERRED:
            world.store.take_stream()
            return row


def available(row: Occurrence) -> datetime:
    """Return when the message of a row may be received."""
    assert row.available_at is not None
    return row.available_at


def stored(world: World, row: Occurrence) -> Occurrence:
    """Return a row as it is now."""
    found = world.store.row(row.key)
    assert found is not None
    return found


def releases(world: World, row: Occurrence | None = None) -> list[Dispatch]:
    """Return the dispatch rows that let occurrences go, or those of one."""
    return [
        each
        for each in world.store.all_dispatches()
        if each.kind is DispatchKind.RELEASE and (row is None or points_at(each, row))
    ]


def points_at(dispatch: Dispatch, row: Occurrence) -> bool:
    """Whether a dispatch row speaks for an occurrence."""
    ours = (row.schedule_id, row.version, row.scheduled_for, row.run)
    theirs = (dispatch.schedule_id, dispatch.version)
    return ours == (*theirs, dispatch.scheduled_for, dispatch.run)


def unspoken_for(world: World) -> list[Occurrence]:
    """Return the deferred rows that no pending dispatch row would bring up."""
    pending = [r for r in releases(world) if r.state is DispatchState.PENDING]
    return [
        row
        for row in world.rows(State.DEFERRED)
        if not any(points_at(each, row) for each in pending)
    ]
