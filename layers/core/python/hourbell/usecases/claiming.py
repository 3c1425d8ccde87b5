"""Decide what a claim is answered, and what is written for it."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hourbell.domain.definition import Tracking, Version
from hourbell.domain.dispatch import Dispatch, release_of
from hourbell.domain.occurrence import (
    CancelReason,
    Occurrence,
    State,
    Transition,
    jitter_seconds,
)
from hourbell.domain.overlap import Overlap
from hourbell.domain.policies import (
    CLOCK_SKEW,
    OVERLAP_CHECK,
    expires_at,
)
from hourbell.domain.retry import DeadReason, ErrorClass, Failure
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases.attempts import (
    attempt_of,
    failing,
    giving_up,
    still_its_workers,
    watch_of,
)
from hourbell.usecases.lanes import enter, policy_of
from hourbell.usecases.ports import Change
from hourbell.usecases.unsent import canceling, objection_to_claiming
from hourbell.usecases.work_ports import Check, Deed
from hourbell.usecases.work_values import (
    Answer,
    Claimed,
    ClaimFault,
    ClaimOrder,
    SkipReason,
    WaitReason,
)
from hourbell.usecases.workplace import Workplace

# What a held one waits for, in seconds: a free place, and a change that is under way.
_PLACE_WAIT_SECONDS = 15
_PLACE_SPREAD_SECONDS = 30
_HANDOVER_WAIT_SECONDS = 5

_DIED = Failure(ErrorClass.LEASE_EXPIRED)

_OVER = {
    State.SUCCEEDED: SkipReason.ALREADY_DONE,
    State.DEAD: SkipReason.ALREADY_DONE,
    State.MISSED: SkipReason.EXPIRED,
    State.SKIPPED_OVERLAP: SkipReason.SKIPPED_OVERLAP,
}
# A dispatch row, or the scan, brings these up again.
_COMING = {
    State.PLANNED: WaitReason.TOO_EARLY,
    State.DEFERRED: WaitReason.TOO_EARLY,
    State.RETRY_WAIT: WaitReason.TOO_EARLY,
    State.WAITING_OVERLAP: WaitReason.OVERLAP,
}


@dataclass(frozen=True, slots=True)
class Wish:
    """A claim, and what was read for it."""

    order: ClaimOrder
    row: Occurrence
    version: Version


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a worker claims.

    Attributes:
        now: when this round of looking began.
        running: how many occurrences of the tenant may run; None for any number.
        taken: its places that are taken, or that this call is about to take.
        is_budgeted: whether so many of its retries may begin in a minute only.
    """

    worker: str
    lease: timedelta
    now: datetime
    running: int | None
    taken: set[int]
    is_budgeted: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written, and what it answers when that is done.

    Attributes:
        follows: a row that waits then, and may be let go at once.
    """

    answer: Claimed
    change: Change | None = None
    watch: Dispatch | None = None
    deed: Deed | None = None
    follows: Occurrence | None = None


def plan_of(place: Workplace, wish: Wish, terms: Terms) -> Plan:
    """Decide what a claim is answered, and what is written for it.

    Raises:
        Transient: the store did not answer.
    """
    row = wish.row
    if wish.version.definition.tracking is Tracking.UNTRACKED:
        return Plan(error(row.occurrence_id, ClaimFault.NOT_TRACKED))
    if row.state is State.CANCELED:
        return Plan(_skipped(row, _canceled(row.reason)))
    if row.state in _OVER:
        return Plan(_skipped(row, _OVER[row.state]))
    if row.state in _COMING:
        return Plan(_waits(row, _COMING[row.state]))
    if row.state is State.RUNNING:
        return _taking_over(place, wish, terms)
    return (
        _hindrance(place, wish, terms.now)
        or _lateness(place, wish, terms.now)
        or _entering(place, wish, terms)
    )


def _hindrance(place: Workplace, wish: Wish, now: datetime) -> Plan | None:
    """Decide about an occurrence that may not run, or not yet."""
    row, version = wish.row, wish.version
    available_at = row.available_at or row.scheduled_for
    is_early = available_at > now + CLOCK_SKEW
    if is_early and _is_outdated(wish):
        return Plan(_waits(row, WaitReason.TOO_EARLY))
    if version.holds_sent(row.scheduled_for):
        pause = timedelta(seconds=_HANDOVER_WAIT_SECONDS)
        at = max(row.available_at or now, now + pause)
        return _holding(place, row, at, WaitReason.HANDOVER, now)
    reason = objection_to_claiming(place.schedules, row, version)
    if reason is not None:
        change = Change(canceling(row, reason, now), Transition.ABORT, _seen(row))
        return Plan(_skipped(change.row, _canceled(reason)), change)
    if not is_early:
        return None
    # Also in SCHEDULED: this may be what it was sent with, not acknowledged yet.
    return _holding(place, row, available_at, WaitReason.TOO_EARLY, now)


def _is_outdated(wish: Wish) -> bool:
    """Whether the message is of a send before that which the row waits for.

    That one is still to come. Were each message of the past answered with another
    send, none of an occurrence that waits for long would ever be the last.
    """
    send, row = wish.order.send, wish.row
    return send is not None and send < _sends(row)


def _lateness(place: Workplace, wish: Wish, now: datetime) -> Plan | None:
    """Decide about an occurrence whose deadline has passed."""
    row, version = wish.row, wish.version
    deadline = version.definition.retry.deadline(row.begun_at)
    if deadline is None or now <= deadline:
        return None
    late = DeadReason.DEADLINE_PASSED
    ended = giving_up(place, row, version, Transition.GIVE_UP, late, now)
    return Plan(_skipped(ended.row, SkipReason.EXPIRED), deed=ended.deed)


def _taking_over(place: Workplace, wish: Wish, terms: Terms) -> Plan:
    """Decide about an occurrence that a worker has, or had."""
    row, now = wish.row, terms.now
    if row.lease_token is not None and row.lease_token == wish.order.lease_token:
        return _going_on(row, terms)
    # Whose clock is ahead must not end a lease before its worker thinks it ends.
    if (row.lease_expires_at or now) + CLOCK_SKEW > now:
        return Plan(Claimed(row.occurrence_id, Answer.BUSY, state=row.state))
    ended = failing(place, row, wish.version, _DIED, now)
    if ended.row.state is State.DEAD:
        skipped = _skipped(ended.row, SkipReason.ALREADY_DONE)
        return Plan(skipped, deed=ended.deed)
    if ended.row.state is State.CANCELED:
        return Plan(_skipped(ended.row, SkipReason.CANCELED), deed=ended.deed)
    if terms.is_budgeted:
        # The tenant's retries begin where they have their places.
        waits = _waits(ended.row, WaitReason.TOO_EARLY)
        return Plan(waits, deed=ended.deed, follows=ended.row)
    # It need not wait: here is a worker that takes it.
    taken = _leased(place, wish, terms, slot=row.slot)
    expects = (
        *still_its_workers(row),
        ("attempt", row.attempt),
        ("lease_expires_at", row.lease_expires_at),
    )
    deed = Deed(
        (Change(taken, Transition.RECLAIM, expects),),
        dispatches=(watch_of(place, taken, now),),
        attempts=(attempt_of(row, _DIED, now),),
    )
    return Plan(_running(taken), deed=deed)


def _going_on(row: Occurrence, terms: Terms) -> Plan:
    """Answer a claim again; it counts as a heartbeat where one would be due.

    Who is told to run must have time until the first heartbeat, and not meet another
    worker that takes over what ran out while the answers were lost.
    """
    before, after = row.lease_expires_at, terms.now + terms.lease
    if before is not None and before - terms.now > terms.lease / 2:
        return Plan(_running(row))
    extended = replace(row, lease_expires_at=max(before or after, after))
    expects = (("lease_token", row.lease_token), ("lease_expires_at", before))
    return Plan(_running(extended), Change(extended, Transition.EXTEND, expects))


def _entering(place: Workplace, wish: Wish, terms: Terms) -> Plan:
    """Decide about an occurrence that may run if lane and quota let it."""
    row, now, policy = wish.row, terms.now, policy_of(wish.row, wish.version)
    lane: OverlapLane | None = None
    checks: tuple[Check, ...] = ()
    if policy is not Overlap.ALLOW:
        entry = enter(place, row, policy, now)
        lane, checks = entry.lane, entry.checks
        if not entry.runs and lane is None:
            # Somebody asked for a replayed one: it keeps asking for its turn.
            is_wanted = row.replayed_at is not None
            overlap = WaitReason.OVERLAP
            return _later(place, row, overlap, now) if is_wanted else _skip(row, now)
        if not entry.runs:
            return _queueing(place, row, lane, now)
    slot = None
    if terms.running is not None:
        slot = _free_slot(row, terms)
        if slot is None:
            return _later(place, row, WaitReason.CONCURRENCY, now)
    taken = _leased(place, wish, terms, slot=None if slot is None else slot.number)
    change = Change(taken, Transition.CLAIM, _seen(row))
    watch = watch_of(place, taken, now)
    if lane is None and slot is None:
        return Plan(_running(taken), change, watch)
    deed = Deed((change,), dispatches=(watch,), lane=lane, takes=slot, checks=checks)
    return Plan(_running(taken), deed=deed)


def _free_slot(row: Occurrence, terms: Terms) -> Slot | None:
    """Return a place that is free; where the search begins, the id says.

    What a larger quota let run counts too: its places are beyond those of this one.
    """
    limit = terms.running or 0
    if len(terms.taken) >= limit:
        return None
    first = jitter_seconds(row.occurrence_id, limit)
    numbers = [(first + step) % limit for step in range(limit)]
    number = next((each for each in numbers if each not in terms.taken), None)
    if number is None:
        return None
    terms.taken.add(number)
    return Slot(row.tenant_id, number, row.occurrence_id)


def _leased(
    place: Workplace, wish: Wish, terms: Terms, *, slot: int | None
) -> Occurrence:
    """Return a row as it is when the worker has it."""
    row, now = wish.row, terms.now
    return replace(
        row,
        state=State.RUNNING,
        sends=_sends(row),
        attempt=row.attempt + 1,
        lease_token=_token(place, wish),
        lease_expires_at=now + terms.lease,
        worker=terms.worker,
        started_at=now,
        begun_at=row.begun_at or now,
        slot=slot,
    )


def _token(place: Workplace, wish: Wish) -> str:
    """Return the token of a new attempt.

    That of an attempt before does not serve again: what is said late of that one must
    not end this one.

    Raises:
        Transient: the store did not answer which attempts there were.
    """
    row, wanted = wish.row, wish.order.lease_token
    if wanted is None or wanted == row.lease_token:
        return place.ids.token()
    # The last one stands on the row; those before it are looked up.
    old = place.attempts(row) if row.attempt > 1 else ()
    served = any(each.lease_token == wanted for each in old)
    return place.ids.token() if served else wanted


def _queueing(
    place: Workplace, row: Occurrence, lane: OverlapLane | None, now: datetime
) -> Plan:
    """Let an occurrence wait for the one that runs; it looks by itself, too."""
    waiting = _shifted(row, State.WAITING_OVERLAP, now + OVERLAP_CHECK, now)
    deed = Deed(
        (Change(waiting, Transition.QUEUE, _seen(row)),),
        dispatches=(_release(place, waiting, now),),
        lane=lane,
    )
    return Plan(_waits(waiting, WaitReason.OVERLAP), deed=deed)


def _skip(row: Occurrence, now: datetime) -> Plan:
    """Let an occurrence be skipped since another one runs."""
    skipped = replace(
        row,
        state=State.SKIPPED_OVERLAP,
        reason=SkipReason.SKIPPED_OVERLAP,
        finished_at=now,
        expires_at=expires_at(now),
    )
    change = Change(skipped, Transition.SKIP, _seen(row))
    return Plan(_skipped(skipped, SkipReason.SKIPPED_OVERLAP), change)


def _later(
    place: Workplace, row: Occurrence, reason: WaitReason, now: datetime
) -> Plan:
    """Send an occurrence again in a while, others at other instants."""
    spread = _PLACE_SPREAD_SECONDS
    seconds = jitter_seconds(f"{row.occurrence_id}#{row.waits}", spread)
    at = now + timedelta(seconds=_PLACE_WAIT_SECONDS + seconds)
    return _holding(place, row, at, reason, now)


def _holding(
    place: Workplace,
    row: Occurrence,
    available_at: datetime,
    reason: WaitReason,
    now: datetime,
) -> Plan:
    """Send an occurrence again later, though nothing has failed."""
    held = _shifted(row, State.DEFERRED, available_at, now)
    deed = Deed(
        (Change(held, Transition.HOLD, _seen(row)),),
        dispatches=(_release(place, held, now),),
    )
    return Plan(_waits(held, reason), deed=deed, follows=held)


def _shifted(
    row: Occurrence, state: State, available_at: datetime, now: datetime
) -> Occurrence:
    """Return a row that waits; such a wait does not count for its deadline.

    Nor does what its consumer took to come, or many short waits would add up. What it
    had to wait anyway counts: that is its retry's, whoever came too early.
    """
    begun_at = row.begun_at
    if begun_at is not None:
        since = row.available_at or now
        begun_at += max(available_at - since, timedelta(0))
    return replace(
        row,
        state=state,
        available_at=available_at,
        sends=_sends(row),
        waits=row.waits + 1,
        begun_at=begun_at,
    )


def _sends(row: Occurrence) -> int:
    """Return how often it was sent; a message proves a send not acknowledged yet."""
    return row.sends + (row.state is State.SCHEDULED)


def _release(place: Workplace, row: Occurrence, now: datetime) -> Dispatch:
    due = max(row.available_at or now, now)
    return release_of(row, place.shard_map.shard_of(row.schedule_id, due), now)


def _seen(row: Occurrence) -> tuple[tuple[str, object], ...]:
    """Return what must still be so for a claim to be right."""
    return (("attempt", row.attempt), ("waits", row.waits))


def _running(row: Occurrence) -> Claimed:
    return Claimed(
        row.occurrence_id,
        Answer.RUN,
        lease_token=row.lease_token,
        lease_expires_at=row.lease_expires_at,
        attempt=row.attempts,
    )


def _skipped(row: Occurrence, reason: SkipReason) -> Claimed:
    return Claimed(row.occurrence_id, Answer.SKIP, reason, state=row.state)


def _waits(row: Occurrence, reason: WaitReason) -> Claimed:
    return Claimed(row.occurrence_id, Answer.WAIT, reason, state=row.state)


def error(occurrence_id: str, fault: ClaimFault) -> Claimed:
    """Return the answer to a claim that has none."""
    return Claimed(occurrence_id, Answer.ERROR, fault)


def _canceled(reason: str | None) -> SkipReason:
    """Return why a canceled occurrence is skipped, in the words of a claim."""
    changed = {CancelReason.SUPERSEDED, CancelReason.REPLANNED}
    return SkipReason.SUPERSEDED if reason in changed else SkipReason.CANCELED
