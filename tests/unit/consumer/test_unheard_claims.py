"""Claims of which all answers are lost: they are asked for again, and cost nothing."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.rig import START, Rig
from tests.consumers.worker_plane import (
    CLAIM,
    HEARTBEAT,
    LOST_ANSWER,
    NO_CONNECTION,
    Fault,
)
from tests.unit.consumer.test_consumer_lambda import Invocation, failures

TRIES = 4
"""How often a claim is tried in one go."""


def run_until(rig: Rig, count: int, each: Callable[[int], None] | None = None) -> None:
    """Run until so many works are done; `each` is called at every receive."""

    def act(*_: Any) -> None:
        if len(rig.done) == count - 1:
            rig.consumer.stop()

    rig.does(act)
    rig.queue.on_receive = each or rig.queue.on_receive
    assert rig.consumer.run(signals=False) == 0


def tokens_of(rig: Rig, number: int) -> set[str]:
    return {
        item["lease_token"]
        for call in rig.plane.called(CLAIM)
        for item in call["items"]
        if item["occurrence_id"] == occurrence_id(number)
    }


def test_a_claim_that_nobody_answers_is_asked_for_again_after_the_pause() -> None:
    rig = Rig(concurrency=3)
    rows = rig.enqueue(1, 2)
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * 2 * TRIES)
    run_until(rig, 2)
    assert [len(row.tokens) for row in rows] == [1, 1]
    assert [tokens_of(rig, number) for number in (1, 2)] == [
        set(row.tokens) for row in rows
    ]
    assert {row.state for row in rows} == {"SUCCEEDED"}
    assert rig.queue.bodies() == []
    assert rig.clock.pauses.count(1.0) + rig.clock.pauses.count(1.5) >= 2
    # It is not to wait for other messages.
    assert rig.queue.waits[:3] == [20, 0, 0]


def test_its_lease_counts_from_when_it_was_claimed_first() -> None:
    rig = Rig(concurrency=1)
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * TRIES)
    beats: list[float] = []

    def after(route: str) -> None:
        if len(rig.plane.called(CLAIM)) == TRIES and not beats:
            rig.clock.time += 25
        if route == HEARTBEAT:
            beats.append(rig.clock.time)

    rig.plane.after = after

    def act(*_: Any) -> None:
        # Due 20 s after the first claim, which is 25 s ago.
        for _turn in range(1_000):
            if beats:
                break
            rig.clock.wait(threading.Event(), 0)
        rig.consumer.stop()

    rig.does(act)
    assert rig.consumer.run(signals=False) == 0
    assert beats == [START + 25]
    assert row.state == "SUCCEEDED"
    assert len(row.tokens) == 1


def test_that_of_another_attempt_counts_from_its_own_claim() -> None:
    rig = Rig(concurrency=1)
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * TRIES)

    def give_away(_: str) -> None:
        if len(rig.plane.called(CLAIM)) == TRIES:
            row.state = "ENQUEUED"
            rig.clock.time += 25

    rig.plane.after = give_away

    def act(*_: Any) -> None:
        for _turn in range(10):
            rig.clock.wait(threading.Event(), 0)
        rig.consumer.stop()

    rig.does(act)
    assert rig.consumer.run(signals=False) == 0
    assert row.state == "SUCCEEDED"
    assert len(row.tokens) == 2
    assert rig.plane.called(HEARTBEAT) == []


def test_its_message_that_comes_again_meanwhile_is_a_copy() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * TRIES)
    copies = [body_of(occurrence_id(1), send=2), body_of(occurrence_id(1))]

    def copy(_: int) -> None:
        rig.queue.put(*copies)
        copies.clear()

    run_until(rig, 1, copy)
    assert len(row.tokens) == 1
    assert rig.done == [occurrence_id(1)]
    assert rig.queue.bodies() == []


def test_no_more_is_received_than_has_a_place_beside_it() -> None:
    rig = Rig(concurrency=2)
    rig.enqueue(*range(5))
    rig.plane.go_wrong(CLAIM, *[NO_CONNECTION] * 3 * TRIES)
    visible: list[int] = []

    def after(route: str) -> None:
        visible.append(len(rig.queue.visible()))

    rig.plane.after = after
    run_until(rig, 5)
    # The first answer is to the two that have been claimed since the beginning.
    assert visible[0] == 3
    assert rig.queue.bodies() == []


def test_when_the_lease_would_be_over_it_is_left_to_its_message() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * TRIES)

    def pass_time(_: str) -> None:
        if len(rig.plane.called(CLAIM)) == TRIES:
            # As long as the queue hides the message.
            rig.clock.time += 120
            rig.plane.watch()

    rig.plane.after = pass_time
    run_until(rig, 1)
    assert row.state == "SUCCEEDED"
    first, second = row.tokens
    assert tokens_of(rig, 1) == {first, second}


def test_an_invocation_asks_for_nothing_of_the_one_before() -> None:
    rig = Rig()
    first, second = rig.enqueue(1, 2)
    rig.does()
    one, other = rig.lambda_event()["Records"]
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * TRIES)
    answer = rig.consumer.handle({"Records": [one]}, Invocation(30))
    assert failures(answer) == ["m1"]
    assert failures(rig.consumer.handle({"Records": [other]}, Invocation(30))) == []
    assert rig.done == [occurrence_id(2)]
    assert (first.state, second.state) == ("RUNNING", "SUCCEEDED")


def test_it_is_asked_for_again_though_the_queue_does_not_answer() -> None:
    rig = Rig(concurrency=2)
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, *[LOST_ANSWER] * TRIES)
    faults: list[int] = []

    def after(_: str) -> None:
        if len(rig.plane.called(CLAIM)) == TRIES:
            rig.queue.faults = 3

    rig.plane.after = after

    def act(*_: Any) -> None:
        faults.append(rig.queue.faults)
        rig.consumer.stop()

    rig.does(act)
    assert rig.consumer.run(signals=False) == 0
    assert faults == [2]
    assert len(row.tokens) == 1


@pytest.mark.parametrize("lost", [1, TRIES])
def test_it_is_kept_while_its_tenant_is_left_alone(lost: int) -> None:
    rig = Rig(tenants=["south"])
    (row,) = rig.enqueue_of("south", 1)
    suspended = Fault(status=403, code="tenant_suspended")
    faults = [*[LOST_ANSWER] * lost, suspended]
    rig.tenants.planes["south"].go_wrong(CLAIM, *faults)
    receives: list[int] = []

    def pass_time(count: int) -> None:
        receives.append(count)
        rig.clock.time += 5
        if len(receives) > 30:
            rig.consumer.stop()

    run_until(rig, 1, pass_time)
    assert row.state == "SUCCEEDED"
    assert len(row.tokens) == 1


def test_what_one_tenant_never_hears_slows_the_others_down_no_further() -> None:
    rig = Rig(tenants=["north", "south"], concurrency=2)
    rig.tenants.planes["south"].go_wrong(CLAIM, *[NO_CONNECTION] * 99)
    rig.enqueue_of("south", 1)
    rows = rig.enqueue_of("north", *range(2, 8))
    rig.does()
    rig.run()
    assert {row.state for row in rows} == {"SUCCEEDED"}
    assert rig.clock.pauses.count(1.0) >= 5
    # What a third pause in a row would be.
    assert 3.0 not in rig.clock.pauses
