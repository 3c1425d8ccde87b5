"""The queues on SQS."""

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from math import ceil
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
    encode_job,
    encode_keys,
    encode_move,
    encode_work,
)
from hourbell.adapters.sdk_errors import (
    SDK_ERRORS,
    SdkError,
    code_of,
    is_transient,
    translated,
)
from hourbell.domain.errors import HourbellError, InvalidInput, Transient
from hourbell.domain.occurrence import RowKey
from hourbell.domain.packing import MAX_ENTRIES
from hourbell.domain.policies import MAX_DELAY_SECONDS
from hourbell.domain.queue_arn import QueueArn
from hourbell.usecases.ports import Entry, GroupWork, Probe, Sent
from hourbell.usecases.shard_ports import MoveOrder

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

    from hourbell.adapters.metering import CapacityMeter

__all__ = [
    "SqsDeliveryQueues",
    "SqsJobQueue",
    "SqsMoveQueue",
    "SqsQueueProbe",
    "SqsRegions",
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
# Codes, without their namespace, of a queue that is not there as far as we may see.
_NO_QUEUE: Final = frozenset(
    {"InvalidAddress", "NonExistentQueue", "QueueDoesNotExist"}
)
_NO_ACCESS: Final = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "KmsAccessDenied",
        "KmsDisabled",
        "KmsInvalidState",
        "KmsNotFound",
        "KmsOptInRequired",
    }
)


def connect(
    *,
    meter: "CapacityMeter | None" = None,
    session: Session | None = None,
    endpoint_url: str | None = None,
    region: str | None = None,
) -> "SQSClient":
    """Open the client that the adapters take.

    Args:
        meter: counts calls when there is one.
        session: region and credentials; the environment's when None.
        endpoint_url: where the service is; AWS_ENDPOINT_URL_SQS or AWS_ENDPOINT_URL,
            else AWS itself, when None.
        region: another one than the session's.
    """
    client = (session or Session()).client(
        "sqs",
        region_name=region,
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


class SqsRegions:
    """Clients by region, each opened when it is first asked for."""

    def __init__(
        self,
        client: "SQSClient | None" = None,
        open_client: "Callable[[str], SQSClient] | None" = None,
    ) -> None:
        """Make the collection.

        Args:
            client: one that is open already, for its region.
            open_client: opens the client of a region; `connect` by default.
        """
        self._clients = {} if client is None else {client.meta.region_name: client}
        self._open = open_client or (lambda region: connect(region=region))

    def find(self, arn: QueueArn) -> "tuple[SQSClient, str]":
        """Return the client and the URL of a queue."""
        client = self._clients.get(arn.region)
        if client is None:
            client = self._clients[arn.region] = self._open(arn.region)
        # The endpoint is the region's own, or the local engine's.
        endpoint = client.meta.endpoint_url.rstrip("/")
        return client, f"{endpoint}/{arn.account}/{arn.name}"


class SqsDeliveryQueues:
    """The `DeliveryQueues` port."""

    def __init__(
        self,
        client: "SQSClient",
        urls: Mapping[str, str],
        regions: SqsRegions | None = None,
    ) -> None:
        """Make the adapter.

        Args:
            client: see `connect`.
            urls: queue key `<tier>-<lane>` -> queue URL.
            regions: the clients of queues that are named by their ARNs.
        """
        self._client = client
        self._urls = urls
        self._regions = regions or SqsRegions(client)

    def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        """Send up to 10 entries and 1 MiB; answer per entry_id.

        `queue` is a queue key, or a queue's ARN. A key without a URL answers RETRY:
        its messages wait as outbox records until the configuration names it.

        Raises:
            ValueError: more than 10 entries, or an entry_id occurs twice.
        """
        ids = {entry.entry_id for entry in entries}
        if len(entries) > MAX_ENTRIES or len(ids) < len(entries):
            raise ValueError("at most 10 entries, each with an id of its own")
        place = self._place(queue)
        if place is None:
            log.error("no URL is known of a delivery queue", extra={"queue": queue})
            return dict.fromkeys(ids, Sent.RETRY)
        return self._send(*place, entries) if entries else {}

    def _place(self, queue: str) -> "tuple[SQSClient, str] | None":
        """Return the client and the URL of a queue; None when it has no URL."""
        url = self._urls.get(queue)
        if url is not None:
            return self._client, url
        try:
            return self._regions.find(QueueArn.parse(queue))
        except InvalidInput:
            return None

    def _send(
        self, client: "SQSClient", url: str, entries: Sequence[Entry]
    ) -> dict[str, Sent]:
        requests: Any = [_as_request(entry) for entry in entries]
        try:
            answer = client.send_message_batch(QueueUrl=url, Entries=requests)
        except SDK_ERRORS as error:
            return self._after(error, client, url, entries)
        failed = {each["Id"]: each for each in answer.get("Failed", [])}
        accepted = {each["Id"] for each in answer.get("Successful", [])}
        return {
            entry.entry_id: _verdict(failed.get(entry.entry_id))
            if entry.entry_id not in accepted
            else Sent.ACCEPTED
            for entry in entries
        }

    def _after(
        self,
        error: SdkError,
        client: "SQSClient",
        url: str,
        entries: Sequence[Entry],
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
            results.update(self._send(client, url, [entry]))
        return results


class SqsQueueProbe:
    """The `QueueProbe` port."""

    def __init__(self, regions: SqsRegions) -> None:
        self._regions = regions

    def verify(self, queue_arn: str, body: str) -> Probe:
        """Send one message and tell what the queue said."""
        client, url = self._regions.find(QueueArn.parse(queue_arn))
        try:
            client.send_message(QueueUrl=url, MessageBody=body)
        except ClientError as error:
            if is_transient(error):
                raise translated(error) from error
            return _probed(code_of(error))
        except SDK_ERRORS as error:
            raise translated(error) from error
        return Probe.ACCEPTED


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


class SqsJobQueue:
    """The `JobQueue` port."""

    def __init__(
        self,
        client: "SQSClient | None",
        url: str,
        backoff: Backoff | None = None,
    ) -> None:
        """Make the adapter.

        Args:
            client: see `connect`; opened when a job is first put when None.
            url: of the queue.
            backoff: between attempts.
        """
        self._client = client
        self._url = url
        self._backoff = backoff or Backoff()

    def put(self, job_id: str) -> None:
        """Enqueue a job.

        A failure is logged here: callers may have no use for it.
        """
        self._client = self._client or connect()
        sender = _BodySender(self._client, self._url, self._backoff)
        try:
            sender.send([encode_job(job_id)])
        except HourbellError:
            log.exception("a job was not put on its queue", extra={"job_id": job_id})
            raise


class SqsMoveQueue:
    """The `MoveQueue` port, on the queue of the jobs."""

    def __init__(
        self,
        client: "SQSClient | None",
        url: str,
        backoff: Backoff | None = None,
    ) -> None:
        """Make the adapter; the arguments are those of `SqsJobQueue`."""
        self._client = client
        self._url = url
        self._backoff = backoff or Backoff()

    def put(self, orders: Sequence[MoveOrder], *, delay: timedelta) -> None:
        """Enqueue orders that come after a delay, rounded up to whole seconds."""
        self._client = self._client or connect()
        seconds = min(MAX_DELAY_SECONDS, ceil(max(0.0, delay.total_seconds())))
        sender = _BodySender(self._client, self._url, self._backoff, seconds)
        sender.send(list(map(encode_move, orders)))


class _BodySender:
    """Sends bodies until all are accepted."""

    def __init__(
        self,
        client: "SQSClient",
        url: str,
        backoff: Backoff,
        delay_seconds: int = 0,
    ) -> None:
        self._client = client
        self._url = url
        self._backoff = backoff
        self._delay = {"DelaySeconds": delay_seconds} if delay_seconds else {}

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
            {"Id": str(index), "MessageBody": body, **self._delay}
            for index, body in enumerate(bodies)
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


def _probed(code: str) -> Probe:
    code = code.rpartition(".")[2]
    if code in _NO_QUEUE:
        return Probe.NOT_FOUND
    return Probe.ACCESS_DENIED if code in _NO_ACCESS else Probe.REFUSED


def _is_message_fault(code: str) -> bool:
    return code.rpartition(".")[2] in _MESSAGE_FAULTS
