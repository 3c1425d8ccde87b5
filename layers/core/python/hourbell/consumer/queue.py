"""The queue that messages come from, and where they are deleted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

MAX_VISIBILITY: Final = 43_200
_BATCH: Final = 10


class QueueFault(Exception):
    """The queue did not do what it was asked."""


@dataclass(frozen=True, slots=True)
class Received:
    """One message as it arrived.

    Attributes:
        message_id: of this send.
        receipt: what deletes it, or changes its visibility; empty where somebody else
            does that.
    """

    message_id: str
    receipt: str
    body: str


class Queue(Protocol):
    """What a consumer asks of its queue; may be used by several threads at once."""

    def receive(self, most: int, wait_seconds: int) -> list[Received]:
        """Return up to so many messages (1 to 10), waiting for the first.

        Raises:
            QueueFault: it was not reached, or refused.
        """
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; one that is not there any more is no error.

        Raises:
            QueueFault: some may still be there.
        """
        ...

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Let messages not be received by anybody for so long from now on.

        Raises:
            QueueFault: for some of them that does not hold.
        """
        ...


class SqsClient(Protocol):
    """The calls of an SQS client that are made."""

    @property
    def receive_message(self) -> Callable[..., Mapping[str, Any]]:
        """Receive up to ten messages."""
        ...

    @property
    def delete_message_batch(self) -> Callable[..., Mapping[str, Any]]:
        """Delete up to ten messages."""
        ...

    @property
    def change_message_visibility_batch(self) -> Callable[..., Mapping[str, Any]]:
        """Change how long up to ten messages are hidden."""
        ...


class SqsQueue:
    """A queue of SQS."""

    def __init__(self, client: SqsClient, url: str) -> None:
        self._client = client
        self._url = url

    def receive(self, most: int, wait_seconds: int) -> list[Received]:
        """Receive by a long poll."""
        try:
            answer = self._client.receive_message(
                QueueUrl=self._url,
                MaxNumberOfMessages=min(most, _BATCH),
                WaitTimeSeconds=wait_seconds,
            )
        except Exception as error:
            # Not botocore's own only: credentials that have expired when they come, by
            # this machine's clock, are a RuntimeError.
            raise QueueFault(f"receive: {error}") from error
        return [
            Received(each["MessageId"], each["ReceiptHandle"], each["Body"])
            for each in answer.get("Messages", ())
        ]

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete in batches of ten."""
        self._in_batches(self._client.delete_message_batch, receipts, {})

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Change visibility in batches of ten."""
        more = {"VisibilityTimeout": min(seconds, MAX_VISIBILITY)}
        self._in_batches(self._client.change_message_visibility_batch, receipts, more)

    def _in_batches(
        self,
        call: Callable[..., Mapping[str, Any]],
        receipts: Sequence[str],
        members: Mapping[str, Any],
    ) -> None:
        faults: list[str] = []
        for start in range(0, len(receipts), _BATCH):
            entries = [
                {"Id": str(place), "ReceiptHandle": receipt, **members}
                for place, receipt in enumerate(receipts[start : start + _BATCH])
            ]
            try:
                answer = call(QueueUrl=self._url, Entries=entries)
            except Exception as error:  # noqa: BLE001 - raised below, with all others
                faults.append(str(error))
                continue
            faults += [str(each.get("Code")) for each in answer.get("Failed", ())]
        if faults:
            raise QueueFault("; ".join(faults))
