"""A consumer in a Lambda answers before the invocation ends, whoever does not."""

import threading
from typing import Any

import pytest
from hourbell.consumer.leases import Leases

from tests.consumers.memory_queue import occurrence_id
from tests.consumers.rig import Rig
from tests.consumers.worker_plane import CLAIM, HEARTBEAT
from tests.unit.consumer.test_consumer_lambda import Invocation, failures


class Silence:
    """Keeps a route without an answer, as a connection that hangs does."""

    def __init__(self, rig: Rig, route: str) -> None:
        self._rig = rig
        self._route = route
        self.began = threading.Event()
        self.over = threading.Event()
        rig.plane.after = self._after

    def _after(self, route: str) -> None:
        if route == self._route and not self.over.is_set():
            self.began.set()
            assert self.over.wait(30)


def answer_in_time(rig: Rig, silence: Silence, passes: float) -> dict[str, Any]:
    """Return the answer to an invocation of 30 s; let time pass in the silence."""
    answers: list[dict[str, Any]] = []

    def invoke() -> None:
        event = rig.lambda_event()
        answers.append(rig.consumer.handle(event, Invocation(30)))

    thread = threading.Thread(target=invoke, daemon=True)
    thread.start()
    assert silence.began.wait(10)
    rig.clock.time += passes
    thread.join(2.5)
    found = list(answers)
    silence.over.set()
    thread.join(10)
    assert found, "it did not answer in its time"
    return found[0]


def test_a_claim_that_hangs_takes_not_more_than_the_invocations_time() -> None:
    rig = Rig(concurrency=1)
    done, hanging, late = rig.enqueue(1, 2, 3)
    silence = Silence(rig, CLAIM)
    hang, rig.plane.after = rig.plane.after, lambda _: None

    def act(*_: Any) -> None:
        rig.plane.after = hang

    acts = [act]

    def report(*given: Any) -> None:
        acts[0](*given)

    rig.does(report)
    answer = answer_in_time(rig, silence, 30)
    assert failures(answer) == ["m2", "m3"]
    assert done.state == "SUCCEEDED"
    assert late.state == "ENQUEUED"
    # What is claimed too late is neither begun, nor kept from others by beats.
    rig.plane.after = lambda _: None
    for _turn in range(10):
        rig.clock.wait(threading.Event(), 0)
    (row,) = rig.enqueue(4)
    event = {"Records": rig.lambda_event()["Records"][-1:]}

    def beat(*_: Any) -> None:
        rig.clock.time += 20
        for _turn in range(10):
            rig.clock.wait(threading.Event(), 0)

    acts[0] = beat
    assert failures(rig.consumer.handle(event, Invocation(60))) == []
    assert (hanging.state, row.state) == ("RUNNING", "SUCCEEDED")
    assert rig.done == [occurrence_id(1), occurrence_id(4)]
    beats = [call["items"] for call in rig.plane.called(HEARTBEAT)]
    assert [len(items) for items in beats] == [1] * len(beats)


def test_a_heartbeat_that_hangs_does_not_hold_the_answer() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    silence = Silence(rig, HEARTBEAT)

    def act(*_: Any) -> None:
        # One second is left then, and two until the invocation ends.
        rig.clock.time += 27
        assert silence.began.wait(10)

    rig.does(act)
    answer = answer_in_time(rig, silence, 0)
    assert failures(answer) == []
    assert row.state == "SUCCEEDED"


def test_a_fault_in_a_claim_is_the_invocations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.enqueue(1)
    rig.does()

    def fail(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Leases, "hold", fail)
    with pytest.raises(ZeroDivisionError):
        rig.consumer.handle(rig.lambda_event(), Invocation(30))


def test_what_finds_no_thread_is_kept_by_no_beats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rig = Rig()
    rig.enqueue(1, 2)

    def act(*_: Any) -> None:
        rig.clock.time += 30
        for _turn in range(5):
            rig.clock.wait(threading.Event(), 0)

    rig.does(act)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name.startswith("hourbell-token"):
            raise RuntimeError("can't start new thread")
        start(thread)

    event = rig.lambda_event()
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError):
            rig.consumer.handle(event, Invocation(30))
    rig.enqueue(3)
    rig.consumer.handle(rig.lambda_event(), Invocation(60))
    assert rig.done == [occurrence_id(3)]
    beaten = {
        each["occurrence_id"]
        for call in rig.plane.called(HEARTBEAT)
        for each in call["items"]
    }
    assert beaten == {occurrence_id(3)}
