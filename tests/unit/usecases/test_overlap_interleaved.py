"""Cases 21, 22, 26: one at a time, decided atomically; late workers change nothing."""

from collections.abc import Callable
from functools import partial

import pytest
from hourbell.domain.definition import Quotas
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import Retry
from hourbell.usecases.work_values import Answer, Claimed, Outcome

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.working import BOOM, Shop
from tests.unit.usecases.world import SECOND

PORTS = ("schedules", "timeline", "ledger", "directory")


def interleave(
    make: Callable[[], Shop],
    mine: Callable[[Shop], object],
    theirs: Callable[[Shop], object],
    judge: Callable[[Shop], None],
) -> None:
    """Let others act at each moment of a call, before and after each port call."""
    for after in (False, True):
        for nth in range(1, 100):
            shop = make()
            moment = Moment(nth, after, partial(_act, theirs, shop))
            for port in PORTS:
                setattr(shop.world, port, moment.wrap(getattr(shop.world, port)))
            mine(shop)
            if not moment.reached:
                break
            judge(shop)
        else:
            raise AssertionError("the call never ends")


def _act(action: Callable[[Shop], object], shop: Shop) -> None:
    action(shop)


def states(shop: Shop, state: State) -> int:
    return len(shop.world.rows(state))


@pytest.mark.parametrize("quotas", [Quotas(), Quotas(running=5)])
def test_case_22_of_two_that_are_claimed_at_once_one_runs(quotas: Quotas) -> None:
    answers: list[Claimed] = []

    def make() -> Shop:
        answers.clear()
        shop = Shop(overlap=Overlap.SKIP_IF_RUNNING, quotas=quotas)
        shop.due(2)
        return shop

    def judge(shop: Shop) -> None:
        found = [each.answer for each in answers]
        assert sorted(found) == [Answer.RUN, Answer.SKIP]
        assert states(shop, State.RUNNING) == states(shop, State.SKIPPED_OVERLAP) == 1

    interleave(
        make,
        lambda shop: answers.extend(shop.claim(shop.names()[0])),
        lambda shop: answers.extend(shop.claim(shop.names()[1])),
        judge,
    )


def test_case_21_of_two_that_would_wait_at_once_one_waits() -> None:
    answers: list[Claimed] = []

    def make() -> Shop:
        answers.clear()
        shop = Shop(overlap=Overlap.QUEUE_ONE)
        shop.due(3)
        shop.run(shop.names()[0])
        return shop

    def judge(shop: Shop) -> None:
        found = [each.answer for each in answers]
        assert sorted(found) == [Answer.SKIP, Answer.WAIT]
        assert states(shop, State.WAITING_OVERLAP) == 1
        assert states(shop, State.SKIPPED_OVERLAP) == 1

    interleave(
        make,
        lambda shop: answers.extend(shop.claim(shop.names()[1])),
        lambda shop: answers.extend(shop.claim(shop.names()[2])),
        judge,
    )


@pytest.mark.parametrize("end", ["complete", "dead", "retry"])
def test_whoever_comes_when_the_first_one_ends_runs_or_waits_but_is_not_lost(
    end: str,
) -> None:
    tokens: dict[int, str] = {}
    policy = Retry(max_attempts=1 if end == "dead" else 3)

    def make() -> Shop:
        shop = Shop(overlap=Overlap.QUEUE_ONE, retry=policy)
        shop.due(3)
        tokens[id(shop)] = shop.run(shop.names()[0])
        shop.claim(shop.names()[1])
        return shop

    def finish(shop: Shop) -> None:
        name, token = shop.names()[0], tokens[id(shop)]
        if end == "complete":
            assert shop.complete(name, token).outcome is Outcome.OK
        else:
            assert shop.fail(name, token, BOOM).outcome is Outcome.OK

    def judge(shop: Shop) -> None:
        assert states(shop, State.RUNNING) <= 1
        assert states(shop, State.WAITING_OVERLAP) <= 1
        second = shop.row(shop.names()[1])
        expected = State.WAITING_OVERLAP if end == "retry" else State.SCHEDULED
        assert second.state is expected
        third = shop.row(shop.names()[2])
        assert third.state in {State.SKIPPED_OVERLAP, State.WAITING_OVERLAP}
        # The third may wait only where the second has gone on.
        if end == "retry":
            assert third.state is State.SKIPPED_OVERLAP

    interleave(make, finish, lambda shop: shop.claim(shop.names()[2]), judge)
    interleave(make, lambda shop: shop.claim(shop.names()[2]), finish, judge)


def test_case_26_a_late_worker_changes_nothing_at_any_moment() -> None:
    late: dict[int, str] = {}

    def make() -> Shop:
        shop = Shop("30 13 * * *")
        name = shop.due()
        late[id(shop)] = shop.run(name)
        shop.world.clock.set(shop.now + 63 * SECOND)
        return shop

    answers: list[Claimed] = []

    def claims(shop: Shop) -> None:
        answers[:] = shop.claim(shop.names()[0])

    def judge(shop: Shop) -> None:
        name = shop.names()[0]
        row, (answer,) = shop.row(name), answers
        if row.state is State.SUCCEEDED:
            # It was first: then nobody else was given the work.
            assert answer.answer is Answer.SKIP
            return
        assert answer.answer is Answer.RUN
        assert (row.state, row.lease_token) == (State.RUNNING, answer.lease_token)
        assert shop.complete(name, late[id(shop)]).outcome is Outcome.LEASE_LOST

    interleave(
        make,
        claims,
        lambda shop: shop.complete(shop.names()[0], late[id(shop)]),
        judge,
    )


def test_case_26_a_late_heartbeat_at_any_moment_gives_nobody_two() -> None:
    late: dict[int, str] = {}
    beats: list[Outcome] = []
    answers: list[Claimed] = []

    def make() -> Shop:
        beats.clear()
        shop = Shop("30 13 * * *")
        late[id(shop)] = shop.run(shop.due())
        shop.world.clock.set(shop.now + 63 * SECOND)
        return shop

    def claims(shop: Shop) -> None:
        answers[:] = shop.claim(shop.names()[0])

    def beat(shop: Shop) -> None:
        beats.append(shop.beat(shop.names()[0], late[id(shop)]).outcome)

    def judge(shop: Shop) -> None:
        del shop
        gone_on = beats == [Outcome.OK]
        assert answers[0].answer is (Answer.BUSY if gone_on else Answer.RUN)

    interleave(make, claims, beat, judge)
