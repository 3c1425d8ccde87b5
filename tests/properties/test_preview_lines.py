"""No line, whatever it holds, makes `hourbell preview --jsonl` raise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hourbell.cli.preview import answer_line
from hypothesis import given
from hypothesis import strategies as st

VECTORS = Path(__file__).parents[1] / "vectors"
VALID = json.loads((VECTORS / "cron.json").read_text("utf-8"))
INVALID = json.loads((VECTORS / "invalid.json").read_text("utf-8"))


def known(member: str, kind: str) -> list[str]:
    texts = [vector[member] for vector in VALID]
    return texts + [each["value"] for each in INVALID if each["kind"] == kind]


@st.composite
def damaged(draw: st.DrawFn, texts: list[str]) -> str:
    """Draw a known text, mostly with a few characters replaced by others."""
    text = draw(st.sampled_from(texts))[:300]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        new = draw(st.text("0123456789*/-,?LW#MON() T:Z@\t\x00\u0665", max_size=2))
        text = text[:at] + new + text[at + draw(st.integers(0, 1)) :]
    return text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
requests = st.fixed_dictionaries(
    {
        "expression": damaged(known("expression", "expression")),
        "zone": damaged(known("zone", "zone")),
        "start": damaged(known("start", "timestamp")),
        "count": st.integers(1, 20),
    },
    optional={
        "dst": st.fixed_dictionaries(
            {
                "gap": st.sampled_from(["SKIP", "NEXT_VALID"]),
                "fold": st.sampled_from(["FIRST", "SECOND", "BOTH", "THIRD"]),
            }
        )
    },
)


def answer(line: bytes) -> dict[str, Any]:
    text = answer_line(line)
    assert "\n" not in text
    answered: dict[str, Any] = json.loads(text)
    return answered


@given(request=requests)
def test_a_damaged_request_gives_times_in_order_or_an_error(
    request: dict[str, Any],
) -> None:
    answered = answer(json.dumps(request).encode())

    if "times" in answered:
        assert answered["times"] == sorted(set(answered["times"]))
        assert len(answered["times"]) <= request["count"]
    else:
        assert set(answered["error"]) == {"code", "message"}


@given(
    member=st.sampled_from(["expression", "zone", "start", "count", "dst"]),
    value=json_values,
)
def test_any_json_value_in_a_member_is_answered(member: str, value: object) -> None:
    request = {
        "expression": "0 0 * * *",
        "zone": "UTC",
        "start": "2026-01-01T00:00:00Z",
        "count": 1,
        member: value,
    }

    assert set(answer(json.dumps(request).encode())) <= {"times", "error"}


@given(line=st.binary(max_size=200) | json_values.map(lambda v: json.dumps(v).encode()))
def test_any_bytes_are_answered_with_an_error(line: bytes) -> None:
    assert set(answer(line)["error"]) == {"code", "message"}
