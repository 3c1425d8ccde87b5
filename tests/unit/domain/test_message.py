"""The queue message."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hourbell.domain.definition import Definition, Tracking, Version
from hourbell.domain.message import encode, traceparent
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hypothesis import given
from hypothesis import strategies as st

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
ROW = Occurrence(
    "sch1", 1, NOON, 0, "acme", 1, "2026f", NOON, State.SCHEDULED, available_at=NOON
)
VERSION = Version(
    "sch1",
    1,
    "acme",
    "bell",
    Definition(Timing("@daily"), "ring"),
    NOON,
    "2026f",
    NOON,
    "1:user/ann",
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda children: st.lists(children) | st.dictionaries(st.text("ab"), children),
)


@given(json_values)
def test_any_payload_arrives_and_the_body_is_what_the_queue_accepts(
    value: object,
) -> None:
    text = json.dumps(value, ensure_ascii=False)
    definition = replace(VERSION.definition, payload_json=text)
    body = encode(ROW, replace(VERSION, definition=definition), 1)
    assert json.loads(body)["data"]["payload"] == value
    assert not {"\ufffe", "\uffff"} & set(body)
    assert all(char >= " " or char in "\t\n\r" for char in body)


def test_available_at_is_told_beside_the_nominal_time() -> None:
    row = replace(ROW, available_at=NOON + timedelta(seconds=7))
    event = json.loads(encode(row, VERSION, 2))
    assert event["time"] == "2026-03-09T12:00:00Z"
    assert event["data"]["available_at"] == "2026-03-09T12:00:07Z"
    assert event["data"]["send"] == 2


def test_a_consumer_is_told_whether_to_claim() -> None:
    for tracking in Tracking:
        definition = replace(VERSION.definition, tracking=tracking)
        body = encode(ROW, replace(VERSION, definition=definition), 1)
        assert json.loads(body)["data"]["tracking"] == tracking.value


def test_the_attempt_is_that_which_a_claim_would_begin() -> None:
    definition = replace(VERSION.definition, payload_json='"<attempt>"')
    version = replace(VERSION, definition=definition)
    # Seven attempts, five of which were before the last replay.
    tried = replace(ROW, attempt=7, attempts_before=5)
    for row, expected in ((ROW, 1), (tried, 3)):
        data = json.loads(encode(row, version, 1))["data"]
        assert (data["attempt"], data["payload"]) == (expected, str(expected))


def test_all_sends_of_an_occurrence_share_one_trace() -> None:
    first, second = (traceparent(ROW.occurrence_id, send) for send in (1, 2))
    assert first.split("-")[1] == second.split("-")[1]
    assert first.split("-")[2] != second.split("-")[2]
    assert [len(part) for part in first.split("-")] == [2, 32, 16, 2]
