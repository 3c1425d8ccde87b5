"""The edges of the worker plane: late words, copies that come early, changed quotas."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.definition import Quotas
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import DeadReason, ErrorClass, Failure, Retry
from hourbell.domain.work import AttemptResult
from hourbell.usecases.occurrences import replay_occurrence, tell
from hourbell.usecases.work_values import Answer, Outcome, WaitReason

from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, SECOND

TWICE = Retry(max_attempts=2, base_seconds=1, cap_seconds=1)
LATER = Failure(ErrorClass.THROTTLED, retry_after_seconds=300)


def replay(shop: Shop, name: str) -> None:
    replay_occurrence(shop.world.workplace, "acme", name)
    shop.tick()


def told(shop: Shop, name: str) -> list[int]:
    """Return the numbers of the attempts before the one on the row."""
    return [each.number for each in tell(shop.world.workplace, "acme", name).earlier]


class TestAReplayKeepsTheLastAttempt:
    """The row tells of one attempt only; the next claim writes over it."""

    def test_of_what_died_by_its_last_attempt(self) -> None:
        shop = Shop("30 13 * * *", retry=TWICE)
        name = shop.due()
        shop.fail(name, shop.run(name))
        shop.after(MINUTE)
        died_at = shop.now
        shop.fail(name, shop.run(name), Failure(ErrorClass.PERMANENT, "Gone"))
        replay(shop, name)
        shop.complete(name, shop.run(name))

        assert told(shop, name) == [1, 2]
        last = tell(shop.world.workplace, "acme", name).earlier[1]
        assert (last.result, last.finished_at) == (AttemptResult.FAILED, died_at)
        assert last.failure == Failure(ErrorClass.PERMANENT, "Gone")
        assert last.worker == "w1"

    def test_of_each_replay(self) -> None:
        shop = Shop("30 13 * * *", retry=Retry(max_attempts=1))
        name = shop.due()
        for number in range(3):
            assert told(shop, name) == list(range(1, number + 1))
            shop.fail(name, shop.run(name))
            replay(shop, name)

    def test_of_what_died_later_than_its_last_attempt(self) -> None:
        policy = Retry(base_seconds=1, cap_seconds=1, deadline_seconds=60)
        shop = Shop("30 13 * * *", retry=policy)
        name = shop.due()
        shop.fail(name, shop.run(name))
        failed_at = shop.now
        shop.after(2 * MINUTE)
        shop.claim(name)
        assert shop.row(name).reason == DeadReason.DEADLINE_PASSED
        replay(shop, name)
        shop.run(name)

        (only,) = tell(shop.world.workplace, "acme", name).earlier
        assert (only.number, only.finished_at) == (1, failed_at)


class TestAWordThatComesTooLateOrAgain:
    """What a worker says of an attempt that is over."""

    @pytest.mark.parametrize("attempts", [1, 2])
    def test_a_failure_is_not_taken_for_that_of_a_lease_that_ran_out(
        self, attempts: int
    ) -> None:
        shop = Shop("30 13 * * *", retry=Retry(max_attempts=attempts))
        name = shop.due()
        token = shop.run(name)
        shop.after(2 * MINUTE)
        row = shop.row(name)
        assert row.failure == Failure(ErrorClass.LEASE_EXPIRED)

        said = shop.fail(name, token, Failure(ErrorClass.PERMANENT))

        assert said.outcome is Outcome.LEASE_LOST
        assert shop.row(name) == row

    def test_a_failure_said_again_is_answered_while_its_retry_waits_for_another_one(
        self,
    ) -> None:
        shop = Shop(overlap=Overlap.QUEUE_ONE)
        shop.due()
        first = shop.first.occurrence_id
        token = shop.run(first)
        shop.fail(first, token)
        # Nobody receives it, so that another one of the schedule takes its place.
        shop.after(7 * MINUTE)
        second = shop.names()[2]
        shop.run(second, seconds=600)
        shop.claim(first)
        assert shop.row(first).state is State.WAITING_OVERLAP

        said = shop.fail(first, token)

        assert (said.outcome, said.state) == (Outcome.OK, State.RETRY_WAIT)
        assert said.available_at == shop.row(first).available_at

    def test_the_last_failure_said_again_after_a_replay_was_the_death(self) -> None:
        shop = Shop("30 13 * * *", retry=Retry(max_attempts=1))
        name = shop.due()
        token = shop.run(name)
        assert shop.fail(name, token).state is State.DEAD
        replay(shop, name)

        said = shop.fail(name, token)

        assert (said.outcome, said.state) == (Outcome.OK, State.DEAD)
        assert said.available_at is None


class TestTheQuotaOfWhatRuns:
    """A quota that changes while work runs."""

    def test_what_a_larger_one_let_run_counts_under_a_smaller_one(self) -> None:
        shop = Shop(quotas=Quotas(running=4))
        shop.due(8)
        names = shop.names()
        for name in names[:4]:
            shop.run(name)
        for name in names[:4]:
            row = shop.row(name)
            if row.slot in {0, 1}:
                shop.complete(name, row.lease_token or "")
        give(shop, Quotas(running=2))

        answers = shop.claim(*names[4:6])

        assert {each.reason for each in answers} == {WaitReason.CONCURRENCY}
        held = [each.holder for each in shop.world.ledger.slots("acme").values()]
        shop.complete(held[0], shop.row(held[0]).lease_token or "")
        answers = shop.claim(*names[6:8])
        assert [each.answer for each in answers] == [Answer.RUN, Answer.WAIT]

    def test_without_one_all_run_and_leave_no_place_behind(self) -> None:
        shop = Shop(quotas=Quotas(running=1))
        shop.due(3)
        first, second, *_ = shop.names()
        token = shop.run(first)
        give(shop, Quotas())
        shop.complete(second, shop.run(second))
        shop.complete(first, token)
        assert not shop.world.ledger.slots("acme")


def give(shop: Shop, quotas: Quotas) -> None:
    tenant = shop.world.store.tenants["acme"]
    shop.world.store.tenants["acme"] = replace(tenant, quotas=quotas)


def test_a_copy_that_comes_before_a_retry_does_not_move_its_deadline() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    shop.fail(name, shop.run(name), LATER)
    shop.tick()
    begun_at = shop.row(name).begun_at
    assert shop.row(name).state is State.ENQUEUED

    (answer,) = shop.claim(name)

    assert answer.reason == WaitReason.TOO_EARLY
    assert shop.row(name).begun_at == begun_at
    shop.after(timedelta(seconds=300))
    assert shop.claim(name)[0].answer is Answer.RUN


def test_a_lease_lasts_by_the_clock_of_whoever_is_behind() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    token = shop.run(name, seconds=60)
    # The clock of the one that claims may be two seconds ahead.
    shop.world.clock.set(shop.now + 61 * SECOND)
    assert shop.claim(name)[0].answer is Answer.BUSY
    assert shop.beat(name, token, seconds=10).outcome is Outcome.OK
    shop.world.clock.set(shop.now + 12 * SECOND)
    assert shop.claim(name)[0].answer is Answer.RUN


def test_who_would_take_over_waits_for_a_place_in_the_budget_of_retries() -> None:
    shop = Shop(quotas=Quotas(retries_per_minute=1))
    shop.due(5)
    names = shop.names()[:4]
    for name in names:
        shop.run(name)
    shop.world.clock.set(shop.now + 63 * SECOND)

    answers = shop.claim(*names)

    assert {each.reason for each in answers} == {WaitReason.TOO_EARLY}
    rows = [shop.row(name) for name in names]
    minutes = {
        row.available_at.replace(second=0, microsecond=0)
        for row in rows
        if row.available_at is not None
    }
    assert len(minutes) == len(names)
    assert {row.failure for row in rows} == {Failure(ErrorClass.LEASE_EXPIRED)}


def test_consumers_that_take_a_while_do_not_use_up_the_deadline_of_what_waits() -> None:
    retry = Retry(base_seconds=1, cap_seconds=1, deadline_seconds=60)
    shop = Shop(retry=retry, quotas=Quotas(running=1))
    shop.due(2)
    first, second, *_ = shop.names()
    shop.fail(first, shop.run(first))
    token = shop.run(second, seconds=3600)

    for _ in range(60):
        at = shop.row(first).available_at
        assert at is not None
        # Each of its messages is claimed two seconds after it could be.
        shop.until(at + 2 * SECOND)
        (answer,) = shop.claim(first)
        assert answer.reason == WaitReason.CONCURRENCY
        shop.beat(second, token, seconds=3600)

    shop.complete(second, token)
    shop.until(shop.row(first).available_at or shop.now)
    assert shop.complete(first, shop.run(first)).state is State.SUCCEEDED


@pytest.mark.parametrize("overlap", [Overlap.SKIP_IF_RUNNING, Overlap.QUEUE_ONE])
def test_what_is_replayed_is_not_skipped_but_keeps_asking(overlap: Overlap) -> None:
    shop = Shop(overlap=overlap, retry=Retry(max_attempts=1))
    shop.due(3)
    first, second, third, *_ = shop.names()
    shop.fail(first, shop.run(first))
    token = shop.run(second)
    if overlap is Overlap.QUEUE_ONE:
        assert shop.claim(third)[0].reason == WaitReason.OVERLAP
    replay(shop, first)

    (answer,) = shop.claim(first)

    assert (answer.answer, answer.reason) == (Answer.WAIT, WaitReason.OVERLAP)
    shop.complete(second, token)
    if overlap is Overlap.QUEUE_ONE:
        shop.complete(third, shop.run(third))
    shop.until(shop.row(first).available_at or shop.now)
    assert shop.complete(first, shop.run(first)).state is State.SUCCEEDED


def test_a_token_that_served_before_does_not_serve_again() -> None:
    shop = Shop(retry=TWICE)
    name = shop.due()
    token = "drawn-once-and-used-twice"
    (answer,) = shop.claim(name, token=token)
    assert answer.lease_token == token
    shop.fail(name, token)
    shop.after(2 * SECOND)

    (answer,) = shop.claim(name, token=token)

    assert answer.answer is Answer.RUN
    assert answer.lease_token not in {None, token}
    # What comes late of the first attempt does not end the second one.
    assert shop.complete(name, token).outcome is Outcome.LEASE_LOST
    assert shop.row(name).state is State.RUNNING


def test_a_claim_repeated_after_its_lease_ran_out_has_a_lease_again() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    (first,) = shop.claim(name, token="a" * 20)
    shop.world.clock.advance(70 * SECOND)

    (again,) = shop.claim(name, token="a" * 20)
    assert (again.answer, again.attempt) == (Answer.RUN, first.attempt)
    assert again.lease_expires_at == shop.now + 60 * SECOND
    # Who was just told to run must not meet another one who is.
    (other,) = shop.claim(name, token="b" * 20)
    assert other.answer is Answer.BUSY

    # It is watched on, although the first watch was due before.
    shop.after(3 * MINUTE)
    assert shop.row(name).attempt == 1
    assert shop.row(name).state in {State.SCHEDULED, State.ENQUEUED}


def test_what_began_without_a_quota_takes_no_place_of_it() -> None:
    shop = Shop()
    shop.due(3)
    before, first, second = shop.names()[:3]
    shop.run(before)
    store = shop.world.store
    store.tenants["acme"] = replace(store.tenants["acme"], quotas=Quotas(running=1))
    shop.run(first)
    (waits,) = shop.claim(second)
    assert (waits.answer, waits.reason) == (Answer.WAIT, WaitReason.CONCURRENCY)
