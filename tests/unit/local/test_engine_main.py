"""The repairs of the engine that need no engine."""

import asyncio
import logging
from typing import Any

import pytest
from hourbell.local.engine_main import (
    is_of_interest,
    keeping_slashes,
    naming_callers,
)

API = "/_aws/execute-api/a1/prod/v1"


def passed_on(scope: dict[str, Any]) -> dict[str, Any]:
    """Return the scope that the engine gets to see."""
    seen: list[dict[str, Any]] = []

    async def engine(scope: dict[str, Any], receive: Any, send: Any) -> None:
        seen.append(scope)

    async def ask() -> None:
        await keeping_slashes(engine)(scope, None, None)

    asyncio.run(ask())
    (found,) = seen
    return found


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (f"{API}/by-name/a%2Fb", f"{API}/by-name/a%2Fb"),
        (f"{API}/by-name/a%2fb%20c", f"{API}/by-name/a%2Fb c"),
        (f"{API}/schedules", f"{API}/schedules"),
        ("/queue/a%2Fb", "/queue/a/b"),
    ],
)
def test_a_slash_inside_a_name_of_an_apis_path_stays_encoded(
    raw: str, path: str
) -> None:
    decoded = raw.replace("%2F", "/").replace("%2f", "/").replace("%20", " ")
    scope = {"type": "http", "path": decoded, "raw_path": raw.encode()}
    assert passed_on(scope) == {**scope, "path": path}


def test_what_is_no_request_passes_unchanged() -> None:
    assert passed_on({"type": "lifespan"}) == {"type": "lifespan"}


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cryptography package not installed; KMS Sign/Verify will fail", False),
        ("Sign requires the cryptography package", True),
        ("key %s is disabled", True),
    ],
)
def test_the_engine_does_not_warn_of_what_nobody_uses(
    message: str, *, shown: bool
) -> None:
    record = logging.LogRecord("kms", logging.WARNING, "", 0, message, ("k",), None)
    record.args = record.args if "%s" in message else ()
    assert is_of_interest(record) is shown


@pytest.mark.parametrize("anonymous", [True, False])
def test_a_function_behind_a_url_is_told_who_signed(*, anonymous: bool) -> None:
    def build(*_: Any, anonymous: bool) -> dict[str, Any]:
        return {"requestContext": {"anonymous": anonymous}}

    def identity(headers: dict[str, str], query: dict[str, str]) -> dict[str, Any]:
        return {"userArn": headers["who"] + query["what"]}

    named = naming_callers(build, identity)
    headers, query = {"who": "ann"}, {"what": "!"}
    parts = ("id", "0", "us-east-1", "POST", "/", headers, b"", query)
    context = named(*parts, anonymous=anonymous)["requestContext"]
    signed = {} if anonymous else {"authorizer": {"iam": {"userArn": "ann!"}}}
    assert context == {"anonymous": anonymous, **signed}
