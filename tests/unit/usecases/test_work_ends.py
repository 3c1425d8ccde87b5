"""Replay, cancel, budgets, races and the redrive of tracked occurrences."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hourbell.domain.definition import Quotas, ScheduleState, Tracking
from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.errors import Conflict, NotFound, Transient
from hourbell.domain.occurrence import CancelReason, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import DeadReason, ErrorClass, Failure, Retry
from hourbell.usecases import change_schedule
from hourbell.usecases.identify import Caller
from hourbell.usecases.occurrences import (
    cancel_occurrence,
    replay_occurrence,
    tell,
)
from hourbell.usecases.redrive import GivenUp, Redriven, redrive
from hourbell.usecases.work_values import Answer, Outcome, SkipReason

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.working import BOOM, Shop
from tests.unit.usecases.world import MINUTE, SECOND

ONCE = Retry(max_attempts=1)
QUICK = Retry(max_attempts=2, base_seconds=1, cap_seconds=1)


def cancel(shop: Shop, name: str) -> State:
    return cancel_occurrence(shop.world.workplace, "acme", name).state


def replay(shop: Shop, name: str) -> State:
    return replay_occurrence(shop.world.workplace, "acme", name).state


def stop(shop: Shop, state: ScheduleState) -> None:
    tenant = shop.world.directory.find_tenant("acme")
    assert tenant is not None
    caller = Caller(tenant, "1:user/acme", "arn:aws:iam::1:user/acme")
    stopped = {
        ScheduleState.PAUSED: change_schedule.pause,
        ScheduleState.CANCELED: change_schedule.cancel,
    }[state]
    stopped(shop.world.changes, caller, shop.first.schedule_id, shop.now)


def test_a_replay_delivers_the_same_id_and_begins_to_count_anew() -> None:
    shop = Shop("30 13 * * *", retry=ONCE)
    name = shop.due()
    shop.fail(name, shop.run(name))
    assert shop.row(name).state is State.DEAD

    assert replay(shop, name) is State.SCHEDULED

    shop.tick()
    assert shop.sent(name) == 2
    (answer,) = shop.claim(name)
    assert (answer.answer, answer.attempt) == (Answer.RUN, 1)
    row = shop.row(name)
    assert (row.attempt, row.attempts, row.expires_at) == (2, 1, None)
    assert row.begun_at == shop.now
    assert not shop.world.ledger.letters("acme", after=None, limit=5)[0]
    assert answer.lease_token is not None
    shop.complete(name, answer.lease_token)
    with pytest.raises(Conflict) as caught:
        replay(shop, name)
    assert caught.value.code == "not_dead"


def test_what_is_replayed_may_die_and_be_replayed_again() -> None:
    shop = Shop("30 13 * * *", retry=ONCE)
    name = shop.due()
    for number in range(1, 4):
        said = shop.fail(name, shop.run(name))
        assert said.state is State.DEAD
        assert len(shop.pending(DispatchKind.LETTER)) >= 1
        replay(shop, name)
        shop.tick()
        assert shop.sent(name) == number + 1


def test_the_attempt_with_which_an_occurrence_died_is_kept_when_it_is_replayed() -> (
    None
):
    shop = Shop("30 13 * * *", retry=ONCE)
    name = shop.due()
    token, died_at = shop.run(name), shop.now
    shop.fail(name, token)
    shop.after(MINUTE)
    replay(shop, name)
    shop.tick()
    shop.run(name)

    (kept,) = tell(shop.world.workplace, "acme", name).earlier

    assert (kept.number, kept.lease_token, kept.failure) == (1, token, BOOM)
    assert kept.finished_at == died_at


def test_an_attempt_that_is_kept_already_is_no_obstacle_to_a_replay() -> None:
    shop = Shop("30 13 * * *", retry=QUICK)
    name = shop.due()
    shop.fail(name, shop.run(name))
    shop.after(MINUTE)
    given_up = GivenUp("acme", name, shop.row(name).sends)
    redrive(shop.world.workplace, given_up)
    assert (shop.row(name).state, shop.row(name).attempt) == (State.DEAD, 1)

    assert replay(shop, name) is State.SCHEDULED

    earlier = tell(shop.world.workplace, "acme", name).earlier
    assert [each.number for each in earlier] == [1]


def test_an_occurrence_is_told_with_its_attempts() -> None:
    shop = Shop("30 13 * * *", retry=QUICK)
    name = shop.due()
    shop.fail(name, shop.run(name))
    shop.after(MINUTE)
    shop.run(name)

    told = tell(shop.world.workplace, "acme", name)

    assert told.row == shop.row(name)
    assert [each.number for each in told.earlier] == [1]
    with pytest.raises(NotFound):
        tell(shop.world.workplace, "other", name)


def test_a_cancel_ends_what_was_sent_and_what_waits_for_a_retry() -> None:
    later = Failure(ErrorClass.THROTTLED, retry_after_seconds=3_000)
    for state in (State.ENQUEUED, State.RETRY_WAIT):
        shop = Shop("30 13 * * *")
        name = shop.due()
        if state is State.RETRY_WAIT:
            shop.fail(name, shop.run(name), later)
        assert shop.row(name).state is state
        assert cancel(shop, name) is State.CANCELED
        assert cancel(shop, name) is State.CANCELED
        shop.after(55 * MINUTE)
        (answer,) = shop.claim(name)
        assert (answer.answer, answer.reason) == (Answer.SKIP, SkipReason.CANCELED)
        assert shop.row(name).reason == CancelReason.CANCELED
        assert shop.sent(name) == 1
        assert not shop.pending(DispatchKind.RELEASE)


def test_a_cancel_of_the_one_that_waits_makes_room_for_another_one() -> None:
    shop = Shop(overlap=Overlap.QUEUE_ONE)
    shop.due(3)
    first, second, third, *_ = shop.names()
    token = shop.run(first)
    shop.claim(second)
    assert cancel(shop, second) is State.CANCELED
    assert shop.claim(third)[0].answer is Answer.WAIT
    shop.complete(first, token)
    shop.tick()
    shop.run(third)


@pytest.mark.parametrize("overlap", list(Overlap))
@pytest.mark.parametrize("quotas", [Quotas(), Quotas(running=1)])
def test_a_crash_at_any_moment_of_a_claim_keeps_nobody_from_the_work(
    overlap: Overlap, quotas: Quotas
) -> None:
    for after in (False, True):
        for nth in range(1, 60):
            shop = Shop("30 13 * * *", overlap=overlap, quotas=quotas)
            name = shop.due()

            def crash() -> None:
                raise Transient("the process is gone")

            moment = Moment(nth, after, crash)
            plain = shop.world.timeline, shop.world.ledger
            shop.world.timeline = moment.wrap(plain[0])
            shop.world.ledger = moment.wrap(plain[1])
            with suppress(Transient):
                shop.claim(name)
            shop.world.timeline, shop.world.ledger = plain
            shop.after(4 * MINUTE)
            row = shop.row(name)
            assert row.state is State.ENQUEUED, (after, nth, row.state)
            assert not shop.world.ledger.slots("acme")
            shop.complete(name, shop.run(name))
            assert shop.row(name).state is State.SUCCEEDED
            if not moment.reached:
                break


def test_running_work_is_asked_to_stop_and_ends_canceled() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    token = shop.run(name)
    assert not shop.beat(name, token).cancel_requested

    assert cancel(shop, name) is State.RUNNING

    assert shop.beat(name, token).cancel_requested
    said = shop.fail(name, token)
    assert (said.state, said.reason) == (State.CANCELED, CancelReason.CANCELED)
    assert shop.row(name).state is State.CANCELED


def test_what_was_asked_to_stop_may_be_done_all_the_same() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    token = shop.run(name)
    cancel(shop, name)
    assert shop.complete(name, token).state is State.SUCCEEDED


def test_a_worker_that_dies_after_it_was_asked_to_stop_is_not_followed() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    shop.run(name)
    cancel(shop, name)
    shop.after(4 * MINUTE)
    assert shop.row(name).state is State.CANCELED
    assert shop.sent(name) == 1


def test_a_cancel_of_the_schedule_reaches_running_retrying_and_sent_work() -> None:
    shop = Shop(retry=Retry(base_seconds=600, cap_seconds=600))
    shop.due(3)
    first, second, third, *_ = shop.names()
    token = shop.run(first)
    later = Failure(ErrorClass.THROTTLED, retry_after_seconds=1_200)
    shop.fail(second, shop.run(second), later)

    stop(shop, ScheduleState.CANCELED)

    assert shop.beat(first, token).cancel_requested
    assert shop.claim(third)[0].reason == SkipReason.CANCELED
    assert shop.fail(first, token).state is State.CANCELED
    shop.after(25 * MINUTE)
    assert shop.row(second).state is State.CANCELED
    assert shop.sent(second) == 1


def test_a_pause_lets_go_on_what_was_begun_and_what_was_sent() -> None:
    shop = Shop(retry=Retry(base_seconds=1, cap_seconds=1))
    shop.due(2)
    first, second, third, *_ = shop.names()
    token = shop.run(first)

    stop(shop, ScheduleState.PAUSED)

    assert not shop.beat(first, token).cancel_requested
    shop.fail(first, token)
    shop.after(MINUTE)
    shop.run(first)
    shop.run(second)
    (answer,) = shop.claim(third)
    assert (answer.answer, answer.reason) == (Answer.SKIP, SkipReason.CANCELED)


def test_a_change_does_not_take_back_what_was_begun_a_moment_before_its_time() -> None:
    retry = Retry(base_seconds=1, cap_seconds=1)
    shop = Shop("30 13 * * *", retry=retry)
    shop.until(shop.first.scheduled_for - 2 * SECOND)
    name = shop.first.occurrence_id
    shop.fail(name, shop.run(name))
    shop.tick()
    assert shop.row(name).state is State.ENQUEUED

    stop(shop, ScheduleState.PAUSED)

    assert shop.row(name).state is State.ENQUEUED
    shop.until(shop.first.scheduled_for)
    shop.run(name)


def test_a_canceled_cursor_is_followed_by_the_next_time() -> None:
    shop = Shop("30 13 * * *")
    assert cancel(shop, shop.first.occurrence_id) is State.CANCELED
    (planned,) = shop.world.rows(State.PLANNED)
    assert planned.scheduled_for == shop.first.scheduled_for + timedelta(days=1)
    assert planned.sequence == 2
    shop.until(shop.first.scheduled_for + MINUTE)
    assert shop.sent(shop.first.occurrence_id) == 0


def test_the_last_time_of_a_schedule_is_canceled_and_completes_it() -> None:
    shop = Shop("at(2026-03-09T13:30:00)")
    assert cancel(shop, shop.first.occurrence_id) is State.CANCELED
    shop.until(shop.first.scheduled_for + 3 * MINUTE)
    (schedule,) = shop.world.store.schedules.values()
    assert schedule.state is ScheduleState.COMPLETED


def test_untracked_work_is_canceled_only_while_its_message_cannot_have_gone() -> None:
    shop = Shop("30 13 * * *", tracking=Tracking.UNTRACKED)
    shop.until(shop.first.scheduled_for - 2 * MINUTE)
    with pytest.raises(Conflict):
        cancel(shop, shop.first.occurrence_id)


@pytest.mark.parametrize("error_class", list(ErrorClass))
@pytest.mark.parametrize("room", ["free", "later", "beyond the deadline"])
def test_the_retry_budget_bounds_what_may_be_tried_again(
    error_class: ErrorClass, room: str
) -> None:
    deadline = 130 if room == "beyond the deadline" else 86_400
    policy = Retry(base_seconds=1, cap_seconds=1, deadline_seconds=deadline)
    quotas = Quotas(retries_per_minute=None if room == "free" else 1)
    shop = Shop(retry=policy, quotas=quotas)
    shop.due(4)
    failure = Failure(error_class)
    ends = [shop.fail(name, shop.run(name), failure) for name in shop.names()[:4]]
    found = [(each.state, each.reason) for each in ends]
    if error_class is ErrorClass.PERMANENT:
        assert found == [(State.DEAD, DeadReason.PERMANENT_ERROR)] * 4
    elif room == "beyond the deadline":
        spent = State.DEAD, DeadReason.RETRY_BUDGET_USED_UP
        assert found == [(State.RETRY_WAIT, None)] * 3 + [spent]
    else:
        assert found == [(State.RETRY_WAIT, None)] * 4
        minutes = {
            each.available_at.replace(second=0, microsecond=0)
            for each in ends
            if each.available_at is not None
        }
        assert len(minutes) == (1 if room == "free" else 4)


@pytest.mark.parametrize(
    "overlap", [Overlap.ALLOW, Overlap.SKIP_IF_RUNNING, Overlap.QUEUE_ONE]
)
@pytest.mark.parametrize("quotas", [Quotas(), Quotas(running=1)])
@pytest.mark.parametrize("after", [False, True])
def test_two_who_claim_the_same_at_any_moment_are_never_both_given_it(
    overlap: Overlap, quotas: Quotas, *, after: bool
) -> None:
    for nth in range(1, 60):
        shop = Shop(overlap=overlap, quotas=quotas)
        name = shop.due()
        others: list[Answer] = []

        def rival(shop: Shop = shop, others: list[Answer] = others) -> None:
            (answer,) = shop.claim(shop.first.occurrence_id)
            others.append(answer.answer)

        moment = Moment(nth, after, rival)
        world = shop.world
        for port in ("schedules", "timeline", "ledger", "directory"):
            setattr(world, port, moment.wrap(getattr(world, port)))
        mine = shop.claim(name)[0].answer
        if not moment.reached:
            return
        assert [mine, *others].count(Answer.RUN) == 1, (nth, mine, others)
        assert shop.row(name).attempt == 1
    raise AssertionError("a claim never ends")


def test_a_crash_at_any_moment_of_a_fail_loses_nothing() -> None:
    for after in (False, True):
        for nth in range(1, 60):
            shop = Shop("30 13 * * *", retry=QUICK)
            name = shop.due()
            token = shop.run(name)

            def crash() -> None:
                raise Transient("the process is gone")

            moment = Moment(nth, after, crash)
            plain = shop.world.timeline, shop.world.ledger
            shop.world.timeline = moment.wrap(plain[0])
            shop.world.ledger = moment.wrap(plain[1])
            with suppress(Transient):
                shop.fail(name, token)
            shop.world.timeline, shop.world.ledger = plain
            shop.after(6 * MINUTE)
            assert shop.row(name).state is State.ENQUEUED, (after, nth)
            assert shop.row(name).attempt == 1
            assert shop.sent(name) == 2
            if not moment.reached:
                break


def test_what_nobody_claims_is_dead_by_the_very_send_that_was_given_up() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    place = shop.world.workplace
    assert redrive(place, GivenUp("acme", name, 2)) is Redriven.PAST
    assert redrive(place, GivenUp("other", name, 1)) is Redriven.PAST
    assert shop.row(name).state is State.ENQUEUED

    assert redrive(place, GivenUp("acme", name, 1)) is Redriven.DEAD

    row = shop.row(name)
    assert (row.state, row.reason) == (State.DEAD, DeadReason.NEVER_CLAIMED)
    assert redrive(place, GivenUp("acme", name, 1)) is Redriven.PAST
    replay(shop, name)
    shop.tick()
    assert shop.row(name).sends == 2
    assert redrive(place, GivenUp("acme", name, 1)) is Redriven.PAST
    shop.run(name)


def test_what_a_worker_has_is_not_dead_when_its_message_is_given_up() -> None:
    shop = Shop("30 13 * * *")
    name = shop.due()
    shop.run(name)
    place = shop.world.workplace
    assert redrive(place, GivenUp("acme", name, 1)) is Redriven.PAST
    assert shop.row(name).state is State.RUNNING


def test_a_send_that_is_not_acknowledged_is_looked_at_again() -> None:
    shop = Shop()
    shop.world.scan()
    name = shop.first.occurrence_id
    with pytest.raises(Transient):
        redrive(shop.world.workplace, GivenUp("acme", name, 1))


def test_what_is_not_tracked_is_left_to_its_queue() -> None:
    shop = Shop(tracking=Tracking.UNTRACKED)
    name = shop.due()
    place = shop.world.workplace
    assert redrive(place, GivenUp("acme", name, 1)) is Redriven.UNTRACKED


def test_a_letter_that_is_not_told_is_handed_over_until_it_is() -> None:
    shop = Shop("30 13 * * *", retry=ONCE)
    name = shop.due()
    shop.fail(name, shop.run(name), BOOM)
    shop.world.clock.set(shop.now + 15 * SECOND)
    shop.world.scan()
    assert shop.world.sweep_queue.take() == [(shop.row(name).key,)]
    assert len(shop.pending(DispatchKind.LETTER)) == 1
    assert shop.beat(name, "x").outcome is Outcome.LEASE_LOST
