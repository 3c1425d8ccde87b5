"""The demo's HTTP client: SigV4-signed requests over kept-alive connections."""

import http.client
import json
import threading
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as SigningKeys

from hourbell.local.errors import LocalStackError
from hourbell.local.state import Credentials

SERVICE = "execute-api"
TIMEOUT_SECONDS = 15.0
ATTEMPTS = 4
PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said: the HTTP status and the JSON document."""

    status: int
    document: Any


class SignedApi:
    """The HTTP API, as seen by one IAM user; threads have their own connections.

    Args:
        api_url: base URL, stage included.
        credentials: the user's keys.
        region: for the signature.
    """

    def __init__(self, api_url: str, credentials: Credentials, region: str) -> None:
        self._url = api_url.rstrip("/")
        self._parts = urlsplit(self._url)
        keys = SigningKeys(credentials.access_key_id, credentials.secret_access_key)
        self._signer = SigV4Auth(keys, SERVICE, region)
        self._local = threading.local()
        self._pausing = threading.Event()

    def post(
        self, path: str, body: dict[str, Any], *, idempotency_key: str | None = None
    ) -> Answer:
        """Send a document; repeat it when the API was not reached or is busy.

        Repeating is safe: a create is repeated under the same idempotency key.

        Raises:
            LocalStackError: the API did not answer in any attempt.
        """
        headers = {"Content-Type": "application/json"}
        if idempotency_key:
            headers["Idempotency-Key"] = idempotency_key
        text = json.dumps(body, separators=(",", ":")).encode()
        failure: Exception | None = None
        for attempt in range(ATTEMPTS):
            try:
                answer = self._send("POST", path, text, headers)
            except (OSError, http.client.HTTPException) as error:
                failure = error
                self._drop_connection()
            else:
                if answer.status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
                    return answer
                failure = RuntimeError(f"HTTP {answer.status}: {answer.document}")
            self._pausing.wait(PAUSE_SECONDS * 2**attempt)
        raise LocalStackError(f"POST {path} failed {ATTEMPTS} times: {failure}")

    def _send(
        self, method: str, path: str, body: bytes, headers: dict[str, str]
    ) -> Answer:
        request = AWSRequest(method, f"{self._url}{path}", dict(headers), body)
        self._signer.add_auth(request)
        connection = self._connection()
        signed = {str(name): str(value) for name, value in request.headers.items()}
        connection.request(method, f"{self._parts.path}{path}", body, signed)
        response = connection.getresponse()
        return Answer(response.status, _document(response.read()))

    def _connection(self) -> http.client.HTTPConnection:
        found = getattr(self._local, "connection", None)
        if isinstance(found, http.client.HTTPConnection):
            return found
        kind = (
            http.client.HTTPSConnection
            if self._parts.scheme == "https"
            else http.client.HTTPConnection
        )
        made = kind(self._parts.netloc, timeout=TIMEOUT_SECONDS)
        self._local.connection = made
        return made

    def _drop_connection(self) -> None:
        self._connection().close()
        del self._local.connection


def _document(raw: bytes) -> Any:
    text = raw.decode("utf-8", errors="replace")
    try:
        return json.loads(text)
    except ValueError:
        return text
