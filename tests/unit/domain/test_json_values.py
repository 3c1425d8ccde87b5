"""JSON texts that stand for the same."""

import pytest
from hourbell.domain.json_values import is_same_json


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("null", "null", True),
        ('{"a":1,"b":{"c":2,"d":[3]}}', '{"b":{"d":[3],"c":2},"a":1}', True),
        ('"\\u00e9"', '"\u00e9"', True),
        ("[1,2]", "[2,1]", False),
        ("1", "1.0", False),
        ("1", "true", False),
        ("0", "false", False),
        ("1", '"1"', False),
        ("1", '["1"]', False),
        ("1e2", "100", False),
        ("{}", "[]", False),
        ("{}", "null", False),
        ('{"a":null}', "{}", False),
    ],
)
def test_only_the_order_of_members_does_not_count(
    one: str, other: str, *, expected: bool
) -> None:
    assert is_same_json(one, other) is expected
    assert is_same_json(other, one) is expected
