"""What the worker routes are asked, and how their answers are read."""

import threading
from typing import Any

import pytest
from hourbell.consumer.api import ErrorClass, Failure, Held, WorkerApi
from hourbell.consumer.clock import Backoff, SystemClock
from hourbell.consumer.errors import ApiRefused, NoAnswer
from hourbell.consumer.http import Reply

from tests.consumers.memory_queue import occurrence_id
from tests.consumers.rig import RunningClock
from tests.consumers.worker_plane import (
    CLAIM,
    NO_CONNECTION,
    TOKEN,
    Fault,
    WorkerPlane,
)

ITEM = Held(occurrence_id(1), "token-00000000000001", 1)


def api_on(transport: Any, clock: RunningClock | None = None) -> WorkerApi:
    return WorkerApi(
        transport, clock or RunningClock(), worker="rig:1", lease_seconds=60
    )


class Saying:
    """A transport that always says the same."""

    def __init__(self, status: int, text: str) -> None:
        self._reply = Reply(status, {}, text)

    def post(self, path: str, body: bytes) -> Reply:
        return self._reply


@pytest.mark.parametrize(
    "text", ["", "no json", "[]", "{}", '{"results": 1}', '{"results": []}']
)
def test_what_is_no_answer_is_none(text: str) -> None:
    with pytest.raises(NoAnswer):
        api_on(Saying(200, text)).complete(ITEM)


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
def test_what_may_pass_by_itself_is_no_answer(status: int) -> None:
    with pytest.raises(NoAnswer):
        api_on(Saying(status, "")).heartbeat([ITEM])


@pytest.mark.parametrize(
    ("status", "text", "code", "detail"),
    [
        (400, '{"code": "invalid_input", "detail": "bad"}', "invalid_input", "bad"),
        (403, '{"message": "Forbidden"}', "", '{"message": "Forbidden"}'),
        (413, "<html>", "", "<html>"),
    ],
)
def test_a_refusal_has_its_code(status: int, text: str, code: str, detail: str) -> None:
    with pytest.raises(ApiRefused, match=f"HTTP {status}") as caught:
        api_on(Saying(status, text)).fail(
            ITEM, Failure(ErrorClass.RETRYABLE, "ValueError", "no")
        )
    assert caught.value.status == status
    assert caught.value.code == code
    assert str(caught.value).endswith(detail)


def test_a_claim_is_repeated_with_growing_pauses_and_then_given_up() -> None:
    clock = RunningClock()
    plane = WorkerPlane(clock.now)
    plane.go_wrong(CLAIM, *[NO_CONNECTION] * 4)
    with pytest.raises(NoAnswer):
        api_on(plane, clock).claim([ITEM], threading.Event())
    assert len(plane.called(CLAIM)) == 4
    # Full jitter of 0.2, 0.4 and 0.8 s at a chance of 3/4.
    assert clock.pauses == pytest.approx([0.15, 0.3, 0.6])


@pytest.mark.parametrize(
    ("value", "pause"), [("7", 7.0), ("3600", 60.0), ("soon", 0.15), ("-1", 0.15)]
)
def test_a_pause_that_is_asked_for_is_kept_up_to_a_minute(
    value: str, pause: float
) -> None:
    clock = RunningClock()
    plane = WorkerPlane(clock.now)
    plane.add(ITEM.occurrence_id)
    plane.go_wrong(CLAIM, Fault(status=429, headers={"retry-after": value}))
    api_on(plane, clock).claim([ITEM], threading.Event())
    assert clock.pauses == pytest.approx([pause])


def test_a_stop_ends_the_repetition_of_a_claim() -> None:
    clock = RunningClock()
    plane = WorkerPlane(clock.now)
    plane.go_wrong(CLAIM, *[NO_CONNECTION] * 4)
    stopping = threading.Event()
    stopping.set()
    with pytest.raises(NoAnswer):
        api_on(plane, clock).claim([ITEM], stopping)
    assert len(plane.called(CLAIM)) == 1


def test_the_time_to_wait_is_no_less_than_none() -> None:
    failure = Failure(ErrorClass.THROTTLED, "t" * 200, "", -5)
    assert failure.document() == {
        "class": "THROTTLED",
        "type": "t" * 128,
        "message": "",
        "retry_after_seconds": 0,
    }


@pytest.mark.parametrize(
    ("failures", "expected"), [(0, 0.2), (1, 0.2), (2, 0.4), (5, 3.2), (9_999, 5.0)]
)
def test_pauses_double_up_to_their_longest(failures: int, expected: float) -> None:
    assert Backoff().seconds(failures, 1.0) == pytest.approx(expected)
    assert Backoff().seconds(failures, 0.0) == 0.0


def test_the_machine_has_time_chance_and_tokens() -> None:
    clock = SystemClock()
    event = threading.Event()
    event.set()
    assert clock.wait(event, 60)
    assert clock.now() <= clock.now()
    assert 0 <= clock.chance() < 1
    assert TOKEN.fullmatch(clock.token())
    assert clock.token() != clock.token()
