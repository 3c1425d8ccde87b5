"""Signed HTTP: a JSON document to a path, and the answer."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

CONNECT_SECONDS: Final = 3.0
READ_SECONDS: Final = 15.0
CONNECTIONS: Final = 20

# <id>.execute-api.<region>.amazonaws.com and <id>.lambda-url.<region>.on.aws
_SERVICES: Final = {"execute-api": "execute-api", "lambda-url": "lambda"}


@dataclass(frozen=True, slots=True)
class Reply:
    """What the API said.

    Attributes:
        headers: their names in lower case.
    """

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:  # noqa: ANN401 - any JSON, or none
        """The answer as JSON; None when it is none."""
        try:
            return json.loads(self.text)
        except ValueError:
            return None


class NoCredentials(OSError):
    """There are no credentials to sign with, now."""


class CredentialsSource(Protocol):
    """What has credentials, such as a session of botocore or boto3."""

    def get_credentials(self) -> Credentials | None:
        """Return what renews itself, if it can run out; None when there is none."""
        ...


class Transport(Protocol):
    """Takes a request to the API; may be used by several threads at once."""

    def post(self, path: str, body: bytes) -> Reply:
        """Send one request, once.

        Raises:
            OSError: there was no answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the API is, and what a request to it is signed for.

    Attributes:
        url: base URL, the stage included.
        service: `execute-api` behind API Gateway, `lambda` behind a function URL.
    """

    url: str
    region: str
    service: str = "execute-api"

    @classmethod
    def of(
        cls, url: str, region: str | None = None, service: str | None = None
    ) -> "Endpoint":
        """Read the region and service from AWS's host names, where not given.

        Raises:
            ValueError: the region is not given, and the host does not tell it.
        """
        labels = (urlsplit(url).hostname or "").split(".")
        found = next((label for label in labels[:-1] if label in _SERVICES), None)
        if found is not None:
            region = region or labels[labels.index(found) + 1]
            service = service or _SERVICES[found]
        if not region:
            raise ValueError(f"The region of {url} is not known: set AWS_REGION.")
        return cls(url.rstrip("/"), region, service or "execute-api")


class SignedTransport:
    """Signs with SigV4, and sends over kept-alive connections."""

    def __init__(
        self,
        endpoint: Endpoint,
        session: CredentialsSource,
        *,
        connections: int = CONNECTIONS,
        timeout: tuple[float, float] = (CONNECT_SECONDS, READ_SECONDS),
        http: URLLib3Session | None = None,
    ) -> None:
        """Remember whom to call, and whose keys sign.

        Args:
            endpoint: where.
            session: has the credentials, which it renews when they run out.
            connections: how many are kept open at most.
            timeout: seconds to connect, and without a sign of life.
            http: connections that there are already, with a timeout of their own.
        """
        self._endpoint = endpoint
        self._session = session
        self._http = http or URLLib3Session(
            # Of its annotation only the first half is true: it takes both.
            timeout=timeout,  # type: ignore[arg-type]
            max_pool_connections=connections,
        )

    def signed_by(self, source: CredentialsSource) -> "SignedTransport":
        """Return one over the same connections, with the signature of others."""
        return SignedTransport(self._endpoint, source, http=self._http)

    def post(self, path: str, body: bytes) -> Reply:
        """Send one signed request, once.

        Raises:
            NoCredentials: there are none now.
            OSError: there was no answer.
        """
        request = AWSRequest(
            "POST",
            self._endpoint.url + path,
            headers={"Content-Type": "application/json"},
            data=body,
        )
        self._sign(request)
        try:
            answer = self._http.send(request.prepare())
            text = answer.content.decode("utf-8", "replace")
        except BotoCoreError as error:
            raise OSError(str(error)) from error
        headers = {str(k).lower(): str(v) for k, v in answer.headers.items()}
        return Reply(answer.status_code, headers, text)

    def _sign(self, request: AWSRequest) -> None:
        try:
            found = self._session.get_credentials()
            frozen = None if found is None else found.get_frozen_credentials()
            if frozen is not None:
                endpoint = self._endpoint
                SigV4Auth(frozen, endpoint.service, endpoint.region).add_auth(request)
        except Exception as error:
            # Whoever gives them out may not answer for a while; or they have expired
            # when they come, by this machine's clock: that is a RuntimeError; or they
            # are something that cannot sign.
            raise NoCredentials(str(error)) from error
        if frozen is None:
            raise NoCredentials("There are no AWS credentials to sign with.")
