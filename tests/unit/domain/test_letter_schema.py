"""schemas/dead-letter.json describes the letters that are really sent."""

import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hourbell.domain.letter import encode_letter, encode_unreceived
from hourbell.domain.occurrence import State
from hourbell.domain.retry import DeadReason, ErrorClass, Failure
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.unit.domain.test_message_schema import NOON, ROW, VERSION
from tests.unit.domain.test_message_schema import SCHEMA as MESSAGE

PATH = Path(__file__).parents[3] / "schemas" / "dead-letter.json"
SCHEMA = json.loads(PATH.read_text("utf-8"))
VALIDATOR = Draft202012Validator(
    SCHEMA, format_checker=Draft202012Validator.FORMAT_CHECKER
)
DEAD = replace(
    ROW,
    state=State.DEAD,
    sends=3,
    attempt=5,
    attempts_before=2,
    reason=DeadReason.ATTEMPTS_USED_UP,
    failure=Failure(ErrorClass.THROTTLED, "Busy", "later", 30),
    finished_at=NOON + timedelta(hours=1),
)


def test_it_is_a_schema() -> None:
    Draft202012Validator.check_schema(SCHEMA)


@given(
    reason=st.sampled_from(DeadReason),
    error_class=st.none() | st.sampled_from(ErrorClass),
    texts=st.tuples(st.text(max_size=128), st.text(max_size=1_024)),
    sends=st.integers(0, 9),
    late=st.integers(0, 10**12),
)
def test_every_letter_is_as_it_says(
    reason: DeadReason,
    error_class: ErrorClass | None,
    texts: tuple[str, str],
    sends: int,
    late: int,
) -> None:
    failure = None if error_class is None else Failure(error_class, *texts)
    died_at = NOON + timedelta(microseconds=late)
    row = replace(
        DEAD, reason=reason, failure=failure, sends=sends, finished_at=died_at
    )
    VALIDATOR.validate(json.loads(encode_letter(row, VERSION)))


def test_it_names_every_member_and_every_reason() -> None:
    sent = json.loads(encode_letter(DEAD, VERSION))
    assert sent.keys() == set(SCHEMA["required"]) == SCHEMA["properties"].keys()
    data = SCHEMA["properties"]["data"]
    assert sent["data"].keys() == set(data["required"]) == data["properties"].keys()
    reasons = data["properties"]["reason"]["enum"]
    assert reasons == [*DeadReason, "NEVER_RECEIVED"]
    kinds = data["properties"]["failure"]["anyOf"][1]["properties"]["class"]["enum"]
    assert kinds == list(ErrorClass)


def test_what_a_message_has_a_letter_has_as_well() -> None:
    message = MESSAGE["properties"]["data"]["properties"]
    own = SCHEMA["properties"]["data"]["properties"]
    assert {name: own[name] for name in message if name != "send"} == {
        name: each for name, each in message.items() if name != "send"
    }


def test_a_letter_says_why_when_and_how_often() -> None:
    data = json.loads(encode_letter(DEAD, VERSION))["data"]
    told = {name: data[name] for name in ("reason", "failure", "attempts", "died_at")}
    assert told == {
        "reason": "ATTEMPTS_USED_UP",
        "failure": {"class": "THROTTLED", "type": "Busy", "message": "later"},
        "attempts": 3,
        "died_at": "2026-03-09T13:00:00Z",
    }
    assert data["send"] == 3


@pytest.mark.parametrize(
    ("enqueued", "started", "attempt"),
    [
        # The message that the last attempt had.
        (NOON, NOON + timedelta(seconds=5), 3),
        # Claimed before its send was noted.
        (None, NOON, 3),
        # One that nobody claimed any more.
        (NOON + timedelta(hours=1), NOON, 4),
        (NOON, None, 4),
    ],
)
def test_its_attempt_is_that_of_the_message(
    enqueued: datetime | None, started: datetime | None, attempt: int
) -> None:
    row = replace(DEAD, enqueued_at=enqueued, started_at=started)
    definition = replace(VERSION.definition, payload_json='"<attempt>"')
    letter = json.loads(encode_letter(row, replace(VERSION, definition=definition)))
    data = letter["data"]
    assert (data["attempt"], data["payload"]) == (attempt, str(attempt))
    assert data["attempts"] == 3


def test_a_message_that_was_given_up_makes_a_letter_of_its_own_reason() -> None:
    sent = json.loads(encode_unreceived(replace(ROW, sends=1), VERSION, NOON))
    VALIDATOR.validate(sent)
    assert sent["data"]["reason"] == "NEVER_RECEIVED"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reason", "BORED"),
        ("failure", {"class": "RETRYABLE"}),
        ("attempts", -1),
        ("died_at", "yesterday"),
        ("send", -1),
    ],
)
def test_a_wrong_letter_is_noticed(name: str, value: Any) -> None:
    sent = json.loads(encode_letter(DEAD, VERSION))
    sent["data"][name] = value
    assert not VALIDATOR.is_valid(sent)
