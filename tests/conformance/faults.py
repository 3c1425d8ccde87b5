"""A network that answers as a test scripts it."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, cast

from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.exceptions import ReadTimeoutError
from botocore.httpsession import URLLib3Session
from hourbell.adapters.backoff import Backoff
from hourbell.adapters.dynamodb import Database, TableNames
from hourbell.adapters.dynamodb.client import client_config

from tests.conformance.engine import engine_session
from tests.conformance.worlds import still_backoff

Reaction = Callable[[AWSPreparedRequest], AWSResponse | None]

NOWHERE = "http://127.0.0.1:1"
TABLES = TableNames.with_prefix("faulty")


class _Body:
    """What botocore reads a response's content from."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: object) -> Iterable[bytes]:
        return [self._content]


def _response(request: AWSPreparedRequest, status: int, content: bytes) -> AWSResponse:
    headers = HTTPHeaders()
    headers["content-type"] = "application/x-amz-json-1.0"
    return AWSResponse(request.url, status, headers, _Body(content))


def answer(body: dict[str, Any], status: int = 200) -> Reaction:
    """Answer with a JSON body."""
    content = json.dumps(body).encode()

    def react(request: AWSPreparedRequest) -> AWSResponse:
        return _response(request, status, content)

    return react


def error(code: str, status: int = 400, **members: Any) -> Reaction:
    """Answer with an error of the whole call."""
    return answer({"__type": f"com.amazon#{code}", "message": "?", **members}, status)


def garbage(request: AWSPreparedRequest) -> AWSResponse:
    """Answer with something that is not JSON, as a broken proxy does."""
    return _response(request, 502, b"<html>Bad Gateway</html>")


def timeout(request: AWSPreparedRequest) -> AWSResponse:
    """Let the request get nowhere."""
    raise ReadTimeoutError(endpoint_url=request.url)


def passed_on(request: AWSPreparedRequest) -> None:
    """Let the request through."""
    del request


def lost(request: AWSPreparedRequest) -> AWSResponse:
    """Let the request through, and lose its answer."""
    URLLib3Session().send(request)
    raise ReadTimeoutError(endpoint_url=request.url)


def statements(*codes: str | None) -> Reaction:
    """Answer a packed write with these codes; None for a statement that applied."""
    return answer(
        {
            "Responses": [
                {"TableName": "t"}
                if code is None
                else {"Error": {"Code": code, "Message": "?"}}
                for code in codes
            ]
        }
    )


class Script:
    """Reacts to one request after the other.

    Attributes:
        requests: the parsed bodies of the requests so far.
    """

    def __init__(self, *reactions: Reaction) -> None:
        self._reactions = list(reactions)
        self.requests: list[dict[str, Any]] = []

    def attach(self, client: Any) -> None:
        """React to what a client sends."""
        client.meta.events.register_first("before-send", self.react)

    def detach(self, client: Any) -> None:
        """Leave the client alone again."""
        client.meta.events.unregister("before-send", self.react)

    @property
    def left(self) -> int:
        """How many reactions were not used."""
        return len(self._reactions)

    def react(self, request: AWSPreparedRequest, **_: object) -> AWSResponse | None:
        """Take the next reaction."""
        self.requests.append(json.loads(cast("bytes", request.body)))
        return self._reactions.pop(0)(request)


class _Switch:
    """Hands the requests of a client to the script of the running test."""

    def __init__(self, client: Any) -> None:
        self.script = Script()
        client.meta.events.register_first("before-send", self._react)

    def _react(self, request: AWSPreparedRequest, **_: object) -> AWSResponse | None:
        return self.script.react(request)


@cache
def _client(service: str) -> tuple[Any, _Switch]:
    """Make a client once, since that is what takes time; it never retries."""
    client = engine_session().client(
        service,  # type: ignore[call-overload]
        endpoint_url=NOWHERE,
        config=client_config(1),
    )
    return client, _Switch(client)


def scripted_database(script: Script, backoff: Backoff | None = None) -> Database:
    """Return a database whose one client meets the script and never retries."""
    client, switch = _client("dynamodb")
    switch.script = script
    pauses = backoff or still_backoff()
    return Database(TABLES, client, client, pauses, pauses)


def scripted_sqs(script: Script) -> Any:
    """Return an SQS client that meets the script and never retries."""
    client, switch = _client("sqs")
    switch.script = script
    return client
