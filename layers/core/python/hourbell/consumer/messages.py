"""The message of a due occurrence, as it lies in a queue."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from hourbell.consumer.errors import UnreadableMessage

DUE: Final = "com.hourbell.occurrence.due.v1"
"""The CloudEvents type of a due occurrence."""
TEST: Final = "com.hourbell.handler.test.v1"
"""That of the message that an external queue gets when it is registered."""


class Tracking(StrEnum):
    """Whether Hourbell keeps the occurrence's state: TRACKED ones are claimed."""

    TRACKED = "TRACKED"
    UNTRACKED = "UNTRACKED"


@dataclass(frozen=True, slots=True)
class Message:
    """A due occurrence.

    Attributes:
        occurrence_id: the same in every message of the occurrence; deduplicate on it.
        handler: what is to be done.
        tracking: UNTRACKED ones are worked on without a claim.
        scheduled_for: the nominal time.
        available_at: when it may be worked on at the earliest.
        schedule_name: the schedule's, as it was when the message was sent.
        version: of the schedule, to which the occurrence belongs.
        send: 1 for the occurrence's first message.
        misfire: whether it was reached late.
        payload: any JSON.
        traceparent: W3C trace context; empty when there is none.
    """

    occurrence_id: str
    handler: str
    tracking: Tracking
    scheduled_for: datetime
    available_at: datetime
    schedule_name: str
    schedule_id: str
    version: int
    tenant: str
    send: int
    misfire: bool
    payload: Any
    traceparent: str


def parse_message(body: str) -> Message | None:
    """Read a message's body; None for a test message, which asks for nothing.

    Unknown members are ignored; without `data.tracking` it is TRACKED.

    Raises:
        UnreadableMessage: it is neither.
    """
    try:
        event = json.loads(body)
        kind = event["type"]
        if kind == TEST:
            return None
        if kind != DUE:
            raise UnreadableMessage(f"Its type is {kind!r}, not {DUE!r}.")
        return _of(event, event["data"])
    except KeyError as error:
        raise UnreadableMessage(f"It has no {error.args[0]!r}.") from error
    except (TypeError, ValueError, RecursionError) as error:
        raise UnreadableMessage(f"It cannot be read: {error}.") from error


def _of(event: Mapping[str, Any], data: Mapping[str, Any]) -> Message:
    return Message(
        occurrence_id=_text(event, "id"),
        handler=_text(data, "handler"),
        tracking=Tracking(data.get("tracking", Tracking.TRACKED)),
        scheduled_for=datetime.fromisoformat(event["time"]),
        available_at=datetime.fromisoformat(data["available_at"]),
        schedule_name=event["subject"],
        schedule_id=data["schedule_id"],
        version=data["version"],
        tenant=_text(data, "tenant"),
        send=_number(data, "send"),
        misfire=data["misfire"],
        payload=data["payload"],
        traceparent=event.get("traceparent", ""),
    )


def _text(members: Mapping[str, Any], name: str) -> str:
    value = members[name]
    if not isinstance(value, str) or not value:
        raise UnreadableMessage(f"Its {name!r} is {value!r}, not a text.")
    return value


def _number(members: Mapping[str, Any], name: str) -> int:
    value = members[name]
    if type(value) is not int or value < 1:
        raise UnreadableMessage(f"Its {name!r} is {value!r}, not a number from 1.")
    return value
