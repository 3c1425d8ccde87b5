"""Count what became of rows that were to leave PLANNED."""

from collections.abc import Sequence
from typing import Final

from hourbell.domain.load import NO_COUNTS, Counts
from hourbell.domain.occurrence import Transition
from hourbell.domain.parking import ParkReason
from hourbell.usecases.judging import Case
from hourbell.usecases.pacing import Paced
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.tally import Tally, trouble_of, troubled

RUNNING: Final = frozenset({Transition.SCHEDULE, Transition.DEFER})
"""The transitions by which a row that runs leaves PLANNED."""


def count_left(
    cases: Sequence[Case],
    ready: Sequence[Case],
    standing: Sequence[Case],
    paced: Paced,
) -> Tally:
    """Return the tally of cases whose row must stay PLANNED.

    Waiting for a rate's place is no trouble, however long it takes.
    """
    clear = {case.row.key for case in ready}
    going = {case.row.key for case in standing}
    left = [case for case in cases if case.row.key not in going]
    hindered = [
        case for case in left if not paced.waiting & {row.key for row in case.all_rows}
    ]
    tally = troubled(
        [
            trouble_of(
                case.row,
                ParkReason.NEXT_UNREADABLE
                if case.row.key in clear
                else ParkReason.UNCLEAR,
            )
            for case in hindered
        ]
    )
    return tally + Tally(unknown=len(left) - len(hindered))


_COUNTED: Final = {
    Transition.SCHEDULE: Tally(scheduled=1),
    Transition.DEFER: Tally(deferred=1),
    Transition.MISS: Tally(missed=1),
    Transition.WITHDRAW: Tally(canceled=1),
}


def count_change(change: Change, answer: Write, *, is_paced: bool) -> Tally:
    """Return the tally of one change."""
    if answer is Write.UNKNOWN:
        return troubled([trouble_of(change.row, ParkReason.UNCLEAR)])
    if answer is not Write.APPLIED:
        return Tally(lost=1)
    row = change.row
    runs = change.transition in RUNNING
    minutes = Counts.of(row.scheduled_for) if runs and not row.misfire else NO_COUNTS
    gaps, late = row.decision is not None, runs and row.misfire
    return _COUNTED[change.transition] + Tally(
        misfires=int(late), gaps=int(gaps), paced=int(is_paced), minutes=minutes
    )
