from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError
from hourbell.adapters.memory import FixedClock
from hourbell.local.demo_consumer import MAX_FAILURES, Consumer, Receipt
from hourbell.local.errors import LocalStackError

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)


class FakeSqs:
    def __init__(self, *batches: list[dict[str, Any]]) -> None:
        self.batches = list(batches)
        self.deleted: list[str] = []

    def receive_message(self, **arguments: Any) -> Mapping[str, Any]:
        assert arguments["MessageSystemAttributeNames"] == ["MessageGroupId"]
        return {"Messages": self.batches.pop(0)} if self.batches else {}

    def delete_message_batch(self, **arguments: Any) -> Mapping[str, Any]:
        self.deleted += [entry["ReceiptHandle"] for entry in arguments["Entries"]]
        return {}


class BrokenSqs(FakeSqs):
    def receive_message(self, **arguments: Any) -> Mapping[str, Any]:
        answer: Any = {"Error": {"Code": "InternalError", "Message": ""}}
        raise ClientError(answer, "ReceiveMessage")


def message(number: int, **more: Any) -> dict[str, Any]:
    return {"Body": f"body {number}", "ReceiptHandle": f"handle {number}", **more}


def test_a_batch_is_noted_with_queue_group_and_time_and_then_deleted() -> None:
    sqs = FakeSqs([message(1, Attributes={"MessageGroupId": "acme"}), message(2)])
    consumer = Consumer(sqs, {"basic-strict": "url"}, FixedClock(NOON))

    assert consumer.take("basic-strict", "url") == 2

    assert consumer.receipts() == (
        Receipt("basic-strict", "body 1", "acme", NOON),
        Receipt("basic-strict", "body 2", "", NOON),
    )
    assert sqs.deleted == ["handle 1", "handle 2"]


def test_an_empty_answer_deletes_nothing() -> None:
    sqs = FakeSqs()
    consumer = Consumer(sqs, {}, FixedClock(NOON))

    assert consumer.take("basic-strict", "url") == 0
    assert sqs.deleted == []


def test_a_queue_that_keeps_failing_is_told_and_not_swallowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hourbell.local.demo_consumer.PAUSE_SECONDS", 0)
    consumer = Consumer(BrokenSqs(), {"basic-strict": "url"}, FixedClock(NOON))

    consumer._drain("basic-strict", "url")

    assert MAX_FAILURES > 1
    with pytest.raises(LocalStackError, match="gave up"):
        consumer.receipts()
