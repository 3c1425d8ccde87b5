"""What handlers, messages, answers and credentials may be like, and end no consumer."""

import asyncio
import logging
import math
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, CredentialRetrievalError
from botocore.session import Session
from hourbell.consumer import SCHEMA, Options, Throttled, once
from hourbell.consumer.api import Held, WorkerApi
from hourbell.consumer.errors import NoAnswer, UnreadableMessage
from hourbell.consumer.http import Endpoint, Reply, SignedTransport
from hourbell.consumer.leases import Leases
from hourbell.consumer.messages import parse_message

from tests.consumers.memory_queue import MemoryQueue, body_of, occurrence_id
from tests.consumers.rig import Rig, RunningClock, StandingClock, work_of
from tests.consumers.worker_plane import CLAIM, HEARTBEAT, WorkerPlane

ITEM = Held(occurrence_id(1), "token-00000000000001")


class Mute(Exception):
    def __str__(self) -> str:
        raise LookupError


def throttled(wait: Any) -> Throttled:
    return Throttled("busy", retry_after=wait)


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Let a test log what no report of tests can hold."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.usefixtures("unlogged")
@pytest.mark.parametrize(
    ("error", "members"),
    [
        (asyncio.CancelledError(), {"class": "RETRYABLE", "type": "CancelledError"}),
        (Mute(), {"message": "(its text cannot be had: LookupError)"}),
        (ValueError("\udcff.csv"), {"message": "?.csv"}),
        (throttled(math.inf), {"retry_after_seconds": 86_400}),
        (throttled(math.nan), {"message": "busy"}),
        (throttled(-1), {"retry_after_seconds": 0}),
        (throttled("2.5"), {"retry_after_seconds": 3}),
        (throttled("Wed, 21 Oct 2026 07:28:00 GMT"), {"message": "busy"}),
    ],
)
def test_whatever_a_handler_raises_is_told(
    error: BaseException, members: dict[str, Any]
) -> None:
    rig = Rig()
    (row,) = rig.enqueue(1)

    def act(*_: Any) -> None:
        raise error

    rig.does(act)
    rig.run()
    assert row.state == "RETRY_WAIT"
    assert row.errors[0] | members == row.errors[0]
    assert ("retry_after_seconds" in members) == (
        "retry_after_seconds" in row.errors[0]
    )


def test_a_handler_that_nobody_awaits_is_no_success() -> None:
    async def report(*_: Any) -> None: ...

    rig = Rig()
    with pytest.raises(ValueError, match="asynchronous"):
        rig.consumer.handler("report")(report)
    (row,) = rig.enqueue(1)
    future: Any = asyncio.Future(loop=asyncio.new_event_loop())
    rig.consumer.handler("report")(lambda *_: future)
    rig.run()
    assert row.state == "RETRY_WAIT"
    assert row.errors[0]["type"] == "TypeError"
    future.get_loop().close()


@pytest.mark.parametrize("body", ["[" * 100_000, '{"type": ' + "[" * 100_000])
def test_what_nests_without_end_is_unreadable(body: str) -> None:
    with pytest.raises(UnreadableMessage):
        parse_message(body)


class Saying:
    """A transport whose answers are what it was given."""

    def __init__(self, text: str) -> None:
        self._text = text

    def post(self, path: str, body: bytes) -> Reply:
        return Reply(200, {}, self._text)


@pytest.mark.parametrize("result", ["1", "null", '{"status": "x"}', '{"status": null}'])
def test_a_result_that_cannot_be_read_is_no_answer(result: str) -> None:
    transport = Saying(f'{{"results": [{result}]}}')
    api = WorkerApi(transport, RunningClock(), worker="rig:1", lease_seconds=60)
    with pytest.raises(NoAnswer):
        api.heartbeat([ITEM])
    with pytest.raises(NoAnswer):
        api.claim([ITEM], threading.Event())


@pytest.mark.parametrize(
    "error",
    [
        CredentialRetrievalError(provider="assume-role", error_msg="not now"),
        ClientError({"Error": {"Code": "Throttling"}}, "AssumeRole"),
    ],
)
def test_credentials_that_cannot_be_had_now_are_no_answer(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise error

    session = Session()
    monkeypatch.setattr(session, "get_credentials", fail)
    transport = SignedTransport(Endpoint("http://127.0.0.1:1", "eu-west-1"), session)
    with pytest.raises(OSError, match=r"not now|Throttling"):
        transport.post("/v1/occurrences/claim", b"{}")


def test_a_beat_that_fails_by_a_fault_of_ours_is_followed_by_others() -> None:
    clock = StandingClock()
    plane = WorkerPlane(clock.now)
    beaten = threading.Event()
    failures = [LookupError("a fault")]

    def after(route: str) -> None:
        if failures:
            raise failures.pop()
        beaten.set()

    plane.after = after
    api = WorkerApi(plane, clock, worker="rig:1", lease_seconds=60)
    leases = Leases(api, None, clock)
    work = work_of(1)
    row = plane.add(work.message.occurrence_id)
    row.state, row.tokens = "RUNNING", [work.token]
    leases.hold(work, clock.now() - 30)
    with leases.kept():
        assert beaten.wait(10)
    assert len(plane.called(HEARTBEAT)) >= 2
    assert not work.lost.is_set()


@pytest.mark.parametrize("tracking", ["TRACKED", "UNTRACKED"])
def test_a_long_lease_hides_its_message_before_the_queue_shows_it(
    tracking: str,
) -> None:
    clock = StandingClock()
    plane, queue = WorkerPlane(clock.now), MemoryQueue(clock.now)
    api = WorkerApi(plane, clock, worker="rig:1", lease_seconds=3_600)
    leases = Leases(api, queue, clock)
    work = work_of(1, tracking=tracking)
    row = plane.add(work.message.occurrence_id)
    row.state, row.tokens, row.lease_ends = "RUNNING", [work.token], clock.time + 3_600
    leases.hold(work, clock.now())
    hidden = []
    for seconds in (19, 1, 1_199, 1, 1_200):
        clock.time += seconds
        leases.beat()
        hidden.append(len(queue.hidden))
    assert hidden == [0, 1, 1, 2, 3]
    assert queue.hidden[0] == (["r1"], 3_600)


def test_a_message_whose_id_is_none_keeps_no_other_from_its_claim() -> None:
    rig = Rig(RunningClock())
    rows = rig.enqueue(1, 2, 3)
    rig.queue.put(body_of("nothing.like.an.id"))
    rig.plane.refuses = {"nothing.like.an.id"}
    rig.does()
    rig.run()
    assert {row.state for row in rows} == {"SUCCEEDED"}
    assert rig.queue.bodies() == [body_of("nothing.like.an.id")]
    sizes = [len(call["items"]) for call in rig.plane.called(CLAIM)]
    assert sizes[:5] == [4, 1, 1, 1, 1]


def test_a_name_longer_than_the_api_takes_is_refused() -> None:
    assert Options(worker="w" * 128).worker
    with pytest.raises(ValueError, match="worker"):
        Options(worker="w" * 129)


def test_what_a_busy_database_does_not_commit_is_rolled_back(tmp_path: Path) -> None:
    path = tmp_path / "books.db"
    with sqlite3.connect(path) as setup:
        setup.execute(SCHEMA)
    reader = sqlite3.connect(path)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM hourbell_done").fetchall()
    connection = sqlite3.connect(path, timeout=0)
    with (
        pytest.raises(sqlite3.OperationalError, match="locked"),
        once(connection, occurrence_id(1)) as first,
    ):
        assert first
    assert not connection.in_transaction
    reader.rollback()
    with once(connection, occurrence_id(1)) as first:
        assert first
    reader.close()
    connection.close()
