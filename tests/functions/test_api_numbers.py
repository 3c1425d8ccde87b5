"""Numbers of payloads are passed on as they were written."""

import json

import pytest
from hourbell.api.json_text import Number, read_json, write_json

from tests.functions.conftest import Api
from tests.functions.schedules import BELL, PATH, patch, versions

NUMBERS = (
    "3.14159265358979323846264",
    "1e-400",
    "1.50",
    "1E+2",
    "-0",
    "-0.0",
    "12345678901234567890123",
    "9007199254740993",
    "0.1",
)
KEY = {"Idempotency-Key": "k"}


def body(payload: str, **fields: object) -> str:
    return f'{json.dumps(BELL | fields)[:-1]}, "payload": {payload}}}'


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_stays_as_it_was_written(api: Api, number: str) -> None:
    payload = f'{{"n":[{number}]}}'
    made = api.call("POST", PATH, body(payload))
    assert made.status == 201, made.text
    schedule_id = made.body["schedule_id"]
    (stored,) = api.world.store.versions.values()
    assert stored.definition.payload_json == payload
    shown = [
        made.text,
        api.call("GET", f"{PATH}/{schedule_id}").text,
        versions(api, schedule_id).text,
    ]
    assert all(f'"payload":{payload}' in text for text in shown)


def test_a_patch_leaves_the_numbers_that_it_does_not_name(api: Api) -> None:
    made = api.call("POST", PATH, body('{"keep":1.50,"change":1}')).body
    same = patch(api, made["schedule_id"], {"payload": {"change": 1}})
    assert same.body["version"] == 1
    text = '{"payload": {"change": 2.50}}'
    changed = patch(api, made["schedule_id"], text)
    assert '"payload":{"keep":1.50,"change":2.50}' in changed.text


def test_a_number_written_otherwise_is_another_request(api: Api) -> None:
    first = api.call("POST", PATH, body("1.5"), headers=KEY)
    again = api.call("POST", PATH, body("1.5"), headers=KEY)
    other = api.call("POST", PATH, body("1.50"), headers=KEY)
    assert first.body == again.body
    assert (other.status, other.code) == (409, "idempotency_key_reused")


def test_a_number_of_the_wrong_type_is_shown_as_written(api: Api) -> None:
    text = body("1")[:-1] + ', "max_occurrences": 1.50, "exclude": [2.50]}'
    found = api.call("POST", PATH, text).findings
    assert found["max_occurrences"]["found"] == "1.50"
    assert found["max_occurrences"]["code"] == "wrong_type"
    assert "a decimal number" in found["exclude[0]"]["message"]


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[true,false,null]",
        '{"b":1,"a":{"d":"\\n","c":[]}}',
        '"\U0001f514"',
        "{}",
    ],
)
def test_what_is_written_is_what_was_read(text: str) -> None:
    assert write_json(read_json(text)) == text


def test_members_are_sorted_at_every_depth() -> None:
    value = read_json('{"b":[{"d":1,"c":2.0}],"a":-0}')
    assert write_json(value, sort_keys=True) == '{"a":-0,"b":[{"c":2.0,"d":1}]}'


def test_a_number_counts_as_the_double_next_to_it() -> None:
    assert Number("1.50") == 1.5
