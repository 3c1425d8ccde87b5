"""Each example against fakes of the routes and the queue: every answer, every mishap.

The examples are programs and work by the wall clock, like what lies in this folder; a
stack they do not need.
"""

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from tests.consumers.examples import ALL, Example, Program, started
from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.server import FakeServer, serving
from tests.consumers.worker_plane import (
    CLAIM,
    COMPLETE,
    FAIL,
    HEARTBEAT,
    LOST_ANSWER,
    Fault,
)
from tests.e2e.conftest import eventually

WAIT_SECONDS = 40.0
# The shortest that there is.
LEASE = {"HOURBELL_LEASE_SECONDS": "10"}
NO_TIME = occurrence_id(1).replace("20260309", "20261399")
# As of a proxy between that answers by itself.
NO_RESULTS = Fault(status=200)
UNREADABLE = (
    "no JSON",
    "[]",
    '{"type": "com.hourbell.occurrence.due.v1"}',
    '{"type": "com.hourbell.occurrence.due.v1", "id": 7, "data": "x"}',
    # Claimed with others, these have all of them refused.
    body_of("no id"),
    body_of(NO_TIME),
)


@pytest.fixture(params=ALL, ids=[each.name for each in ALL])
def example(request: pytest.FixtureRequest) -> Example:
    return cast("Example", request.param)


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    with serving() as found:
        yield found


@pytest.fixture
def books(tmp_path: Path) -> Path:
    return tmp_path / "books"


def enqueue(fake: FakeServer, *numbers: int, **payload: object) -> None:
    """Let occurrences be due, and be sent again when Hourbell would."""
    for number in numbers:
        name = occurrence_id(number)
        order = {"account": f"a{number}", **payload}
        fake.plane.add(name)
        fake.queue.put(body_of(name, payload=order))
    bodies = {
        name: body_of(name, payload={"account": name, **payload})
        for name in fake.plane.rows
    }
    fake.plane.resend = lambda name: fake.queue.put(bodies[name])


def assert_all_done(fake: FakeServer, program: Program) -> None:
    def is_done() -> bool:
        states = {row.state for row in fake.plane.rows.values()}
        # What a killed one had received stays hidden.
        return states <= {"SUCCEEDED"} and not fake.queue.visible()

    done = eventually(is_done, WAIT_SECONDS)
    left = {name: row.state for name, row in fake.plane.rows.items()}
    assert done, (left, program.lines[-9:], program.errors[-9:])


def test_it_works_off_its_queue_whatever_answers_are_lost(
    example: Example, fake: FakeServer, books: Path
) -> None:
    enqueue(fake, *range(12))
    enqueue(fake, 12, fails=1)
    fake.queue.put(*[body_of(occurrence_id(n), payload={}) for n in (0, 3, 11)])
    fake.queue.put('{"type": "com.hourbell.handler.test.v1"}')
    fake.plane.go_wrong(CLAIM, LOST_ANSWER, Fault(status=503), NO_RESULTS)
    fake.plane.go_wrong(COMPLETE, LOST_ANSWER, Fault(item_status=503), NO_RESULTS)
    fake.plane.go_wrong(FAIL, LOST_ANSWER)
    with started(example, books, fake.environment()) as program:
        assert_all_done(fake, program)
        assert program.stop() in {0, -15}, program.errors
    assert example.books(books) == Counter(map(occurrence_id, range(13)))
    failed = fake.plane.rows[occurrence_id(12)]
    assert len(failed.tokens) == 2
    assert failed.errors[0]["class"] == "RETRYABLE"
    assert "us-east-1/execute-api/aws4_request" in fake.scopes


def test_what_it_may_not_run_it_deletes_and_what_fails_it_leaves(
    example: Example, fake: FakeServer, books: Path
) -> None:
    enqueue(fake, *range(4))
    answers = [("SKIP", "CANCELED"), ("BUSY", None), ("WAIT", "OVERLAP")]
    for number, answer in enumerate([*answers, ("ERROR", "unavailable")]):
        fake.plane.rows[occurrence_id(number)].answer = answer
    untracked, of_another_tenant = occurrence_id(9), occurrence_id(7)
    fake.plane.refuses = {"no id", NO_TIME}
    fake.queue.put(
        *UNREADABLE,
        body_of(untracked, tracking="UNTRACKED", payload={"account": "u"}),
        body_of(occurrence_id(8), handler="unknown"),
        body_of(of_another_tenant),
    )
    stays = len(UNREADABLE) + 3
    with started(example, books, fake.environment()) as program:
        assert eventually(lambda: len(fake.queue.bodies()) == stays, WAIT_SECONDS), (
            program.errors
        )
        program.stop()
    assert example.books(books) == Counter([untracked])
    left = fake.queue.bodies()
    assert set(UNREADABLE) < set(left)
    assert occurrence_id(3) in " ".join(left)
    assert occurrence_id(8) in " ".join(left)
    assert of_another_tenant in " ".join(left)


@pytest.mark.long
def test_killed_after_its_effect_another_finds_the_effect_done(
    example: Example, fake: FakeServer, books: Path
) -> None:
    enqueue(fake, 1, 2, seconds=4)
    environment = fake.environment() | LEASE
    with started(example, books, environment) as first:
        assert eventually(lambda: first.has_printed("booked"), WAIT_SECONDS)
        first.kill()
    with started(example, books, environment) as second:
        assert_all_done(fake, second)
        # Longer than a third of the lease: it was extended.
        assert fake.plane.called(HEARTBEAT)
        second.stop()
    assert example.books(books) == Counter([occurrence_id(1), occurrence_id(2)])
    assert all(len(row.tokens) == 2 for row in fake.plane.rows.values())


def test_a_stop_lets_it_finish_what_it_has(
    example: Example, fake: FakeServer, books: Path
) -> None:
    enqueue(fake, 1, seconds=0.4)
    with started(example, books, fake.environment()) as program:
        assert eventually(lambda: program.has_printed("working"), WAIT_SECONDS)
        began = time.monotonic()
        program.stop()
        assert time.monotonic() - began < 15
    assert {row.state for row in fake.plane.rows.values()} <= {
        "SUCCEEDED",
        # A Python handler that looks whether it should go on, does not.
        "RETRY_WAIT",
    }
    assert [row.state for row in fake.plane.rows.values()] != ["RUNNING"]
