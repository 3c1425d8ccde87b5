"""A consumer behind an SQS event source: which messages must come again."""

import threading
from typing import Any

from hourbell.consumer import Throttled

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.rig import Rig
from tests.consumers.worker_plane import CLAIM, NO_CONNECTION


class Invocation:
    """The context of an invocation that has so much time left."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return round(self._seconds * 1_000)


def failures(answer: dict[str, Any]) -> list[str]:
    assert list(answer) == ["batchItemFailures"]
    return [each["itemIdentifier"] for each in answer["batchItemFailures"]]


def test_what_is_done_failed_or_refused_does_not_come_again() -> None:
    rig = Rig()
    done, failing, skipped = rig.enqueue(1, 2, 3)
    skipped.answer = ("BUSY", None)

    def act(message: Any, _: Any) -> None:
        if message.occurrence_id == occurrence_id(2):
            raise ValueError("no")

    rig.does(act)
    answer = rig.consumer.handle(rig.lambda_event(), Invocation(30))
    assert failures(answer) == []
    assert done.state == "SUCCEEDED"
    assert failing.state == "RETRY_WAIT"
    # Deleting is the event source's.
    assert len(rig.queue.bodies()) == 3


def test_what_could_not_be_claimed_or_read_comes_again() -> None:
    rig = Rig()
    rig.enqueue(1, 2)[0].answer = ("ERROR", "unavailable")
    rig.queue.put("{", body_of(occurrence_id(1)))
    rig.does()
    answer = rig.consumer.handle(rig.lambda_event())
    # Both copies of the first, and what nobody can read.
    assert sorted(failures(answer)) == ["m1", "m3", "m4"]
    assert rig.done == [occurrence_id(2)]


def test_without_an_answer_of_hourbell_everything_comes_again() -> None:
    rig = Rig()
    rig.enqueue(1, 2)
    rig.does()
    rig.plane.go_wrong(CLAIM, *[NO_CONNECTION] * 4)
    answer = rig.consumer.handle(rig.lambda_event(), Invocation(30))
    assert failures(answer) == ["m1", "m2"]


def test_what_is_not_finished_in_time_comes_again_and_is_told_so() -> None:
    rig = Rig(concurrency=1)
    slow, late = rig.enqueue(1, 2)
    ended = threading.Event()
    contexts: list[Any] = []

    def act(_: Any, context: Any) -> None:
        contexts.append(context)
        while not rig.clock.wait(ended, 0):
            rig.clock.time += 1

    rig.does(act)
    answer = rig.consumer.handle(rig.lambda_event(), Invocation(12))
    assert failures(answer) == ["m1", "m2"]
    assert slow.state == "RUNNING"
    assert late.state == "ENQUEUED"
    assert contexts[0].lease_lost
    ended.set()


def test_untracked_work_that_fails_comes_again() -> None:
    rig = Rig()
    rig.enqueue(1, tracking="UNTRACKED")
    rig.enqueue(2, tracking="UNTRACKED")

    def act(message: Any, _: Any) -> None:
        if message.occurrence_id == occurrence_id(2):
            raise Throttled(retry_after=5)

    rig.does(act)
    assert failures(rig.consumer.handle(rig.lambda_event())) == ["m2"]
    assert rig.plane.calls == []
    assert rig.queue.hidden == []


def test_a_large_batch_is_claimed_as_it_can_be_worked_on() -> None:
    rig = Rig(concurrency=20)
    rows = rig.enqueue(*range(45))
    rig.does()
    assert failures(rig.consumer.handle(rig.lambda_event())) == []
    assert {row.state for row in rows} == {"SUCCEEDED"}
    claims = [len(call["items"]) for call in rig.plane.called(CLAIM)]
    assert claims == [10, 10, 10, 10, 5]


def test_an_exit_in_a_handler_leaves_only_its_own_message() -> None:
    rig = Rig()
    rig.enqueue(1, 2)
    stopping: list[bool] = []

    def act(message: Any, context: Any) -> None:
        if message.occurrence_id == occurrence_id(1):
            raise SystemExit
        stopping.append(context.stopping)

    rig.does(act)
    assert failures(rig.consumer.handle(rig.lambda_event())) == ["m1"]
    rig.enqueue(3)
    assert failures(rig.consumer.handle(rig.lambda_event())) == []
    assert rig.done == [occurrence_id(2), occurrence_id(3)]
    assert not stopping[-1]
