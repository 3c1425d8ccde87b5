"""The port of the worker plane; the conformance suite holds its implementations to it.

Where several rows must change at once, a `Deed` says what; it is done whole or not at
all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import RowKey, State
from hourbell.domain.work import Attempt, DeadLetter, OverlapLane, Slot
from hourbell.usecases.port_values import Change, Write


@dataclass(frozen=True, slots=True)
class Check:
    """A row that must be in a state, at an attempt, while others change."""

    key: RowKey
    state: State
    attempt: int


@dataclass(frozen=True, slots=True)
class Deed:
    """Writes that belong together.

    Attributes:
        changes: transitions of different rows, each with what it expects.
        dispatches: rows to put where their keys are free, all of different keys.
        attempts: items to put where their keys are free.
        lane: how a lane shall be; it must be stored with the revision before this one,
            or, at revision 1, not be stored.
        takes: a slot to put where its key is free.
        frees: a slot to delete if its holder has it; one that is not, or is another's,
            does not keep the rest from being done. It may be the one that `takes` puts:
            then it is freed first.
        letters: dead letters to put, whatever is there.
        forgets: dead letters to delete, whatever is there.
        checks: rows that must be as said; none of those that `changes` names.
    """

    changes: tuple[Change, ...]
    dispatches: tuple[Dispatch, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    lane: OverlapLane | None = None
    takes: Slot | None = None
    frees: Slot | None = None
    letters: tuple[DeadLetter, ...] = ()
    forgets: tuple[DeadLetter, ...] = ()
    checks: tuple[Check, ...] = ()


class Ledger(Protocol):
    """What the worker plane stores."""

    def do(self, deed: Deed) -> Write:
        """Do all that a deed says, or nothing of it.

        Returns:
            APPLIED; or LOST when a condition did not hold.

        Raises:
            Transient: it may or may not be done.
        """
        ...

    def lane(self, schedule_id: str) -> OverlapLane:
        """Return a schedule's lane by a consistent read.

        Raises:
            Unreadable: it cannot be read.
        """
        ...

    def slots(self, tenant_id: str) -> dict[int, Slot]:
        """Return the slots of a tenant that are taken, by number, consistently.

        One that cannot be read is taken too; its holder is empty then.
        """
        ...

    def attempts(self, key: RowKey) -> tuple[Attempt, ...]:
        """Return the items of an occurrence's attempts, the oldest first.

        By consistent reads; what has expired may be missing.
        """
        ...

    def letters(
        self,
        tenant_id: str,
        *,
        schedule_id: str | None = None,
        after: str | None,
        limit: int,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[Sequence[DeadLetter], str | None]:
        """Return a page of a tenant's dead letters, and what leads to the next one.

        Of one schedule, if it is named; of those that died from `since` on and before
        `until`. One that is there all the while is told exactly once. `limit` bounds
        what is read, so a page may be short or empty although there is more.

        Raises:
            InvalidInput: `after` is not what an earlier page gave (`invalid_cursor`).
        """
        ...
