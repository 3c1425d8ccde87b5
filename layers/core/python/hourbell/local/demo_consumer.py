"""The demo's consumer: receives from every delivery queue, with a clock of its own."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import TracebackType
from typing import Any, Protocol, Self

from botocore.exceptions import BotoCoreError, ClientError

from hourbell.local.errors import LocalStackError
from hourbell.usecases.ports import Clock

BATCH = 10
WAIT_SECONDS = 1
PAUSE_SECONDS = 0.2
MAX_FAILURES = 25


class Sqs(Protocol):
    """The two calls of an SQS client that a consumer needs; safe between threads."""

    @property
    def receive_message(self) -> Callable[..., Mapping[str, Any]]:
        """Receive up to ten messages, waiting for the first."""
        ...

    @property
    def delete_message_batch(self) -> Callable[..., object]:
        """Delete up to ten messages."""
        ...


@dataclass(frozen=True, slots=True)
class Receipt:
    """One message as it arrived.

    Attributes:
        queue: key of the queue it came from.
        group: its MessageGroupId; empty without one.
        received_at: when the consumer held it, by its own clock.
    """

    queue: str
    body: str
    group: str
    received_at: datetime


class Consumer:
    """Receives and deletes in one thread per queue while it is entered."""

    def __init__(self, sqs: Sqs, queue_urls: Mapping[str, str], clock: Clock) -> None:
        self._sqs = sqs
        self._clock = clock
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._receipts: list[Receipt] = []
        self._failure: Exception | None = None
        self._threads = [
            threading.Thread(
                target=self._drain, args=(queue, url), name=f"consume-{queue}"
            )
            for queue, url in queue_urls.items()
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def receipts(self) -> tuple[Receipt, ...]:
        """Return what has arrived so far, in the order of arrival.

        Raises:
            LocalStackError: a queue cannot be received from any more.
        """
        if self._failure is not None:
            raise LocalStackError(
                f"The demo's consumer gave up: {self._failure}"
            ) from self._failure
        with self._lock:
            return tuple(self._receipts)

    def _drain(self, queue: str, url: str) -> None:
        failures = 0
        while not self._stopping.is_set():
            try:
                self.take(queue, url)
                failures = 0
            except (BotoCoreError, ClientError) as error:
                failures += 1
                if failures == MAX_FAILURES:
                    self._failure = error
                    return
                self._stopping.wait(PAUSE_SECONDS)

    def take(self, queue: str, url: str) -> int:
        """Receive one batch, note its arrival, delete it; return how many came.

        Raises:
            BotoCoreError: the queue was not reached.
            ClientError: the queue refused.
        """
        answer = self._sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=BATCH,
            WaitTimeSeconds=WAIT_SECONDS,
            MessageSystemAttributeNames=["MessageGroupId"],
        )
        received_at = self._clock.now()
        messages = answer.get("Messages", [])
        if not messages:
            return 0
        arrived = [
            Receipt(
                queue=queue,
                body=message["Body"],
                group=message.get("Attributes", {}).get("MessageGroupId", ""),
                received_at=received_at,
            )
            for message in messages
        ]
        with self._lock:
            self._receipts += arrived
        self._sqs.delete_message_batch(
            QueueUrl=url,
            Entries=[
                {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
                for place, message in enumerate(messages)
            ],
        )
        return len(messages)
