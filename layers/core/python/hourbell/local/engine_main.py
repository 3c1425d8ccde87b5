"""Start the engine with a repair: PartiQL writes reach the stream, as on AWS.

    <engine's python> engine_main.py

The engine writes stream records for PutItem, UpdateItem and transactions, none for
PartiQL. This file is run by path under the engine's own interpreter, where Hourbell
is not installed; it imports the engine and nothing of ours.
"""

import importlib
from collections.abc import Callable
from typing import Any

SERVICE = "ministack.services.dynamodb"
NO_SORT_KEY = "__no_sort__"  # what the engine files items without one under
EVENTS = {
    "_partiql_insert": "INSERT",
    "_partiql_update": "MODIFY",
    "_partiql_delete": "REMOVE",
}


def repair(service: Any) -> None:
    """Make the functions that carry out PartiQL writes tell the stream."""
    for name, event in EVENTS.items():
        setattr(service, name, telling(service, getattr(service, name), event))


def telling(
    service: Any,
    write: Callable[..., Any],
    event: str,
) -> Callable[..., Any]:
    """Return a write that emits a stream event when it was applied."""

    def told(table: dict[str, Any], parsed: dict[str, Any], *more: Any) -> Any:
        before = item_of(service, table, parsed)
        answer = write(table, parsed, *more)
        after = item_of(service, table, parsed)
        if answer[0] == 200 and (before is not None or after is not None):
            service._emit_stream_event(parsed["table"], event, before, after)  # noqa: SLF001
        return answer

    return told


def item_of(service: Any, table: dict[str, Any], parsed: dict[str, Any]) -> Any:
    """Return the item that a statement is about, as it is stored now."""
    if "item" in parsed:
        inserted = parsed["item"]
        members = inserted["M"] if set(inserted) == {"M"} else inserted
        partition = service._extract_key_val(members.get(table["pk_name"]))  # noqa: SLF001
        sort = NO_SORT_KEY
        if table["sk_name"]:
            sort = service._extract_key_val(members.get(table["sk_name"]))  # noqa: SLF001
    else:
        partition, sort, _, problem = service._partiql_key_target(table, parsed)  # noqa: SLF001
        if problem:
            return None
    return table["items"].get(partition, {}).get(sort)


if __name__ == "__main__":
    repair(importlib.import_module(SERVICE))
    importlib.import_module("ministack.app").main()
