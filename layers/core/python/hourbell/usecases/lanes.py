"""Overlap: who of a schedule may run, who waits, and who comes next.

The lane names a holder and one that waits; whether they still are, their own rows say.
So a holder whose end was written without the lane keeps nobody out.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from hourbell.domain.definition import Version
from hourbell.domain.dispatch import Dispatch, release_of
from hourbell.domain.occurrence import Occurrence, State, Transition
from hourbell.domain.overlap import Overlap
from hourbell.domain.policies import LANE_GRACE
from hourbell.domain.work import OverlapLane
from hourbell.usecases.port_values import same_wait
from hourbell.usecases.ports import Change
from hourbell.usecases.work_ports import Check
from hourbell.usecases.workplace import Workplace

_SENT_OR_WAITING = frozenset(
    {State.RETRY_WAIT, State.DEFERRED, State.SCHEDULED, State.ENQUEUED}
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What an occurrence finds that wants to run.

    Attributes:
        lane: as it shall be when it runs, or waits; None when neither is to be.
        runs: whether it may run.
        checks: what must still be so.
    """

    lane: OverlapLane | None
    runs: bool
    checks: tuple[Check, ...] = ()


@dataclass(frozen=True, slots=True)
class Exit:
    """What follows when an occurrence is over, in the same transaction.

    Attributes:
        lane: as it shall be; None when the occurrence does not hold it.
        changes: of the one that comes next.
        dispatches: the rows that see to it.
    """

    lane: OverlapLane | None = None
    changes: tuple[Change, ...] = ()
    dispatches: tuple[Dispatch, ...] = ()


def policy_of(row: Occurrence, version: Version) -> Overlap:
    """Return an occurrence's overlap policy: a backfill's own, or its version's."""
    return version.definition.overlap if row.overlap is None else row.overlap


def enter(place: Workplace, row: Occurrence, policy: Overlap, now: datetime) -> Entry:
    """Tell whether an occurrence may run, wait, or is skipped.

    Raises:
        Transient: the store did not answer.
    """
    lane, own = place.ledger.lane(row.schedule_id), row.occurrence_id
    holder = None if lane.holder in {None, own} else _row(place, row, lane.holder)
    if holder is None or not _is_alive(holder, now):
        checks = () if holder is None else (_unchanged(holder),)
        return Entry(lane.held_by(own), runs=True, checks=checks)
    if policy is not Overlap.QUEUE_ONE:
        return Entry(None, runs=False)
    waiting = None if lane.waiting in {None, own} else _row(place, row, lane.waiting)
    if waiting is not None and _is_alive(waiting, now):
        return Entry(None, runs=False)
    return Entry(lane.awaited_by(own), runs=False)


def leave(place: Workplace, row: Occurrence, now: datetime) -> Exit:
    """Tell who comes next when an occurrence is over; nobody if it holds no lane.

    Raises:
        Transient: the store did not answer.
    """
    lane = place.ledger.lane(row.schedule_id)
    if lane.holder != row.occurrence_id:
        return Exit()
    waiting = _next(place, row, lane)
    if waiting is None or not _is_alive(waiting, now):
        return Exit(replace(lane.held_by(None), waiting=None))
    passed = lane.held_by(lane.waiting)
    if waiting.state is not State.WAITING_OVERLAP:
        # It is on its way already, to look by itself.
        return Exit(passed)
    woken = replace(waiting, state=State.SCHEDULED, available_at=now, scheduled_at=now)
    shard = place.shard_map.shard_of(row.schedule_id, now)
    return Exit(
        passed,
        (Change(woken, Transition.WAKE, same_wait(woken)),),
        (release_of(woken, shard, now),),
    )


def _next(place: Workplace, row: Occurrence, lane: OverlapLane) -> Occurrence | None:
    """Return the one that waits.

    None too if it cannot be read: that must not keep this one from its end, and what
    waits looks by itself.
    """
    name = lane.waiting
    if name is None:
        return None
    return place.look(row.tenant_id, [name]).rows.get(name)


def _row(
    place: Workplace, row: Occurrence, occurrence_id: str | None
) -> Occurrence | None:
    """Return another occurrence of the same schedule."""
    name = occurrence_id or ""
    return place.find(row.tenant_id, [name]).get(name)


def _unchanged(row: Occurrence) -> Check:
    return Check(row.key, row.state, row.attempt)


def _is_alive(row: Occurrence, now: datetime) -> bool:
    """Whether an occurrence keeps its place in the lane.

    One that was sent may never be received: its queue may have no consumer. So it
    keeps its place for a while only.
    """
    if row.state in _SENT_OR_WAITING:
        return now < (row.available_at or row.scheduled_for) + LANE_GRACE
    return row.state in {State.RUNNING, State.WAITING_OVERLAP}
