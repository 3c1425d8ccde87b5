"""Handlers, exceptions and credentials that are odd, and end no consumer."""

import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.session import Session
from hourbell.consumer import SCHEMA, Permanent, Throttled, once
from hourbell.consumer.http import Endpoint, Reply, SignedTransport
from hourbell.consumer.queue import QueueFault, SqsQueue

from tests.consumers.memory_queue import occurrence_id
from tests.consumers.rig import Rig


class Busy(Throttled):
    """A subclass that forgets its base, as is easily done."""

    def __init__(self, status: int) -> None:
        self.status = status


class Unclear(Throttled):
    """One that computes how long to wait, and cannot."""

    @property
    def retry_after_seconds(self) -> float | None:
        raise LookupError

    @retry_after_seconds.setter
    def retry_after_seconds(self, value: float | None) -> None: ...


class Mute:
    def __str__(self) -> str:
        raise LookupError


@pytest.mark.parametrize(
    "error",
    [Busy(429), Unclear(), Throttled(retry_after=Mute())],  # type: ignore[arg-type]
)
def test_throttled_without_a_wait_that_can_be_read_is_throttled(
    error: Throttled,
) -> None:
    rig = Rig()
    throttled, other = rig.enqueue(1, 2)

    def act(message: Any, _: Any) -> None:
        if message.occurrence_id == occurrence_id(1):
            raise error

    rig.does(act)
    rig.run()
    assert throttled.state == "RETRY_WAIT"
    assert throttled.errors[0]["class"] == "THROTTLED"
    assert "retry_after_seconds" not in throttled.errors[0]
    assert other.state == "SUCCEEDED"


def steps(*_: Any) -> Iterator[None]:
    yield


async def later_steps(*_: Any) -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize("function", [steps, later_steps])
def test_a_function_whose_steps_nobody_takes_is_no_handler(
    function: Callable[..., object],
) -> None:
    rig = Rig()
    with pytest.raises(ValueError, match="'report'"):
        rig.consumer.handler("report")(function)
    (row,) = rig.enqueue(1)

    def wrapped(*given: Any) -> object:
        # It shows only when it is called.
        return function(*given)

    rig.consumer.handler("report")(wrapped)
    rig.run()
    assert row.state == "RETRY_WAIT"
    assert row.errors[0]["type"] == "TypeError"


def test_credentials_that_are_expired_when_they_come_are_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> None:
        # What botocore raises on a machine whose clock is hours ahead.
        raise RuntimeError("the refreshed credentials are still expired")

    session = Session()
    credentials = SimpleNamespace(get_frozen_credentials=fail)
    monkeypatch.setattr(session, "get_credentials", lambda: credentials)
    transport = SignedTransport(Endpoint("http://127.0.0.1:1", "eu-west-1"), session)
    with pytest.raises(OSError, match="still expired"):
        transport.post("/v1/occurrences/claim", b"{}")

    def call(**_: Any) -> Any:
        fail()

    client: Any = SimpleNamespace(
        receive_message=call,
        delete_message_batch=call,
        change_message_visibility_batch=call,
    )
    queue = SqsQueue(client, "http://queue")
    for use in (
        lambda: queue.receive(1, 0),
        lambda: queue.delete(["r"]),
        lambda: queue.hide(["r"], 1),
    ):
        with pytest.raises(QueueFault, match="still expired"):
            use()


def test_a_stop_while_all_places_are_taken_receives_no_more() -> None:
    rig = Rig(concurrency=1)
    first, second = rig.enqueue(1, 2)
    stopped = threading.Event()
    receives: list[int] = []

    def act(*_: Any) -> None:
        # Until the next receive waits for this place; and then has seen the stop.
        for turn in range(40):
            rig.clock.wait(stopped, 0)
            if turn == 20:
                rig.consumer.stop()

    rig.does(act)
    rig.queue.on_receive = receives.append
    assert rig.consumer.run(signals=False) == 0
    assert receives == [1]
    assert (first.state, second.state) == ("SUCCEEDED", "ENQUEUED")


def test_permanent_stays_permanent_without_its_base() -> None:
    class Unknown(Permanent):
        def __init__(self, account: int) -> None:
            self.account = account

    rig = Rig()
    (row,) = rig.enqueue(1)

    def act(*_: Any) -> None:
        raise Unknown(4711)

    rig.does(act)
    rig.run()
    assert row.state == "DEAD"


def test_a_connection_that_is_broken_does_not_hide_why_the_work_failed() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(SCHEMA)

    def work() -> None:
        with once(connection, occurrence_id(1)):
            connection.close()
            raise Permanent("there is no such account")

    with pytest.raises(Permanent):
        work()


def test_a_token_that_is_no_text_is_not_taken_from_an_answer() -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)
    post = rig.plane.post

    def garbled(path: str, body: bytes) -> Reply:
        reply = post(path, body)
        document = json.loads(reply.text)
        for result in document["results"]:
            if "lease_token" in result:
                result["lease_token"] = {"of": "another release"}
        return Reply(reply.status, reply.headers, json.dumps(document))

    rig.plane.post = garbled  # type: ignore[method-assign]
    rig.does()
    rig.run()
    assert row.state == "SUCCEEDED"
