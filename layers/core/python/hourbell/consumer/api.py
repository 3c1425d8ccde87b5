"""The worker routes: claim, heartbeat, complete and fail, up to ten at a time."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeGuard, TypeVar

from hourbell.consumer.clock import Backoff, Clock
from hourbell.consumer.errors import ApiRefused, HeldOff, NoAnswer
from hourbell.consumer.http import Transport
from hourbell.consumer.tenants import TenantTransports

BATCH: Final = 10
"""How many occurrences a call names at most: what one receive brings."""

EXPIRED: Final = "EXPIRED"
"""The reason of a claim that finds nothing, or that comes too late."""
CLAIM_TRIES: Final = 4
MAX_KIND: Final = 128
MAX_TEXT: Final = 1_024
MAX_RETRY_AFTER: Final = 86_400

_AGAIN: Final = {
    HTTPStatus.REQUEST_TIMEOUT,
    HTTPStatus.TOO_EARLY,
    HTTPStatus.TOO_MANY_REQUESTS,
}


class Answer(StrEnum):
    """What to do with a claimed message: RUN it, delete it, or leave it (ERROR)."""

    RUN = "RUN"
    SKIP = "SKIP"
    BUSY = "BUSY"
    WAIT = "WAIT"
    ERROR = "ERROR"


class ErrorClass(StrEnum):
    """What kind of failure ended an attempt."""

    RETRYABLE = "RETRYABLE"
    PERMANENT = "PERMANENT"
    THROTTLED = "THROTTLED"


@dataclass(frozen=True, slots=True)
class Held:
    """An occurrence that is claimed, or is to be.

    Attributes:
        send: which send of it brought its message.
        tenant: whose it is, as its message says.
    """

    occurrence_id: str
    lease_token: str
    send: int | None = None
    tenant: str = ""


class Holding(Protocol):
    """What is named in calls by its occurrence."""

    @property
    def held(self) -> Held:
        """How it is named."""
        ...


Named = TypeVar("Named", bound=Holding)


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to a claim.

    Attributes:
        reason: of all but RUN, why.
        attempt: of RUN, its number, from 1.
        lease_token: of RUN, what the attempt is held with. Not the one that was drawn,
            if the claim was repeated so late that the attempt that it began is over.
        state: of all but RUN, the occurrence's; None if there is none for this tenant.
    """

    answer: Answer
    reason: str | None = None
    attempt: int | None = None
    lease_token: str | None = None
    state: str | None = None

    @property
    def is_unknown(self) -> bool:
        """Whether Hourbell knows no such occurrence, as far as this worker may know.

        Rows outlive messages. So it is another tenant's, whose work must not be lost.
        """
        is_expired = self.answer is Answer.SKIP and self.reason == EXPIRED
        return is_expired and self.state is None


@dataclass(frozen=True, slots=True)
class Said:
    """The answer to a heartbeat, a complete or a fail.

    Attributes:
        status: 200; 404 and 409 when the lease is not this worker's (any more); 503
            when it must be said again.
        cancel_requested: of a heartbeat, whether the work should stop.
        state: of complete and fail, what the occurrence is in now.
    """

    status: int
    cancel_requested: bool = False
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt failed.

    Attributes:
        kind: the exception's name.
        retry_after_seconds: of THROTTLED only.
    """

    error_class: ErrorClass
    kind: str
    message: str
    retry_after_seconds: int | None = None

    def document(self) -> dict[str, Any]:
        """Return it as the API takes it, cut to what it takes."""
        members: dict[str, Any] = {
            "class": self.error_class,
            "type": _unicode(self.kind[:MAX_KIND]),
            "message": _unicode(self.message[:MAX_TEXT]),
        }
        if self.retry_after_seconds is not None:
            longest = min(self.retry_after_seconds, MAX_RETRY_AFTER)
            members["retry_after_seconds"] = max(longest, 0)
        return members


class WorkerApi:
    """The worker routes as one worker calls them."""

    def __init__(
        self,
        transport: Transport | TenantTransports,
        clock: Clock,
        *,
        worker: str,
        lease_seconds: int,
        backoff: Backoff | None = None,
    ) -> None:
        """Remember who calls.

        Args:
            transport: takes the requests there; where tenants have one each, a call
                names occurrences of one tenant only.
            clock: waits between repetitions of a claim.
            worker: what this worker calls itself; shown with the attempts.
            lease_seconds: how long a lease lasts unless a heartbeat extends it.
            backoff: between those repetitions.
        """
        self._transport = transport
        self._clock = clock
        self._worker = worker
        self._backoff = backoff or Backoff()
        self.lease_seconds = lease_seconds

    def batches(self, items: Sequence[Named]) -> list[list[Named]]:
        """Return what may be named together in a call, all of it in some batch."""
        groups: dict[str, list[Named]] = {}
        for item in items:
            is_alone = isinstance(self._transport, TenantTransports)
            groups.setdefault(item.held.tenant if is_alone else "", []).append(item)
        return [
            group[start : start + BATCH]
            for group in groups.values()
            for start in range(0, len(group), BATCH)
        ]

    def held_off(self, tenant: str) -> float:
        """Return for how many seconds a tenant's calls are not tried, 0 if they are."""
        if isinstance(self._transport, TenantTransports):
            return self._transport.held_off(tenant)
        return 0.0

    def all_held_off(self) -> dict[str, float]:
        """Return the tenants whose calls are not tried, and for how many seconds."""
        if isinstance(self._transport, TenantTransports):
            return self._transport.all_held_off()
        return {}

    def claim(
        self, items: Sequence[Held], stopping: threading.Event
    ) -> dict[str, Claim]:
        """Claim occurrences, each with a token that was drawn for it.

        Repeated a few times while there is no answer: with the same tokens that is
        one claim.

        Args:
            items: 1 to 10 of them, all different, of one of the `batches`.
            stopping: ends the waiting between repetitions.

        Returns:
            By occurrence_id, every one of them.

        Raises:
            HeldOff: their tenant is left alone for now.
            NoAnswer: there is none; whether they are claimed is not known.
            ApiRefused: none is claimed.
        """
        body = {
            "worker": self._worker,
            "lease_seconds": self.lease_seconds,
            "items": [{**_names(item), "send": item.send} for item in items],
        }
        results = self._patiently("claim", items, body, stopping)
        return {
            item.occurrence_id: _claim(result)
            for item, result in zip(items, results, strict=True)
        }

    def heartbeat(self, items: Sequence[Held]) -> dict[str, Said]:
        """Extend the leases of up to ten occurrences, once.

        Raises:
            NoAnswer, ApiRefused: as `claim`.
        """
        body = {
            "lease_seconds": self.lease_seconds,
            "items": [_names(item) for item in items],
        }
        results = self._post("heartbeat", items, body)
        return {
            item.occurrence_id: _said(result)
            for item, result in zip(items, results, strict=True)
        }

    def complete(self, item: Held) -> Said:
        """Say once that an occurrence is done.

        Raises:
            NoAnswer, ApiRefused: as `claim`.
        """
        body = {"items": [_names(item)]}
        return _said(self._post("complete", [item], body)[0])

    def fail(self, item: Held, failure: Failure) -> Said:
        """Say once that an attempt failed.

        Raises:
            NoAnswer, ApiRefused: as `claim`.
        """
        body = {"items": [_names(item) | {"error": failure.document()}]}
        return _said(self._post("fail", [item], body)[0])

    def _patiently(
        self,
        route: str,
        items: Sequence[Held],
        body: Mapping[str, Any],
        stopping: threading.Event,
    ) -> list[Any]:
        failures = 0
        while True:
            try:
                return self._post(route, items, body)
            except (HeldOff, ApiRefused) as error:
                error.is_doubtful = failures > 0
                raise
            except NoAnswer as error:
                failures += 1
                if failures == CLAIM_TRIES:
                    raise
                pause = self._backoff.seconds(
                    failures, self._clock.chance(), error.retry_after_seconds
                )
                if self._clock.wait(stopping, pause):
                    raise

    def _post(
        self, route: str, items: Sequence[Held], body: Mapping[str, Any]
    ) -> list[Any]:
        """Send a request, once; return its results, as many as there were items."""
        path = f"/v1/occurrences/{route}"
        try:
            transport = self._transport_of(items[0].tenant)
            reply = transport.post(path, json.dumps(body).encode())
        except OSError as error:
            raise NoAnswer(f"{path}: {error}") from error
        document = reply.document
        if reply.status == HTTPStatus.OK:
            results = document.get("results") if isinstance(document, dict) else None
            if _are_answers(results, len(items)):
                return results
            raise NoAnswer(f"{path}: {reply.text[:200]!r} is no answer")
        problem = document if isinstance(document, dict) else {}
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status in _AGAIN:
            raise NoAnswer(
                f"{path}: HTTP {reply.status} {problem.get('code', '')}",
                retry_after_seconds=_retry_after(reply.headers),
            )
        raise ApiRefused(
            reply.status,
            str(problem.get("code", "")),
            str(problem.get("detail", reply.text[:200])),
        )

    def _transport_of(self, tenant: str) -> Transport:
        if isinstance(self._transport, TenantTransports):
            return self._transport.of(tenant)
        return self._transport


def _unicode(text: str) -> str:
    """Return a text without halves of characters, as in names of files."""
    return text.encode("utf-8", "replace").decode()


def _are_answers(results: object, count: int) -> TypeGuard[list[Any]]:
    """Whether there is a result for each item, in a form that can be read."""
    return (
        isinstance(results, list)
        and len(results) == count
        and all(
            isinstance(each, dict) and isinstance(each.get("status", 0), int)
            for each in results
        )
    )


def _names(item: Held) -> dict[str, Any]:
    return {"occurrence_id": item.occurrence_id, "lease_token": item.lease_token}


def _claim(result: Mapping[str, Any]) -> Claim:
    try:
        answer = Answer(result.get("answer", Answer.ERROR))
    except ValueError:
        # An answer of a later release: what is not understood is left alone.
        answer = Answer.ERROR
    token = result.get("lease_token")
    return Claim(
        answer,
        result.get("reason"),
        result.get("attempt"),
        token if isinstance(token, str) else None,
        result.get("state"),
    )


def _said(result: Mapping[str, Any]) -> Said:
    return Said(
        status=result.get("status", HTTPStatus.SERVICE_UNAVAILABLE),
        cancel_requested=bool(result.get("cancel_requested")),
        state=result.get("state"),
    )


def _retry_after(headers: Mapping[str, str]) -> float:
    value = headers.get("retry-after", "")
    return min(float(value), 60.0) if value.isdecimal() else 0.0
