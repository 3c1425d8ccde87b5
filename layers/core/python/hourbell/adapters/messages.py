"""The messages of the internal queues.

Each carries its schema version; code reads this one and the one before, so that old
and new functions run side by side during a deploy.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from hourbell.domain.definition import Tracking
from hourbell.domain.errors import InvalidInput, Permanent
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.job import is_job_id
from hourbell.domain.occurrence import RowKey
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.redrive import GivenUp
from hourbell.usecases.shard_ports import MoveOrder

SCHEMA: Final = 1
_READABLE: Final = frozenset({SCHEMA, SCHEMA - 1})

MOVE: Final = "move"
"""What tells the order to move rows from others of the jobs' queue."""

MAX_KEYS: Final = 50
"""Keys in one message of the sweep queue."""


# What reading the JSON of others may end with.
_MALFORMED = (
    *(AttributeError, KeyError, OverflowError),
    *(RecursionError, TypeError, ValueError),
)


def encode_work(work: GroupWork) -> str:
    """Write the order to scan a shard group."""
    return _write({"group": work.group, "tick": format_instant(work.tick)})


def decode_work(text: str) -> GroupWork:
    """Read the order to scan a shard group.

    Raises:
        Permanent: the text is no such message.
    """
    members = _read(text)
    try:
        return GroupWork(
            int(members["group"]), parse_instant(members["tick"], field="tick")
        )
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error


def encode_keys(keys: Sequence[RowKey]) -> str:
    """Write keys of outbox records, up to 50."""
    return _write({"keys": [[key.partition, key.sort] for key in keys]})


def decode_keys(text: str) -> tuple[RowKey, ...]:
    """Read keys of outbox records.

    Raises:
        Permanent: the text is no such message.
    """
    members = _read(text)
    try:
        return tuple(
            RowKey.parse(partition, sort) for partition, sort in members["keys"]
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error


def encode_job(job_id: str) -> str:
    """Write the order to work at a job."""
    return _write({"job_id": job_id})


def decode_job(text: str) -> str:
    """Read the order to work at a job.

    Raises:
        Permanent: the text is no such message.
    """
    job_id = _read(text).get("job_id")
    if not isinstance(job_id, str) or not is_job_id(job_id):
        raise _unreadable()
    return job_id


def decode_given_up(text: str) -> GivenUp | None:
    """Read what a delivery queue gave up; None when it is no message of ours."""
    try:
        members = json.loads(text)
        data = members["data"]
        tracking = data.get("tracking")
        return GivenUp(
            tenant_id=_text(data["tenant"]),
            occurrence_id=_text(members["id"]),
            handler=_text(data["handler"]),
            send=int(data["send"]),
            tracking=None if tracking is None else Tracking(tracking),
        )
    except _MALFORMED:
        return None


def encode_move(order: MoveOrder) -> str:
    """Write the order to move rows of an epoch."""
    return _write(
        {
            MOVE: {
                "since": format_instant(order.since),
                "round": order.round,
                "segment": order.segment,
                "after": order.after,
            }
        }
    )


def decode_move(text: str) -> MoveOrder | None:
    """Read the order to move rows of an epoch; None when it is another order.

    Raises:
        Permanent: the text is no message of this code.
    """
    members = _read(text).get(MOVE)
    if members is None:
        return None
    try:
        after = members["after"]
        return MoveOrder(
            parse_instant(members["since"], field="since"),
            int(members["round"]),
            int(members["segment"]),
            None if after is None else _text(after),
        )
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        raise _unreadable() from error


def _write(members: dict[str, Any]) -> str:
    return json.dumps({"schema": SCHEMA, **members}, separators=(",", ":"))


def _read(text: str) -> dict[str, Any]:
    try:
        members = json.loads(text)
    except ValueError as error:
        raise _unreadable() from error
    if not isinstance(members, dict) or members.get("schema") not in _READABLE:
        raise _unreadable()
    return members


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    # Half of a surrogate pair, which JSON can spell and no store takes.
    value.encode()
    return value


def _unreadable() -> Permanent:
    return Permanent(
        "an internal message is not one that this code reads",
        code="unreadable_message",
    )
