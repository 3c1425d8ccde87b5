"""Parked rows on DynamoDB."""

from collections.abc import Mapping
from typing import Any, Final

from pynamodb.expressions.condition import Condition

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, decode, encode, readable
from hourbell.adapters.dynamodb.expressions import (
    assignments,
    conditional,
    unless_refused,
)
from hourbell.adapters.dynamodb.models import ParkedItem
from hourbell.adapters.dynamodb.reading import get_item, query
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.errors import Unreadable
from hourbell.domain.occurrence import RowKey
from hourbell.domain.parking import ParkedRow
from hourbell.usecases.ports import ParkedPage, Write

_SEPARATOR: Final = "#"


class DynamoParking:
    """The `Parking` port."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = database.tables.control

    def parked(self, group: int) -> tuple[ParkedRow, ...]:
        """Return all parked rows of a group in key order, by consistent reads."""
        items = query(
            self._database,
            None,
            TableName=self._table,
            KeyConditionExpression="#partition = :partition",
            ExpressionAttributeNames={"#partition": layout.CONTROL.partition},
            ExpressionAttributeValues={":partition": {"S": layout.parking_key(group)}},
            ConsistentRead=True,
        )
        return tuple(readable("parked row", decode_parked, items))

    def page(self, group: int, *, after: str | None, limit: int) -> ParkedPage:
        """Return parked rows of a group beyond a place, by one consistent read."""
        condition, values = (
            "#partition = :partition",
            {":partition": {"S": layout.parking_key(group)}},
        )
        names = {"#partition": layout.CONTROL.partition}
        if after is not None:
            condition += " AND #sort > :after"
            names["#sort"] = layout.CONTROL.sort
            values[":after"] = {"S": after}
        with translation():
            answer = self._database.client.query(
                TableName=self._table,
                KeyConditionExpression=condition,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues=values,
                ConsistentRead=True,
                Limit=limit,
            )
        last = answer.get("LastEvaluatedKey")
        return ParkedPage(
            tuple(readable("parked row", decode_parked, answer["Items"])),
            None if last is None else last[layout.CONTROL.sort]["S"],
        )

    def find(self, group: int, key: RowKey) -> ParkedRow | None:
        """Return a parked row, by a consistent read.

        Raises:
            Unreadable: what is parked cannot be read.
        """
        item = get_item(
            self._database, self._table, _item_key(group, key), consistent=True
        )
        return None if item is None else decode_parked(item)

    def ask(self, row: ParkedRow) -> Write:
        """Store `asked_at` and `next_try_at` of a parked row."""
        asked = {"asked_at": row.asked_at, "next_try_at": row.next_try_at}
        arguments = {
            "TableName": self._table,
            "Key": _key(row),
            **conditional(
                ParkedItem.tries == row.tries, assignments(ParkedItem, asked)
            ),
        }
        with translation():
            answer = unless_refused(self._database.client.update_item, arguments)
        return Write.LOST if answer is None else Write.APPLIED

    def park(self, row: ParkedRow) -> Write:
        """Park a row unless it is parked."""
        free = ParkedItem.control_key.does_not_exist()
        return Write.APPLIED if self._put(row, free) else Write.EXISTS

    def put_off(self, row: ParkedRow) -> Write:
        """Store a parked row after one more try.

        When an answer was lost, the repetition finds its own write and says LOST.
        """
        before = _stands(row, row.tries - 1)
        return Write.APPLIED if self._put(row, before) else Write.LOST

    def unpark(self, row: ParkedRow) -> Write:
        """Forget a parked row."""
        arguments = {
            "TableName": self._table,
            "Key": _key(row),
            **conditional(_stands(row, row.tries)),
        }
        with translation():
            answer = unless_refused(self._database.client.delete_item, arguments)
        return Write.LOST if answer is None else Write.APPLIED

    def _put(self, row: ParkedRow, condition: Condition) -> bool:
        arguments = {
            "TableName": self._table,
            "Item": encode_parked(row),
            **conditional(condition),
        }
        with translation():
            return unless_refused(self._database.client.put_item, arguments) is not None


def _stands(row: ParkedRow, tries: int) -> Condition:
    """Return what holds while a row is parked as it was seen."""
    asked: Condition = ParkedItem.asked_at.does_not_exist()
    if row.asked_at is not None:
        asked = ParkedItem.asked_at == row.asked_at
    stands: Condition = (ParkedItem.tries == tries) & asked
    return stands


def encode_parked(row: ParkedRow) -> Item:
    """Write a parked row. It never expires."""
    values = {
        "schema": layout.SCHEMA,
        "reason": row.reason,
        "since": row.since,
        "next_try_at": row.next_try_at,
        "tries": row.tries,
        "tenant_id": row.tenant_id,
        "asked_at": row.asked_at,
    }
    return _key(row) | encode(ParkedItem, values)


def decode_parked(item: Mapping[str, Any]) -> ParkedRow:
    """Read a parked row.

    Raises:
        Unreadable: it is none that this code reads.
    """
    try:
        values = decode(ParkedItem, item)
        bucket, shard, sort = values["item"].split(_SEPARATOR, 2)
        return ParkedRow(
            group=int(values["control_key"].partition(_SEPARATOR)[2]),
            key=RowKey(bucket, int(shard), sort),
            reason=values["reason"],
            since=values["since"],
            next_try_at=values["next_try_at"],
            tries=values["tries"],
            tenant_id=values.get("tenant_id"),
            asked_at=values.get("asked_at"),
        )
    except (KeyError, ValueError) as error:
        raise Unreadable("not a parked row") from error


def _key(row: ParkedRow) -> Item:
    return _item_key(row.group, row.key)


def _item_key(group: int, key: RowKey) -> Item:
    return encode(
        ParkedItem,
        {
            "control_key": layout.parking_key(group),
            "item": f"{key.partition}{_SEPARATOR}{key.sort}",
        },
    )
