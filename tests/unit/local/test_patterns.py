"""Filter criteria mean here what they mean to Lambda."""

import json
from typing import Any

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.local.patterns import matches, parse_filters, passes
from hypothesis import given
from hypothesis import strategies as st

RECORD = {
    "eventName": "INSERT",
    "dynamodb": {
        "NewImage": {"state": {"S": "SCHEDULED"}, "tier": {"S": "premium"}},
        "SizeBytes": 120,
        "OldImage": None,
    },
}


def image(**members: Any) -> dict[str, Any]:
    return {"dynamodb": {"NewImage": members}}


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"eventName": ["INSERT"]}, True),
        ({"eventName": ["MODIFY", "INSERT"]}, True),
        ({"eventName": ["MODIFY"]}, False),
        ({"eventName": ["INSERT"], **image(state={"S": ["PLANNED"]})}, False),
        (image(state={"S": ["SCHEDULED"]}, tier={"S": ["premium"]}), True),
        (image(state={"S": [{"prefix": "SCHED"}]}), True),
        (image(state={"S": [{"prefix": "PLAN"}]}), False),
        (image(state={"S": [{"suffix": "ULED"}]}), True),
        (image(state={"S": [{"equals-ignore-case": "scheduled"}]}), True),
        (image(state={"S": [{"anything-but": ["PLANNED", "DEAD"]}]}), True),
        (image(state={"S": [{"anything-but": "SCHEDULED"}]}), False),
        (image(state={"S": [{"anything-but": [{"prefix": "SCHED"}]}]}), False),
        (image(absent={"S": [{"anything-but": "x"}]}), False),
        (image(absent={"S": [{"exists": False}]}), True),
        (image(state={"S": [{"exists": True}]}), True),
        (image(state={"S": [{"exists": False}]}), False),
        (image(state=[{"exists": True}]), False),
        ({"dynamodb": {"SizeBytes": [{"numeric": [">", 100, "<=", 120]}]}}, True),
        ({"dynamodb": {"SizeBytes": [{"numeric": ["<", 100]}]}}, False),
        ({"dynamodb": {"SizeBytes": [120]}}, True),
        ({"dynamodb": {"SizeBytes": [True]}}, False),
        ({"dynamodb": {"OldImage": [None]}}, True),
        ({"dynamodb": {"Absent": [None]}}, False),
        ({"$or": [{"eventName": ["MODIFY"]}, image(tier={"S": ["premium"]})]}, True),
        ({"$or": [{"eventName": ["MODIFY"]}, image(tier={"S": ["basic"]})]}, False),
        ({"eventName": {"deeper": ["INSERT"]}}, False),
    ],
)
def test_a_pattern_selects_the_records_it_describes(
    pattern: dict[str, Any], expected: bool
) -> None:
    (parsed,) = parse_filters({"Filters": [{"Pattern": json.dumps(pattern)}]})
    assert matches(parsed, RECORD) is expected


def test_one_of_several_filters_is_enough_and_no_filter_lets_all_pass() -> None:
    wanted, unwanted = {"eventName": ["INSERT"]}, {"eventName": ["REMOVE"]}
    assert passes([unwanted, wanted], RECORD)
    assert not passes([unwanted], RECORD)
    assert passes([], RECORD)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "at least one member"),
        ("{}", "at least one member"),
        ('{"eventName": "INSERT"}', "neither an object nor a list"),
        ('{"eventName": []}', "neither an object nor a list"),
        ('{"eventName": [{"wildcard": "*"}]}', "not a known rule"),
        ('{"eventName": [{"prefix": "a", "suffix": "b"}]}', "not a known rule"),
        ('{"eventName": [["INSERT"]]}', "a list inside a list"),
        ('{"size": [{"numeric": [">"]}]}', "numeric needs pairs"),
        ('{"size": [{"numeric": ["!", 1]}]}', "numeric needs pairs"),
    ],
)
def test_a_pattern_that_lambda_would_refuse_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as caught:
        parse_filters({"Filters": [{"Pattern": text}]})
    assert text[:70] in caught.value.message


@given(st.dictionaries(st.text(max_size=3), st.integers() | st.text(), min_size=1))
def test_every_record_matches_its_own_values(record: dict[str, Any]) -> None:
    pattern = {name: [found] for name, found in record.items() if name != "$or"}
    assert matches(pattern, record)
