"""What materializing did, counted."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from operator import add, attrgetter
from typing import Final

from hourbell.domain.load import NO_COUNTS, Counts
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.parking import ParkReason, Trouble

# Of how many rows it is told why they could not be taken. What is beyond comes up
# again, when those before it are out of the way.
MAX_TROUBLES = 1_000


@dataclass(frozen=True, slots=True)
class Tally:
    """What one or more steps did, in rows.

    Attributes:
        planned: next times inserted.
        existed: next times that stood already.
        scheduled: rows that became outbox records.
        deferred: rows that wait for a time beyond the queue's longest delay.
        paced: rows that a rate moved to a later instant than their own.
        lost: rows that somebody else moved first.
        unknown: rows whose writes got no clear answer, whose tenant or handler was not
            found, or for which a rate had no place now; they are still PLANNED and
            come up again.
        canceled: rows that their version does not own or produce.
        misfires: overdue rows that run all the same.
        missed: overdue rows that do not run.
        gaps: gap rows that were worked off.
        held: rows that a handover under way has yet to decide.
        faulty: rows whose version cannot be read or does not make sense to this
            release, such as one in a zone that is gone; they are left alone.
        troubles: which rows are unknown, held or faulty, and why; not more than
            MAX_TROUBLES, and no part of what makes two tallies equal.
        minutes: the `scheduled` and `deferred` ones that were on time, by the UTC
            minute of their `scheduled_for`; no part of that either.
    """

    planned: int = 0
    existed: int = 0
    scheduled: int = 0
    deferred: int = 0
    paced: int = 0
    lost: int = 0
    unknown: int = 0
    canceled: int = 0
    misfires: int = 0
    missed: int = 0
    gaps: int = 0
    held: int = 0
    faulty: int = 0
    troubles: tuple[Trouble, ...] = field(default=(), compare=False)
    minutes: Counts = field(default=NO_COUNTS, compare=False)

    def __add__(self, other: "Tally") -> "Tally":
        """Add up two tallies."""
        troubles = (*self.troubles, *other.troubles)[:MAX_TROUBLES]
        counts = map(add, _counts(self), _counts(other))
        minutes = self.minutes + other.minutes
        return replace(Tally(*counts), troubles=troubles, minutes=minutes)

    @property
    def counts(self) -> dict[str, int]:
        """The numbers by name."""
        return dict(zip(_NAMES, _counts(self), strict=True))

    @property
    def moved(self) -> int:
        """How many rows were inserted or left PLANNED."""
        left = self.scheduled + self.deferred + self.canceled + self.missed
        return self.planned + left


_NAMES = tuple(each.name for each in fields(Tally) if each.compare)
_counts = attrgetter(*_NAMES)

NOTHING = Tally()

_UNKNOWN: Final = frozenset(
    {
        ParkReason.TENANT_GONE,
        ParkReason.HANDLER_GONE,
        ParkReason.NEXT_UNREADABLE,
        ParkReason.UNCLEAR,
    }
)


def trouble_of(row: Occurrence, reason: ParkReason) -> Trouble:
    """Return what is wrong with a planned row, since it could be taken."""
    due = max(row.scheduled_for, row.planned_at)
    return Trouble(row.key, reason, due, row.tenant_id)


def troubled(troubles: Sequence[Trouble]) -> Tally:
    """Return the tally of rows that could not be taken."""
    reasons = [trouble.reason for trouble in troubles]
    held = reasons.count(ParkReason.HELD)
    unknown = sum(reason in _UNKNOWN for reason in reasons)
    faulty = len(reasons) - held - unknown
    return Tally(unknown=unknown, held=held, faulty=faulty, troubles=tuple(troubles))
