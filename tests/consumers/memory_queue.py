"""A queue in memory with visibility, for consumers, and the messages for it."""

import itertools
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hourbell.consumer.queue import QueueFault, Received

SCHEDULE_ID = "sch00000000000000000000000001"
VISIBILITY = 120.0


def occurrence_id(number: int) -> str:
    """Return the id of the n-th minute after 2026-03-09T06:00Z, n below 1,440."""
    hour, minute = divmod(number, 60)
    return f"{SCHEDULE_ID}.v1.20260309T{6 + hour:02}{minute:02}00Z"


def body_of(name: str, handler: str = "report", **data: Any) -> str:
    """Return the message of an occurrence."""
    event = {
        "specversion": "1.0",
        "type": "com.hourbell.occurrence.due.v1",
        "source": f"/hourbell/schedules/{SCHEDULE_ID}",
        "id": name,
        "time": "2026-03-09T06:00:00Z",
        "subject": "nightly",
        "datacontenttype": "application/json",
        "traceparent": f"00-{'a' * 32}-{'b' * 16}-01",
        "data": {
            "handler": handler,
            "tracking": "TRACKED",
            "schedule_id": SCHEDULE_ID,
            "version": 1,
            "tenant": "north",
            "available_at": "2026-03-09T06:00:00Z",
            "send": 1,
            "attempt": 1,
            "misfire": False,
            "payload": {"account": name},
            **data,
        },
    }
    return json.dumps(event)


@dataclass
class Stored:
    """A message in the queue."""

    message_id: str
    body: str
    visible_at: float
    receipts: list[str] = field(default_factory=list)


class MemoryQueue:
    """A standard queue of SQS: at least once, hidden for a time when received."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Begin empty, at the time that `now` tells in seconds."""
        self._now = now
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._stored: list[Stored] = []
        self.hidden: list[tuple[list[str], int]] = []
        self.waits: list[int] = []
        # How many calls fail; and the names of those that do until they are taken out.
        self.faults = 0
        self.broken: set[str] = set()
        # Called at each receive, with how many messages it is going to bring.
        self.on_receive: Callable[[int], None] = lambda _: None

    def put(self, *bodies: str) -> None:
        with self._lock:
            for body in bodies:
                name = f"m{next(self._numbers)}"
                self._stored.append(Stored(name, body, self._now()))

    def bodies(self) -> list[str]:
        """Return what is in the queue, hidden or not."""
        with self._lock:
            return [each.body for each in self._stored]

    def visible(self) -> list[str]:
        """Return the ids of the messages that can be received now."""
        with self._lock:
            now = self._now()
            return [each.message_id for each in self._stored if each.visible_at <= now]

    def receive(self, most: int, wait_seconds: int) -> list[Received]:
        self._fail_if_planned("receive")
        self.waits.append(wait_seconds)
        found: list[Received] = []
        with self._lock:
            for each in self._stored:
                if each.visible_at <= self._now() and len(found) < most:
                    each.visible_at = self._now() + VISIBILITY
                    receipt = f"{each.message_id}-{len(each.receipts)}"
                    each.receipts.append(receipt)
                    found.append(Received(each.message_id, receipt, each.body))
        self.on_receive(len(found))
        return found

    def delete(self, receipts: Sequence[str]) -> None:
        self._fail_if_planned("delete")
        with self._lock:
            self._stored = [
                each
                for each in self._stored
                if not any(receipt in receipts for receipt in each.receipts)
            ]

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        self._fail_if_planned("hide")
        with self._lock:
            self.hidden.append((list(receipts), seconds))
            for each in self._stored:
                if any(receipt in receipts for receipt in each.receipts):
                    each.visible_at = self._now() + seconds

    def _fail_if_planned(self, name: str) -> None:
        if name in self.broken:
            raise QueueFault("as planned")
        if self.faults:
            self.faults -= 1
            raise QueueFault("as planned")
