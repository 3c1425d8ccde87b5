"""The HTTPS API's callers under load: signed requests over kept-alive connections."""

import http.client
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

SERVICE = "execute-api"
TIMEOUT_SECONDS = 60.0
# Servers close what is idle for some seconds; a request must not meet that.
IDLE_SECONDS = 2.0

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API said, the names of its headers in lower case."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON
        """The body as JSON."""
        return json.loads(self.text)


class SignedClient:
    """The API as one caller sees it; threads have their own connections."""

    def __init__(self, url: str, signer: SigV4Auth | None) -> None:
        """Remember where the API is and who signs.

        Args:
            url: base URL, stage included.
            signer: signs every request; None to send them unsigned.
        """
        self._url = url.rstrip("/")
        self._parts = urlsplit(self._url)
        self._signer = signer
        self._local = threading.local()

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send one request, once.

        Raises:
            OSError, http.client.HTTPException: there was no answer.
        """
        text = b"" if body is None else json.dumps(body).encode()
        named = {"Content-Type": "application/json", **(headers or {})}
        request = AWSRequest(method, f"{self._url}{path}", named, text)
        if self._signer is not None:
            self._signer.add_auth(request)
        signed = {str(name): str(value) for name, value in request.headers.items()}
        connection = self._connection()
        try:
            connection.request(method, f"{self._parts.path}{path}", text, signed)
            response = connection.getresponse()
            content = response.read().decode()
            self._local.used_at = time.monotonic()
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        found = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, found, content)

    def _connection(self) -> http.client.HTTPConnection:
        found = getattr(self._local, "connection", None)
        if isinstance(found, http.client.HTTPConnection):
            if time.monotonic() - self._local.used_at > IDLE_SECONDS:
                # It opens again by itself.
                found.close()
            return found
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        made = kind(self._parts.netloc, timeout=TIMEOUT_SECONDS)
        self._local.connection = made
        self._local.used_at = time.monotonic()
        return made


def signer(
    access_key_id: str, secret_access_key: str, region: str, token: str | None = None
) -> SigV4Auth:
    """Return what signs requests to the API."""
    keys = Credentials(access_key_id, secret_access_key, token)
    return SigV4Auth(keys, SERVICE, region)


def checked(answer: Answer) -> Answer:
    """Return an answer that is no refusal.

    Raises:
        RuntimeError: it is one; the figures would mean nothing.
    """
    if answer.status >= 300:
        raise RuntimeError(f"HTTP {answer.status}: {answer.text[:300]}")
    return answer


def together(calls: Sequence[Callable[[], Result]], threads: int) -> list[Result]:
    """Make calls from some threads, all of which begin at once; results in order."""
    barrier = threading.Barrier(threads)

    def begin() -> None:
        barrier.wait(TIMEOUT_SECONDS)

    with ThreadPoolExecutor(threads, initializer=begin) as pool:
        futures = [pool.submit(call) for call in calls]
        return [future.result() for future in futures]
