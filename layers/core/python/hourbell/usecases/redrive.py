"""Take in what a delivery queue gave up: messages that nobody even claimed.

No message is dropped whose occurrence may still need somebody: either the occurrence
is DEAD by it, and its letter follows, or the message goes on as a letter itself.
"""

from dataclasses import dataclass
from enum import StrEnum

from hourbell.domain.definition import Tracking, Version
from hourbell.domain.errors import InvalidInput, Permanent, Transient
from hourbell.domain.letter import encode_unreceived
from hourbell.domain.occurrence import Occurrence, State, Transition
from hourbell.domain.retry import DeadReason
from hourbell.domain.routing import dead_letter_key
from hourbell.usecases.attempts import giving_up, version_of
from hourbell.usecases.ports import DeliveryQueues, Entry, Sent, Write
from hourbell.usecases.workplace import MAX_ROUNDS, Workplace


@dataclass(frozen=True, slots=True)
class Returns:
    """What taking in messages needs."""

    place: Workplace
    queues: DeliveryQueues


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A message of a redrive queue.

    Attributes:
        handler: whose consumers it was for.
        send: which send of the occurrence it was, from 1.
        tracking: as the message says; None when it is of a release that did not.
    """

    tenant_id: str
    occurrence_id: str
    handler: str
    send: int
    tracking: Tracking | None = None


class Redriven(StrEnum):
    """What became of it.

    DEAD: its occurrence is. LETTER: nobody reports of it, since it is UNTRACKED; it
    went on as a letter. PAST: another send, or a worker, has the occurrence, or it is
    over. FORWARDED: it says nothing that can be looked up, and went on as it is.
    """

    DEAD = "DEAD"
    LETTER = "LETTER"
    PAST = "PAST"
    FORWARDED = "FORWARDED"


def take_in(
    returns: Returns, message: GivenUp | None, body: str, beside: str
) -> Redriven:
    """Do what a message asks for that a delivery queue gave up; again is no error.

    Args:
        returns: the ports.
        message: what was read of it; None for what is no message of ours.
        body: its text.
        beside: the dead-letter queue for what has no handler with one of its own.

    Raises:
        Transient: it must come again: a store or queue did not answer, or the send is
            not acknowledged yet.
        Permanent: the dead-letter queue refuses it for good.
    """
    place = returns.place
    if message is None:
        return _forward(returns, beside, body, "hourbell")
    try:
        done = _bury(place, message)
    except InvalidInput:
        return _forward(returns, beside, body, "hourbell")
    if done is not None:
        return done
    row = _row(place, message)
    if row is not None:
        body = encode_unreceived(row, version_of(place, row), place.clock.now())
    _forward(returns, _queue(place, message) or beside, body, message.tenant_id)
    return Redriven.LETTER


def _bury(place: Workplace, message: GivenUp) -> Redriven | None:
    """Mark DEAD what is TRACKED and still ENQUEUED by that very send.

    Returns:
        None when nobody reports of it: it is UNTRACKED, or its row is gone and it
        does not say.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: see `take_in`.
    """
    for _ in range(MAX_ROUNDS):
        row = _row(place, message)
        if row is None:
            return Redriven.PAST if message.tracking is Tracking.TRACKED else None
        version = version_of(place, row)
        if version.definition.tracking is Tracking.UNTRACKED:
            return None
        if _is_unacknowledged(row, message):
            raise Transient(f"{row.occurrence_id} is not acknowledged yet")
        if row.state is not State.ENQUEUED or row.sends != message.send:
            return Redriven.PAST
        if _bury_row(place, row, version):
            return Redriven.DEAD
    raise Transient(f"{message.occurrence_id} is contended")


def _bury_row(place: Workplace, row: Occurrence, version: Version) -> bool:
    now, reason = place.clock.now(), DeadReason.NEVER_CLAIMED
    ended = giving_up(place, row, version, Transition.REDRIVE, reason, now)
    return place.ledger.do(ended.deed) is Write.APPLIED


def _row(place: Workplace, message: GivenUp) -> Occurrence | None:
    name = message.occurrence_id
    return place.find(message.tenant_id, [name]).get(name)


def _is_unacknowledged(row: Occurrence, message: GivenUp) -> bool:
    return row.state is State.SCHEDULED and message.send == row.sends + 1


def _queue(place: Workplace, message: GivenUp) -> str | None:
    """Return the dead-letter queue of a message's handler, if it has one."""
    tenant_id, ref = message.tenant_id, (message.tenant_id, message.handler)
    handler = place.directory.named_handlers([ref]).get(ref)
    tenant = place.directory.tenants([tenant_id]).get(tenant_id)
    if handler is None or tenant is None:
        return None
    return dead_letter_key(tenant.tier, handler)


def _forward(returns: Returns, queue: str, body: str, group: str) -> Redriven:
    """Put a message on a dead-letter queue.

    Raises:
        Transient: the queue did not accept it.
        Permanent: it refuses it for good; then it stays where it is.
    """
    entry = Entry("0", body, delay_seconds=0, group=group)
    answer = returns.queues.send(queue, [entry]).get("0", Sent.RETRY)
    if answer is Sent.REFUSED:
        message = f"the dead-letter queue {queue} refuses a message"
        raise Permanent(message, code="letter_refused")
    if answer is Sent.RETRY:
        raise Transient(f"the dead-letter queue {queue} did not take a message")
    return Redriven.FORWARDED
