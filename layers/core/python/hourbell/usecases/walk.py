"""The order in which rows are taken: what is on time, futures, and gaps at last."""

from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate
from typing import Final, TypeAlias

from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.usecases.tally import NOTHING, Tally
from hourbell.usecases.turns import Turns

MAX_ROWS: Final = 20_000
"""The most rows that one call takes through the steps.

What is left stays PLANNED and is found by the next pass.
"""

STEP_ROWS: Final = 1_000
"""The most rows of one step, so that the first ones are all the way through soon."""

Done: TypeAlias = tuple[list[Occurrence], Tally]
"""The planned rows that were inserted, and what was done."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What is done to rows.

    Attributes:
        take: takes rows through both writes; it is told the keys of rows after gaps
            that stand already.
        plan_beyond: inserts the rows of the times that follow gaps.
        is_over: whether the time is up.
    """

    take: Callable[[Sequence[Occurrence], AbstractSet[RowKey]], Done]
    plan_beyond: Callable[[Sequence[Occurrence]], Done]
    is_over: Callable[[], bool]


def walk_through(
    rows: Iterable[Occurrence], order: Turns, *, until: datetime, steps: Steps
) -> Tally:
    """Take planned rows up to an instant, and what follows them, in their order.

    An outage leaves each schedule a gap row, whose expansion may be a thousand rows.
    So first comes what stands for itself, with all that follows it; then the times
    after all gaps are planned; and what of these is due is taken, too, before the
    first gap is expanded. Where a walk ends early, gaps are left and no futures.
    """
    walk = _Walk(steps)
    coming, gaps = _due(rows, until), list[Occurrence]()
    while coming or gaps:
        found = [row for row in coming if _is_gap(row)]
        gaps += found
        # Gaps are admitted when their turn comes, and count for the cap only then.
        alone = order.admit([row for row in coming if not _is_gap(row)])
        if not (walk.take(alone) and walk.plan_beyond(gaps)):
            break
        coming = _due(walk.followers(), until)
        if not coming:
            expanded, gaps = order.admit(gaps), []
            if not walk.take(expanded):
                break
            coming = _due(walk.followers(), until)
    return walk.tally


def _is_gap(row: Occurrence) -> bool:
    """Whether it lets others run besides itself."""
    return row.weight > 1


def _due(rows: Iterable[Occurrence], until: datetime) -> list[Occurrence]:
    """Return the planned rows up to an instant."""
    return [r for r in rows if r.state is State.PLANNED and r.scheduled_for <= until]


def _affordable(rows: Sequence[Occurrence], budget: int) -> list[Occurrence]:
    """Return the first rows that a budget allows, and at least one."""
    weights = accumulate(row.weight for row in rows)
    return [
        row
        for place, (row, weight) in enumerate(zip(rows, weights, strict=True))
        if place == 0 or weight <= budget
    ]


class _Walk:
    """The steps of one walk, until its time or its budget is up.

    Attributes:
        tally: what was done.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._budget = MAX_ROWS
        self._has_begun = False
        self._inserted: list[Occurrence] = []
        self._beyond: set[RowKey] = set()
        self._looked_beyond: set[RowKey] = set()
        self.tally = NOTHING

    def followers(self) -> list[Occurrence]:
        """Return the planned rows that were inserted since this was last asked."""
        found, self._inserted = self._inserted, []
        return found

    def take(self, rows: Sequence[Occurrence]) -> bool:
        """Take rows through the steps, in order; False when it is time to stop."""
        left = rows
        while left:
            if self._is_over():
                return False
            taken = _affordable(left, min(self._budget, STEP_ROWS))
            self._budget -= sum(row.weight for row in taken)
            self._note(self._steps.take(taken, self._beyond))
            left = left[len(taken) :]
        return True

    def plan_beyond(self, waiting: Sequence[Occurrence]) -> bool:
        """Plan the times that follow gaps that wait; False when it is time to stop.

        Not while all are through in a single step, for in a step the futures come
        first anyway.
        """
        if sum(row.weight for row in waiting) <= STEP_ROWS:
            return True
        gaps = [row for row in waiting if row.key not in self._looked_beyond]
        for first in range(0, len(gaps), STEP_ROWS):
            if self._is_over():
                return False
            part = gaps[first : first + STEP_ROWS]
            self._looked_beyond |= {row.key for row in part}
            self._budget -= len(part)
            inserted, done = self._steps.plan_beyond(part)
            self._beyond |= {row.key for row in inserted}
            self._note((inserted, done))
        return True

    def _is_over(self) -> bool:
        """Whether to stop here; never before the first step."""
        if self._has_begun:
            return self._budget <= 0 or self._steps.is_over()
        self._has_begun = True
        return False

    def _note(self, done: Done) -> None:
        inserted, tally = done
        self._inserted += inserted
        self.tally += tally
