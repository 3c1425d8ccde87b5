"""Tokens in payloads, as the message has them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hourbell.domain.definition import Definition, Version
from hourbell.domain.message import encode
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.packing import MAX_BYTES, encoded_size
from hourbell.domain.schedule import Timing
from hourbell.domain.template import TOKENS, fill
from hypothesis import example, given
from hypothesis import strategies as st

NOON = datetime(2026, 3, 9, 12, tzinfo=UTC)
ID = "sch01k3vq0f9m7s2d8x4w6b5n0t1y"
ROW = Occurrence(
    ID, 7, NOON, 0, "acme", 1, "2026f", NOON, State.SCHEDULED, available_at=NOON
)
VALUES = {
    "scheduled_for": "2026-03-09T12:00:00Z",
    "occurrence_id": f"{ID}.v7.20260309T120000Z",
    "schedule_name": "ops/nightly",
    "attempt": "1",
}

WORDS = st.sampled_from(
    [
        *(f"<{name}>" for name in TOKENS),
        *(f"<<{name}>>" for name in TOKENS),
        *("<", ">", "<<", ">>", "<time>", "<ATTEMPT>", "attempt", "\\", '"', "é\u2028"),
    ]
)
TEMPLATES = st.lists(WORDS | st.text(max_size=3), max_size=6).map("".join)


def jsons(strings: st.SearchStrategy[str]) -> st.SearchStrategy[object]:
    """Return JSON whose strings and names of members are such."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
        lambda inner: strings | st.lists(inner) | st.dictionaries(strings, inner),
        max_leaves=8,
    )


def body(payload_json: str, row: Occurrence = ROW, name: str = "ops/nightly") -> str:
    definition = Definition(Timing("@daily"), "ring", payload_json)
    version = Version(
        ID, row.version, "acme", name, definition, NOON, "2026f", NOON, "1:user/ann"
    )
    return encode(row, version, 1)


def arrives(payload_json: str) -> object:
    return json.loads(body(payload_json))["data"]["payload"]


def as_text(value: object, *, compact: bool = True) -> str:
    separators = (",", ":") if compact else (" , ", " : ")
    return json.dumps(value, ensure_ascii=False, separators=separators)


def filled(value: object) -> object:
    """Return what a parsed payload becomes, read from the rule."""
    if isinstance(value, list):
        return [filled(each) for each in value]
    if isinstance(value, dict):
        return {name: filled(each) for name, each in value.items()}
    if not isinstance(value, str):
        return value
    spellings = {f"<{name}>": text for name, text in VALUES.items()}
    spellings |= {f"<<{name}>>": f"<{name}>" for name in VALUES}
    done, rest = "", value
    while rest:
        longest = sorted(spellings, key=len, reverse=True)
        token = next((each for each in longest if rest.startswith(each)), rest[0])
        done += spellings.get(token, token)
        rest = rest[len(token) :]
    return done


@given(jsons(TEMPLATES), st.booleans())
@example("<<<attempt>>>", True)
@example({"<attempt>": "<attempt>"}, False)
def test_tokens_are_filled_in_as_the_rule_says(value: object, compact: bool) -> None:
    assert arrives(as_text(value, compact=compact)) == filled(value)


@given(jsons(st.text().filter(lambda text: "<" not in text)))
def test_a_payload_without_tokens_arrives_as_it_is(value: object) -> None:
    assert arrives(as_text(value)) == value


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ('"<scheduled_for>"', '"2026-03-09T12:00:00Z"'),
        ('"<occurrence_id>"', f'"{ID}.v7.20260309T120000Z"'),
        ('"<schedule_name>"', '"ops/nightly"'),
        ('["<attempt>",1.50,1E2,-0]', '["1",1.50,1E2,-0]'),
        ('"<<attempt>> <attempt>"', '"<attempt> 1"'),
        ('"<<attempt>"', '"<1"'),
        ('"<attempt>>"', '"1>"'),
        ('"<<<attempt>>>"', '"<<attempt>>"'),
        ('"<Attempt> < attempt > <time>"', '"<Attempt> < attempt > <time>"'),
        ('{"<attempt>":"<attempt>"}', '{"<attempt>":"1"}'),
        (r'"\\<attempt>\""', r'"\\1\""'),
        (r'"\\u003cattempt>"', r'"\\u003cattempt>"'),
    ],
)
def test_the_text_around_a_token_stays_as_it_was_accepted(
    payload: str, expected: str
) -> None:
    assert f'"payload":{expected}}}}}' in body(payload)


@given(st.text(), st.sampled_from(TOKENS))
def test_whatever_a_token_stands_for_stays_inside_its_string(
    text: str, name: str
) -> None:
    found = fill(f'["<{name}>","\\\\"]', dict.fromkeys(TOKENS, text))
    assert json.loads(found) == [text, "\\"]


def test_a_manual_run_is_named_as_its_message_is() -> None:
    row = replace(ROW, run="0123456789abcdef")
    message = json.loads(body('"<occurrence_id>"', row))
    assert message["data"]["payload"] == message["id"]
    assert message["id"].endswith(".r0123456789abcdef")


@pytest.mark.parametrize("token", TOKENS)
def test_the_largest_payload_of_nothing_but_tokens_fits_a_message(token: str) -> None:
    largest = 64 * 1024
    text = f"<{token}>"
    payload = f'"{text * ((largest - 2) // len(text))}"'
    assert largest - len(text) < encoded_size(payload) <= largest
    row = replace(ROW, version=9_999_999_999, run="0123456789abcdef")
    size = encoded_size(body(payload, row, name="n" * 128))
    # The longest value for the shortest token: 128 characters for 15.
    assert size < largest * 128 / 15 + 2_048 < MAX_BYTES
