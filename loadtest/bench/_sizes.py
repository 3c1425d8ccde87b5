"""What the engine does not count by itself: reads by BatchGetItem, and sizes.

The engine answers BatchGetItem without ConsumedCapacity, and takes every packed
write for one unit whatever its size. Both are put right here by AWS's rules.
"""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

WRITE_UNIT_BYTES = 1024
READ_UNIT_BYTES = 4096


class BatchReads:
    """Counts the read units of a client's BatchGetItem calls, items up to 4 KiB.

    Attributes:
        units: by table: 1 for a consistent read of an item, else one half. A key
            without an item costs the same.
    """

    def __init__(self, client: "DynamoDBClient") -> None:
        self.units: Counter[str] = Counter()
        client.meta.events.register(
            "provide-client-params.dynamodb.BatchGetItem", self._count
        )

    def _count(self, params: Mapping[str, Any], **_: object) -> None:
        for table, request in params["RequestItems"].items():
            each = 1.0 if request.get("ConsistentRead") else 0.5
            self.units[table] += each * len(request["Keys"])  # type: ignore[assignment]


def largest_item_bytes(client: "DynamoDBClient", table: str) -> int:
    """Return the size of a table's largest item, as it is billed, rounded up."""
    pages = client.get_paginator("scan").paginate(TableName=table)
    return max(
        (item_bytes(item) for page in pages for item in page["Items"]), default=0
    )


def item_bytes(item: Mapping[str, Mapping[str, Any]]) -> int:
    """Return an upper bound of an item's billed size: names and values in UTF-8.

    Numbers are taken by their digits, which is more than they are billed at.
    """
    return sum(
        len(name.encode()) + _value_bytes(value)
        for name, typed in item.items()
        for value in typed.values()
    )


def _value_bytes(value: object) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, Mapping):
        # Three bytes for a map and one for each member.
        return 3 + len(value) + item_bytes(value)
    return 1
