"""The timeline on DynamoDB."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.layout import TIMELINE
from hourbell.adapters.dynamodb.models import DispatchItem, OccurrenceItem
from hourbell.adapters.dynamodb.moves import update_of
from hourbell.adapters.dynamodb.packed import PackedWriter, RowWriter
from hourbell.adapters.dynamodb.reading import batch_get
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    decode_row_key,
    encode_dispatch,
    is_attempt,
    is_dispatch,
    row_item_key,
)
from hourbell.adapters.dynamodb.transactions import Put, write_together
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.errors import Permanent
from hourbell.domain.occurrence import Occurrence, RowKey, partition_of
from hourbell.usecases.ports import Change, Page, Write

log = logging.getLogger(__name__)


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
        self._packed = PackedWriter(database.single, self._table, database.backoff)
        self._writer = writer or self._packed

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
        """Return up to `limit` rows of both kinds after `after`, in key order.

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
        return self._query(arguments, after)

    def unfinished(
        self, bucket: str, shard: int, *, after: RowKey | None = None
    ) -> Page:
        """Return what has no expiry, and all dispatch rows, in key order.

        What is over is left out by the service, which reads it all the same: 1 MB.
        """
        end = OccurrenceItem.expires_at
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "KeyConditionExpression": "#partition = :partition",
            # A packed write stores NULL where there is no expiry.
            "FilterExpression": (
                "NOT attribute_type(#end, :end) OR attribute_exists(#kind)"
            ),
            "ExpressionAttributeNames": {
                "#partition": TIMELINE.partition,
                "#end": end.attr_name,
                "#kind": DispatchItem.kind.attr_name,
            },
            "ExpressionAttributeValues": {
                ":partition": {"S": partition_of(bucket, shard)},
                ":end": {"S": end.attr_type},
            },
        }
        return self._query(arguments, after)

    def _query(self, arguments: dict[str, Any], after: RowKey | None) -> Page:
        if after is not None:
            arguments["ExclusiveStartKey"] = row_item_key(after)
        with translation():
            answer = self._database.client.query(**arguments)
        last = answer.get("LastEvaluatedKey")
        rows, dispatches, unreadable = _sorted(answer["Items"])
        after = None if last is None else decode_row_key(last)
        return Page(tuple(rows), after, tuple(dispatches), tuple(unreadable))

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Occurrence]:
        """Return those of the occurrences that exist, by consistent reads.

        What cannot be read is left out; a page names it.
        """
        return {row.key: row for row in self.look_up(keys).rows}

    def look_up(self, keys: Iterable[RowKey]) -> Page:
        """Return what lies under these keys, of either kind, by consistent reads."""
        wanted = [row_item_key(key) for key in dict.fromkeys(keys)]
        items = batch_get(self._database, self._table, wanted, consistent=True)
        rows, dispatches, unreadable = _sorted(items)
        return Page(tuple(rows), None, tuple(dispatches), tuple(unreadable))

    def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Insert dispatch rows where their keys are free.

        Raises:
            ValueError: a key occurs twice.
        """
        _reject_repeats([dispatch.key for dispatch in dispatches])
        return self._packed.post(dispatches)

    def settle(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Set dispatch rows DONE, with their expiry, where they are PENDING.

        Raises:
            ValueError: a key occurs twice.
        """
        _reject_repeats([dispatch.key for dispatch in dispatches])
        return self._packed.settle(dispatches)

    def reopen(self, change: Change, release: Dispatch) -> Write:
        """Make a transition and put the dispatch row, in one transaction."""
        return write_together(
            self._database,
            update_of(self._table, change),
            Put(self._table, TIMELINE, encode_dispatch(release)),
        )


def _sorted(
    items: Iterable[Mapping[str, Any]],
) -> tuple[list[Occurrence], list[Dispatch], list[RowKey]]:
    """Read items; one that cannot be read must not hide the others."""
    rows: list[Occurrence] = []
    dispatches: list[Dispatch] = []
    unreadable: list[RowKey] = []
    for item in items:
        if is_attempt(item):
            continue
        try:
            if is_dispatch(item):
                dispatches.append(decode_dispatch(item))
            else:
                rows.append(decode_occurrence(item))
        except Permanent:
            key = decode_row_key(item)
            unreadable.append(key)
            log.exception(
                "an unreadable row", extra={"row": f"{key.partition} {key.sort}"}
            )
    return rows, dispatches, unreadable


def _reject_repeats(keys: list[RowKey]) -> None:
    if len(set(keys)) != len(keys):
        raise ValueError("a row key occurs twice in one call")
