"""What a delivery queue gives up: marked DEAD, sent on as a letter, or past."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hourbell.adapters.messages import decode_given_up
from hourbell.domain.definition import Handler, Routing, Tracking
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.usecases.occurrences import cancel_occurrence, replay_occurrence
from hourbell.usecases.ports import Sent
from hourbell.usecases.redrive import GivenUp, Redriven, Returns, take_in

from tests.unit.usecases.faults import AnsweringQueues
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE

BESIDE = "arn:aws:sqs:eu-central-1:1:hourbell-standard-dead"
PERMANENT = Failure(ErrorClass.PERMANENT, "Bad", "never")
DAILY = "30 13 * * *"


def returns(shop: Shop, queues: Any = None) -> Returns:
    return Returns(shop.world.workplace, queues or shop.world.queues)


def give_up(shop: Shop, name: str, **members: Any) -> Redriven:
    """Take in the first message of an occurrence, as its queue gives it up."""
    body = next(
        each.entry.body
        for each in shop.world.queues.accepted
        if name in each.entry.body
    )
    message = decode_given_up(body)
    assert message is not None
    said = {
        "tenant_id": message.tenant_id,
        "occurrence_id": message.occurrence_id,
        "send": message.send,
        "handler": message.handler,
        **members,
    }
    return take_in(returns(shop), GivenUp(**said), body, BESIDE)


def forget(shop: Shop, name: str) -> None:
    """Let a row expire."""
    key = shop.row(name).key
    del shop.world.store.rows[key.partition][key.sort]


def forwarded(shop: Shop) -> list[tuple[str, str]]:
    return [
        (each.queue, each.entry.body)
        for each in shop.world.queues.accepted
        if "dead" in each.queue or each.queue == "letters"
    ]


def fail_for_good(shop: Shop, name: str) -> None:
    shop.fail(name, shop.run(name), PERMANENT)


def replay_again(shop: Shop, name: str) -> None:
    shop.fail(name, shop.run(name), PERMANENT)
    replay_occurrence(shop.world.workplace, "acme", name)
    shop.tick()


# What has become of the occurrence -> the state that it keeps.
PAST: dict[str, tuple[Callable[[Shop, str], object], State]] = {
    "a worker has it": (lambda shop, name: shop.run(name), State.RUNNING),
    "a worker has done it": (
        lambda shop, name: shop.complete(name, shop.run(name)),
        State.SUCCEEDED,
    ),
    "it waits for a retry": (
        lambda shop, name: shop.fail(name, shop.run(name)),
        State.SCHEDULED,
    ),
    "it is dead already": (fail_for_good, State.DEAD),
    "it was canceled": (
        lambda shop, name: cancel_occurrence(shop.world.workplace, "acme", name),
        State.CANCELED,
    ),
    "it was sent anew": (replay_again, State.ENQUEUED),
}


@pytest.mark.parametrize("what", PAST)
def test_what_is_past_is_left_as_it_is(what: str) -> None:
    act, state = PAST[what]
    shop = Shop(DAILY)
    name = shop.due()
    act(shop, name)
    assert give_up(shop, name) is Redriven.PAST
    assert shop.row(name).state is state
    assert forwarded(shop) == []


def test_what_nobody_claimed_is_dead_and_its_letter_goes_by_the_relay() -> None:
    shop = Shop(DAILY)
    name = shop.due()
    assert give_up(shop, name) is Redriven.DEAD
    row = shop.row(name)
    assert (row.state, row.reason) == (State.DEAD, "NEVER_CLAIMED")
    assert forwarded(shop) == []

    assert give_up(shop, name) is Redriven.PAST
    shop.tick()

    ((queue, body),) = forwarded(shop)
    letter = json.loads(body)
    assert (queue, letter["id"]) == ("standard-dead", name)
    assert letter["data"]["reason"] == "NEVER_CLAIMED"
    assert letter["data"]["attempts"] == 0


def test_the_one_that_waited_for_it_may_run() -> None:
    shop = Shop(overlap=Overlap.QUEUE_ONE)
    first = shop.due()
    token = shop.run(first)
    shop.after(MINUTE)
    second = shop.names()[1]
    shop.claim(second)
    shop.complete(first, token)
    shop.tick()
    # Its turn has come, it is sent again, and nobody takes it.
    assert shop.row(second).state is State.ENQUEUED
    assert give_up(shop, second, send=shop.row(second).sends) is Redriven.DEAD
    shop.after(MINUTE)
    shop.run(shop.names()[2])


def test_a_send_that_is_not_acknowledged_comes_again() -> None:
    shop = Shop(DAILY)
    shop.world.scan()
    name = shop.first.occurrence_id
    message = GivenUp("acme", name, 1, "ring")
    shop.world.clock.set(shop.first.scheduled_for)
    shop.world.scan()
    with pytest.raises(Transient):
        take_in(returns(shop), message, "{}", BESIDE)


class TestUntracked:
    def test_it_goes_on_as_a_letter_to_its_handlers_queue(self) -> None:
        shop = Shop(DAILY, tracking=Tracking.UNTRACKED)
        name = shop.due()
        shop.world.clock.advance(60 * MINUTE)

        assert give_up(shop, name) is Redriven.UNTRACKED

        ((queue, body),) = forwarded(shop)
        letter = json.loads(body)
        assert queue == "standard-dead"
        assert letter["type"] == "com.hourbell.occurrence.dead.v1"
        assert (letter["id"], letter["data"]["payload"]) == (name, {"n": 1})
        assert letter["data"]["reason"] == "NEVER_RECEIVED"
        assert letter["data"]["died_at"] == "2026-03-09T14:30:00Z"
        assert (letter["data"]["attempts"], letter["data"]["failure"]) == (0, None)
        # What it is stays what it was: whether it was worked on, nobody knows.
        assert shop.row(name).state is State.ENQUEUED

    @pytest.mark.parametrize("tracking", [Tracking.UNTRACKED, None])
    def test_without_its_row_the_message_goes_on_as_it_is(
        self, tracking: Tracking | None
    ) -> None:
        shop = Shop(DAILY, tracking=Tracking.UNTRACKED)
        name = shop.due()
        forget(shop, name)
        assert give_up(shop, name, tracking=tracking) is Redriven.UNTRACKED
        ((queue, body),) = forwarded(shop)
        assert queue == "standard-dead"
        assert json.loads(body)["type"] == "com.hourbell.occurrence.due.v1"

    def test_an_external_handlers_letter_goes_to_its_own_queue(self) -> None:
        shop = Shop(DAILY, tracking=Tracking.UNTRACKED)
        name = shop.due()
        routed = Handler(
            "acme",
            "ring",
            Routing.EXTERNAL,
            queue_arn="inbox",
            dead_letter_queue_arn="letters",
        )
        shop.world.store.handlers["acme", "ring"] = routed
        give_up(shop, name)
        assert [queue for queue, _ in forwarded(shop)] == ["letters"]

    @pytest.mark.parametrize("gone", [True, False])
    def test_without_such_a_queue_it_goes_beside_the_one_that_gave_it_up(
        self, *, gone: bool
    ) -> None:
        shop = Shop(DAILY, tracking=Tracking.UNTRACKED)
        name = shop.due()
        routed = Handler("acme", "ring", Routing.EXTERNAL, queue_arn="inbox")
        shop.world.store.handlers["acme", "ring"] = routed
        if gone:
            del shop.world.store.handlers["acme", "ring"]
        give_up(shop, name)
        assert [queue for queue, _ in forwarded(shop)] == [BESIDE]

    @pytest.mark.parametrize(
        ("answer", "error"), [(Sent.RETRY, Transient), (Sent.REFUSED, Permanent)]
    )
    def test_what_is_not_taken_stays_where_it_is(
        self, answer: Sent, error: type[Exception]
    ) -> None:
        shop = Shop(DAILY, tracking=Tracking.UNTRACKED)
        name = shop.due()
        queues = AnsweringQueues(shop.world.queues, {name: answer})
        message = GivenUp("acme", name, 1, "ring")
        with pytest.raises(error):
            take_in(returns(shop, queues), message, name, BESIDE)


def test_a_tracked_message_without_a_row_is_past() -> None:
    shop = Shop(DAILY)
    name = shop.due()
    forget(shop, name)
    assert give_up(shop, name, tracking=Tracking.TRACKED) is Redriven.PAST
    assert give_up(shop, name) is Redriven.PAST
    assert forwarded(shop) == []


def test_a_message_that_names_another_tenant_changes_nothing_of_this_one() -> None:
    shop = Shop(DAILY)
    name = shop.due()
    assert give_up(shop, name, tenant_id="other") is Redriven.PAST
    assert shop.row(name).state is State.ENQUEUED


@pytest.mark.parametrize(
    "body",
    [
        "",
        "nonsense",
        "[]",
        "{}",
        '{"id": "x", "data": null}',
        '{"id": "x", "data": {"tenant": "acme", "handler": "ring", "send": "once"}}',
        '{"id": 7, "data": {"tenant": "acme", "handler": "ring", "send": 1}}',
        '{"id":"x","data":{"tenant":"a","handler":"b","send":1,"tracking":"PERHAPS"}}',
        "[" * 100_000,
        '{"id": "x", "data": {"tenant": "acme", "handler": "ring", "send": 1e999}}',
        '{"id": "x", "data": {"tenant": "\\ud800", "handler": "ring", "send": 1}}',
    ],
)
def test_what_is_no_message_of_ours_goes_on_as_it_is(body: str) -> None:
    shop = Shop(DAILY)
    assert decode_given_up(body) is None
    text = body or " "
    assert take_in(returns(shop), None, text, BESIDE) is Redriven.UNREADABLE
    assert forwarded(shop) == [(BESIDE, text)]


def test_an_id_that_is_none_goes_on_as_it_is() -> None:
    shop = Shop(DAILY)
    message = GivenUp("acme", "sch1.v1.never", 1, "ring")
    assert take_in(returns(shop), message, "text", BESIDE) is Redriven.UNREADABLE
    assert forwarded(shop) == [(BESIDE, "text")]
