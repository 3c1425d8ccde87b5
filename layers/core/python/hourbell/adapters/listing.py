"""The cursor of a listing: which list shard comes next, and after which key."""

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Final

from hourbell.domain.definition import Schedule
from hourbell.domain.errors import InvalidInput

_VERSION: Final = 1
_MAX_TEXT: Final = 2_048
_MAX_KEY_BYTES: Final = 1_024
_KEY: Final = re.compile(r"(.+)#(sch[0-9a-z]{26})", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Position:
    """Where a listing goes on.

    Attributes:
        shard: the list shard that is read next.
        key: the listing key of the last schedule read in it; None at its beginning.
    """

    shard: int
    key: str | None = None

    @property
    def schedule_id(self) -> str | None:
        """The id of the last schedule read."""
        return None if self.key is None else self.key.rpartition("#")[2]

    def written(self) -> str:
        """Return it as text for the caller to pass back."""
        members = {"v": _VERSION, "shard": self.shard, "key": self.key}
        text = json.dumps(members, separators=(",", ":"), ensure_ascii=False)
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def listing_key(schedule: Schedule) -> str:
    """Return the key that orders a list shard by name: `<name>#<schedule_id>`."""
    return f"{schedule.name}#{schedule.schedule_id}"


def position_of(
    text: str | None, *, prefix: str, shards: int, form: re.Pattern[str] = _KEY
) -> Position:
    """Read what `written` gave; the beginning when None.

    Args:
        text: what the caller passed back.
        prefix: of the names; a key outside of it belongs to another listing.
        shards: how many list shards there are.
        form: of the keys; of a listing of schedules when not given.

    Raises:
        InvalidInput: code `invalid_cursor`.
    """
    if text is None:
        return Position(0)
    match _members(text):
        case {"v": 1, "shard": int(shard), "key": None, **rest} if not rest:
            position = Position(int(shard))
        case {"v": 1, "shard": int(shard), "key": str(key), **rest} if not rest:
            position = Position(int(shard), _checked(key, prefix, form, text))
        case _:
            raise invalid_cursor(text)
    # The same position must have one text, so that `true` is no 1.
    if not 0 <= position.shard < shards or position.written() != text:
        raise invalid_cursor(text)
    return position


def _members(text: str) -> object:
    if len(text) > _MAX_TEXT:
        raise invalid_cursor(text)
    try:
        padded = text + "=" * (-len(text) % 4)
        content = base64.b64decode(padded, altchars=b"-_", validate=True)
        return json.loads(content)
    except (binascii.Error, ValueError, RecursionError) as error:
        raise invalid_cursor(text) from error


def _checked(key: str, prefix: str, form: re.Pattern[str], text: str) -> str:
    parts = form.fullmatch(key)
    try:
        length = len(key.encode())
    except UnicodeEncodeError as error:
        raise invalid_cursor(text) from error
    if parts is None or not key.startswith(prefix) or length > _MAX_KEY_BYTES:
        raise invalid_cursor(text)
    return key


def invalid_cursor(text: str) -> InvalidInput:
    """Return the error about a text that is no cursor of this listing."""
    return InvalidInput.of(
        "cursor",
        "invalid_cursor",
        "the cursor is not one that an earlier page of this listing gave",
        found=text,
    )
