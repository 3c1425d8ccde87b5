"""Reading the message of a due occurrence."""

import json
from typing import Any

import pytest
from hourbell.consumer import Tracking
from hourbell.consumer.errors import UnreadableMessage
from hourbell.consumer.messages import parse_message

from tests.consumers.memory_queue import body_of, occurrence_id


def without(name: str) -> str:
    event = json.loads(body_of(occurrence_id(1)))
    (event if name in event else event["data"]).pop(name)
    return json.dumps(event)


def test_a_message_without_tracking_is_tracked() -> None:
    message = parse_message(without("tracking"))
    assert message is not None
    assert message.tracking is Tracking.TRACKED


def test_unknown_members_are_ignored() -> None:
    assert parse_message(body_of(occurrence_id(1), more=1)) is not None


@pytest.mark.parametrize("name", ["type", "id", "time", "handler", "payload", "data"])
def test_what_a_message_lacks_is_named(name: str) -> None:
    with pytest.raises(UnreadableMessage, match=f"no '{name}'"):
        parse_message(without(name))


@pytest.mark.parametrize(
    "members",
    [
        {"handler": ""},
        {"handler": 7},
        {"tracking": "HALF"},
        *({"send": wrong} for wrong in ("2", 0, 1.5, True, None)),
    ],
)
def test_what_a_message_has_wrong_is_refused(members: dict[str, Any]) -> None:
    name = members.pop("handler", "report")
    with pytest.raises(UnreadableMessage):
        parse_message(body_of(occurrence_id(1), name, **members))
