"""Orders to move rows, on SQS."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError
from hourbell.adapters import sqs
from hourbell.adapters.backoff import Backoff
from hourbell.adapters.messages import decode_move
from hourbell.adapters.sqs import SqsMoveQueue
from hourbell.domain.errors import Transient
from hourbell.usecases.shard_ports import MoveOrder

from tests.conformance.samples import DUE
from tests.conformance.worlds import still_backoff

ORDERS = [MoveOrder(DUE, 1, segment) for segment in range(12)]


class Sqs:
    """Takes batches of messages, when it is not out of order."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.calls: list[dict[str, Any]] = []

    def send_message_batch(self, **arguments: Any) -> dict[str, Any]:
        if self.failures:
            self.failures -= 1
            raise ConnectTimeoutError(endpoint_url="http://somewhere")
        self.calls.append(arguments)
        return {"Successful": [{"Id": each["Id"]} for each in arguments["Entries"]]}

    @property
    def entries(self) -> list[dict[str, Any]]:
        return [each for call in self.calls for each in call["Entries"]]


def queue(client: Any, backoff: Backoff | None = None) -> SqsMoveQueue:
    return SqsMoveQueue(client, "http://jobs", backoff or still_backoff())


@pytest.mark.parametrize(
    ("delay", "seconds"),
    [
        (timedelta(seconds=-5), None),
        (timedelta(0), None),
        (timedelta(microseconds=1), 1),
        (timedelta(seconds=60), 60),
        (timedelta(seconds=149, milliseconds=1), 150),
        (timedelta(minutes=15), 900),
        (timedelta(minutes=15, microseconds=1), 900),
        (timedelta(days=2), 900),
    ],
)
def test_a_delay_is_rounded_up_to_seconds_and_capped_at_a_quarter(
    delay: timedelta, seconds: int | None
) -> None:
    """Who gets an order too early puts it off again; too late is never made up for."""
    client = Sqs()
    queue(client).put(ORDERS[:1], delay=delay)
    (entry,) = client.entries
    assert entry.get("DelaySeconds") == seconds
    assert decode_move(entry["MessageBody"]) == ORDERS[0]


def test_orders_go_in_batches_of_ten_each_with_the_delay() -> None:
    client = Sqs()
    queue(client).put(ORDERS, delay=timedelta(seconds=7))
    assert [len(call["Entries"]) for call in client.calls] == [10, 2]
    assert {call["QueueUrl"] for call in client.calls} == {"http://jobs"}
    assert {entry["DelaySeconds"] for entry in client.entries} == {7}
    bodies = [decode_move(entry["MessageBody"]) for entry in client.entries]
    assert bodies == ORDERS


def test_no_orders_are_no_call() -> None:
    client = Sqs()
    queue(client).put([], delay=timedelta(0))
    assert client.calls == []


def test_what_was_not_accepted_is_sent_again_until_it_is_given_up() -> None:
    client = Sqs(failures=2)
    queue(client, still_backoff(attempts=3)).put(ORDERS[:1], delay=timedelta(0))
    assert len(client.entries) == 1
    with pytest.raises(Transient):
        queue(Sqs(failures=3), still_backoff(attempts=3)).put(
            ORDERS[:1], delay=timedelta(0)
        )


def test_the_client_is_opened_when_it_is_first_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Sqs] = []

    def connect() -> Sqs:
        opened.append(Sqs())
        return opened[-1]

    monkeypatch.setattr(sqs, "connect", connect)
    moves = queue(None)
    assert opened == []
    for _ in range(2):
        moves.put(ORDERS[:1], delay=timedelta(0))
    (client,) = opened
    assert len(client.calls) == 2
