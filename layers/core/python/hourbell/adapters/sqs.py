"""The queues on SQS."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import ClientError

from hourbell.adapters.backoff import Backoff
from hourbell.adapters.chunks import chunks
from hourbell.adapters.messages import (
    MAX_KEYS,
    decode_keys,
    decode_work,
    encode_keys,
    encode_work,
)
from hourbell.adapters.sdk_errors import (
    SDK_ERRORS,
    SdkError,
    code_of,
    is_transient,
    translated,
)
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import RowKey
from hourbell.domain.packing import MAX_ENTRIES
from hourbell.usecases.ports import Entry, GroupWork, Sent

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

    from hourbell.adapters.metering import CapacityMeter

__all__ = [
    "SqsDeliveryQueues",
    "SqsSweepQueue",
    "SqsWorkQueue",
    "connect",
    "decode_keys",
    "decode_work",
    "encode_keys",
    "encode_work",
]

log = logging.getLogger(__name__)

CONNECT_TIMEOUT_SECONDS: Final = 2
READ_TIMEOUT_SECONDS: Final = 5

# Codes, without their namespace, of a message or a batch at fault: nothing but another
# message would help. All else (rights, keys, a queue that is missing) can be repaired.
_MESSAGE_FAULTS: Final = frozenset(
    {
        "BatchRequestTooLong",
        "InvalidBatchEntryId",
        "InvalidMessageContents",
        "InvalidParameterValue",
        "InvalidParameterValueException",
        "MessageTooLong",
        "ValidationError",
        "ValidationException",
    }
)


def connect(
    *,
    meter: "CapacityMeter | None" = None,
    session: Session | None = None,
    endpoint_url: str | None = None,
) -> "SQSClient":
    """Open the client that the adapters take.

    Args:
        meter: counts calls when there is one.
        session: region and credentials; the environment's when None.
        endpoint_url: where the service is; AWS_ENDPOINT_URL_SQS or AWS_ENDPOINT_URL,
            else AWS itself, when None.
    """
    client = (session or Session()).client(
        "sqs",
        endpoint_url=endpoint_url,
        config=Config(
            connect_timeout=CONNECT_TIMEOUT_SECONDS,
            read_timeout=READ_TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 3},
            max_pool_connections=16,
            tcp_keepalive=True,
            parameter_validation=False,
        ),
    )
    if meter is not None:
        meter.attach(client)
    return client


class SqsDeliveryQueues:
    """The `DeliveryQueues` port."""

    def __init__(self, client: "SQSClient", urls: Mapping[str, str]) -> None:
        """Make the adapter.

        Args:
            client: see `connect`.
            urls: queue key `<tier>-<lane>` -> queue URL.
        """
        self._client = client
        self._urls = urls

    def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        """Send up to 10 entries and 1 MiB; answer per entry_id.

        A queue without a URL answers RETRY: its messages wait as outbox records until
        the configuration names it.

        Raises:
            ValueError: more than 10 entries, or an entry_id occurs twice.
        """
        ids = {entry.entry_id for entry in entries}
        if len(entries) > MAX_ENTRIES or len(ids) < len(entries):
            raise ValueError("at most 10 entries, each with an id of its own")
        url = self._urls.get(queue)
        if url is None:
            log.error("no URL is known of a delivery queue", extra={"queue": queue})
            return dict.fromkeys(ids, Sent.RETRY)
        return self._send(url, entries) if entries else {}

    def _send(self, url: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        requests: Any = [_as_request(entry) for entry in entries]
        try:
            answer = self._client.send_message_batch(QueueUrl=url, Entries=requests)
        except SDK_ERRORS as error:
            return self._after(error, url, entries)
        failed = {each["Id"]: each for each in answer.get("Failed", [])}
        accepted = {each["Id"] for each in answer.get("Successful", [])}
        return {
            entry.entry_id: _verdict(failed.get(entry.entry_id))
            if entry.entry_id not in accepted
            else Sent.ACCEPTED
            for entry in entries
        }

    def _after(
        self, error: SdkError, url: str, entries: Sequence[Entry]
    ) -> dict[str, Sent]:
        """Answer for entries whose call failed as a whole."""
        faulty = isinstance(error, ClientError) and _is_message_fault(code_of(error))
        if not faulty:
            if not is_transient(error):
                log.error("a delivery queue refused a call", exc_info=error)
            return {entry.entry_id: Sent.RETRY for entry in entries}
        if len(entries) == 1:
            return {entries[0].entry_id: Sent.REFUSED}
        # One entry is at fault, and the answer does not say which: each alone.
        results: dict[str, Sent] = {}
        for entry in entries:
            results.update(self._send(url, [entry]))
        return results


class SqsWorkQueue:
    """The `WorkQueue` port."""

    def __init__(
        self, client: "SQSClient", url: str, backoff: Backoff | None = None
    ) -> None:
        self._sender = _BodySender(client, url, backoff or Backoff())

    def put(self, work: Sequence[GroupWork]) -> None:
        """Enqueue the orders."""
        self._sender.send([encode_work(each) for each in work])


class SqsSweepQueue:
    """The `SweepQueue` port."""

    def __init__(
        self, client: "SQSClient", url: str, backoff: Backoff | None = None
    ) -> None:
        self._sender = _BodySender(client, url, backoff or Backoff())

    def put(self, keys: Sequence[RowKey]) -> None:
        """Enqueue keys in messages of up to 50."""
        self._sender.send([encode_keys(part) for part in chunks(keys, MAX_KEYS)])


class _BodySender:
    """Sends bodies until all are accepted."""

    def __init__(self, client: "SQSClient", url: str, backoff: Backoff) -> None:
        self._client = client
        self._url = url
        self._backoff = backoff

    def send(self, bodies: Sequence[str]) -> None:
        for part in chunks(bodies, MAX_ENTRIES):
            pending: list[str] = list(part)
            for _ in self._backoff.rounds():
                pending = self._once(pending)
                if not pending:
                    break
            if pending:
                raise Transient("an internal queue did not accept a message in time")

    def _once(self, bodies: list[str]) -> list[str]:
        """Return those of the bodies that were not accepted."""
        requests: Any = [
            {"Id": str(index), "MessageBody": body} for index, body in enumerate(bodies)
        ]
        try:
            answer = self._client.send_message_batch(
                QueueUrl=self._url, Entries=requests
            )
        except SDK_ERRORS as error:
            if not is_transient(error):
                raise translated(error) from error
            return bodies
        accepted = {each["Id"] for each in answer.get("Successful", [])}
        return [body for index, body in enumerate(bodies) if str(index) not in accepted]


def _as_request(entry: Entry) -> dict[str, Any]:
    return {
        "Id": entry.entry_id,
        "MessageBody": entry.body,
        "DelaySeconds": entry.delay_seconds,
        "MessageGroupId": entry.group,
    }


def _verdict(failure: Mapping[str, Any] | None) -> Sent:
    if failure is None:
        return Sent.RETRY
    if failure.get("SenderFault") and _is_message_fault(failure.get("Code", "")):
        return Sent.REFUSED
    return Sent.RETRY


def _is_message_fault(code: str) -> bool:
    return code.rpartition(".")[2] in _MESSAGE_FAULTS
