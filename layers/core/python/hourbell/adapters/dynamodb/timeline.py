"""The timeline on DynamoDB."""

from collections.abc import Iterable, Sequence
from typing import Any

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.layout import TIMELINE
from hourbell.adapters.dynamodb.packed import PackedWriter, RowWriter
from hourbell.adapters.dynamodb.reading import batch_get
from hourbell.adapters.dynamodb.row_items import (
    decode_occurrence,
    decode_row_key,
    row_item_key,
)
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.occurrence import Occurrence, RowKey, partition_of
from hourbell.usecases.ports import Change, Page, Write


class DynamoTimeline:
    """The `Timeline` port."""

    def __init__(self, database: Database, writer: RowWriter | None = None) -> None:
        """Make the adapter.

        Args:
            database: tables and clients.
            writer: how rows are written; packed when None.
        """
        self._database = database
        self._table = database.tables.timeline
        self._writer = writer or PackedWriter(
            database.single, self._table, database.backoff
        )

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Insert rows where their keys are free.

        Raises:
            ValueError: a key occurs twice.
        """
        _reject_repeats([row.key for row in rows])
        return self._writer.insert(rows)

    def move(self, changes: Sequence[Change]) -> list[Write]:
        """Make conditional transitions.

        Raises:
            ValueError: a key occurs twice.
        """
        _reject_repeats([change.row.key for change in changes])
        return self._writer.update(changes)

    def page(
        self,
        bucket: str,
        shard: int,
        *,
        after: RowKey | None = None,
        limit: int = 1000,
        consistent: bool = False,
    ) -> Page:
        """Return up to `limit` rows that come after `after`, in key order.

        A page may be shorter than `limit` although there are more: the service
        reads at most 1 MB at a time.
        """
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#partition = :partition",
            "ExpressionAttributeNames": {"#partition": TIMELINE.partition},
            "ExpressionAttributeValues": {
                ":partition": {"S": partition_of(bucket, shard)}
            },
            "ConsistentRead": consistent,
            "Limit": limit,
        }
        if after is not None:
            arguments["ExclusiveStartKey"] = row_item_key(after)
        with translation():
            answer = self._database.client.query(**arguments)
        last = answer.get("LastEvaluatedKey")
        return Page(
            tuple(decode_occurrence(item) for item in answer["Items"]),
            None if last is None else decode_row_key(last),
        )

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Occurrence]:
        """Return those of the rows that exist, by consistent reads."""
        wanted = [row_item_key(key) for key in dict.fromkeys(keys)]
        items = batch_get(self._database, self._table, wanted, consistent=True)
        rows = [decode_occurrence(item) for item in items]
        return {row.key: row for row in rows}


def _reject_repeats(keys: list[RowKey]) -> None:
    if len(set(keys)) != len(keys):
        raise ValueError("a row key occurs twice in one call")
