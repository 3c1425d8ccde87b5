"""Overlap policies and the quota of running occurrences."""

from datetime import timedelta

import pytest
from hourbell.domain.definition import Quotas
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Failure, Retry
from hourbell.usecases.work_values import Answer, Outcome, SkipReason, WaitReason

from tests.unit.usecases.working import BOOM, Shop
from tests.unit.usecases.world import MINUTE, SECOND

HOUR = timedelta(hours=1)
ONE_AT_A_TIME = (Overlap.SKIP_IF_RUNNING, Overlap.QUEUE_ONE)


def states(shop: Shop, state: State) -> list[str]:
    return [row.occurrence_id for row in shop.world.rows(state)]


def test_skip_if_running_skips_and_allow_does_not() -> None:
    for overlap, expected in [
        (Overlap.ALLOW, Answer.RUN),
        (Overlap.SKIP_IF_RUNNING, Answer.SKIP),
    ]:
        shop = Shop(overlap=overlap)
        shop.due(2)
        first, second, *_ = shop.names()
        shop.run(first)

        (answer,) = shop.claim(second)

        assert answer.answer is expected
        skipped = states(shop, State.SKIPPED_OVERLAP)
        assert skipped == ([second] if expected is Answer.SKIP else [])
        if expected is Answer.SKIP:
            assert answer.reason == SkipReason.SKIPPED_OVERLAP
            assert shop.claim(second) == [answer]


def test_queue_one_lets_one_wait_and_wakes_it_when_the_first_is_over() -> None:
    shop = Shop(overlap=Overlap.QUEUE_ONE)
    shop.due(3)
    first, second, third, *_ = shop.names()
    token = shop.run(first)

    (waits,) = shop.claim(second)
    (skipped,) = shop.claim(third)

    assert (waits.answer, waits.reason) == (Answer.WAIT, WaitReason.OVERLAP)
    assert (skipped.answer, skipped.reason) == (
        Answer.SKIP,
        SkipReason.SKIPPED_OVERLAP,
    )
    assert states(shop, State.WAITING_OVERLAP) == [second]
    shop.complete(first, token)
    assert shop.row(second).state is State.SCHEDULED
    shop.tick()
    assert shop.sent(second) == 2
    fresh = shop.run(second)
    assert shop.complete(second, fresh).outcome is Outcome.OK
    assert shop.world.ledger.lane(shop.first.schedule_id).holder is None


def test_the_one_that_was_woken_goes_before_a_newcomer() -> None:
    shop = Shop(overlap=Overlap.QUEUE_ONE)
    shop.due(3)
    first, second, third, *_ = shop.names()
    token = shop.run(first)
    shop.claim(second)
    shop.complete(first, token)

    (newcomer,) = shop.claim(third)

    assert newcomer.answer is Answer.WAIT
    shop.tick()
    shop.run(second)


@pytest.mark.parametrize("overlap", ONE_AT_A_TIME)
def test_a_retry_keeps_the_lane(overlap: Overlap) -> None:
    shop = Shop(overlap=overlap)
    shop.due(2)
    first, second, *_ = shop.names()
    wait = Failure(ErrorClass.THROTTLED, retry_after_seconds=30)
    shop.fail(first, shop.run(first), wait)

    assert shop.claim(second)[0].answer is not Answer.RUN
    shop.after(40 * SECOND)
    shop.run(first)


@pytest.mark.parametrize("overlap", ONE_AT_A_TIME)
def test_a_dead_holder_leaves_the_lane(overlap: Overlap) -> None:
    shop = Shop(overlap=overlap, retry=Retry(max_attempts=1))
    shop.due(2)
    first, second, *_ = shop.names()
    shop.fail(first, shop.run(first))
    shop.run(second)


@pytest.mark.parametrize("overlap", ONE_AT_A_TIME)
def test_a_holder_whose_retry_nobody_receives_does_not_keep_it_for_ever(
    overlap: Overlap,
) -> None:
    shop = Shop(overlap=overlap)
    shop.due(2)
    first, *_ = shop.names()
    shop.fail(first, shop.run(first), BOOM)
    shop.after(6 * MINUTE)
    newest = states(shop, State.ENQUEUED)[-4]
    assert newest != first

    shop.run(newest)

    (answer,) = shop.claim(first)
    expected = {
        Overlap.SKIP_IF_RUNNING: Answer.SKIP,
        Overlap.QUEUE_ONE: Answer.WAIT,
    }
    assert answer.answer is expected[overlap]


def test_one_that_waits_looks_by_itself_when_nobody_wakes_it() -> None:
    shop = Shop("0 13,14 * * *", overlap=Overlap.QUEUE_ONE)
    shop.until(shop.first.scheduled_for + HOUR)
    first, second, *_ = shop.names()
    token = shop.run(first, seconds=7_200)
    assert shop.claim(second)[0].answer is Answer.WAIT
    row = shop.row(first)
    # As if the end of the first one had been written without its lane.
    shop.world.store.put_row(
        type(row)(
            **{name: getattr(row, name) for name in row.__dataclass_fields__}
            | {"state": State.CANCELED}
        )
    )

    shop.after(18 * MINUTE)

    assert shop.sent(second) == 2
    shop.run(second)
    assert shop.complete(first, token).outcome is Outcome.LEASE_LOST


@pytest.mark.parametrize(
    ("overlap", "ran", "skipped"),
    [
        (Overlap.ALLOW, [0, 1, 2, 3, 4, 5], []),
        (Overlap.SKIP_IF_RUNNING, [0, 2, 4], [1, 3, 5]),
        (Overlap.QUEUE_ONE, [0, 1, 2], [3, 5]),
    ],
)
def test_a_job_of_two_hours_that_recurs_hourly(
    overlap: Overlap, ran: list[int], skipped: list[int]
) -> None:
    """Each beats once a minute, and ends just before others are claimed.

    QUEUE_ONE: the second waits from 1:00 to 2:00, the third from 2:00 to 4:00, the
    fifth from 4:00 on; the fourth and the sixth find one waiting.
    """
    shop = Shop("0 * * * *", overlap=overlap)
    working: dict[str, tuple[str, object]] = {}
    started: list[int] = []
    begin = shop.first.scheduled_for
    received: set[tuple[str, int]] = set()
    for _ in range(6 * 60 + 30):
        shop.after(MINUTE)
        for name, (token, ends_at) in list(working.items()):
            if shop.now >= ends_at:  # type: ignore[operator]
                assert shop.complete(name, token).outcome is Outcome.OK
                del working[name]
            else:
                assert shop.beat(name, token, 120).outcome is Outcome.OK
        shop.tick()
        for row in shop.world.rows(State.ENQUEUED):
            name, at = row.occurrence_id, row.visible_at
            if at is None or at > shop.now or (name, row.sends) in received:
                continue
            received.add((name, row.sends))
            (answer,) = shop.claim(name, seconds=120)
            if answer.answer is Answer.RUN:
                assert answer.lease_token is not None
                ends_at = shop.now + 2 * HOUR
                working[name] = answer.lease_token, ends_at
                started.append((row.scheduled_for - begin) // HOUR)
        running = len(shop.world.rows(State.RUNNING))
        assert running <= (2 if overlap is Overlap.ALLOW else 1)
        assert len(shop.world.rows(State.WAITING_OVERLAP)) <= 1
    assert started == ran
    found = [
        (row.scheduled_for - begin) // HOUR
        for row in shop.world.rows(State.SKIPPED_OVERLAP)
    ]
    assert found == skipped


def test_no_more_run_than_the_tenant_may_and_the_others_come_again() -> None:
    shop = Shop(quotas=Quotas(running=2))
    shop.due(3)
    first, second, third, *_ = shop.names()

    answers = shop.claim(first, second, third)

    assert [each.answer for each in answers] == [Answer.RUN, Answer.RUN, Answer.WAIT]
    assert answers[2].reason == WaitReason.CONCURRENCY
    assert sorted(shop.world.ledger.slots("acme")) == [0, 1]
    shop.tick()
    assert shop.sent(third) == 2
    assert answers[0].lease_token is not None
    shop.complete(first, answers[0].lease_token)
    assert len(shop.world.ledger.slots("acme")) == 1
    at = shop.row(third).available_at
    assert at is not None
    assert 15 * SECOND <= at - shop.now <= 45 * SECOND
    shop.after(45 * SECOND)
    shop.run(third)


@pytest.mark.parametrize("end", ["complete", "retry", "dead", "lease"])
def test_whatever_ends_an_attempt_frees_its_place(end: str) -> None:
    attempts = 1 if end == "dead" else 3
    retry = Retry(max_attempts=attempts)
    shop = Shop("30 13 * * *", quotas=Quotas(running=1), retry=retry)
    name = shop.due()
    token = shop.run(name)
    assert len(shop.world.ledger.slots("acme")) == 1
    if end == "complete":
        shop.complete(name, token)
    elif end == "lease":
        shop.after(4 * MINUTE)
    else:
        shop.fail(name, token)
    assert not shop.world.ledger.slots("acme")
    assert shop.row(name).state is not State.RUNNING


def test_who_takes_over_keeps_the_place() -> None:
    shop = Shop("30 13 * * *", quotas=Quotas(running=1))
    name = shop.due()
    shop.run(name)
    shop.world.clock.set(shop.now + 63 * SECOND)
    token = shop.run(name)
    assert len(shop.world.ledger.slots("acme")) == 1
    shop.complete(name, token)
    assert not shop.world.ledger.slots("acme")


def test_a_wait_for_a_place_does_not_count_for_the_deadline() -> None:
    policy = Retry(base_seconds=1, cap_seconds=1, deadline_seconds=60)
    shop = Shop(quotas=Quotas(running=1), retry=policy)
    shop.due(2)
    first, second, *_ = shop.names()
    shop.fail(first, shop.run(first))
    token = shop.run(second, seconds=600)
    shop.after(2 * SECOND)
    for _ in range(5):
        shop.tick()
        at = shop.row(first).available_at
        assert at is not None
        shop.until(max(at, shop.now))
        assert shop.claim(first)[0].answer is Answer.WAIT
    shop.complete(second, token)
    at = shop.row(first).available_at
    assert at is not None
    shop.until(at)
    shop.run(first)
