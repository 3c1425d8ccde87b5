"""The queues in memory."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from hourbell.adapters.chunks import chunks
from hourbell.domain.occurrence import RowKey
from hourbell.usecases.ports import Clock, Entry, GroupWork, Sent

# The limits of SQS.
_MAX_ENTRIES = 10
_MAX_BYTES = 1024 * 1024
_MAX_DELAY_SECONDS = 900
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_KEYS_PER_MESSAGE = 50


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that a delivery queue accepted.

    Attributes:
        sent_at: when it was accepted.
        visible_at: when it can be received: `sent_at` plus its delay.
    """

    queue: str
    entry: Entry
    sent_at: datetime
    visible_at: datetime


class MemoryDeliveryQueues:
    """The `DeliveryQueues` port: keeps delays against a clock.

    Attributes:
        accepted: everything that was ever accepted, in order.
    """

    def __init__(self, clock: Clock, queues: Sequence[str] | None = None) -> None:
        """Make the queues.

        Args:
            clock: by which messages become visible.
            queues: the keys of the queues that exist; None when any key may be used.
        """
        self._clock = clock
        self._names = None if queues is None else frozenset(queues)
        self._waiting: list[Delivery] = []
        self.accepted: list[Delivery] = []

    def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        """Accept what SQS would accept.

        Raises:
            ValueError: more than 10 entries, or an entry_id occurs twice.
        """
        if len(entries) > _MAX_ENTRIES or len({e.entry_id for e in entries}) < len(
            entries
        ):
            raise ValueError("at most 10 entries, each with an id of its own")
        if self._names is not None and queue not in self._names:
            return {entry.entry_id: Sent.RETRY for entry in entries}
        return {entry.entry_id: self._accept(queue, entry) for entry in entries}

    def receive(self, queue: str, limit: int = 10) -> list[Delivery]:
        """Take up to `limit` visible messages off a queue, oldest visible first."""
        now = self._clock.now()
        ready = [d for d in self._waiting if d.queue == queue and d.visible_at <= now]
        ready.sort(key=lambda delivery: delivery.visible_at)
        taken = ready[:limit]
        for delivery in taken:
            self._waiting.remove(delivery)
        return taken

    def _accept(self, queue: str, entry: Entry) -> Sent:
        if not _acceptable(entry):
            return Sent.REFUSED
        now = self._clock.now()
        visible_at = now + timedelta(seconds=entry.delay_seconds)
        delivery = Delivery(queue, entry, now, visible_at)
        self._waiting.append(delivery)
        self.accepted.append(delivery)
        return Sent.ACCEPTED


class MemoryWorkQueue:
    """The `WorkQueue` port.

    Attributes:
        messages: what was put and not yet taken.
    """

    def __init__(self) -> None:
        self.messages: list[GroupWork] = []

    def put(self, work: Sequence[GroupWork]) -> None:
        """Enqueue the orders."""
        self.messages.extend(work)

    def take(self) -> list[GroupWork]:
        """Return and forget all orders."""
        taken = list(self.messages)
        self.messages.clear()
        return taken


class MemorySweepQueue:
    """The `SweepQueue` port.

    Attributes:
        messages: what was put and not yet taken, each up to 50 keys.
    """

    def __init__(self) -> None:
        self.messages: list[tuple[RowKey, ...]] = []

    def put(self, keys: Sequence[RowKey]) -> None:
        """Enqueue keys in messages of up to 50."""
        self.messages.extend(tuple(part) for part in chunks(keys, _KEYS_PER_MESSAGE))

    def take(self) -> list[tuple[RowKey, ...]]:
        """Return and forget all messages."""
        taken = list(self.messages)
        self.messages.clear()
        return taken


class MemoryJobQueue:
    """The `JobQueue` port.

    Attributes:
        messages: job_ids that were put and not yet taken.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []

    def put(self, job_id: str) -> None:
        """Enqueue a job."""
        self.messages.append(job_id)

    def take(self) -> list[str]:
        """Return and forget all job_ids."""
        taken = list(self.messages)
        self.messages.clear()
        return taken


def _acceptable(entry: Entry) -> bool:
    return (
        bool(entry.body)
        and not _FORBIDDEN.search(entry.body)
        and len(entry.body.encode()) <= _MAX_BYTES
        and 0 <= entry.delay_seconds <= _MAX_DELAY_SECONDS
    )
