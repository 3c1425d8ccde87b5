"""Look after leases: what a worker had that is not heard of is worked on again.

The dispatch row of a lease is due when it ends. It stays PENDING until its attempt is
over, whatever became of the worker and of its message. Those of dead letters, and of
what may end unclaimed, are seen to here, too.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import HourbellError, Transient
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.policies import (
    CLOCK_SKEW,
    SECOND_LOOK,
    WATERMARK_LAG,
    is_sweep_due,
)
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.usecases.attempts import failing, let_go, version_of, watch_of
from hourbell.usecases.ports import Write
from hourbell.usecases.release import target_at
from hourbell.usecases.unclaimed import Seen, Versions, see_to
from hourbell.usecases.vain import absent_of
from hourbell.usecases.workplace import Workplace

_DIED = Failure(ErrorClass.LEASE_EXPIRED)
_UNSEEN = Seen()
_KINDS = frozenset({DispatchKind.WATCH, DispatchKind.LETTER, DispatchKind.UNCLAIMED})


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What became of the dispatch rows of leases and dead letters.

    Attributes:
        expired: attempts that were ended since their lease had run out.
        dead: of these, the occurrences that are DEAD.
        unclaimed: occurrences that are DEAD since nobody can receive their message.
        faulty: what may be unclaimed, and could not be seen to for a lasting reason.
        settled: dispatch rows that are done.
        untold: DEAD rows whose dead letters the relay is to send.
        troubles: of the dispatch rows that stay PENDING, what may be wrong.
    """

    expired: int = 0
    dead: int = 0
    unclaimed: int = 0
    faulty: int = 0
    settled: int = 0
    untold: tuple[RowKey, ...] = ()
    troubles: tuple[Trouble, ...] = field(default=(), compare=False)


def watch(
    place: Workplace,
    dispatches: Iterable[Dispatch],
    now: datetime,
    *,
    previous: datetime | None = None,
    is_over: Callable[[], bool] = bool,
) -> WatchReport:
    """Work off the dispatch rows of leases and dead letters that are due.

    Args:
        place: the ports.
        dispatches: of any kind and state.
        now: the current instant.
        previous: when the last finished pass began; for the backoff of dead letters.
        is_over: asked before each attempt that is ended: whether to stop here.

    Raises:
        Transient: rows could not be read.
    """
    taken = [
        each
        for each in dispatches
        if each.kind in _KINDS and each.is_open and each.due <= now
    ]
    if not taken:
        return WatchReport()
    keys = {each.key: target_at(place.shard_map, each) for each in taken}
    rows = place.timeline.read(set(keys.values()))
    gone = _gone(place, taken, keys, rows, now)
    done = [each for each in taken if each.key in gone]
    found = [
        _look(place, each, rows[keys[each.key]], now, is_over)
        for each in taken
        if keys[each.key] in rows
    ]
    done += [each.dispatch for each in found if each.is_done]
    untold = [each for each in found if each.is_untold]
    report = WatchReport(
        expired=sum(each.ended is not None for each in found),
        dead=sum(each.ended is State.DEAD for each in found),
        unclaimed=sum(each.seen.is_dead for each in found),
        faulty=sum(each.seen.is_faulty for each in found),
        settled=_settle(place, done, now),
        untold=tuple(
            keys[each.dispatch.key]
            for each in untold
            if is_sweep_due(each.dispatch.written_at, each.dispatch.due, now, previous)
        ),
        troubles=tuple(
            _trouble(each.dispatch, each.reason)
            for each in found
            if each.reason is not None
        ),
    )
    lost = [
        each for each in taken if keys[each.key] not in rows and each.key not in gone
    ]
    unreadable = tuple(_trouble(each, ParkReason.TARGET_UNREADABLE) for each in lost)
    return replace(report, troubles=report.troubles + unreadable)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a look at an occurrence told.

    Attributes:
        is_done: whether the dispatch row has nothing left to do.
        ended: the state that its attempt was ended with, if it was.
        is_untold: whether its dead letter is still to be sent.
        seen: what became of it, if it was looked at for being unclaimed.
        reason: what may be wrong, while the dispatch row stays PENDING.
    """

    dispatch: Dispatch
    is_done: bool = False
    ended: State | None = None
    is_untold: bool = False
    seen: Seen = _UNSEEN
    reason: ParkReason | None = None


def _look(
    place: Workplace,
    dispatch: Dispatch,
    row: Occurrence,
    now: datetime,
    is_over: Callable[[], bool],
) -> _Look:
    """Do what a dispatch row asks for."""
    if dispatch.kind is DispatchKind.LETTER:
        if row.state is not State.DEAD or row.told_at is not None:
            return _Look(dispatch, is_done=True)
        return _Look(dispatch, is_untold=True, reason=ParkReason.UNSENT)
    if dispatch.kind is DispatchKind.UNCLAIMED:
        return _Look(dispatch) if is_over() else _see_to(place, dispatch, row, now)
    number = dispatch.number or 0
    if row.state is State.RUNNING and row.attempt == number:
        return _Look(dispatch) if is_over() else _end(place, dispatch, row, now)
    return _Look(dispatch, is_done=row.attempt >= number or _is_stale(dispatch, now))


def _gone(
    place: Workplace,
    taken: Sequence[Dispatch],
    keys: Mapping[RowKey, RowKey],
    rows: Mapping[RowKey, Occurrence],
    now: datetime,
) -> set[RowKey]:
    """Return the keys of dispatch rows whose occurrences are gone for good."""
    old = {
        keys[each.key]
        for each in taken
        if keys[each.key] not in rows and now >= each.due + SECOND_LOOK
    }
    if not old:
        return set()
    absent = absent_of(place.timeline, old, place.shard_map.twin)
    return {each.key for each in taken if keys[each.key] in absent}


def _is_stale(dispatch: Dispatch, now: datetime) -> bool:
    """Whether nobody can still begin the attempt that a watch was put for.

    A watch is put before its attempt begins; who put it may be about to do so.
    """
    return now >= dispatch.written_at + WATERMARK_LAG


def _end(place: Workplace, dispatch: Dispatch, row: Occurrence, now: datetime) -> _Look:
    """End an attempt if its lease has run out; else see that it is watched on."""
    try:
        if (row.lease_expires_at or now) + CLOCK_SKEW > now:
            return _watch_on(place, dispatch, row, now)
        ended = failing(place, row, version_of(place, row), _DIED, now)
        if place.ledger.do(ended.deed) is not Write.APPLIED:
            # Its worker was heard of, or somebody was first: the next pass tells.
            return _Look(dispatch)
    except Transient:
        return _Look(dispatch, reason=ParkReason.UNCLEAR)
    except HourbellError:
        # A lasting fault of this one; it must not stop the others.
        return _Look(dispatch, reason=ParkReason.DISPATCH_FAULTY)
    if ended.row.state is State.RETRY_WAIT:
        let_go(place, ended.row, now)
    return _Look(dispatch, is_done=True, ended=ended.row.state)


def _see_to(
    place: Workplace, dispatch: Dispatch, row: Occurrence, now: datetime
) -> _Look:
    """End an occurrence that is unclaimed; else see that it is looked at again."""
    try:
        seen = see_to(place, row, Versions.of(place, [row]), now)
        following = [] if seen.check is None else [seen.check]
        answers = place.timeline.post(following) if following else []
    except Transient:
        return _Look(dispatch, reason=ParkReason.UNCLEAR)
    if Write.UNKNOWN in answers:
        return _Look(dispatch, reason=ParkReason.UNCLEAR)
    return _Look(dispatch, is_done=True, seen=seen)


def _watch_on(
    place: Workplace, dispatch: Dispatch, row: Occurrence, now: datetime
) -> _Look:
    """Put a watch at the end of a lease that was extended."""
    following = watch_of(place, row, now)
    if following.due <= now:
        # It ends within moments: this one has to stay.
        return _Look(dispatch)
    (answer,) = place.timeline.post([following])
    if answer is Write.UNKNOWN:
        return _Look(dispatch, reason=ParkReason.UNCLEAR)
    return _Look(dispatch, is_done=True)


def _trouble(dispatch: Dispatch, reason: ParkReason) -> Trouble:
    return Trouble(dispatch.key, reason, dispatch.due, dispatch.tenant_id)


def _settle(place: Workplace, dispatches: Sequence[Dispatch], now: datetime) -> int:
    done = [each.done(now) for each in dispatches]
    answers = place.timeline.settle(done) if done else []
    return len(answers) - answers.count(Write.UNKNOWN)
