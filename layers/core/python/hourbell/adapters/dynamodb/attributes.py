"""PynamoDB attribute types for Hourbell's values."""

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pynamodb.attributes import Attribute, JSONAttribute
from pynamodb.constants import BOOLEAN, LIST, MAP, NUMBER, STRING

from hourbell.adapters.letters import sortable_instant
from hourbell.domain.instants import (
    ceil_second,
    floor_minute,
    format_instant,
    parse_instant,
)
from hourbell.domain.misfire import Decision
from hourbell.domain.retry import ErrorClass, Failure, Retry

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)

E = TypeVar("E", bound=StrEnum)


class IntegerAttribute(Attribute[int]):
    """A whole number."""

    attr_type = NUMBER

    def serialize(self, value: int) -> str:
        """Write decimal digits."""
        return str(value)

    def deserialize(self, value: str) -> int:
        """Read decimal digits."""
        return int(value)


class FlagAttribute(Attribute[bool]):
    """True or false."""

    attr_type = BOOLEAN

    def serialize(self, value: bool) -> bool:  # noqa: FBT001 - PynamoDB's signature
        """Write it as it is."""
        return value

    def deserialize(self, value: bool) -> bool:  # noqa: FBT001 - PynamoDB's signature
        """Read it as it is."""
        return value


class InstantAttribute(Attribute[datetime]):
    """An instant as ISO 8601 text; a fraction is written only when there is one."""

    attr_type = STRING

    def serialize(self, value: datetime) -> str:
        """Write `2026-03-09T06:30:00Z`."""
        return format_instant(value)

    def deserialize(self, value: str) -> datetime:
        """Read what `serialize` wrote."""
        return datetime.fromisoformat(value)


class SortableInstantAttribute(InstantAttribute):
    """An instant of fixed width, whose text order is the order in time."""

    def serialize(self, value: datetime) -> str:
        """Write `2026-03-09T06:30:00.000000Z`."""
        return sortable_instant(value)


class ExpiryAttribute(Attribute[datetime]):
    """The instant after which DynamoDB may delete an item: epoch seconds.

    A fraction is rounded up, so that nothing is deleted before its time.
    """

    attr_type = NUMBER

    def serialize(self, value: datetime) -> str:
        """Write whole seconds since 1970."""
        return str((ceil_second(value) - _EPOCH) // timedelta(seconds=1))

    def deserialize(self, value: str) -> datetime:
        """Read whole seconds since 1970."""
        return _EPOCH + timedelta(seconds=int(value))


class EnumAttribute(Attribute[E], Generic[E]):
    """A member of a string enum, by its value."""

    attr_type = STRING

    def __init__(self, enum: type[E], **options: Any) -> None:  # noqa: ANN401
        super().__init__(**options)
        self.enum = enum

    def serialize(self, value: E) -> str:
        """Write the member's value."""
        return value.value

    def deserialize(self, value: str) -> E:
        """Read a member back.

        Raises:
            ValueError: the enum has no such member.
        """
        return self.enum(value)


class TextMapAttribute(Attribute[dict[str, str]]):
    """A map from text to text, such as tags."""

    attr_type = MAP

    def serialize(self, value: dict[str, str]) -> dict[str, dict[str, str]]:
        """Write a map of strings."""
        return {name: {STRING: text} for name, text in value.items()}

    def deserialize(self, value: dict[str, dict[str, str]]) -> dict[str, str]:
        """Read a map of strings."""
        return {name: typed[STRING] for name, typed in value.items()}


class TextsAttribute(Attribute[list[str]]):
    """A list of texts."""

    attr_type = LIST

    def serialize(self, value: list[str]) -> list[dict[str, str]]:
        """Write a list of strings."""
        return [{STRING: text} for text in value]

    def deserialize(self, value: list[dict[str, str]]) -> list[str]:
        """Read a list of strings."""
        return [typed[STRING] for typed in value]


class JsonTextAttribute(JSONAttribute):
    """A JSON value as compact text, no larger than the request that it came with.

    PynamoDB's own spells each character beyond ASCII in six bytes or twelve.
    """

    def serialize(self, value: Any) -> str:  # noqa: ANN401 - any JSON value
        """Write it with its characters as they are."""
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


class DecisionAttribute(Attribute[Decision]):
    """A decision about overdue times, as JSON text."""

    attr_type = STRING

    def serialize(self, value: Decision) -> str:
        """Write a JSON object; instants as ISO 8601 text."""
        members = {
            name: format_instant(found) if isinstance(found, datetime) else found
            for name, found in asdict(value).items()
        }
        return json.dumps(members, separators=(",", ":"))

    def deserialize(self, value: str) -> Decision:
        """Read what `serialize` wrote; members of a later release are ignored.

        Raises:
            ValueError, KeyError, TypeError: it is none.
        """
        members = json.loads(value)
        known = {each.name: members[each.name] for each in fields(Decision)}
        for name in ("as_of", "last", "runs_from", "following"):
            if known[name] is not None:
                known[name] = parse_instant(known[name], field=name)
        counts = [known[name] for name in ("count", "sequence", "runs", "per_minute")]
        if not all(type(each) is int for each in counts) or known["per_minute"] < 1:
            raise ValueError(f"not a decision: {value}")
        return Decision(**known)


class FailureAttribute(Attribute[Failure]):
    """Why an attempt ended badly, as JSON text."""

    attr_type = STRING

    def serialize(self, value: Failure) -> str:
        """Write a JSON object without what the failure lacks."""
        members = {
            name: found
            for name, found in asdict(value).items()
            if found not in (None, "")
        }
        return json.dumps(members, separators=(",", ":"), ensure_ascii=False)

    def deserialize(self, value: str) -> Failure:
        """Read what `serialize` wrote; members of a later release are ignored.

        Raises:
            ValueError, KeyError, TypeError: it is none.
        """
        members = json.loads(value)
        return Failure(
            error_class=ErrorClass(members["error_class"]),
            kind=members.get("kind", ""),
            message=members.get("message", ""),
            retry_after_seconds=members.get("retry_after_seconds"),
        )


class RetryAttribute(Attribute[Retry]):
    """A retry policy, as JSON text."""

    attr_type = STRING

    def serialize(self, value: Retry) -> str:
        """Write a JSON object with all members of the policy."""
        return json.dumps(asdict(value), separators=(",", ":"))

    def deserialize(self, value: str) -> Retry:
        """Read what `serialize` wrote; members of a later release are ignored."""
        return read_retry(json.loads(value))


def read_retry(members: Mapping[str, Any]) -> Retry:
    """Return the policy that has these members; others are ignored."""
    known = {each.name: members[each.name] for each in fields(Retry)}
    known["retryable"] = tuple(ErrorClass(each) for each in known["retryable"])
    return Retry(**known)


class WatermarksAttribute(Attribute[dict[int, datetime]]):
    """A map from shard to minute, as minutes since 1970.

    As numbers, 64 shards stay below 1 KB; as bucket names they would not.
    """

    attr_type = MAP

    def serialize(self, value: dict[int, datetime]) -> dict[str, dict[str, str]]:
        """Write a map of numbers, one per shard."""
        return {
            str(shard): {NUMBER: str((floor_minute(minute) - _EPOCH) // _MINUTE)}
            for shard, minute in value.items()
        }

    def deserialize(self, value: dict[str, dict[str, str]]) -> dict[int, datetime]:
        """Read a map of numbers, one per shard."""
        return {
            int(shard): _EPOCH + int(typed[NUMBER]) * _MINUTE
            for shard, typed in value.items()
        }


class CountsAttribute(Attribute[dict[int, int]]):
    """A map from small numbers to counts, such as the places taken in each second."""

    attr_type = MAP

    def serialize(self, value: dict[int, int]) -> dict[str, dict[str, str]]:
        """Write a map of numbers."""
        return {str(slot): {NUMBER: str(count)} for slot, count in value.items()}

    def deserialize(self, value: dict[str, dict[str, str]]) -> dict[int, int]:
        """Read a map of numbers."""
        return {int(slot): int(typed[NUMBER]) for slot, typed in value.items()}
