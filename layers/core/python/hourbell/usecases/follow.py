"""See to rows that may lie behind the watermark of their shard.

Where an epoch begins between two times of a chain, the second one lies in a shard whose
watermark knows nothing of the first. When it is overdue by then, no scan would find it,
so its dispatch row stays PENDING until it has left for the relay and was sent, or has
ended.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.policies import SECOND_LOOK, is_stuck
from hourbell.usecases.materialize import Plane, advance
from hourbell.usecases.parking import unsent_since
from hourbell.usecases.ports import Write
from hourbell.usecases.release import target_of
from hourbell.usecases.tally import NOTHING, Tally
from hourbell.usecases.turns import Turns
from hourbell.usecases.vain import absent_of


@dataclass(frozen=True, slots=True)
class FollowReport:
    """What became of the dispatch rows.

    Attributes:
        tally: what materializing the rows did.
        settled: dispatch rows that are done.
        stuck: outbox records that the stream did not get through.
        troubles: of the dispatch rows that stay PENDING, why.
    """

    tally: Tally = NOTHING
    settled: int = 0
    stuck: tuple[RowKey, ...] = ()
    troubles: tuple[Trouble, ...] = field(default=(), compare=False)


def follow(
    plane: Plane,
    dispatches: Iterable[Dispatch],
    now: datetime,
    *,
    previous: datetime | None = None,
    is_over: Callable[[], bool] = bool,
    turns: Turns | None = None,
) -> FollowReport:
    """Work off the dispatch rows of rows that may lie behind the scan.

    Args:
        plane: the ports.
        dispatches: of any kind and state; only pending follows that are due are taken.
        now: the current instant.
        previous: when the last finished pass began; for the sweep's backoff.
        is_over: as of `advance`.
        turns: as of `advance`.

    Raises:
        Transient: rows or versions could not be read.
    """
    taken = {
        target_of(plane, dispatch): dispatch
        for dispatch in dispatches
        if dispatch.kind is DispatchKind.FOLLOW
        and dispatch.is_open
        and dispatch.due <= now
    }
    if not taken:
        return FollowReport()
    rows = plane.timeline.read(taken)
    planned = [row for row in rows.values() if row.state is State.PLANNED]
    tally = advance(plane, planned, now, is_over=is_over, turns=turns, is_behind=True)
    over = [key for key, row in rows.items() if not row.is_open]
    over += _vain(plane, taken, rows, now)
    done = [taken[key].done(now) for key in over]
    answers = plane.timeline.settle(done) if done else []
    stuck = tuple(row.key for row in rows.values() if is_stuck(row, now, previous))
    reasons = {trouble.key: trouble.reason for trouble in tally.troubles}
    waiting = {key: each for key, each in taken.items() if key not in set(over)}
    return FollowReport(
        replace(tally, troubles=()),
        len(answers) - answers.count(Write.UNKNOWN),
        stuck,
        tuple(
            _trouble(dispatch, rows.get(key), reasons)
            for key, dispatch in waiting.items()
        ),
    )


def _trouble(
    dispatch: Dispatch, row: Occurrence | None, reasons: Mapping[RowKey, ParkReason]
) -> Trouble:
    """Tell why a dispatch row stays PENDING."""
    if row is None:
        reason, due = ParkReason.TARGET_UNREADABLE, dispatch.due
    elif row.state is State.SCHEDULED:
        reason, due = ParkReason.UNSENT, unsent_since(row)
    else:
        reason, due = reasons.get(row.key, ParkReason.HELD), dispatch.due
    return Trouble(dispatch.key, reason, due, dispatch.tenant_id)


def _vain(
    plane: Plane,
    taken: dict[RowKey, Dispatch],
    rows: dict[RowKey, Occurrence],
    now: datetime,
) -> list[RowKey]:
    """Return the keys of rows that nobody will insert any more.

    Who put the dispatch row, and did not live to insert the row, is dead by then; and
    whoever takes it on puts another one first. What cannot be read is there.
    """
    old = {
        key
        for key, dispatch in taken.items()
        if key not in rows and now >= dispatch.due + SECOND_LOOK
    }
    return sorted(absent_of(plane.timeline, old, plane.shard_map.twin))
