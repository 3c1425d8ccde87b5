"""A thin signed client of the engine, for the pump.

boto3 spends about a millisecond of CPU on a call and converts every record twice;
the pump polls many times a second and only passes records through.
"""

import http.client
import json
import threading
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from hourbell.domain.errors import Permanent, Transient

STREAMS = "DynamoDBStreams_20120810"
SQS = "AmazonSQS"
TIMEOUT_SECONDS = 910.0  # longer than the longest function may run


class Refused(Permanent):
    """The engine refused a call; `code` is the service's error code."""


@dataclass(slots=True)
class Invocation:
    """What a function answered.

    Attributes:
        error: kind of the function's own error; empty when it returned normally.
    """

    payload: Any
    error: str = ""


@dataclass(slots=True)
class Wire:
    """Signed HTTP calls to the engine, one kept-alive connection a thread."""

    endpoint_url: str
    region: str
    access_key_id: str
    secret_access_key: str
    _local: threading.local = field(default_factory=threading.local)

    def call(self, service: str, target: str, body: Any) -> dict[str, Any]:
        """Make a JSON-protocol call and return its answer.

        Raises:
            Refused: the service said no.
            Transient: the engine did not answer.
        """
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": target,
        }
        status, _, raw = self._post(service, "/", headers, json.dumps(body).encode())
        answer: dict[str, Any] = json.loads(raw or b"{}")
        if status >= http.HTTPStatus.BAD_REQUEST:
            code = str(answer.get("__type", status)).rpartition("#")[2]
            raise Refused(str(answer.get("message", raw[:200])), code=code)
        return answer

    def invoke(self, function: str, event: bytes) -> Invocation:
        """Run a function with an event in JSON and wait for its answer.

        Raises:
            Transient: it was throttled, or the engine did not answer.
            Refused: the engine does not run it.
        """
        path = f"/2015-03-31/functions/{function}/invocations"
        headers = {"Content-Type": "application/json"}
        status, answered, raw = self._post("lambda", path, headers, event)
        if status == http.HTTPStatus.TOO_MANY_REQUESTS:
            raise Transient(f"{function} is throttled")
        if status >= http.HTTPStatus.BAD_REQUEST:
            raise Refused(raw.decode(errors="replace")[:200], code=str(status))
        payload = json.loads(raw or b"null")
        return Invocation(payload, answered.get("x-amz-function-error", ""))

    def _post(
        self, service: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        request = AWSRequest("POST", self.endpoint_url + path, headers, body)
        credentials = Credentials(self.access_key_id, self.secret_access_key)
        SigV4Auth(credentials, service, self.region).add_auth(request)
        signed = dict(request.headers.items())
        try:
            return self._send(path, signed, body)
        except (OSError, http.client.HTTPException) as error:
            self._forget()
            raise Transient(f"The engine does not answer: {error!r}") from error

    def _send(
        self, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, dict[str, str], bytes]:
        connection = self._connection()
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        answered = {name.lower(): text for name, text in response.getheaders()}
        return response.status, answered, response.read()

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(
            self._local, "connection", None
        )
        if connection is None:
            place = urlsplit(self.endpoint_url)
            connection = http.client.HTTPConnection(
                place.hostname or "", place.port, timeout=TIMEOUT_SECONDS
            )
            self._local.connection = connection
        return connection

    def _forget(self) -> None:
        self._connection().close()
        del self._local.connection
