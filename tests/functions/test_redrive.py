"""The handler of what delivery queues give up, on events of SQS."""

import json
from typing import Any

import pytest
from hourbell import bootstrap
from hourbell.domain.definition import Tracking
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import Sent
from hourbell.usecases.redrive import Returns

from functions.redrive.handler import handler
from tests.functions.conftest import Log, measured
from tests.functions.events import Context, sqs_event
from tests.unit.usecases.faults import AnsweringQueues
from tests.unit.usecases.world import World

NOTHING: dict[str, list[object]] = {"batchItemFailures": []}
DLQ = "arn:aws:sqs:eu-central-1:123456789012:hourbell-standard-dlq"
BESIDE = "arn:aws:sqs:eu-central-1:123456789012:hourbell-standard-dead"


def sent(world: World, tracking: Tracking) -> str:
    """Let a message be sent; return its text."""
    world.add(Timing("at(2026-03-09T12:00:30)"), tracking=tracking)
    world.scan()
    world.relay_stream()
    return world.queues.accepted[-1].entry.body


def given_up(*bodies: str) -> dict[str, Any]:
    event = sqs_event(bodies)
    for record in event["Records"]:
        record["eventSourceARN"] = DLQ
    return event


def counts(capsys: pytest.CaptureFixture[str]) -> dict[str, list[float]]:
    found = measured(capsys.readouterr().out)[()]
    return {name: value for name, value in found.items() if value != [0.0]}


def test_each_message_of_a_batch_finds_its_end(
    world: World, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    tracked = sent(world, Tracking.TRACKED)
    untracked = sent(world, Tracking.UNTRACKED)
    capsys.readouterr()
    assert handler(given_up(tracked, untracked, "hello", tracked), Context()) == NOTHING
    assert counts(capsys) == {
        "RedrivesDead": [1.0],
        "RedrivesUntracked": [1.0],
        "RedrivesUnreadable": [1.0],
        "RedrivesPast": [1.0],
    }
    letters = [each for each in world.queues.accepted if "dead" in each.queue]
    assert [each.queue for each in letters] == ["standard-dead", BESIDE]
    assert json.loads(letters[0].entry.body)["data"]["reason"] == "NEVER_RECEIVED"
    assert letters[1].entry.body == "hello"
    outcomes = [line["outcome"] for line in log.lines]
    assert outcomes == ["DEAD", "UNTRACKED", "UNREADABLE", "PAST"]
    told = {"occurrence_id", "tenant_id", "send"}
    name = json.loads(tracked)["id"]
    assert {key: log.lines[0][key] for key in told} == {
        "occurrence_id": name,
        "tenant_id": "acme",
        "send": 1,
    }
    states = {row.occurrence_id: row.state for row in world.rows()}
    assert states[name] is State.DEAD


def test_only_what_failed_comes_again(
    world: World,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tracked = sent(world, Tracking.TRACKED)
    queues = AnsweringQueues(world.queues, {"hello": Sent.RETRY, "bad": Sent.REFUSED})
    ports = Returns(world.workplace, queues)
    monkeypatch.setattr(bootstrap, "redrive_ports", lambda: ports)
    capsys.readouterr()
    assert handler(given_up("hello", tracked, "bad"), Context()) == {
        "batchItemFailures": [{"itemIdentifier": "m0"}, {"itemIdentifier": "m2"}]
    }
    assert counts(capsys) == {"RedrivesDead": [1.0], "RedrivesFailed": [2.0]}
    errors = [line["exception_name"] for line in log.lines if line["level"] == "ERROR"]
    assert errors == ["Transient", "Permanent"]
