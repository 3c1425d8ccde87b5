"""What the platform role sees of parked rows, and may ask for."""

import base64
import binascii
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hourbell.domain.errors import InvalidInput, NotFound, Transient
from hourbell.domain.occurrence import RowKey
from hourbell.domain.parking import ParkedRow, ParkReason
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import Parking, Write

READ: Final = 100
"""How many parked rows are read at once."""

MAX_READS: Final = 100
"""How many reads a page may take; one that ends before it is full goes on elsewhere."""

_ROUNDS = 3
_MAX_ID: Final = 1_024
_SEPARATOR: Final = "#"


@dataclass(frozen=True, slots=True)
class Yard:
    """What looking at parked rows needs.

    Attributes:
        plane: tells how many shard groups there are.
    """

    parking: Parking
    plane: Plane


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parked rows are listed; None is any.

    Attributes:
        group: the shard group whose passes try them.
    """

    group: int | None = None
    tenant_id: str | None = None
    reason: ParkReason | None = None

    def has(self, row: ParkedRow) -> bool:
        """Whether a row of a listed group is wanted."""
        return self.tenant_id in {None, row.tenant_id} and (
            self.reason in {None, row.reason}
        )


@dataclass(frozen=True, slots=True)
class ParkedList:
    """Parked rows by group and, within one, in order of their keys.

    Attributes:
        after: pass it back to get the next page; None at the end.
    """

    rows: tuple[ParkedRow, ...]
    after: str | None


def parked_id(row: ParkedRow) -> str:
    """Return the id by which a parked row is named: its group and key, URL-safe.

    It stays the same however often the row is parked.
    """
    return _written(row.group, row.place)


def list_parked(
    yard: Yard, wanted: Wanted, *, after: str | None, limit: int
) -> ParkedList:
    """Return a page of parked rows.

    Args:
        yard: the ports.
        wanted: which ones.
        after: where an earlier page of this listing ended; None for the first.
        limit: the most that a page holds. Where few of very many are wanted, a page
            may hold less and not be the last.

    Raises:
        InvalidInput: no page ended there (`invalid_cursor`), or there is no such
            group (`out_of_range`).
    """
    groups = _groups(yard, wanted)
    group, place = _position(after, groups)
    found: list[ParkedRow] = []
    for _ in range(MAX_READS):
        page = yard.parking.page(group, after=place or None, limit=READ)
        for row in filter(wanted.has, page.rows):
            if len(found) == limit:
                return ParkedList(tuple(found), parked_id(found[-1]))
            found.append(row)
        place = page.after or ""
        if page.after is None:
            group += 1
        if group not in groups:
            return ParkedList(tuple(found), None)
    return ParkedList(tuple(found), _written(group, place))


def ask_for_try(yard: Yard, text: str, now: datetime) -> ParkedRow:
    """Let the next pass try a parked row again; asking twice is as good as once.

    A pass that is trying it now, perhaps since before its cause was repaired, does not
    put it off after that.

    Args:
        yard: the ports.
        text: the row's id.
        now: the current instant.

    Returns:
        the row as it is parked now.

    Raises:
        NotFound: no row is parked under this id.
        Transient: others kept changing it.
    """
    group, key = _named(text)
    for _ in range(_ROUNDS):
        row = yard.parking.find(group, key)
        if row is None:
            break
        asked = row.asked_for(now)
        if yard.parking.ask(asked) is Write.APPLIED:
            return asked
    else:
        raise Transient(f"the parked row {key} is being changed by others")
    raise _not_parked()


def _groups(yard: Yard, wanted: Wanted) -> range:
    count = yard.plane.shard_map.groups
    if wanted.group is None:
        return range(count)
    if not 0 <= wanted.group < count:
        message = f"There are the shard groups 0 to {count - 1}."
        raise InvalidInput.of("group", "out_of_range", message, found=str(wanted.group))
    return range(wanted.group, wanted.group + 1)


def _position(after: str | None, groups: range) -> tuple[int, str]:
    """Return the group and the place in it, beyond which a page begins."""
    if after is None:
        return groups.start, ""
    found = _read(after)
    if found is None or found[0] not in groups:
        message = "This is not a cursor that a page of this listing ended with."
        raise InvalidInput.of("cursor", "invalid_cursor", message, found=after)
    return found


def _named(text: str) -> tuple[int, RowKey]:
    found = _read(text)
    if found is None:
        raise _not_parked()
    match found[1].split(_SEPARATOR, 2):
        case [bucket, shard, sort] if shard.isascii() and shard.isdecimal():
            return found[0], RowKey(bucket, int(shard), sort)
        case _:
            raise _not_parked()


def _not_parked() -> NotFound:
    return NotFound("No row is parked under this id.")


def _written(group: int, place: str) -> str:
    text = f"{group}{_SEPARATOR}{place}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(text: str) -> tuple[int, str] | None:
    """Return the group and the place that `_written` wrote; None if it did not."""
    if len(text) > _MAX_ID:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        written = base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    group, _, place = written.partition(_SEPARATOR)
    if not (group.isascii() and group.isdecimal()):
        return None
    # The same place must have one text.
    found = int(group), place
    return found if _written(*found) == text else None
