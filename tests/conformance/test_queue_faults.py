"""The queues when the service throttles, fails, or refuses."""

from typing import Any

import pytest
from hourbell.adapters.sqs import SqsDeliveryQueues, SqsSweepQueue, SqsWorkQueue
from hourbell.domain.errors import Permanent, Transient
from hourbell.usecases.ports import Entry, GroupWork, Sent

from tests.conformance.faults import (
    Reaction,
    Script,
    answer,
    error,
    garbage,
    scripted_sqs,
    timeout,
)
from tests.conformance.samples import NOW, planned
from tests.conformance.worlds import still_backoff

ENTRIES = [Entry(f"e{n}", f"body {n}", n, f"tenant-{n}") for n in range(3)]
WORK = [GroupWork(n, NOW) for n in range(3)]


def batch(accepted: str = "", failed: dict[str, tuple[str, bool]] | None = None) -> Any:
    return answer(
        {
            "Successful": [
                {"Id": name, "MessageId": "m", "MD5OfMessageBody": "x"}
                for name in accepted.split()
            ],
            "Failed": [
                {"Id": name, "Code": code, "SenderFault": fault, "Message": "?"}
                for name, (code, fault) in (failed or {}).items()
            ],
        }
    )


def send(script: Script) -> dict[str, Sent]:
    queues = SqsDeliveryQueues(scripted_sqs(script), {"basic-strict": "http://q"})
    return queues.send("basic-strict", ENTRIES)


def test_a_request_carries_body_delay_and_tenant() -> None:
    script = Script(batch("e0 e1 e2"))

    assert send(script) == dict.fromkeys(["e0", "e1", "e2"], Sent.ACCEPTED)
    assert script.requests == [
        {
            "QueueUrl": "http://q",
            "Entries": [
                {
                    "Id": f"e{n}",
                    "MessageBody": f"body {n}",
                    "DelaySeconds": n,
                    "MessageGroupId": f"tenant-{n}",
                }
                for n in range(3)
            ],
        }
    ]


@pytest.mark.parametrize(
    ("code", "sender_fault", "expected"),
    [
        ("InvalidMessageContents", True, Sent.REFUSED),
        ("InvalidParameterValue", True, Sent.REFUSED),
        ("AWS.SimpleQueueService.InvalidMessageContents", True, Sent.REFUSED),
        ("InvalidMessageContents", False, Sent.RETRY),
        ("RequestThrottled", True, Sent.RETRY),
        ("KmsAccessDenied", True, Sent.RETRY),
        ("InternalError", False, Sent.RETRY),
        ("SomethingNew", True, Sent.RETRY),
    ],
)
def test_an_entry_fails_by_its_code(
    code: str, sender_fault: bool, expected: Sent
) -> None:
    script = Script(batch("e0 e2", {"e1": (code, sender_fault)}))

    answers = send(script)

    assert answers == {"e0": Sent.ACCEPTED, "e1": expected, "e2": Sent.ACCEPTED}


def test_an_entry_without_an_answer_is_sent_again() -> None:
    assert send(Script(batch("e0")))["e1"] is Sent.RETRY


@pytest.mark.parametrize(
    "fault",
    [
        error("RequestThrottled"),
        error("ThrottlingException"),
        error("InternalError", 500),
        error("ServiceUnavailable", 503),
        error("AccessDeniedException", 403),
        error("AWS.SimpleQueueService.NonExistentQueue"),
        error("QueueDoesNotExist"),
        timeout,
        garbage,
    ],
)
def test_a_call_that_failed_is_to_be_tried_again(fault: Reaction) -> None:
    script = Script(fault)

    assert send(script) == dict.fromkeys(["e0", "e1", "e2"], Sent.RETRY)
    assert len(script.requests) == 1


@pytest.mark.parametrize(
    "code", ["InvalidMessageContents", "BatchRequestTooLong", "InvalidParameterValue"]
)
def test_a_batch_refused_for_one_message_is_sent_singly(code: str) -> None:
    script = Script(error(code), batch("e0"), error(code), batch("e2"))

    assert send(script) == {
        "e0": Sent.ACCEPTED,
        "e1": Sent.REFUSED,
        "e2": Sent.ACCEPTED,
    }
    assert [len(request["Entries"]) for request in script.requests] == [3, 1, 1, 1]


def test_a_single_send_may_be_throttled() -> None:
    script = Script(
        error("BatchRequestTooLong"), batch("e0"), error("RequestThrottled"), timeout
    )

    assert send(script) == {"e0": Sent.ACCEPTED, "e1": Sent.RETRY, "e2": Sent.RETRY}


def work_queue(script: Script, **settings: Any) -> SqsWorkQueue:
    return SqsWorkQueue(scripted_sqs(script), "http://w", still_backoff(**settings))


def test_orders_that_were_not_accepted_are_put_again() -> None:
    script = Script(
        batch("0 2", {"1": ("RequestThrottled", False)}), timeout, batch("0")
    )

    work_queue(script).put(WORK)

    sent = [[e["MessageBody"] for e in r["Entries"]] for r in script.requests]
    assert [len(bodies) for bodies in sent] == [3, 1, 1]
    assert sent[1] == sent[2] == [sent[0][1]]


def test_orders_that_are_never_accepted_are_transient() -> None:
    script = Script(*[batch("", {"0": ("InternalError", False)})] * 3)

    with pytest.raises(Transient):
        work_queue(script, attempts=3).put(WORK[:1])
    assert script.left == 0


def test_a_refused_call_is_permanent() -> None:
    with pytest.raises(Permanent, match="AccessDenied"):
        work_queue(Script(error("AccessDeniedException"))).put(WORK)


def test_keys_go_in_batches_of_ten_messages() -> None:
    every = " ".join(str(n) for n in range(10))
    script = Script(batch(every), batch("0"))
    queue = SqsSweepQueue(scripted_sqs(script), "http://s", still_backoff())

    queue.put([planned(n).key for n in range(501)])

    assert [len(request["Entries"]) for request in script.requests] == [10, 1]
