"""Take in what a delivery queue gave up: messages that nobody even claimed."""

from dataclasses import dataclass
from enum import StrEnum

from hourbell.domain.definition import Tracking
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State, Transition
from hourbell.domain.retry import DeadReason
from hourbell.usecases.attempts import giving_up, version_of
from hourbell.usecases.ports import Write
from hourbell.usecases.workplace import MAX_ROUNDS, Workplace


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A message of a redrive queue.

    Attributes:
        send: which send of the occurrence it was, from 1.
    """

    tenant_id: str
    occurrence_id: str
    send: int


class Redriven(StrEnum):
    """What became of it.

    DEAD: its occurrence is. UNTRACKED: nobody reports of it; it goes to the handler's
    dead-letter queue as it is. PAST: another send, or a worker, has the occurrence, or
    it is over.
    """

    DEAD = "DEAD"
    UNTRACKED = "UNTRACKED"
    PAST = "PAST"


def redrive(place: Workplace, message: GivenUp) -> Redriven:
    """Mark DEAD what is TRACKED and still ENQUEUED by that very send.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: the store did not answer, or the send is not acknowledged yet.
    """
    for _ in range(MAX_ROUNDS):
        row = place.find(message.tenant_id, [message.occurrence_id]).get(
            message.occurrence_id
        )
        if row is None:
            return Redriven.PAST
        version = version_of(place, row)
        if version.definition.tracking is Tracking.UNTRACKED:
            return Redriven.UNTRACKED
        if _is_unacknowledged(row, message):
            raise Transient(f"{row.occurrence_id} is not acknowledged yet")
        if row.state is not State.ENQUEUED or row.sends != message.send:
            return Redriven.PAST
        now, reason = place.clock.now(), DeadReason.NEVER_CLAIMED
        ended = giving_up(place, row, version, Transition.REDRIVE, reason, now)
        if place.ledger.do(ended.deed) is Write.APPLIED:
            return Redriven.DEAD
    raise Transient(f"{message.occurrence_id} is contended")


def _is_unacknowledged(row: Occurrence, message: GivenUp) -> bool:
    return row.state is State.SCHEDULED and message.send == row.sends + 1
