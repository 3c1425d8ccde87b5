"""Look at single occurrences, cancel them, and replay the dead ones."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from hourbell.domain.definition import (
    Tracking,
    Version,
)
from hourbell.domain.dispatch import completion_of, release_of
from hourbell.domain.errors import Conflict, InvalidInput, NotFound, Transient
from hourbell.domain.occurrence import (
    TERMINAL,
    CancelReason,
    Occurrence,
    State,
    Transition,
)
from hourbell.domain.overlap import Overlap
from hourbell.domain.routing import queue_key
from hourbell.domain.work import DeadLetter
from hourbell.usecases.attempts import last_attempt, let_go, version_of
from hourbell.usecases.following import post_follows
from hourbell.usecases.judging import Bench, judge
from hourbell.usecases.lanes import leave, policy_of
from hourbell.usecases.port_values import same_wait
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.unsent import canceling
from hourbell.usecases.work_ports import Deed
from hourbell.usecases.work_values import Told
from hourbell.usecases.workplace import MAX_ROUNDS, Workplace

_Step: TypeAlias = Callable[[Workplace, Occurrence, datetime], Occurrence | None]

# What UNTRACKED work can still be kept from: its message has not gone.
_CANNOT_HAVE_GONE = frozenset({State.PLANNED, State.DEFERRED})


def tell(place: Workplace, tenant_id: str, occurrence_id: str) -> Told:
    """Return an occurrence with its attempts.

    Raises:
        NotFound: there is no such occurrence of the tenant, or it has expired.
        InvalidInput: `invalid_occurrence_id`.
        Transient: the store did not answer.
    """
    row = _found(place, tenant_id, occurrence_id)
    earlier = place.attempts(row) if row.attempt else ()
    return Told(row, earlier)


def cancel_occurrence(
    place: Workplace, tenant_id: str, occurrence_id: str
) -> Occurrence:
    """Cancel an occurrence; return it as it is then.

    One that a worker has is asked to stop: it is RUNNING until the worker says so, or
    is not heard of any more. Of a PLANNED one, the time that follows is planned first,
    since it is the cursor of its schedule. A canceled one is returned as it is.

    Raises:
        NotFound: there is no such occurrence of the tenant, or it has expired.
        Conflict: `already_over`; or `already_dispatched`: it is UNTRACKED, and its
            message may have gone.
        InvalidInput: `invalid_occurrence_id`.
        Transient: the store did not answer, or others were first each time.
    """
    return _again(place, tenant_id, occurrence_id, _cancel)


def replay_occurrence(
    place: Workplace, tenant_id: str, occurrence_id: str
) -> Occurrence:
    """Let a DEAD occurrence run anew, under the same id; return it as it is then.

    Its attempts and its deadline start anew.

    Raises:
        NotFound: there is no such occurrence of the tenant, or it has expired.
        Conflict: `not_dead`: only what is DEAD is replayed.
        InvalidInput: `invalid_occurrence_id`.
        Transient: the store did not answer, or others were first each time.
    """
    return _again(place, tenant_id, occurrence_id, _replay)


def replayed(
    place: Workplace, row: Occurrence, available_at: datetime, now: datetime
) -> Occurrence | None:
    """Replay a DEAD row, to be received at an instant; None when somebody was first.

    Raises:
        NotFound: its tenant or its handler is gone.
        Transient: the store did not answer.
    """
    version = version_of(place, row)
    again = replace(
        row,
        state=State.DEFERRED,
        available_at=available_at,
        queue=_queue(place, row, version),
        waits=row.waits + 1,
        replayed_at=now,
        attempts_before=row.attempt,
        begun_at=None,
        told_at=None,
        cancel_requested_at=None,
        reason=None,
        finished_at=None,
        expires_at=None,
    )
    shard = place.shard_map.shard_of(row.schedule_id, max(available_at, now))
    deed = Deed(
        (Change(again, Transition.REPLAY, same_wait(row)),),
        dispatches=(release_of(again, shard, now),),
        attempts=last_attempt(place, row),
        forgets=(DeadLetter.of(row),),
    )
    if place.ledger.do(deed) is not Write.APPLIED:
        return None
    return let_go(place, again, now)


def _found(place: Workplace, tenant_id: str, occurrence_id: str) -> Occurrence:
    row = place.find(tenant_id, [occurrence_id]).get(occurrence_id)
    if row is None:
        raise NotFound(f"There is no occurrence {occurrence_id}, or it has expired.")
    return row


def _again(
    place: Workplace, tenant_id: str, occurrence_id: str, step: _Step
) -> Occurrence:
    """Take a step on an occurrence until nobody else is first."""
    for _ in range(MAX_ROUNDS):
        row = _found(place, tenant_id, occurrence_id)
        done = step(place, row, place.clock.now())
        if done is not None:
            return done
    raise Transient(f"{occurrence_id} is contended")


def _replay(place: Workplace, row: Occurrence, now: datetime) -> Occurrence | None:
    if row.state is not State.DEAD:
        message = f"The occurrence is {row.state}; only what is DEAD is replayed."
        raise Conflict(message, code="not_dead")
    return replayed(place, row, now, now)


def _cancel(place: Workplace, row: Occurrence, now: datetime) -> Occurrence | None:
    if row.state is State.CANCELED:
        return row
    version = version_of(place, row)
    untracked = version.definition.tracking is Tracking.UNTRACKED
    if row.state in TERMINAL or (untracked and row.state is State.ENQUEUED):
        message = f"The occurrence is {row.state} already."
        raise Conflict(message, code="already_over")
    if row.state is State.RUNNING:
        return _ask_to_stop(place, row, now)
    if untracked and row.state not in _CANNOT_HAVE_GONE:
        message = "The message of the occurrence may have gone already."
        raise Conflict(message, code="already_dispatched")
    after = canceling(row, CancelReason.CANCELED, now)
    if row.state is State.PLANNED:
        if row.decision is not None:
            message = "It stands for several times; they are about to be decided."
            raise Conflict(message, code="already_over")
        _plan_following(place, row, version, now)
        return _moved(place, after, Transition.WITHDRAW)
    if policy_of(row, version) is Overlap.ALLOW:
        return _moved(place, after, Transition.ABORT)
    exit_ = leave(place, row, now)
    deed = Deed(
        (Change(after, Transition.ABORT, same_wait(row)), *exit_.changes),
        dispatches=exit_.dispatches,
        lane=exit_.lane,
    )
    return after if place.ledger.do(deed) is Write.APPLIED else None


def _ask_to_stop(place: Workplace, row: Occurrence, now: datetime) -> Occurrence | None:
    if row.cancel_requested_at is not None:
        return row
    asked = replace(row, cancel_requested_at=now)
    return _moved(place, asked, Transition.ASK_TO_STOP)


def _moved(
    place: Workplace, row: Occurrence, transition: Transition
) -> Occurrence | None:
    (answer,) = place.timeline.move([Change(row, transition, same_wait(row))])
    return row if answer is Write.APPLIED else None


def _plan_following(
    place: Workplace, row: Occurrence, version: Version, now: datetime
) -> None:
    """See that a schedule has its next row before this one ends.

    Raises:
        Conflict: `schedule_changing`: a handover is under way.
        Transient: it is not certain that the row stands.
    """
    if version.holds(row.scheduled_for):
        message = "The schedule is being changed; try again in a moment."
        raise Conflict(message, code="schedule_changing")
    try:
        case = judge(_bench(place, row, now), row, version)
    except InvalidInput as error:
        message = "The schedule's times cannot be told by this release."
        raise Conflict(message, code="schedule_changing") from error
    shards = place.shard_map
    answers: list[Write] = []
    if case.ends and version.ends_at is None:
        ending = completion_of(version, row.scheduled_for, shards, now)
        answers += place.timeline.post([ending])
    if case.cursor is not None:
        # Across an epoch's beginning it lies in a shard that may have been passed.
        is_crossed = shards.is_crossed(row.scheduled_for, now)
        if is_crossed and post_follows(place.timeline, shards, [case.cursor], now):
            raise Transient(f"the time after {row.occurrence_id} is not certain")
        answers += place.timeline.plan([case.cursor])
    if Write.UNKNOWN in answers:
        raise Transient(f"the time after {row.occurrence_id} is not certain")


def _bench(place: Workplace, row: Occurrence, now: datetime) -> Bench:
    """Return what judging a row needs that goes to no queue."""
    tenant = place.directory.tenants([row.tenant_id]).get(row.tenant_id)
    if tenant is None:
        raise NotFound(f"The tenant {row.tenant_id!r} is not registered.")
    per_minute = tenant.quotas.catch_up_per_minute
    return Bench(place.schedules, place.shard_map, str, per_minute, now)


def _queue(place: Workplace, row: Occurrence, version: Version) -> str:
    """Return where messages of a row go by now.

    Raises:
        NotFound: its tenant or its handler is gone.
    """
    ref = (row.tenant_id, version.definition.handler)
    handler = place.directory.named_handlers([ref]).get(ref)
    tenant = place.directory.tenants([row.tenant_id]).get(row.tenant_id)
    if handler is None or tenant is None:
        raise NotFound(f"The handler {ref[1]!r} is not registered.")
    return queue_key(tenant.tier, handler, row.lane or version.definition.lane)
