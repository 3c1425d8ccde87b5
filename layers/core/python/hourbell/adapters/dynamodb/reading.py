"""Reads of many items at once."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar

from hourbell.adapters.chunks import chunks
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.errors import Transient

R = TypeVar("R")
T = TypeVar("T")

MAX_KEYS: Final = 100


def batch_get(
    database: Database, table: str, keys: Sequence[Item], *, consistent: bool
) -> list[dict[str, Any]]:
    """Return those of the items that exist, in no order.

    Args:
        database: tables and clients.
        table: physical name.
        keys: without repetition.
        consistent: whether every earlier write must be seen.

    Raises:
        Transient: keys were still unprocessed after the last attempt.
    """
    items: list[dict[str, Any]] = []
    for part in chunks(keys, MAX_KEYS):
        items.extend(_one_part(database, table, part, consistent=consistent))
    return items


def _one_part(
    database: Database, table: str, keys: Sequence[Item], *, consistent: bool
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    request: Any = {table: {"Keys": list(keys), "ConsistentRead": consistent}}
    for _ in database.backoff.rounds():
        with translation():
            answer = database.client.batch_get_item(RequestItems=request)
        items.extend(answer["Responses"].get(table, []))
        request = answer.get("UnprocessedKeys")
        if not request:
            return items
    raise Transient("a batch of keys was not read in time")


def get_item(
    database: Database, table: str, key: Item, *, consistent: bool
) -> dict[str, Any] | None:
    """Return an item, or None when there is none."""
    with translation():
        answer = database.client.get_item(
            TableName=table, Key=key, ConsistentRead=consistent
        )
    return answer.get("Item")


def query(database: Database, limit: int | None, **arguments: Any) -> list[Any]:  # noqa: ANN401 - the client's own
    """Return the first items that a Query finds, over as many pages as it takes.

    Args:
        database: tables and clients.
        limit: how many at most; all when None.
        arguments: of the client's `query`.
    """
    items: list[Any] = []
    while limit is None or len(items) < limit:
        if limit is not None:
            arguments["Limit"] = limit - len(items)
        with translation():
            answer = database.client.query(**arguments)
        items.extend(answer["Items"])
        if "LastEvaluatedKey" not in answer:
            break
        arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    return items


def filled(
    limit: int,
    find: Callable[[T | None], Sequence[T]],
    read: Callable[[Sequence[T]], Iterable[R]],
) -> tuple[R, ...]:
    """Return the first of a list, whatever of it is left out when it is read.

    Who asks for so many takes fewer for the end of the list.

    Args:
        limit: how many at most.
        find: returns up to `limit` items of the list that follow one of its items; from
            its beginning when None.
        read: returns what items say, in their order; nothing of one that is left out.
    """
    found: list[R] = []
    last: T | None = None
    while len(found) < limit:
        items = find(last)
        found += read(items)
        if len(items) < limit:
            break
        last = items[-1]
    return tuple(found[:limit])
