"""A lane that this release cannot read is its own schedule's trouble only."""

from collections.abc import Callable

import pytest
from hourbell.domain.definition import Quotas, Tracking
from hourbell.domain.errors import Permanent
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.domain.schedule import Timing
from hourbell.usecases.claim import claim
from hourbell.usecases.finish import complete_work, fail_work
from hourbell.usecases.heartbeat import heartbeat
from hourbell.usecases.work_values import (
    Answer,
    ClaimFault,
    ClaimOrder,
    Failed,
    Held,
    Outcome,
)

from tests.unit.usecases.poison import PoisonedWorld
from tests.unit.usecases.working import Shop

PERMANENTLY = Failure(ErrorClass.PERMANENT)


class Pair:
    """Two schedules whose occurrences run one at a time; the second lane is damaged.

    Attributes:
        names: an occurrence of each that is due.
    """

    def __init__(self, quotas: Quotas | None = None) -> None:
        self.world = PoisonedWorld()
        self.shop = Shop(
            overlap=Overlap.SKIP_IF_RUNNING,
            world=self.world,
            quotas=quotas or Quotas(),
        )
        second = self.world.add(
            Timing("* * * * *"),
            tracking=Tracking.TRACKED,
            overlap=Overlap.SKIP_IF_RUNNING,
        )
        self.shop.due()
        self.schedule_id = second.schedule_id
        self.names = (self.shop.first.occurrence_id, second.occurrence_id)

    def damage(self) -> None:
        self.world.damaged_ledger.lanes_lost.add(self.schedule_id)

    def mend(self) -> None:
        self.world.damaged_ledger.lanes_lost.clear()

    def held(self) -> list[Held]:
        """Claim both; return what they are held by."""
        return [Held(name, self.shop.run(name)) for name in self.names]

    @property
    def states(self) -> list[State]:
        return [self.shop.row(name).state for name in self.names]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("running", [None, 5])
def test_a_claim_leaves_its_message_and_takes_the_others(
    order: int, running: int | None
) -> None:
    pair = Pair(Quotas(running=running))
    pair.damage()
    orders = [ClaimOrder(name) for name in pair.names][::order]
    found = claim(pair.world.workplace, "acme", orders, worker="w1", lease_seconds=60)
    good, bad = found[::order]
    assert (good.answer, bad.answer) == (Answer.RUN, Answer.ERROR)
    assert bad.reason == ClaimFault.UNAVAILABLE
    assert pair.states == [State.RUNNING, State.ENQUEUED]
    pair.mend()
    pair.shop.run(pair.names[1])


def complete(pair: Pair, held: list[Held]) -> list[Outcome]:
    found = complete_work(pair.world.workplace, "acme", held)
    return [each.outcome for each in found]


def fail(pair: Pair, held: list[Held]) -> list[Outcome]:
    said = [Failed(each.occurrence_id, each.lease_token, PERMANENTLY) for each in held]
    found = fail_work(pair.world.workplace, "acme", said)
    return [each.outcome for each in found]


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize(
    ("say", "ended"), [(complete, State.SUCCEEDED), (fail, State.DEAD)]
)
def test_who_says_how_work_ended_says_it_again_and_the_others_have_ended(
    say: Callable[[Pair, list[Held]], list[Outcome]], ended: State, order: int
) -> None:
    pair = Pair()
    held = pair.held()[::order]
    pair.damage()
    assert say(pair, held)[::order] == [Outcome.OK, Outcome.UNAVAILABLE]
    assert pair.states == [ended, State.RUNNING]
    pair.mend()
    assert set(say(pair, held)) == {Outcome.OK}


def test_a_heartbeat_needs_no_lane() -> None:
    pair = Pair()
    held = pair.held()
    pair.damage()
    found = heartbeat(pair.world.workplace, "acme", held, lease_seconds=60)
    assert {each.outcome for each in found} == {Outcome.OK}


def test_a_store_that_refuses_is_no_damaged_item(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Such as a right that is missing: that is nobody's own trouble, and must be loud.
    pair = Pair()

    def refuse(_: str) -> None:
        raise Permanent

    monkeypatch.setattr(pair.world.damaged_ledger, "lane", refuse)
    with pytest.raises(Permanent):
        pair.shop.claim(*pair.names)
