"""The moving of rows from shard to shard on DynamoDB."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, fields_of
from hourbell.adapters.dynamodb.layout import TIMELINE
from hourbell.adapters.dynamodb.models import DispatchItem, OccurrenceItem
from hourbell.adapters.dynamodb.row_items import (
    decode_row_key,
    encode_occurrence,
    is_attempt,
    is_dispatch,
    row_item_key,
)
from hourbell.adapters.dynamodb.transactions import Check, Member, Put, first_refused
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.dispatch import DispatchState
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import OPEN, Occurrence, RowKey, State
from hourbell.usecases.ports import Write
from hourbell.usecases.shard_ports import Misplaced

_OPEN: Final = frozenset({*(state.value for state in OPEN), DispatchState.PENDING})


@dataclass(frozen=True, slots=True)
class _DeleteExactly:
    """A removal of an item that must be as it was read."""

    table: str
    item: Item

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        keys = (TIMELINE.partition, TIMELINE.sort)
        # Its key is compared, too: what is gone, or has nothing else, is told as well.
        names = list(enumerate(self.item))
        return {
            "Delete": {
                "TableName": self.table,
                "Key": {name: self.item[name] for name in keys},
                "ConditionExpression": " AND ".join(
                    f"#n{place} = :v{place}" for place, _ in names
                ),
                "ExpressionAttributeNames": {
                    f"#n{place}": name for place, name in names
                },
                "ExpressionAttributeValues": {
                    f":v{place}": self.item[name] for place, name in names
                },
            }
        }


class DynamoRelocation:
    """The `Relocation` port. Rows are moved as they are, of whatever release."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = database.tables.timeline

    def rows_from(
        self, bucket: str, *, segment: int, segments: int, after: str | None
    ) -> tuple[tuple[Misplaced, ...], str | None]:
        """Walk through a part of the timeline by consistent reads, 1 MB a call."""
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "Segment": segment,
            "TotalSegments": segments,
            "ConsistentRead": True,
            "FilterExpression": "#partition >= :bucket",
            "ExpressionAttributeNames": {"#partition": TIMELINE.partition},
            "ExpressionAttributeValues": {":bucket": {"S": bucket}},
        }
        if after is not None:
            arguments["ExclusiveStartKey"] = json.loads(after)
        with translation():
            answer = self._database.client.scan(**arguments)
        last = answer.get("LastEvaluatedKey")
        rows = tuple(map(_told, answer["Items"]))
        return rows, None if last is None else json.dumps(last)

    def relocate(self, rows: Sequence[Misplaced], shards: Sequence[int]) -> list[Write]:
        """Move the rows in one transaction; if that is refused, each in its own."""
        pairs = list(zip(rows, shards, strict=True))
        if not pairs:
            return []
        answer = self._relocate(pairs)
        if answer is Write.APPLIED:
            return [answer] * len(pairs)
        return [self._relocate_alone(*pair) for pair in pairs]

    def plan_apart(self, row: Occurrence, twin: RowKey) -> Write:
        """Insert a row if its key is free and there is nothing under the other."""
        members: list[Member] = [
            Put(self._table, TIMELINE, encode_occurrence(row)),
            absent(self._table, twin),
        ]
        try:
            refused = first_refused(self._database, members)
        except Transient:
            return Write.UNKNOWN
        return Write.APPLIED if refused is None else Write.EXISTS

    def _relocate_alone(self, row: Misplaced, shard: int) -> Write:
        answer = self._relocate([(row, shard)])
        item = _item_of(row)
        if answer is not Write.LOST or not is_dispatch(item):
            return answer
        # Its like may be in its place, which will do. Not for one that is still to be
        # worked off, unless the other is, too.
        is_there = DispatchItem.bucket_shard.exists()
        if row.is_open:
            is_there &= DispatchItem.state == DispatchState.PENDING
        key = row_item_key(replace(row.key, shard=shard))
        return self._write(
            [_DeleteExactly(self._table, item), Check(self._table, key, is_there)]
        )

    def _relocate(self, pairs: Sequence[tuple[Misplaced, int]]) -> Write:
        members: list[Member] = []
        for row, shard in pairs:
            item = _item_of(row)
            moved = item | row_item_key(replace(row.key, shard=shard))
            members += [
                _DeleteExactly(self._table, item),
                Put(self._table, TIMELINE, moved),
            ]
        return self._write(members)

    def _write(self, members: Sequence[Member]) -> Write:
        try:
            refused = first_refused(self._database, members)
        except Transient:
            return Write.UNKNOWN
        return Write.APPLIED if refused is None else Write.LOST


def absent(table: str, key: RowKey) -> Check:
    """Return the condition that there is no row under a key."""
    unknown = OccurrenceItem.bucket_shard.does_not_exist()
    return Check(table, row_item_key(key), unknown)


def _told(item: Mapping[str, Any]) -> Misplaced:
    """Tell what is needed of an item, also of one that this release cannot read."""
    wire = fields_of(OccurrenceItem)["state"].wire
    state = item.get(wire, {}).get("S")
    is_leaving = not is_dispatch(item) and state == State.SCHEDULED
    # Without a state it is anybody's guess, and somebody may have to act on it; but
    # an attempt, which has none, is over.
    is_open = not is_attempt(item) and (state is None or state in _OPEN)
    return Misplaced(decode_row_key(item), is_open, is_leaving, item)


def _item_of(row: Misplaced) -> Item:
    if not isinstance(row.token, dict):
        raise TypeError("not a row that this adapter told of")
    return row.token
