"""Take back what a change ends, as far as it is not out of hand."""

from datetime import datetime

from hourbell.domain.definition import Tracking, Version
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import TRANSITIONS, Occurrence, Transition
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.unsent import canceling, ending

# What no relay has got hold of.
WAITING = TRANSITIONS[Transition.WITHDRAW].sources


def stopping(ended: Version) -> Transition:
    """Return the transition that takes a row of an ended version back."""
    tracked = ended.definition.tracking is Tracking.TRACKED
    return Transition.RECALL if tracked else Transition.WITHDRAW


def withdraw(
    plane: Plane, ended: Version, row: Occurrence, now: datetime
) -> Occurrence | None:
    """Cancel a row if its state still allows it; return it as it is then.

    Args:
        plane: the ports.
        ended: the version that the change ends, which says how rows are taken back.
        row: of this version, or of one before it.
        now: the current instant.

    Raises:
        Transient: no clear answer.
    """
    is_its_own = row.version == ended.version
    transition = stopping(ended) if is_its_own else Transition.WITHDRAW
    current: Occurrence | None = row
    while current is not None and _may_be_taken_back(current, transition):
        canceled = canceling(current, ending(ended), now)
        # Who claims it meanwhile has it, also if it waits for a retry by then.
        unclaimed = (("attempt", current.attempt), ("waits", current.waits))
        (answer,) = plane.timeline.move([Change(canceled, transition, unclaimed)])
        if answer is Write.APPLIED:
            return canceled
        if answer is Write.UNKNOWN:
            raise Transient(f"no clear answer about {row.occurrence_id}")
        current = plane.timeline.read([row.key]).get(row.key)
    return current


def _may_be_taken_back(row: Occurrence, transition: Transition) -> bool:
    """Whether a change may take a row back: what a worker has had goes on."""
    return row.state in TRANSITIONS[transition].sources and not row.is_begun
