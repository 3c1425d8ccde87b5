"""Take in what a delivery queue gave up: messages that nobody even claimed.

No message is dropped whose occurrence may still need somebody: either the occurrence
is DEAD by it, and its letter follows, or the message goes on as a letter itself.
"""

from dataclasses import dataclass
from enum import StrEnum

from hourbell.domain.definition import Tracking, Version, VersionRef
from hourbell.domain.errors import InvalidInput, Permanent, Transient
from hourbell.domain.letter import encode_unreceived
from hourbell.domain.occurrence import (
    Occurrence,
    State,
    Transition,
    parse_occurrence_id,
)
from hourbell.domain.retry import DeadReason
from hourbell.domain.routing import dead_letter_key
from hourbell.usecases.attempts import giving_up, version_of
from hourbell.usecases.ports import DeliveryQueues, Entry, Sent, Write
from hourbell.usecases.version_reads import read_versions
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
        send: which send of the occurrence it was, from 1.
        handler: whose consumers it was for.
        tracking: as the message says; None when it is of a release that did not.
    """

    tenant_id: str
    occurrence_id: str
    send: int
    handler: str = ""
    tracking: Tracking | None = None


class Redriven(StrEnum):
    """What became of it.

    DEAD: its occurrence is. UNTRACKED: nobody reports of it; it goes on as a letter.
    PAST: another send, or a worker, has the occurrence, or it is over. UNREADABLE: it
    says nothing that can be looked up, and goes on as it is.
    """

    DEAD = "DEAD"
    UNTRACKED = "UNTRACKED"
    PAST = "PAST"
    UNREADABLE = "UNREADABLE"


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
    done = Redriven.UNREADABLE if message is None else redrive(returns.place, message)
    if message is None or done is Redriven.UNREADABLE:
        _forward(returns, beside, body, "hourbell")
    elif done is Redriven.UNTRACKED:
        _forward_letter(returns, message, body, beside)
    return done


def redrive(place: Workplace, message: GivenUp) -> Redriven:
    """Mark DEAD what is TRACKED and still ENQUEUED by that very send.

    Raises:
        Transient: the store did not answer, or the send is not acknowledged yet.
    """
    for _ in range(MAX_ROUNDS):
        try:
            row = _row(place, message)
        except InvalidInput:
            return Redriven.UNREADABLE
        if row is None:
            return _without_row(place, message)
        version = version_of(place, row)
        if version.definition.tracking is Tracking.UNTRACKED:
            return Redriven.UNTRACKED
        if _is_unacknowledged(row, message):
            raise Transient(f"{row.occurrence_id} is not acknowledged yet")
        if row.state is not State.ENQUEUED or row.sends != message.send:
            return Redriven.PAST
        if _bury_row(place, row, version):
            return Redriven.DEAD
    raise Transient(f"{message.occurrence_id} is contended")


def _without_row(place: Workplace, message: GivenUp) -> Redriven:
    """Judge a message whose row is gone: by what it says, else by its version.

    Raises:
        Transient: the store did not answer.
    """
    tracking = message.tracking
    if tracking is None:
        schedule_id, number, _, _ = parse_occurrence_id(message.occurrence_id)
        ref = VersionRef(schedule_id, number)
        found, _ = read_versions(place.schedules, [ref], consistent=True)
        version = found.get(ref)
        if version is not None and version.tenant_id == message.tenant_id:
            tracking = version.definition.tracking
    untracked = tracking is Tracking.UNTRACKED
    return Redriven.UNTRACKED if untracked else Redriven.PAST


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


def _forward_letter(returns: Returns, message: GivenUp, body: str, beside: str) -> None:
    """Send an UNTRACKED occurrence's letter; without its row, the message as it is."""
    place = returns.place
    row = _row(place, message)
    if row is not None:
        body = encode_unreceived(row, version_of(place, row), place.clock.now())
    queue = _queue(place, message) or beside
    _forward(returns, queue, body, message.tenant_id)


def _forward(returns: Returns, queue: str, body: str, group: str) -> None:
    """Put a message on a dead-letter queue.

    Raises:
        Transient: the queue did not accept it.
        Permanent: it refuses it for good; then it stays where it is.
    """
    entry = Entry("0", body, delay_seconds=0, group=group)
    answer = returns.queues.send(queue, [entry]).get("0", Sent.RETRY)
    if answer is Sent.REFUSED:
        raise Permanent(f"the dead-letter queue {queue} refuses a message")
    if answer is Sent.RETRY:
        raise Transient(f"the dead-letter queue {queue} did not take a message")
