"""The list of a tenant's schedules: the index `by_tenant`, shard after shard."""

from typing import Any, Final

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import encode, readable
from hourbell.adapters.dynamodb.layout import (
    BY_TENANT,
    BY_TENANT_SHARDS,
    DEFINITION_SORT,
)
from hourbell.adapters.dynamodb.models import DefinitionItem
from hourbell.adapters.dynamodb.schedule_items import decode_entry, tenant_shard
from hourbell.adapters.listing import Position, position_of
from hourbell.adapters.sdk_errors import translation
from hourbell.usecases.ports import ListEntry, Listing

INDEX: Final = "by_tenant"


class ListIndex:
    """Reads a tenant's list shards in order, as one list."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self, tenant_id: str, prefix: str, after: str | None, limit: int
    ) -> Listing:
        """Return up to `limit` schedules whose names begin with `prefix`.

        Raises:
            InvalidInput: `after` is not what an earlier page gave.
        """
        start = position_of(after, prefix=prefix, shards=BY_TENANT_SHARDS)
        position: Position | None = start
        entries: list[ListEntry] = []
        left = limit
        while position is not None and left > 0:
            items, position = self._read(tenant_id, prefix, position, left)
            left -= len(items)
            found = readable("schedule", decode_entry, items)
            # A prefix that reaches over the name matches the id behind it.
            entries += [each for each in found if each.name.startswith(prefix)]
        return Listing(tuple(entries), None if position is None else position.written())

    def _read(
        self, tenant_id: str, prefix: str, position: Position, limit: int
    ) -> tuple[list[Any], Position | None]:
        """Return what is read of one shard, and where to go on."""
        condition, values = "#shard = :shard", {}
        names = {"#shard": BY_TENANT.partition}
        if prefix:
            condition += " AND begins_with(#key, :prefix)"
            names["#key"] = BY_TENANT.sort
            values[":prefix"] = {"S": prefix}
        shard = tenant_shard(tenant_id, position.shard)
        arguments: dict[str, Any] = {
            "TableName": self._database.tables.schedules,
            "IndexName": INDEX,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {":shard": {"S": shard}, **values},
            "Limit": limit,
        }
        if position.key is not None:
            arguments["ExclusiveStartKey"] = encode(
                DefinitionItem,
                {
                    "schedule_id": position.schedule_id,
                    "item": DEFINITION_SORT,
                    "tenant_shard": shard,
                    "listing_key": position.key,
                },
            )
        with translation():
            answer = self._database.client.query(**arguments)
        return answer["Items"], _next(position, answer.get("LastEvaluatedKey"))


def _next(position: Position, last: Any) -> Position | None:  # noqa: ANN401 - the client's own
    if last is not None:
        return Position(position.shard, last[BY_TENANT.sort]["S"])
    if position.shard + 1 < BY_TENANT_SHARDS:
        return Position(position.shard + 1)
    return None
