"""Changes of a schedule, with workers that really claim in the middle of them.

The cases of `test_handover_interleaved`, but each claim is the use case's own: it
holds, skips, cancels and leases as a worker's request does. The change comes in the
middle of a minute, and just before the next one, where the workers' clock may be past
a due time that the change's clock has yet to reach.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from itertools import product

import pytest
from hourbell.adapters.memory import FixedClock
from hourbell.domain.definition import Tracking
from hourbell.domain.occurrence import CancelReason, State
from hourbell.usecases.claim import claim
from hourbell.usecases.work_values import Answer, Claimed, ClaimOrder
from hourbell.usecases.workplace import Workplace

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_handover_interleaved import (
    CHANGES,
    SKEWS,
    Case,
    check,
    tolerant,
    watched,
)

# Longer than a case lives: whoever has got RUN is at work to its end.
LEASE = 43_200
CALLS = range(1, 40)
LATE = timedelta(seconds=52)
"""From seven seconds after a minute to one second before the next."""


@dataclass
class Worked(Case):
    """A case whose occurrences are claimed by workers.

    Attributes:
        later: how much later in its minute the change comes.
        given: what was answered RUN.
    """

    later: timedelta = timedelta(0)
    given: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.world.clock.advance(self.later)

    @property
    def place(self) -> Workplace:
        """The worker plane, whose clock differs from the change's by the skew."""
        return replace(self.world.workplace, clock=FixedClock(self.world.clock.now()))

    def claim(self) -> None:
        self.ask(self.place, {State.ENQUEUED})

    def ask(self, place: Workplace, states: set[State]) -> list[Claimed]:
        """Claim all that is in these states, and note what is given."""
        orders = [
            ClaimOrder(row.occurrence_id)
            for row in self.world.rows()
            if row.state in states
        ]
        answers = [
            answer
            for first in range(0, len(orders), 10)
            for answer in claim(
                place,
                "acme",
                orders[first : first + 10],
                worker="w1",
                lease_seconds=LEASE,
            )
        ]
        self.given |= {
            each.occurrence_id for each in answers if each.answer is Answer.RUN
        }
        return answers


def judge(case: Worked) -> None:
    """Let all be settled, and judge as without workers, and what workers got."""
    case.settle()
    canceled = case.world.rows(State.CANCELED)
    # Of what was due before a cancel, only what a worker had by then goes on.
    excused = {
        row.scheduled_for for row in canceled if row.reason == CancelReason.CANCELED
    }
    assert case.name == "cancel" or not excused
    check(case, excused)
    refused = case.ask(case.place, {State.CANCELED})
    assert all(each.answer is Answer.SKIP for each in refused), "canceled is refused"
    running = {row.occurrence_id for row in case.world.rows(State.RUNNING)}
    assert case.given == running, "what was given stays with its worker"
    # What is due and was not given is there to be claimed by whoever comes.
    due = {
        row.occurrence_id
        for row in case.world.rows(State.ENQUEUED)
        if (row.available_at or row.scheduled_for) <= case.world.clock.now()
    }
    answers = case.ask(case.place, {State.ENQUEUED})
    assert due <= {each.occurrence_id for each in answers if each.answer is Answer.RUN}


def each_moment(
    make: Callable[[], Worked],
    action: Callable[[Worked], None],
    run: Callable[[Worked, Moment], None],
) -> int:
    """Run a case once per moment of its life; return how many there were."""
    reached = 0
    # After a call is as good as before the next one.
    for nth, after in ((1, False), *((nth, True) for nth in CALLS)):
        case = make()
        moment = Moment(nth, after, partial(action, case))
        run(case, moment)
        if not moment.reached:
            break
        reached += 1
        judge(case)
    return reached


# The gate has them just before a minute and with equal clocks.
CASES = [
    pytest.param(
        *case,
        marks=[] if case[1:] == (timedelta(0), LATE) else [pytest.mark.long],
        id=f"{case[0]}, {case[1].total_seconds():+g} s, late {case[2] == LATE}",
    )
    for case in product(CHANGES, SKEWS, (timedelta(0), LATE))
]
each_case = pytest.mark.parametrize(("name", "skew", "later"), CASES)


def case_of(name: str, skew: timedelta, later: timedelta) -> Callable[[], Worked]:
    return partial(Worked, name, Tracking.TRACKED, skew, later)


@each_case
def test_workers_claim_inside_a_change(
    name: str, skew: timedelta, later: timedelta
) -> None:
    def run(case: Worked, moment: Moment) -> None:
        tolerant(lambda: case.make(watched(case.changes, moment)))

    assert each_moment(case_of(name, skew, later), Worked.others, run) >= 10


@each_case
def test_a_change_inside_a_claim(name: str, skew: timedelta, later: timedelta) -> None:
    def act(case: Worked) -> None:
        case.make(case.changes)

    def run(case: Worked, moment: Moment) -> None:
        place = case.place
        place = replace(
            place,
            schedules=moment.wrap(place.schedules),
            timeline=moment.wrap(place.timeline),
            ledger=moment.wrap(place.ledger),
            directory=moment.wrap(place.directory),
        )
        case.world.scan()
        case.world.relay_stream()
        case.ask(place, {State.ENQUEUED, State.SCHEDULED})

    assert each_moment(case_of(name, skew, later), act, run) >= 8


@each_case
def test_workers_claim_what_a_dead_change_has_left(
    name: str, skew: timedelta, later: timedelta
) -> None:
    def die(_: Worked) -> None:
        raise Crash

    def run(case: Worked, moment: Moment) -> None:
        try:
            case.make(watched(case.changes, moment))
        except Crash:
            case.others()

    assert each_moment(case_of(name, skew, later), die, run) >= 10
