"""schemas/message.json describes the messages that are really sent."""

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hourbell.domain.definition import Definition, Version
from hourbell.domain.message import encode
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

PATH = Path(__file__).parents[3] / "schemas" / "message.json"
SCHEMA = json.loads(PATH.read_text("utf-8"))
VALIDATOR = Draft202012Validator(
    SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER
)
NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
ID = "sch01k3vq0f9m7s2d8x4w6b5n0t1y"
ROW = Occurrence(
    ID, 1, NOON, 0, "acme", 1, "2026f", NOON, State.SCHEDULED, available_at=NOON
)
VERSION = Version(
    ID,
    1,
    "acme",
    "ops/nightly",
    Definition(Timing("@daily"), "ring"),
    NOON,
    "2026f",
    NOON,
    "1:user/ann",
)
PAYLOADS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("ab"), inner),
    max_leaves=5,
)


def message(row: Occurrence = ROW, payload: object = None, send: int = 1) -> Any:
    definition = replace(VERSION.definition, payload_json=json.dumps(payload))
    return json.loads(encode(row, replace(VERSION, definition=definition), send))


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@given(
    version=st.integers(1, 9_999_999_999),
    run=st.none() | st.text("0123456789abcdef", min_size=16, max_size=16),
    late=st.integers(0, 10**9),
    send=st.integers(1, 100),
    misfire=st.booleans(),
    payload=PAYLOADS,
)
def test_every_message_is_as_it_says(
    version: int,
    run: str | None,
    late: int,
    send: int,
    misfire: bool,
    payload: object,
) -> None:
    at = NOON + timedelta(microseconds=late)
    row = replace(ROW, version=version, available_at=at, misfire=misfire, run=run)
    VALIDATOR.validate(message(row, payload, send))


def test_it_names_every_member() -> None:
    sent = message()
    assert sent.keys() == set(SCHEMA["required"]) == SCHEMA["properties"].keys()
    data = SCHEMA["properties"]["data"]
    assert sent["data"].keys() == set(data["required"]) == data["properties"].keys()


def test_a_manual_run_is_told_by_its_id() -> None:
    sent = message(replace(ROW, run="0123456789abcdef"))
    assert sent["id"] == f"{ID}.v1.20260309T120000Z.r0123456789abcdef"
    VALIDATOR.validate(sent)


WRONG: dict[str, Callable[[dict[str, Any]], object]] = {
    "no id": lambda sent: sent.pop("id"),
    "another type": lambda sent: sent.update(type="com.hourbell.handler.test.v1"),
    "an id of another form": lambda sent: sent.update(id=f"{ID}.v0.20260309T120000Z"),
    "a run of another form": lambda sent: sent.update(id=sent["id"] + ".r12"),
    "a local time": lambda sent: sent.update(time="2026-03-09T12:00:00+01:00"),
    "no time": lambda sent: sent.update(time="noonZ"),
    "no payload": lambda sent: sent["data"].pop("payload"),
    "no word on tracking": lambda sent: sent["data"].pop("tracking"),
    "half tracked": lambda sent: sent["data"].update(tracking="HALF"),
    "an attempt before the first": lambda sent: sent["data"].update(attempt=0),
    "a send before the first": lambda sent: sent["data"].update(send=0),
    "a flag that is a text": lambda sent: sent["data"].update(misfire="no"),
    "a broken trace": lambda sent: sent.update(traceparent="00-00-00-01"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_message_is_noticed(what: str) -> None:
    sent = message()
    WRONG[what](sent)
    assert not VALIDATOR.is_valid(sent)
