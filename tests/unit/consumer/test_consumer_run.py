"""A consumer in a process: each answer, each kind of failure, each way to end."""

from typing import Any

import pytest
from hourbell.consumer import Permanent, Stopped, Throttled

from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.rig import Rig
from tests.consumers.worker_plane import (
    CLAIM,
    COMPLETE,
    FAIL,
    LOST_ANSWER,
    NO_CONNECTION,
    Fault,
)


def raising(error: BaseException) -> Any:
    def act(*_: Any) -> None:
        raise error

    return act


def test_what_is_due_is_claimed_in_one_call_worked_on_completed_and_deleted() -> None:
    rig = Rig()
    rows = rig.enqueue(*range(10))
    rig.does()
    assert rig.run() == 0
    assert sorted(rig.done) == [occurrence_id(number) for number in range(10)]
    assert {row.state for row in rows} == {"SUCCEEDED"}
    assert rig.queue.bodies() == []
    (claim,) = rig.plane.called(CLAIM)
    assert len(claim["items"]) == 10
    assert claim["worker"] == "rig:1"
    assert claim["lease_seconds"] == 60


def test_a_handler_sees_its_message_and_attempt() -> None:
    rig = Rig()
    rig.enqueue(1)
    seen: list[Any] = []
    rig.does(lambda message, context: seen.append((message, context)))
    rig.run()
    ((message, context),) = seen
    assert message.handler == "report"
    assert message.schedule_name == "nightly"
    assert message.payload == {"account": occurrence_id(1)}
    assert message.scheduled_for.isoformat() == "2026-03-09T06:00:00+00:00"
    assert context.occurrence_id == occurrence_id(1)
    assert context.attempt == 1
    assert not context.should_stop or context.stopping


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("SKIP", "CANCELED"),
        ("SKIP", "SUPERSEDED"),
        ("SKIP", "SKIPPED_OVERLAP"),
        ("SKIP", "ALREADY_DONE"),
        ("SKIP", "EXPIRED"),
        ("BUSY", None),
        ("WAIT", "TOO_EARLY"),
        ("WAIT", "OVERLAP"),
        ("WAIT", "CONCURRENCY"),
        ("WAIT", "HANDOVER"),
    ],
)
def test_what_is_not_to_be_run_is_deleted(answer: str, reason: str | None) -> None:
    rig = Rig()
    rig.enqueue(1)[0].answer = (answer, reason)
    rig.does()
    rig.run()
    assert rig.done == []
    assert rig.queue.bodies() == []


@pytest.mark.parametrize("reason", ["not_tracked", "unavailable"])
def test_what_could_not_be_claimed_is_left(reason: str) -> None:
    rig = Rig()
    failing, fine = rig.enqueue(1, 2)
    failing.answer = ("ERROR", reason)
    rig.does()
    rig.run()
    assert rig.done == [occurrence_id(2)]
    assert fine.state == "SUCCEEDED"
    assert rig.queue.bodies() == [body_of(occurrence_id(1))]


def test_an_answer_of_a_later_release_leaves_the_message() -> None:
    rig = Rig()
    rig.enqueue(1)[0].answer = ("PONDER", None)
    rig.does()
    rig.run()
    assert rig.queue.bodies() == [body_of(occurrence_id(1))]


@pytest.mark.parametrize(
    ("error", "expected", "state"),
    [
        (
            ValueError("no such account"),
            {"class": "RETRYABLE", "type": "ValueError", "message": "no such account"},
            "RETRY_WAIT",
        ),
        (
            Permanent("deleted"),
            {"class": "PERMANENT", "type": "Permanent", "message": "deleted"},
            "DEAD",
        ),
        (
            Throttled("slow down", retry_after=2.1),
            {
                "class": "THROTTLED",
                "type": "Throttled",
                "message": "slow down",
                "retry_after_seconds": 3,
            },
            "RETRY_WAIT",
        ),
        (
            Throttled(),
            {"class": "THROTTLED", "type": "Throttled", "message": ""},
            "RETRY_WAIT",
        ),
        (
            Stopped("the consumer stops"),
            {"class": "RETRYABLE", "type": "Stopped", "message": "the consumer stops"},
            "RETRY_WAIT",
        ),
        (
            Throttled("x" * 2_000, retry_after=1e9),
            {
                "class": "THROTTLED",
                "type": "Throttled",
                "message": "x" * 1_024,
                "retry_after_seconds": 86_400,
            },
            "RETRY_WAIT",
        ),
    ],
)
def test_a_failure_is_told_by_its_class_and_its_message_deleted(
    error: Exception, expected: dict[str, Any], state: str
) -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.does(raising(error))
    rig.run()
    assert row.errors == [expected]
    assert row.state == state
    assert rig.queue.bodies() == []
    assert rig.plane.called(COMPLETE) == []


def test_copies_in_one_receive_are_one_claim_and_one_work() -> None:
    rig = Rig()
    rig.enqueue(1, 2)
    rig.queue.put(body_of(occurrence_id(1), send=2))
    rig.does()
    rig.run()
    assert sorted(rig.done) == [occurrence_id(1), occurrence_id(2)]
    assert len(rig.plane.called(CLAIM)[0]["items"]) == 2
    assert rig.queue.bodies() == []


@pytest.mark.parametrize("sends", [(1, 3, 2), (3, 1, 2)])
def test_of_copies_the_latest_send_is_claimed(sends: tuple[int, ...]) -> None:
    rig = Rig()
    rig.plane.add(occurrence_id(1))
    rig.queue.put(*[body_of(occurrence_id(1), send=send) for send in sends])
    rig.does()
    rig.run()
    ((item,),) = [call["items"] for call in rig.plane.called(CLAIM)]
    assert item["send"] == 3


def test_a_copy_that_comes_later_is_deleted_and_not_worked_on() -> None:
    rig = Rig()
    rig.enqueue(1)
    rig.does(lambda *_: rig.queue.put(body_of(occurrence_id(1))))
    rig.run()
    assert rig.done == [occurrence_id(1)]
    assert rig.queue.bodies() == []


@pytest.mark.parametrize(
    ("route", "error"), [(COMPLETE, None), (FAIL, ValueError("no"))]
)
@pytest.mark.parametrize(
    "fault",
    [
        LOST_ANSWER,
        NO_CONNECTION,
        Fault(status=503),
        Fault(status=429, headers={"retry-after": "3"}),
        Fault(item_status=503),
    ],
)
def test_an_end_without_an_answer_is_said_again_until_there_is_one(
    route: str, error: Exception | None, fault: Fault
) -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(route, fault, fault)
    rig.does(raising(error) if error else None)
    rig.run()
    assert len(rig.plane.called(route)) == 3
    tokens = {call["items"][0]["lease_token"] for call in rig.plane.called(route)}
    assert tokens == set(row.tokens)
    assert row.state == ("RETRY_WAIT" if error else "SUCCEEDED")
    assert rig.queue.bodies() == []


def test_a_lost_answer_to_a_claim_is_asked_for_with_the_same_token() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, LOST_ANSWER, LOST_ANSWER)
    rig.does()
    rig.run()
    assert rig.done == [occurrence_id(1)]
    assert len(row.tokens) == 1
    assert row.state == "SUCCEEDED"


@pytest.mark.parametrize("fault", [NO_CONNECTION, Fault(status=403, code="forbidden")])
def test_while_hourbell_does_not_answer_receives_pause_longer_and_longer(
    fault: Fault,
) -> None:
    rig = Rig(concurrency=1)
    rig.enqueue(1, 2)
    rig.does()
    tries = 4 if fault is NO_CONNECTION else 1
    rig.plane.go_wrong(CLAIM, *[fault] * 2 * tries)
    rig.run()
    # What may be claimed is asked for again, what is refused comes with its message.
    numbers = (1, 2) if fault is NO_CONNECTION else ()
    assert rig.done == [occurrence_id(number) for number in numbers]
    assert len(rig.queue.bodies()) == 2 - len(numbers)
    assert 1.5 in rig.clock.pauses


def test_a_queue_that_fails_is_asked_again_after_a_pause() -> None:
    rig = Rig()
    rig.enqueue(1)
    rig.queue.faults = 3
    rig.does()
    rig.run()
    assert rig.done == [occurrence_id(1)]
    # Full jitter of 1, 2 and 4 s at a chance of 3/4; the first is below the least.
    assert [each for each in rig.clock.pauses if each in {1.5, 3.0}] == [1.5, 3.0]


def test_a_message_that_cannot_be_deleted_is_skipped_when_it_comes_again() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.does()
    rig.queue.broken.add("delete")
    rig.run()
    assert rig.done == [occurrence_id(1)]
    assert len(rig.queue.bodies()) == 1
    rig.queue.broken.clear()
    rig.clock.time += 120
    rig.consumer.handle(rig.lambda_event())
    assert rig.done == [occurrence_id(1)]
    assert row.state == "SUCCEEDED"


@pytest.mark.parametrize("status", [404, 409])
def test_an_end_that_is_refused_drops_the_work(status: int) -> None:
    rig = Rig()
    rig.enqueue(1)
    rig.plane.go_wrong(COMPLETE, Fault(item_status=status))
    rig.does()
    rig.run()
    assert len(rig.plane.called(COMPLETE)) == 1
    assert rig.queue.bodies() == []


def test_a_refusal_of_the_whole_request_leaves_the_message() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(COMPLETE, Fault(status=403, code="tenant_suspended"))
    rig.does()
    rig.run()
    assert row.state == "RUNNING"
    assert rig.queue.bodies() == [body_of(occurrence_id(1))]


def test_a_message_is_deleted_before_the_work_if_wished() -> None:
    rig = Rig(delete_when_claimed=True)
    (row,) = rig.enqueue(1)
    left: list[list[str]] = []
    rig.does(lambda *_: left.append(rig.queue.bodies()))
    rig.run()
    assert left == [[]]
    assert row.state == "SUCCEEDED"


def test_untracked_work_is_done_without_a_word_and_deleted() -> None:
    rig = Rig(delete_when_claimed=True)
    rig.enqueue(1, tracking="UNTRACKED")
    rig.does(lambda message, context: context.raise_if_stopped())
    rig.run()
    assert rig.done == [occurrence_id(1)]
    assert rig.plane.calls == []
    assert rig.queue.bodies() == []


@pytest.mark.parametrize(
    ("error", "hidden"),
    [
        (ValueError(), []),
        (Throttled(), []),
        (Permanent(), []),
        (Throttled(retry_after=7), [(["m1-0"], 7)]),
    ],
)
def test_untracked_work_that_fails_comes_again_with_its_message(
    error: Exception, hidden: list[Any]
) -> None:
    rig = Rig()
    rig.enqueue(1, tracking="UNTRACKED")
    rig.does(raising(error))
    rig.run()
    assert len(rig.queue.bodies()) == 1
    assert rig.queue.hidden == hidden


def test_a_throttled_message_that_cannot_be_hidden_comes_again_sooner() -> None:
    rig = Rig()
    rig.enqueue(1, tracking="UNTRACKED")

    def act(*_: Any) -> None:
        rig.queue.broken.add("hide")
        raise Throttled(retry_after=7)

    rig.does(act)
    rig.run()
    assert rig.queue.hidden == []
    assert len(rig.queue.bodies()) == 1


def test_what_nobody_handles_or_can_read_is_left_and_a_test_message_deleted() -> None:
    rig = Rig()
    rig.enqueue(1)
    test = '{"type": "com.hourbell.handler.test.v1"}'
    others = [body_of(occurrence_id(2), handler="bill"), "{", "[]", '{"type": "x"}']
    rig.queue.put(test, *others)
    rig.does()
    rig.run()
    assert rig.done == [occurrence_id(1)]
    assert rig.queue.bodies() == others


def test_a_claim_repeated_after_its_attempt_is_over_works_with_the_new_token() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    rig.plane.go_wrong(CLAIM, LOST_ANSWER)

    def run_out(route: str) -> None:
        if route == CLAIM and len(row.tokens) == 1:
            # Its lease ends, and the occurrence is sent again, before the repetition.
            row.state = "ENQUEUED"

    rig.plane.after = run_out
    rig.does()
    rig.run()
    first, second = row.tokens
    assert first != second
    assert rig.plane.called(COMPLETE)[0]["items"][0]["lease_token"] == second
    assert row.state == "SUCCEEDED"


def test_an_end_that_aws_refuses_for_a_moment_is_said_again() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    # Without a code of ours: rights that are on their way, credentials just over.
    rig.plane.go_wrong(COMPLETE, *[Fault(status=403, code="")] * 2)
    rig.does()
    rig.run()
    assert row.state == "SUCCEEDED"
    assert rig.queue.bodies() == []


def test_what_hourbell_knows_nothing_of_is_left_to_who_may_know_it() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    # Rows outlive messages: it is another tenant's, and this queue a shared one.
    foreign = body_of(occurrence_id(2), tenant="south")
    rig.queue.put(foreign)
    rig.does()
    rig.run()
    assert row.state == "SUCCEEDED"
    assert rig.done == [occurrence_id(1)]
    assert rig.queue.bodies() == [foreign]
