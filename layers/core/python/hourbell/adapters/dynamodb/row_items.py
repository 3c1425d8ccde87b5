"""Items of the timeline."""

from collections.abc import Mapping
from typing import Any

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode
from hourbell.adapters.dynamodb.models import OccurrenceItem
from hourbell.domain.errors import InvalidInput, Permanent
from hourbell.domain.instants import parse_compact
from hourbell.domain.occurrence import Occurrence, RowKey

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
)


def encode_occurrence(row: Occurrence) -> Item:
    """Write a row of the timeline."""
    key = row.key
    values = {name: getattr(row, name) for name in _OCCURRENCE_PLAIN}
    return encode(
        OccurrenceItem,
        {
            "bucket_shard": key.partition,
            "row_key": key.sort,
            "schema": layout.SCHEMA,
            **values,
            "sends": row.sends or None,
            "misfire": row.misfire or None,
        },
    )


def decode_occurrence(item: Mapping[str, Any]) -> Occurrence:
    """Read a row of the timeline, of a table or of a stream record's new image.

    Raises:
        Permanent: its key or its schema version is none that this code reads.
    """
    values = decode(OccurrenceItem, item)
    partition, sort = values.pop("bucket_shard"), values.pop("row_key")
    del values["schema"]
    try:
        key = RowKey.parse(partition, sort)
        instant, schedule_id, version = sort.split("#")
        return Occurrence(
            schedule_id=schedule_id,
            version=int(version.removeprefix("v")),
            scheduled_for=parse_compact(instant),
            shard=key.shard,
            **values,
        )
    except (ValueError, InvalidInput) as error:
        raise Permanent(
            f"not a row of the timeline: {partition} {sort}", code="unreadable_item"
        ) from error


def row_item_key(key: RowKey) -> Item:
    """Return the key of a row."""
    return encode(OccurrenceItem, {"bucket_shard": key.partition, "row_key": key.sort})


def decode_row_key(item: Mapping[str, Any]) -> RowKey:
    """Read a row's key from an item or from a stream record's keys."""
    keys = layout.TIMELINE
    return RowKey.parse(item[keys.partition]["S"], item[keys.sort]["S"])
