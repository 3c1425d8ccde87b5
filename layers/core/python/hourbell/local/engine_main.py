"""Start the engine with three repairs, and one line less in its log.

    <engine's python> engine_main.py

Its log is without a warning about a package that only services we do not use need.
PartiQL writes reach the stream: the engine writes stream records for PutItem,
UpdateItem and transactions only. An encoded slash in the path of an API's request is a
part of a name, as on AWS: the engine takes it for one between names. And a function
behind a URL of its own is told who signed, which the engine checks and keeps to itself.

This file is run by path under the engine's own interpreter, where Hourbell is not
installed; it imports the engine and nothing of ours.
"""

import importlib
import logging
import re
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import unquote

SERVICE = "ministack.services.dynamodb"
FUNCTIONS = "ministack.services.lambda_svc"
HTTP_APIS = "ministack.services.apigateway"
SERVER = "ministack.app"
API_PREFIX = "/_aws/execute-api/"
NO_SORT_KEY = "__no_sort__"  # what the engine files items without one under
EVENTS = {
    "_partiql_insert": "INSERT",
    "_partiql_update": "MODIFY",
    "_partiql_delete": "REMOVE",
}


def is_of_interest(record: logging.LogRecord) -> bool:
    """Return whether a line of the engine's KMS says anything about this stack."""
    return "cryptography package not installed" not in record.getMessage()


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


def keeping_slashes(
    app: Callable[..., Awaitable[None]],
) -> Callable[..., Awaitable[None]]:
    """Return an ASGI app in whose APIs an encoded slash stays encoded."""

    async def kept(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if str(scope.get("path", "")).startswith(API_PREFIX) and scope.get("raw_path"):
            raw = scope["raw_path"].decode("ascii")
            path = unquote(re.sub("%2f", "%252F", raw, flags=re.IGNORECASE))
            scope = {**scope, "path": path}
        await app(scope, receive, send)

    return kept


def naming_callers(
    build: Callable[..., dict[str, Any]],
    identity: Callable[..., dict[str, Any] | None],
) -> Callable[..., dict[str, Any]]:
    """Return what builds a function URL's event, with who signed the request.

    Args:
        build: the engine's own; headers and query are its sixth and eighth argument.
        identity: of a request to an HTTP API, whose events name callers alike.
    """

    def named(*parts: Any, anonymous: bool = False, **more: Any) -> dict[str, Any]:
        event = build(*parts, anonymous=anonymous, **more)
        if not anonymous:
            iam = identity(parts[5], parts[7])
            event["requestContext"]["authorizer"] = {"iam": iam}
        return event

    return named


if __name__ == "__main__":
    logging.getLogger("kms").addFilter(is_of_interest)
    repair(importlib.import_module(SERVICE))
    functions: Any = importlib.import_module(FUNCTIONS)
    apis: Any = importlib.import_module(HTTP_APIS)
    functions._build_function_url_event = naming_callers(  # noqa: SLF001
        functions._build_function_url_event,  # noqa: SLF001
        apis._iam_caller_identity_v2,  # noqa: SLF001
    )
    server: Any = importlib.import_module(SERVER)
    server.app = keeping_slashes(server.app)
    server.main()
