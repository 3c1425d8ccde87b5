"""`hourbell shards`, against the API's handler."""

import io
import json
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from datetime import timedelta
from typing import Any

import pytest
from hourbell.adapters.memory.shards import MemoryMoveQueue
from hourbell.adapters.messages import encode_move
from hourbell.cli import client, shards
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.schedule import Timing
from typer.testing import CliRunner, Result

from functions.jobs.handler import handler
from tests.functions.conftest import Api
from tests.functions.events import Context, api_event, sqs_event
from tests.functions.test_api_tenants import PLATFORM
from tests.unit.usecases.world import START

Run = Callable[..., Result]
SINCE = f"{START + timedelta(minutes=11):%Y-%m-%dT%H:%M:%SZ}"


@pytest.fixture
def slept() -> list[float]:
    return []


@pytest.fixture
def run(
    api: Api,
    move_queue: MemoryMoveQueue,
    slept: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> Run:
    """Run the command as the platform role; the mover works while it waits."""
    monkeypatch.setenv("HOURBELL_API_URL", "http://127.0.0.1:9/prod")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.setenv("COLUMNS", "200")

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        api.world.clock.advance(EPOCH_LAG)
        bodies = [encode_move(order) for order, _ in move_queue.orders]
        move_queue.orders.clear()
        if bodies:
            with redirect_stdout(io.StringIO()):
                handler(sqs_event(bodies), Context())

    monkeypatch.setattr("hourbell.cli.shards.sleep", sleep)

    def send(
        _self: client.Api,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> client.Answer:
        event = api_event(method, path, body, arn=PLATFORM, headers=headers)
        with redirect_stdout(io.StringIO()):
            answer = api.send(event)
        return client.Answer(answer.status, answer.text)

    monkeypatch.setattr(client.Api, "send", send)
    return lambda *words: CliRunner().invoke(shards.app, words)


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def lines(result: Result) -> list[str]:
    """Return what was printed, with single blanks and without frames."""
    assert result.exit_code == 0, result.output
    plain = result.stdout.replace("│", " ")
    return [" ".join(line.split()) for line in plain.splitlines()]


def test_the_shard_counts_are_shown(run: Run) -> None:
    shown = lines(run("show"))
    assert "the beginning 4 2" in shown
    assert any(line.startswith("phase SETTLED since") for line in shown)
    # Nobody announced it, and nothing is on its way.
    assert not [line for line in shown if line.startswith(("announced", "walk"))]


def test_a_change_is_shown_as_it_is_announced(run: Run, slept: list[float]) -> None:
    shown = lines(run("change", "--to", "16"))
    assert "the beginning 4 2" in shown
    assert f"{SINCE} 16 2" in shown
    assert any(line.startswith("phase ANNOUNCED since") for line in shown)
    assert f"announced by {PLATFORM}" in shown
    assert "walk 0: 0 of 4" in shown
    assert "left for the next 0" in shown
    assert slept == []


def test_a_program_reads_what_the_api_says(run: Run) -> None:
    later = f"{START + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
    words = ("--to", "64", "--groups", "8", "--since", later, "--json")
    changed = told(run("change", *words))
    assert changed["epochs"][-1] == {
        "since": later,
        "shards": 64,
        "groups": 8,
        "phase": "ANNOUNCED",
    }
    assert told(run("show", "--json")) == changed
    assert told(run("resume", "--json")) == changed


def test_who_waits_is_told_when_all_rows_have_been_moved(
    api: Api, run: Run, slept: list[float]
) -> None:
    for _ in range(20):
        api.world.add(Timing("0 0 1 1 *"))
    settled = told(run("change", "--to", "16", "--wait", "--json"))
    assert settled["epochs"][-1]["phase"] == "SETTLED"
    assert settled["move"]["moved"] > 0
    # Announced, moving, the walk is ordered, and done.
    assert slept == [2.0] * 3
    assert "moved 0" not in lines(run("show"))


def test_a_lost_order_is_made_up_for(
    run: Run, move_queue: MemoryMoveQueue, slept: list[float]
) -> None:
    run("change", "--to", "16")
    move_queue.orders.clear()
    shown = lines(run("resume", "--wait"))
    assert any(line.startswith("phase SETTLED since") for line in shown)
    assert len(slept) == 3
    # There is nothing to wait for any more.
    run("resume", "--wait")
    assert len(slept) == 3


def test_a_refusal_is_told_and_not_waited_for(run: Run, slept: list[float]) -> None:
    refused = run("change", "--to", "1", "--wait")
    assert (refused.exit_code, "shards must be 2 to" in refused.stderr) == (1, True)
    same = run("change", "--to", "4", "--wait")
    assert (same.exit_code, "shards_unchanged" in same.stderr) == (1, True)
    assert slept == []
    assert run("change").exit_code == 2


def test_waiting_ends_with_the_first_answer_that_is_none(
    api: Api, run: Run, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    del api

    def fail(_: float) -> None:
        slept.append(2.0)
        monkeypatch.setattr(
            client.Api, "send", lambda *_: client.Answer(403, '{"code":"forbidden"}')
        )

    monkeypatch.setattr("hourbell.cli.shards.sleep", fail)
    failed = run("change", "--to", "16", "--wait")
    assert failed.exit_code == 1
    assert len(slept) == 1
