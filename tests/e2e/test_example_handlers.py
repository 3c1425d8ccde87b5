"""What handlers of the examples may throw, and end neither a program nor its batch."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.consumers.examples import ROOT, Example, in_nodejs, in_ruby, started
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
