"""The rows' writes as transactions: what `bench writes` compares packed writes with.

Nothing of the product uses this. See docs/decisions/0001.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hourbell.adapters.dynamodb.codec import fields_of
from hourbell.adapters.dynamodb.layout import TIMELINE
from hourbell.adapters.dynamodb.models import OccurrenceItem
from hourbell.adapters.dynamodb.row_items import encode_occurrence, row_item_key
from hourbell.domain.definition import VersionRef
from hourbell.domain.occurrence import TRANSITIONS, Occurrence, Transition
from hourbell.usecases.ports import Change, Write

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient


class TransactionalWriter:
    """A `RowWriter` that plans the next row and moves its row in one transaction.

    The insert of a next row is held back until the move of the row before it comes,
    so that both go in one TransactWriteItems call. An acknowledgement touches one row
    and is a conditional UpdateItem. No other writer is expected: a condition that
    fails, or any other error, ends the bench.
    """

    def __init__(self, client: "DynamoDBClient", table: str) -> None:
        self._client = client
        self._table = table
        self._held: dict[VersionRef, Occurrence] = {}

    def insert(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Hold the rows back; the moves that follow insert them."""
        for row in rows:
            self._held[VersionRef(row.schedule_id, row.version)] = row
        return [Write.APPLIED] * len(rows)

    def update(self, changes: Sequence[Change]) -> list[Write]:
        """Make transitions, each with the insert that was held back for it."""
        for change in changes:
            ref = VersionRef(change.row.schedule_id, change.row.version)
            following = self._held.pop(ref, None)
            if change.transition is Transition.SCHEDULE and following is not None:
                self._together(change, following)
            else:
                self._client.update_item(**self._update(change))
        return [Write.APPLIED] * len(changes)

    def _together(self, change: Change, following: Occurrence) -> None:
        insert = {
            "TableName": self._table,
            "Item": encode_occurrence(following),
            "ConditionExpression": "attribute_not_exists(#partition)",
            "ExpressionAttributeNames": {"#partition": TIMELINE.partition},
        }
        members: Any = [{"Put": insert}, {"Update": self._update(change)}]
        self._client.transact_write_items(TransactItems=members)

    def _update(self, change: Change) -> dict[str, Any]:
        """Return the same conditional update that the packed statement makes."""
        fields = fields_of(OccurrenceItem)
        move = TRANSITIONS[change.transition]
        names = {"#state": fields["state"].wire}
        values: dict[str, Any] = {":state": {"S": move.target.value}}
        targets = ["#state = :state"]
        for place, name in enumerate(move.writes):
            names[f"#w{place}"] = fields[name].wire
            values[f":w{place}"] = fields[name].typed(getattr(change.row, name))
            targets.append(f"#w{place} = :w{place}")
        sources = {
            f":s{place}": {"S": source.value}
            for place, source in enumerate(sorted(move.sources))
        }
        return {
            "TableName": self._table,
            "Key": row_item_key(change.row.key),
            "UpdateExpression": f"SET {', '.join(targets)}",
            "ConditionExpression": f"#state IN ({', '.join(sources)})",
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": values | sources,
        }
