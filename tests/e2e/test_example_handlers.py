"""What handlers of the examples may throw, and end neither a program nor its batch."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.consumers.examples import (
    ALL,
    ROOT,
    Example,
    in_nodejs,
    in_ruby,
    started,
)
from tests.consumers.memory_queue import body_of, occurrence_id
from tests.consumers.server import serving
from tests.consumers.worker_plane import CLAIM, Fault
from tests.e2e.conftest import eventually

PROGRAMS = ROOT / "tests/consumers"
THROWN = {
    "mjs": {
        "nothing": "RETRYABLE",
        "bare": "RETRYABLE",
        "symbol": "RETRYABLE",
        "mute": "RETRYABLE",
        "soon": "THROTTLED",
        "unequal": "THROTTLED",
        "forever": "THROTTLED",
        "permanent": "PERMANENT",
    },
    "rb": {
        "script": "RETRYABLE",
        "stack": "RETRYABLE",
        "thrown": "RETRYABLE",
        "mute": "RETRYABLE",
        "soon": "THROTTLED",
        "forever": "THROTTLED",
        "never": "THROTTLED",
        "permanent": "PERMANENT",
    },
}


@pytest.mark.parametrize(("kind", "command"), [("mjs", in_nodejs), ("rb", in_ruby)])
def test_whatever_a_handler_throws_is_told_and_ends_nothing(
    kind: str, command: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    program = PROGRAMS / f"odd_handlers.{kind}"
    example = Example(kind, lambda: command(program), lambda _: {})  # type: ignore[arg-type, return-value]
    thrown = THROWN[kind]
    with serving() as fake:
        names = {each: occurrence_id(n) for n, each in enumerate([*thrown, ""])}
        for each, name in names.items():
            fake.plane.add(name)
            fake.queue.put(body_of(name, payload={"thrown": each or None}))
        with started(example, tmp_path, fake.environment()) as consumer:
            rows = fake.plane.rows.values()
            over = {"RETRY_WAIT", "DEAD", "SUCCEEDED"}
            assert eventually(lambda: {row.state for row in rows} <= over, 20), (
                {each: fake.plane.rows[name].state for each, name in names.items()},
                consumer.errors[-9:],
            )
            assert consumer.process.poll() is None
            assert consumer.stop() == 0
    told = {each: fake.plane.rows[names[each]].errors[0]["class"] for each in thrown}
    assert told == thrown
    assert fake.plane.rows[names[""]].state == "SUCCEEDED"


@pytest.mark.parametrize(("kind", "command"), [("mjs", in_nodejs), ("rb", in_ruby)])
def test_untracked_work_is_done_while_nothing_can_be_claimed(
    kind: str, command: Callable[[Path], list[str]], tmp_path: Path
) -> None:
    program = PROGRAMS / f"odd_handlers.{kind}"
    example = Example(kind, lambda: command(program), lambda _: {})  # type: ignore[arg-type, return-value]
    tracked, untracked = occurrence_id(1), occurrence_id(2)
    with serving() as fake:
        fake.plane.add(tracked)
        fake.plane.go_wrong(CLAIM, *[Fault(status=503)] * 100)
        fake.queue.put(
            body_of(tracked), body_of(untracked, tracking="UNTRACKED", payload={})
        )
        with started(example, tmp_path, fake.environment()) as consumer:
            only = [body_of(tracked)]
            assert eventually(lambda: fake.queue.bodies() == only, 20), consumer.errors
            consumer.kill()
    assert fake.plane.rows[tracked].state == "ENQUEUED"


@pytest.mark.parametrize(
    "fault", [Fault(status=503), Fault(status=403)], ids=["in a claim", "after it"]
)
@pytest.mark.parametrize(("kind", "command"), [("mjs", in_nodejs), ("rb", in_ruby)])
def test_a_stop_ends_a_pause_at_once(
    kind: str, command: Callable[[Path], list[str]], fault: Fault, tmp_path: Path
) -> None:
    program = PROGRAMS / f"odd_handlers.{kind}"
    example = Example(kind, lambda: command(program), lambda _: {})  # type: ignore[arg-type, return-value]
    with serving() as fake:
        fake.plane.add(occurrence_id(1))
        fake.plane.go_wrong(CLAIM, *[fault] * 100)
        fake.queue.put(body_of(occurrence_id(1)))
        # A pause of 40 s in one, and of 100 s in the other.
        environment = fake.environment() | {"PAUSES": "100"}
        with started(example, tmp_path, environment) as consumer:
            # A refusal is told before the pause, what is tried again is not.
            assert eventually(
                lambda: bool(
                    consumer.errors if fault.status == 403 else fake.plane.called(CLAIM)
                ),
                20,
            )
            began = time.monotonic()
            assert consumer.stop() == 0, consumer.errors
            assert time.monotonic() - began < 20
    assert len(fake.plane.called(CLAIM)) == 1


@pytest.mark.parametrize("name", ["nodejs", "ruby"])
def test_a_request_may_take_half_a_lease_at_most(name: str, tmp_path: Path) -> None:
    (example,) = (each for each in ALL if each.name == name)
    over = threading.Event()
    with serving() as fake:
        row = fake.plane.add(occurrence_id(1))
        fake.queue.put(body_of(occurrence_id(1), payload={"account": "a"}))

        def hang(route: str) -> None:
            if len(fake.plane.called(CLAIM)) == 1:
                over.wait(30)

        fake.plane.after = hang
        environment = fake.environment() | {"HOURBELL_LEASE_SECONDS": "2"}
        with started(example, tmp_path / "books", environment) as consumer:
            # A second, and not the fifteen of longer leases; the answer is lost then.
            assert eventually(lambda: row.state == "SUCCEEDED", 10), consumer.errors
            over.set()
            assert consumer.stop() == 0
    assert len(fake.plane.called(CLAIM)) >= 2
    assert example.books(tmp_path / "books") == {occurrence_id(1): 1}
