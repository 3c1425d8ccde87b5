"""A consumer in a process: how it runs, is stopped, and learns to stop its handlers."""

import os
import signal
import threading
from typing import Any

import pytest
from hourbell.consumer import Consumer, Options

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.rig import Rig
from tests.consumers.worker_plane import (
    CLAIM,
    COMPLETE,
    FAIL,
    HEARTBEAT,
    NO_CONNECTION,
)


def raising(error: BaseException) -> Any:
    def act(*_: Any) -> None:
        raise error

    return act


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt()])
def test_an_exit_leaves_the_message_and_ends_the_consumer(error: BaseException) -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.does(raising(error))
    with pytest.raises(type(error)):
        rig.consumer.run(signals=False)
    assert row.state == "RUNNING"
    assert rig.queue.bodies() == [body_of(occurrence_id(1))]
    assert rig.plane.called(FAIL) == []


def test_no_more_is_received_than_can_run_at_once() -> None:
    rig = Rig(concurrency=2)
    rig.enqueue(*range(7))
    running: list[int] = []
    most: list[int] = []
    gate = threading.Lock()

    def act(*_: Any) -> None:
        with gate:
            running.append(1)
            most.append(len(running))
        rig.clock.wait(threading.Event(), 0)
        with gate:
            running.pop()

    rig.does(act)
    rig.run()
    assert len(rig.done) == 7
    assert max(most) <= 2
    assert all(len(call["items"]) <= 2 for call in rig.plane.called(CLAIM))


def test_a_stop_lets_finish_what_runs_and_receives_no_more() -> None:
    rig = Rig(concurrency=1)
    first, second = rig.enqueue(1, 2)

    def act(_: Any, context: Any) -> None:
        rig.consumer.stop()
        assert context.stopping
        assert context.should_stop

    rig.does(act)
    assert rig.consumer.run(signals=False) == 0
    assert first.state == "SUCCEEDED"
    assert second.state == "ENQUEUED"
    assert rig.queue.bodies() == [body_of(occurrence_id(2))]


def test_what_does_not_end_within_the_grace_is_left() -> None:
    rig = Rig(grace_seconds=5)
    (row,) = rig.enqueue(1)
    ended = threading.Event()

    def act(*_: Any) -> None:
        rig.consumer.stop()
        while not rig.clock.wait(ended, 0):
            rig.clock.time += 1

    rig.does(act)
    assert rig.consumer.run(signals=False) == 1
    assert row.state == "RUNNING"
    assert len(rig.queue.bodies()) == 1
    ended.set()


def test_what_a_stop_overtakes_in_its_receive_is_left() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.does()
    rig.queue.on_receive = lambda _: rig.consumer.stop()
    assert rig.consumer.run(signals=False) == 0
    assert row.state == "ENQUEUED"
    assert rig.plane.calls == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_and_leaves_the_next_one_to_others(number: int) -> None:
    rig = Rig()
    before = signal.getsignal(number)
    handlers: list[Any] = []

    def act(_: Any, context: Any) -> None:
        os.kill(os.getpid(), number)
        while not context.stopping:
            rig.clock.wait(threading.Event(), 0)
        handlers.append(signal.getsignal(number))

    (row,) = rig.enqueue(1)
    rig.does(act)
    assert rig.consumer.run() == 0
    assert row.state == "SUCCEEDED"
    assert handlers == [before]
    assert signal.getsignal(number) == before


def test_it_runs_in_another_thread_without_signals() -> None:
    rig = Rig()
    rig.enqueue(1)
    rig.does()
    thread = threading.Thread(target=rig.run)
    thread.start()
    thread.join(10)
    assert rig.done == [occurrence_id(1)]


def test_a_fault_of_the_consumer_itself_ends_it_with_an_error() -> None:
    rig = Rig()

    def break_down(_: int) -> None:
        raise ZeroDivisionError

    rig.queue.on_receive = break_down
    with pytest.raises(ZeroDivisionError):
        rig.consumer.run(signals=False)


def test_a_cancel_reaches_the_handler_with_the_next_heartbeat() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)

    def act(_: Any, context: Any) -> None:
        assert not context.cancel_requested
        row.cancel_requested = True
        rig.clock.time += 20
        while not context.cancel_requested:
            rig.clock.wait(threading.Event(), 0)
        context.raise_if_stopped()

    rig.does(act)
    rig.run()
    assert row.state == "CANCELED"
    assert row.errors[0]["message"] == "the occurrence was canceled"
    assert rig.queue.bodies() == []
    assert len(rig.plane.called(HEARTBEAT)) == 1


def test_a_lease_that_is_lost_in_the_middle_drops_the_work() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)

    def act(_: Any, context: Any) -> None:
        row.tokens.append("token-of-another-one")
        rig.clock.time += 20
        while not context.lease_lost:
            rig.clock.wait(threading.Event(), 0)

    rig.does(act)
    rig.run()
    assert row.state == "RUNNING"
    assert rig.plane.called(COMPLETE) == []
    assert rig.queue.bodies() == []


def test_a_lease_that_runs_out_unheard_is_completed_if_nobody_else_has_it() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(HEARTBEAT, *[NO_CONNECTION] * 50)

    def act(_: Any, context: Any) -> None:
        rig.clock.time += 61
        while not context.lease_lost:
            rig.clock.wait(threading.Event(), 0)

    rig.does(act)
    rig.run()
    assert row.state == "SUCCEEDED"
    assert rig.queue.bodies() == []


def test_one_handler_has_one_function() -> None:
    rig = Rig()
    rig.does()
    with pytest.raises(ValueError, match="Two functions handle 'report'"):
        rig.does()


def test_without_a_queue_it_does_not_run() -> None:
    with pytest.raises(ValueError, match="HOURBELL_QUEUE_URL"):
        Consumer(Rig().plane).run()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("concurrency", 0),
        ("lease_seconds", 9),
        ("lease_seconds", 43_201),
        ("wait_seconds", 21),
    ],
)
def test_options_out_of_bounds_are_refused(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        Options(**{name: value})  # type: ignore[arg-type]


def test_what_is_left_at_the_end_learns_that_nobody_keeps_its_lease_any_more() -> None:
    rig = Rig(grace_seconds=5)
    rig.enqueue(1)
    returned, seen = threading.Event(), threading.Event()
    lost: list[bool] = []

    def act(_: Any, context: Any) -> None:
        rig.consumer.stop()
        while not returned.wait(0.002):
            rig.clock.time += 1
        lost.append(context.lease_lost)
        seen.set()

    rig.does(act)
    assert rig.consumer.run(signals=False) == 1
    returned.set()
    assert seen.wait(10)
    assert lost == [True]


def test_what_is_claimed_after_the_grace_is_not_begun() -> None:
    rig = Rig(grace_seconds=0)
    rig.enqueue(1)
    over = threading.Event()

    def hang(_: str) -> None:
        rig.consumer.stop()
        assert over.wait(10)

    rig.plane.after = hang
    rig.does()
    assert rig.consumer.run(signals=False) == 0
    over.set()
    for thread in threading.enumerate():
        if thread.name.startswith(("hourbell-receive", "hourbell-token")):
            thread.join(10)
    # No heartbeat would follow, and nobody could tell it so.
    assert rig.done == []
    assert len(rig.queue.bodies()) == 1
