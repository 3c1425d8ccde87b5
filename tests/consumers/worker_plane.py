"""The worker routes in memory, for consumers: what Hourbell would answer, and faults.

It is a `Transport`, so that a consumer under test calls it directly; the server of this
folder serves it over HTTP to consumers in other processes.
"""

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hourbell.consumer.http import Reply

PREFIX = "/v1/occurrences/"
TOKEN = re.compile(r"[A-Za-z0-9_-]{16,64}")
CLAIM, HEARTBEAT, COMPLETE, FAIL = "claim", "heartbeat", "complete", "fail"
ENDED = {"SUCCEEDED", "DEAD", "CANCELED"}


@dataclass
class Row:
    """What is known of an occurrence.

    Attributes:
        tokens: of all attempts, the current or last one at the end.
        said: token -> answer, of the attempts that are over by their worker's word.
        answer: a claim's canned answer and reason; None for an honest one.
    """

    state: str = "ENQUEUED"
    tokens: list[str] = field(default_factory=list)
    lease_ends: float = 0.0
    said: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: list[dict[str, Any]] = field(default_factory=list)
    cancel_requested: bool = False
    answer: tuple[str, str | None] | None = None
    worker: str = ""


@dataclass
class Fault:
    """One thing that goes wrong, once.

    Attributes:
        is_done: whether the request is carried out all the same.
        status: what HTTP says instead; None for no answer at all.
        item_status: with which every item is answered instead.
    """

    is_done: bool = False
    status: int | None = None
    item_status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    code: str = "unavailable"


LOST_ANSWER = Fault(is_done=True)
NO_CONNECTION = Fault()


class WorkerPlane:
    """Hourbell, as far as a worker sees it."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin without occurrences, at the time that `now` tells in seconds."""
        self._now = now
        self._lock = threading.Lock()
        self.rows: dict[str, Row] = {}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.faults: dict[str, list[Fault]] = {}
        # Requests that name one of these are refused as a whole.
        self.refuses: set[str] = set()
        # Called with an occurrence_id when its message is to be sent again.
        self.resend: Callable[[str], None] = lambda _: None
        # Called with the route's name after each request, before its answer.
        self.after: Callable[[str], None] = lambda _: None

    def add(self, occurrence_id: str) -> Row:
        """Let an occurrence be enqueued."""
        return self.rows.setdefault(occurrence_id, Row())

    def go_wrong(self, route: str, *faults: Fault) -> None:
        """Let the next requests to a route go wrong, one fault each."""
        self.faults.setdefault(route, []).extend(faults)

    def called(self, route: str) -> list[dict[str, Any]]:
        """Return the bodies of the requests to a route, in order."""
        return [body for name, body in self.calls if name == route]

    def post(self, path: str, body: bytes) -> Reply:
        """Answer a request; raise OSError where no answer comes."""
        route = path.removeprefix(PREFIX)
        document = json.loads(body)
        with self._lock:
            self.calls.append((route, document))
            if self.refuses & {each["occurrence_id"] for each in document["items"]}:
                return self._failed(Fault(status=400, code="invalid_input"), document)
            planned = self.faults.get(route)
            fault = planned.pop(0) if planned else None
            if fault is not None and not fault.is_done:
                return self._failed(fault, document)
            results = [self._item(route, document, each) for each in document["items"]]
        self.after(route)
        if fault is not None:
            return self._failed(fault, document)
        return Reply(200, {}, json.dumps({"results": results}))

    def watch(self) -> None:
        """Give back what a worker let run out, as the lease watch does."""
        with self._lock:
            found = [
                name
                for name, row in self.rows.items()
                if row.state == "RUNNING" and self._now() >= row.lease_ends
            ]
            for name in found:
                self.rows[name].state = "ENQUEUED"
        for name in found:
            self.resend(name)

    @staticmethod
    def _failed(fault: Fault, document: dict[str, Any]) -> Reply:
        if fault.item_status is not None:
            results = [
                {
                    "occurrence_id": each["occurrence_id"],
                    "status": fault.item_status,
                    "code": fault.code,
                }
                for each in document["items"]
            ]
            return Reply(200, {}, json.dumps({"results": results}))
        if fault.status is None:
            raise ConnectionResetError("no answer")
        problem = {"code": fault.code, "detail": "as planned"}
        return Reply(fault.status, fault.headers, json.dumps(problem))

    def _item(
        self, route: str, document: dict[str, Any], item: dict[str, Any]
    ) -> dict[str, Any]:
        row = self.rows.get(item["occurrence_id"])
        if route == CLAIM:
            found = self._claim(row, item, document)
        elif row is None:
            found = {"status": 404, "code": "not_found"}
        elif route == HEARTBEAT:
            found = self._heartbeat(row, item, document["lease_seconds"])
        else:
            found = self._end(route, row, item)
        return {"occurrence_id": item["occurrence_id"], **found}

    def _claim(
        self, row: Row | None, item: dict[str, Any], document: dict[str, Any]
    ) -> dict[str, Any]:
        token = item["lease_token"]
        assert TOKEN.fullmatch(token)
        assert item["send"] >= 1
        assert 1 <= len(document["worker"]) <= 128
        if row is None:
            return {"answer": "SKIP", "reason": "EXPIRED"}
        if row.answer is not None:
            answer, reason = row.answer
            return {"answer": answer, "reason": reason, "state": row.state}
        if row.state in ENDED:
            reason = "CANCELED" if row.state == "CANCELED" else "ALREADY_DONE"
            return {"answer": "SKIP", "reason": reason, "state": row.state}
        is_live = row.state == "RUNNING" and self._now() < row.lease_ends
        if is_live and row.tokens[-1] != token:
            return {"answer": "BUSY", "reason": None, "state": row.state}
        if not is_live:
            if token in row.tokens:
                # That of an attempt that is over does not serve again.
                token = f"token-of-hourbell-{len(row.tokens):04}"
            row.tokens.append(token)
            row.state = "RUNNING"
            row.worker = document["worker"]
            row.lease_ends = self._now() + document["lease_seconds"]
        return {
            "answer": "RUN",
            "reason": None,
            "lease_token": token,
            "lease_expires_at": instant(row.lease_ends),
            "attempt": len(row.tokens),
        }

    def _heartbeat(
        self, row: Row, item: dict[str, Any], lease_seconds: int
    ) -> dict[str, Any]:
        if not self._holds(row, item):
            return {"status": 409, "code": "lease_lost"}
        row.lease_ends = self._now() + lease_seconds
        return {
            "status": 200,
            "code": None,
            "lease_expires_at": instant(row.lease_ends),
            "cancel_requested": row.cancel_requested,
        }

    def _end(self, route: str, row: Row, item: dict[str, Any]) -> dict[str, Any]:
        token = item["lease_token"]
        if token in row.said:
            return row.said[token]
        if not self._holds(row, item):
            return {"status": 409, "code": "lease_lost"}
        if route == COMPLETE:
            row.state = "SUCCEEDED"
        else:
            error = item["error"]
            assert len(error["type"]) <= 128
            assert len(error["message"]) <= 1024
            row.errors.append(error)
            row.state = "DEAD" if error["class"] == "PERMANENT" else "RETRY_WAIT"
            if row.cancel_requested:
                row.state = "CANCELED"
        row.said[token] = {"status": 200, "code": None, "state": row.state}
        if row.state == "RETRY_WAIT":
            self.resend(item["occurrence_id"])
        return row.said[token]

    def _holds(self, row: Row, item: dict[str, Any]) -> bool:
        return row.state == "RUNNING" and row.tokens[-1] == item["lease_token"]


def instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
