"""Claims, heartbeats, completes and fails of occurrences that run beside others."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.definition import Quotas, Tracking
from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import State, Transition
from hourbell.domain.retry import DeadReason, ErrorClass, Failure, Retry
from hourbell.domain.work import AttemptResult, Slot
from hourbell.usecases.claim import claim
from hourbell.usecases.port_values import Change, Write, same_wait
from hourbell.usecases.work_ports import Deed
from hourbell.usecases.work_values import (
    Answer,
    ClaimFault,
    ClaimOrder,
    Outcome,
    SkipReason,
    WaitReason,
)

from tests.unit.usecases.working import BOOM, Shop
from tests.unit.usecases.world import MINUTE, SECOND

TOKEN = "a-token-of-the-worker"


def test_a_due_occurrence_is_given_to_who_claims_it() -> None:
    shop = Shop()
    name = shop.due()

    (answer,) = shop.claim(name)

    assert answer.answer is Answer.RUN
    assert answer.attempt == 1
    assert answer.lease_expires_at == shop.now + 60 * SECOND
    row = shop.row(name)
    assert (row.state, row.attempt, row.worker) == (State.RUNNING, 1, "w1")
    assert row.lease_token == answer.lease_token
    assert row.started_at == row.begun_at == shop.now
    (watch,) = shop.pending(DispatchKind.WATCH)
    assert watch.due == shop.now + 60 * SECOND


def test_a_second_claim_is_busy_and_one_with_the_same_token_is_answered_again() -> None:
    shop = Shop()
    name = shop.due()
    first = shop.claim(name, token=TOKEN)

    assert shop.claim(name)[0].answer is Answer.BUSY
    assert shop.claim(name, token=TOKEN) == first
    assert shop.row(name).attempt == 1


def test_a_complete_ends_it_and_may_be_said_again() -> None:
    shop = Shop()
    name = shop.due()
    token = shop.run(name)

    done = shop.complete(name, token)

    assert (done.outcome, done.state) == (Outcome.OK, State.SUCCEEDED)
    assert shop.complete(name, token) == done
    row = shop.row(name)
    assert row.state is State.SUCCEEDED
    assert row.expires_at == shop.now + timedelta(days=15)
    assert not shop.pending(DispatchKind.WATCH)
    (answer,) = shop.claim(name)
    assert (answer.answer, answer.reason) == (Answer.SKIP, SkipReason.ALREADY_DONE)
    assert shop.beat(name, token).outcome is Outcome.LEASE_LOST
    assert shop.fail(name, token).outcome is Outcome.LEASE_LOST


def test_a_failed_attempt_is_followed_by_another_one_under_the_same_id() -> None:
    shop = Shop("30 13 * * *", retry=Retry(base_seconds=8, cap_seconds=8))
    name = shop.due()
    token = shop.run(name)

    said = shop.fail(name, token)

    assert said.state is State.RETRY_WAIT
    assert said.available_at is not None
    assert SECOND <= said.available_at - shop.now <= 8 * SECOND
    assert shop.fail(name, token) == said
    shop.tick()
    assert shop.row(name).state is State.ENQUEUED
    assert shop.sent(name) == 2
    shop.world.clock.set(said.available_at)
    (answer,) = shop.claim(name)
    assert (answer.answer, answer.attempt) == (Answer.RUN, 2)
    assert answer.lease_token is not None
    assert answer.lease_token != token
    assert shop.complete(name, token).outcome is Outcome.LEASE_LOST
    assert shop.complete(name, answer.lease_token).outcome is Outcome.OK
    (attempt,) = shop.world.ledger.attempts(shop.row(name).key)
    assert (attempt.number, attempt.result) == (1, AttemptResult.FAILED)
    assert attempt.failure == BOOM


def test_a_retry_further_away_than_the_queue_can_wait_is_brought_up_in_time() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    failure = Failure(ErrorClass.THROTTLED, retry_after_seconds=3_000)
    said = shop.fail(name, shop.run(name), failure)
    assert said.available_at == shop.now + 3_000 * SECOND
    assert shop.row(name).state is State.RETRY_WAIT

    shop.after(49 * MINUTE)

    assert shop.row(name).state is State.ENQUEUED
    assert shop.row(name).visible_at == said.available_at


def test_the_last_attempt_ends_dead_with_its_failure() -> None:
    shop = Shop(retry=Retry(max_attempts=1))
    name = shop.due()

    said = shop.fail(name, shop.run(name))

    assert (said.state, said.reason) == (State.DEAD, DeadReason.ATTEMPTS_USED_UP)
    row = shop.row(name)
    assert (row.state, row.failure) == (State.DEAD, BOOM)
    (letter,), _ = shop.world.ledger.letters("acme", after=None, limit=5)
    assert (letter.occurrence_id, letter.reason) == (name, said.reason)
    assert len(shop.pending(DispatchKind.LETTER)) == 1


def test_a_worker_that_died_is_followed_by_another_attempt() -> None:
    shop = Shop("30 13 * * *", retry=Retry(base_seconds=1, cap_seconds=1))
    name = shop.due()
    token = shop.run(name)

    shop.after(4 * MINUTE)

    row = shop.row(name)
    assert (row.state, row.attempt) == (State.ENQUEUED, 1)
    assert shop.sent(name) == 2
    assert not shop.pending(DispatchKind.WATCH)
    (attempt,) = shop.world.ledger.attempts(row.key)
    assert attempt.result is AttemptResult.LEASE_EXPIRED
    for answer in (shop.complete(name, token), shop.beat(name, token)):
        # Nobody has it yet; and yet it is not the late worker's any more.
        assert answer.outcome is Outcome.LEASE_LOST
    assert shop.row(name) == row


def test_who_comes_with_a_message_after_the_lease_takes_over_at_once() -> None:
    shop = Shop()
    name = shop.due()
    late = shop.run(name)
    shop.world.clock.set(shop.now + 63 * SECOND)

    token = shop.run(name)

    assert shop.row(name).attempt == 2
    assert shop.complete(name, late).outcome is Outcome.LEASE_LOST
    assert shop.beat(name, late).outcome is Outcome.LEASE_LOST
    assert shop.fail(name, late).outcome is Outcome.LEASE_LOST
    assert shop.complete(name, token).outcome is Outcome.OK


def test_the_last_attempt_that_died_leaves_it_dead() -> None:
    shop = Shop(retry=Retry(max_attempts=1))
    name = shop.due()
    shop.run(name)
    shop.world.clock.set(shop.now + 63 * SECOND)

    (answer,) = shop.claim(name)

    assert (answer.answer, answer.state) == (Answer.SKIP, State.DEAD)


def test_a_heartbeat_keeps_a_long_work_from_being_given_away() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    token = shop.run(name)
    for _ in range(10):
        shop.after(45 * SECOND)
        beat = shop.beat(name, token)
        assert (beat.outcome, beat.cancel_requested) == (Outcome.OK, False)
        assert beat.lease_expires_at == shop.now + 60 * SECOND
    assert shop.row(name).attempt == 1
    assert len(shop.pending(DispatchKind.WATCH)) == 1
    assert shop.complete(name, token).outcome is Outcome.OK
    shop.after(3 * MINUTE)
    assert not shop.pending(DispatchKind.WATCH)
    assert shop.row(name).state is State.SUCCEEDED


def test_a_heartbeat_never_shortens_a_lease() -> None:
    shop = Shop()
    name = shop.due()
    token = shop.run(name, seconds=600)
    beat = shop.beat(name, token, seconds=10)
    assert beat.lease_expires_at == shop.now + 600 * SECOND


def test_a_claim_before_its_time_waits_and_is_sent_again() -> None:
    shop = Shop("30 13 * * *")
    shop.until(shop.first.scheduled_for - MINUTE)
    name = shop.first.occurrence_id
    assert shop.row(name).state is State.ENQUEUED

    (answer,) = shop.claim(name)

    assert (answer.answer, answer.reason) == (Answer.WAIT, WaitReason.TOO_EARLY)
    shop.tick()
    assert shop.row(name).state is State.ENQUEUED
    assert shop.sent(name) == 2
    assert shop.world.queues.accepted[-1].visible_at == shop.first.scheduled_for
    shop.until(shop.first.scheduled_for)
    shop.run(name)


def test_clocks_that_differ_a_little_do_not_make_a_claim_early() -> None:
    shop = Shop("30 13 * * *")
    shop.until(shop.first.scheduled_for - 2 * SECOND)
    shop.run(shop.first.occurrence_id)


def test_a_message_proves_a_send_that_is_not_acknowledged() -> None:
    shop = Shop()
    shop.world.scan()
    name = shop.first.occurrence_id
    shop.world.clock.set(shop.first.scheduled_for)
    assert shop.row(name).state is State.SCHEDULED

    token = shop.run(name)

    assert shop.row(name).sends == 1
    shop.world.relay_stream()
    assert shop.row(name).state is State.RUNNING
    assert shop.complete(name, token).outcome is Outcome.OK


def test_an_acknowledgement_that_comes_late_does_not_swallow_a_retry() -> None:
    shop = Shop("30 13 * * *", retry=Retry(base_seconds=1, cap_seconds=1))
    name = shop.due()
    late = [replace(shop.row(name), state=State.SCHEDULED)]
    shop.fail(name, shop.run(name))
    assert shop.row(name).state is State.SCHEDULED
    shop.world.store.take_stream()

    # A relay that was slow sends what it read before, and acknowledges that.
    from hourbell.usecases.relay import _relay  # noqa: PLC0415

    _relay(shop.world.outbox, late)

    assert shop.row(name).state is State.SCHEDULED
    shop.after(2 * MINUTE)
    assert shop.row(name).state is State.ENQUEUED
    assert shop.row(name).sends == 2


def test_a_message_that_comes_early_and_is_not_acknowledged_is_not_lost() -> None:
    shop = Shop("30 13 * * *")
    name = shop.first.occurrence_id
    shop.until(shop.first.scheduled_for - MINUTE)
    sent = shop.row(name)
    assert sent.state is State.ENQUEUED
    # The relay has sent it, and is yet to acknowledge that.
    shop.world.store.put_row(replace(sent, state=State.SCHEDULED, sends=0))

    (answer,) = shop.claim(name)

    # Whoever is told to wait deletes the message.
    assert (answer.answer, answer.reason) == (Answer.WAIT, WaitReason.TOO_EARLY)
    late = Change(sent, Transition.ACKNOWLEDGE, same_wait(sent))
    assert shop.world.timeline.move([late]) == [Write.LOST]
    shop.until(shop.first.scheduled_for)
    assert shop.sent(name) == 2
    shop.run(name)


@pytest.mark.parametrize("tenant", ["other", "acme"])
def test_what_is_not_there_or_not_the_tenants_has_expired(tenant: str) -> None:
    shop = Shop()
    name = shop.due()
    asked = name if tenant == "other" else name.replace(".v1.", ".v7.")

    (answer,) = claim(
        shop.world.workplace,
        tenant,
        [ClaimOrder(asked)],
        worker="w",
        lease_seconds=60,
    )

    assert (answer.answer, answer.reason) == (Answer.SKIP, SkipReason.EXPIRED)
    assert answer.state is None
    assert shop.row(name).state is State.ENQUEUED


def test_what_is_not_tracked_cannot_be_claimed() -> None:
    shop = Shop(tracking=Tracking.UNTRACKED)
    (answer,) = shop.claim(shop.due())
    assert (answer.answer, answer.reason) == (Answer.ERROR, ClaimFault.NOT_TRACKED)


def test_a_batch_is_answered_in_its_order() -> None:
    shop = Shop()
    shop.due(3)
    names = shop.names()[:3]
    shop.complete(names[1], shop.run(names[1]))

    answers = shop.claim(names[2], names[1], names[0])

    assert [each.occurrence_id for each in answers] == [names[2], names[1], names[0]]
    assert [each.answer for each in answers] == [Answer.RUN, Answer.SKIP, Answer.RUN]


def test_a_claim_past_the_deadline_ends_it() -> None:
    policy = Retry(base_seconds=1, cap_seconds=1, deadline_seconds=60)
    shop = Shop("30 13 * * *", retry=policy)
    name = shop.due()
    shop.fail(name, shop.run(name))
    shop.after(2 * MINUTE)

    (answer,) = shop.claim(name)

    assert (answer.answer, answer.reason) == (Answer.SKIP, SkipReason.EXPIRED)
    row = shop.row(name)
    assert (row.state, row.reason) == (State.DEAD, DeadReason.DEADLINE_PASSED)


def test_what_is_claimed_is_answered_though_the_next_look_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = Shop(quotas=Quotas(running=5))
    shop.due(2)
    first, second, *_ = shop.names()
    ledger = shop.world.ledger
    do, places = ledger.do, iter([ledger.slots("acme")])

    def lose_a_race(deed: Deed) -> Write:
        is_second = deed.changes[0].row.occurrence_id == second
        return Write.LOST if is_second else do(deed)

    def fail_the_second_time(_: str) -> dict[int, Slot]:
        for found in places:
            return found
        raise Transient

    monkeypatch.setattr(ledger, "do", lose_a_race)
    monkeypatch.setattr(ledger, "slots", fail_the_second_time)
    answers = shop.claim(first, second)
    assert [each.answer for each in answers] == [Answer.RUN, Answer.ERROR]


def test_no_token_of_an_earlier_attempt_serves_again() -> None:
    shop = Shop("30 13 * * *", retry=Retry(base_seconds=1, cap_seconds=1))
    name = shop.due()
    first, second = "first-token-0123456", "second-token-012345"
    for token in (first, second):
        (answer,) = shop.claim(name, token=token)
        assert answer.lease_token == token
        shop.fail(name, token)
        shop.after(2 * SECOND)

    # A claim whose answers were lost is repeated after all that.
    (answer,) = shop.claim(name, token=first)

    assert (answer.answer, answer.attempt) == (Answer.RUN, 3)
    assert answer.lease_token not in {first, second, None}
    assert shop.complete(name, first).outcome is Outcome.LEASE_LOST
