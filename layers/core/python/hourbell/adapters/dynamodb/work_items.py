"""Items of work on occurrences: attempts, lanes, places, dead letters."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode, reads
from hourbell.adapters.dynamodb.models import (
    AttemptItem,
    DeadItem,
    LaneItem,
    RunningItem,
)
from hourbell.adapters.dynamodb.row_items import decode_row_key
from hourbell.adapters.letters import letter_key, schedule_of
from hourbell.domain.errors import Unreadable
from hourbell.domain.occurrence import RowKey
from hourbell.domain.shards import stable_hash
from hourbell.domain.work import Attempt, DeadLetter, OverlapLane, Slot


def encode_attempt(attempt: Attempt) -> Item:
    """Write an attempt."""
    return encode(
        AttemptItem,
        {
            "bucket_shard": attempt.key.partition,
            "row_key": layout.attempt_sort(attempt.key.sort, attempt.number),
            "schema": layout.SCHEMA,
            "lease_token": attempt.lease_token,
            "worker": attempt.worker,
            "started_at": attempt.started_at,
            "finished_at": attempt.finished_at,
            "result": attempt.result,
            "failure": attempt.failure,
            "expires_at": attempt.expires_at,
        },
    )


def decode_attempt(item: Mapping[str, Any]) -> Attempt:
    """Read an attempt.

    Raises:
        Unreadable: it is none that this code reads.
    """
    key = decode_row_key(item)
    try:
        values = decode(AttemptItem, item)
        sort, _, number = key.sort.rpartition(layout.ATTEMPTS)
        return Attempt(
            key=RowKey(key.bucket, key.shard, sort),
            number=int(number),
            lease_token=values["lease_token"],
            worker=values["worker"],
            started_at=values["started_at"],
            finished_at=values["finished_at"],
            result=values["result"],
            failure=values.get("failure"),
            expires_at=values["expires_at"],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise _unreadable("attempt") from error


def lane_item_key(schedule_id: str) -> Item:
    """Return the key of a schedule's lane."""
    values = {"control_key": layout.lane_key(schedule_id), "item": layout.LANE_SORT}
    return encode(LaneItem, values)


def lane_values(lane: OverlapLane) -> dict[str, Any]:
    """Return what a lane has besides its key; None for what it lacks."""
    return {
        "schema": layout.SCHEMA,
        "holder": lane.holder,
        "waiting": lane.waiting,
        "revision": lane.revision,
    }


@reads("lane")
def decode_lane(schedule_id: str, item: Mapping[str, Any]) -> OverlapLane:
    """Read a lane.

    Raises:
        Unreadable: it is none that this code reads.
    """
    values = decode(LaneItem, item)
    return OverlapLane(
        schedule_id, values.get("holder"), values.get("waiting"), values["revision"]
    )


def running_item_key(tenant_id: str, number: int) -> Item:
    """Return the key of one of the places in which a tenant's occurrences run."""
    return encode(
        RunningItem,
        {
            "control_key": layout.running_key(tenant_id),
            "item": layout.running_sort(number),
        },
    )


def running_values(slot: Slot) -> dict[str, Any]:
    """Return what such a place has besides its key."""
    return {
        "schema": layout.SCHEMA,
        "holder": slot.holder,
    }


@reads("place")
def decode_running(tenant_id: str, item: Mapping[str, Any]) -> Slot:
    """Read such a place."""
    values = decode(RunningItem, item)
    number = int(values["item"].removeprefix(layout.RUNNING))
    return Slot(tenant_id, number, values["holder"])


def dead_shard(schedule_id: str) -> int:
    """Return in which list shard a schedule's dead letters are."""
    return stable_hash(schedule_id) % layout.DEAD_SHARDS


def letter_item_key(letter: DeadLetter) -> Item:
    """Return the key of a dead letter."""
    shard = dead_shard(schedule_of(letter))
    return encode(
        DeadItem,
        {
            "control_key": layout.dead_key(letter.tenant_id, shard),
            "item": letter_key(letter),
        },
    )


def encode_letter(letter: DeadLetter) -> Item:
    """Write a dead letter."""
    values = {
        "schema": layout.SCHEMA,
        "reason": letter.reason,
        "expires_at": letter.expires_at,
    }
    return letter_item_key(letter) | encode(DeadItem, values)


def decode_letter(tenant_id: str, item: Mapping[str, Any]) -> DeadLetter:
    """Read a dead letter.

    Raises:
        Unreadable: it is none that this code reads.
    """
    try:
        values = decode(DeadItem, item)
        died_at, occurrence, attempt = values["item"].split("#")
        return DeadLetter(
            tenant_id=tenant_id,
            occurrence_id=occurrence,
            died_at=datetime.fromisoformat(died_at),
            attempt=int(attempt.removeprefix("A")),
            reason=values["reason"],
            expires_at=values["expires_at"],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise _unreadable("dead letter") from error


def _unreadable(what: str) -> Unreadable:
    return Unreadable(f"not a readable {what}")
