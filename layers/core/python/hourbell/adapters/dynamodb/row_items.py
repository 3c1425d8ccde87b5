"""Items of the timeline."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode, fields_of
from hourbell.adapters.dynamodb.models import DispatchItem, OccurrenceItem
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import InvalidInput, Unreadable
from hourbell.domain.instants import parse_compact
from hourbell.domain.occurrence import Occurrence, RowKey, State

# Kinds of dispatch rows that point at an occurrence.
_POINTING = frozenset(
    {
        DispatchKind.RELEASE,
        DispatchKind.FOLLOW,
        DispatchKind.WATCH,
        DispatchKind.LETTER,
        DispatchKind.UNCLAIMED,
    }
)

_NUMBER = re.compile(r"n(?:0|[1-9][0-9]*)", re.ASCII)
_ATTEMPT = re.compile(rf"{layout.ATTEMPTS}[0-9]+\Z", re.ASCII)

_OCCURRENCE_PLAIN = (
    "state",
    "tenant_id",
    "sequence",
    "tzdb",
    "planned_at",
    "available_at",
    "lane",
    "queue",
    "scheduled_at",
    "enqueued_at",
    "visible_at",
    "reason",
    "finished_at",
    "expires_at",
    "backfilled_at",
    "overlap",
    "decision",
    "lease_token",
    "lease_expires_at",
    "worker",
    "started_at",
    "begun_at",
    "slot",
    "failure",
    "cancel_requested_at",
    "replayed_at",
    "told_at",
)

COUNTS = frozenset({"sends", "attempt", "attempts_before", "waits"})
"""Fields of an occurrence that are absent for 0."""


def encode_occurrence(row: Occurrence) -> Item:
    """Write an occurrence."""
    key = row.key
    values = {name: getattr(row, name) for name in _OCCURRENCE_PLAIN}
    return encode(
        OccurrenceItem,
        {
            "bucket_shard": key.partition,
            "row_key": key.sort,
            "schema": layout.SCHEMA,
            **values,
            **{name: getattr(row, name) or None for name in sorted(COUNTS)},
            "misfire": row.misfire or None,
        },
    )


def decode_occurrence(item: Mapping[str, Any]) -> Occurrence:
    """Read an occurrence, of a table or of a stream record's new image.

    Raises:
        Unreadable: its key or its schema version is none that this code reads.
    """
    keys = decode_row_key(item)
    partition, sort = keys.partition, keys.sort
    try:
        values = decode(OccurrenceItem, item)
        for name in ("bucket_shard", "row_key", "schema"):
            del values[name]
        # Without its state a row must not pass for a planned one.
        values["state"] = State(values["state"])
        key = RowKey.parse(partition, sort)
        instant, schedule_id, version, *run = sort.split("#")
        return Occurrence(
            schedule_id=schedule_id,
            version=int(version.removeprefix("v")),
            scheduled_for=parse_compact(instant),
            shard=key.shard,
            run=_run_of(run),
            **values,
        )
    except (ValueError, KeyError, TypeError, InvalidInput) as error:
        raise _unreadable(partition, sort) from error


def _run_of(parts: Sequence[str]) -> str | None:
    """Return what follows the version in a sort key: nothing, or `r<run>`."""
    if not parts:
        return None
    (part,) = parts
    if not part.startswith("r"):
        raise ValueError(f"not a run: {part!r}")
    return part[1:]


def is_attempt(item: Mapping[str, Any]) -> bool:
    """Whether an item of the timeline is an attempt: its key says so."""
    sort = str(item[layout.TIMELINE.sort]["S"])
    return _ATTEMPT.search(sort) is not None


def is_dispatch(item: Mapping[str, Any]) -> bool:
    """Whether an item of the timeline is a dispatch row."""
    kind = fields_of(DispatchItem)["kind"]
    return kind.wire in item


def encode_dispatch(row: Dispatch) -> Item:
    """Write a dispatch row."""
    values = {
        "schema": layout.SCHEMA,
        "kind": layout.DISPATCH,
        "state": row.state,
        "tenant_id": row.tenant_id,
        "written_at": row.written_at,
        "expires_at": row.expires_at,
    }
    return row_item_key(row.key) | encode(DispatchItem, values)


def decode_dispatch(item: Mapping[str, Any]) -> Dispatch:
    """Read a dispatch row.

    Raises:
        Unreadable: its key or its schema version is none that this code reads.
    """
    keys = decode_row_key(item)
    partition, sort = keys.partition, keys.sort
    try:
        values = decode(DispatchItem, item)
        instant, schedule_id, version, kind, *target = sort.split("#")
        scheduled_for, run, number = _target_of(DispatchKind(kind), target)
        return Dispatch(
            kind=DispatchKind(kind),
            schedule_id=schedule_id,
            version=int(version.removeprefix("v")),
            tenant_id=values["tenant_id"],
            due=parse_compact(instant),
            shard=RowKey.parse(partition, sort).shard,
            written_at=values["written_at"],
            state=values["state"],
            expires_at=values.get("expires_at"),
            scheduled_for=scheduled_for,
            run=run,
            number=number,
        )
    except (ValueError, KeyError, TypeError, InvalidInput) as error:
        raise _unreadable(partition, sort) from error


def _target_of(
    kind: DispatchKind, parts: Sequence[str]
) -> tuple[datetime | None, str | None, int | None]:
    """Return time and run of the occurrence that a dispatch row points at, and number.

    In the key they are `<time>`, `r<run>` and `n<number>`; the last two may be missing.
    """
    if not parts and kind not in _POINTING:
        return None, None, None
    instant, *rest = parts
    number = None
    if rest and _NUMBER.fullmatch(rest[-1]):
        number = int(rest.pop()[1:])
    return parse_compact(instant), _run_of(rest), number


def row_item_key(key: RowKey) -> Item:
    """Return the key of a row."""
    return encode(OccurrenceItem, {"bucket_shard": key.partition, "row_key": key.sort})


def decode_row_key(item: Mapping[str, Any]) -> RowKey:
    """Read a row's key from an item or from a stream record's keys."""
    keys = layout.TIMELINE
    return RowKey.parse(item[keys.partition]["S"], item[keys.sort]["S"])


def _unreadable(partition: str, sort: str) -> Unreadable:
    return Unreadable(f"not a row of the timeline: {partition} {sort}")
