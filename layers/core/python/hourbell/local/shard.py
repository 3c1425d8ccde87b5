"""One shard of a table's stream: follow it, and remember how far it is settled."""

import json
import logging
import threading
import time
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from hourbell.domain.errors import HourbellError, Transient
from hourbell.local.batches import Progress, Record, Step
from hourbell.local.clock import now_seconds
from hourbell.local.directory import write_private
from hourbell.local.lane import Lane
from hourbell.local.patterns import passes
from hourbell.local.pump_config import MappingConfig
from hourbell.local.wire import SQS, STREAMS, Refused, Wire

log = logging.getLogger(__name__)

BUSY_POLL_SECONDS = 0.005
IDLE_POLL_SECONDS = 0.02
BUSY_SECONDS = 1.0  # how long a shard counts as busy after its last record
ERROR_PAUSE_SECONDS = 0.5
PAGE = 1_000
MAX_OPEN_RECORDS = 10_000
TRIM_HORIZON = "TRIM_HORIZON"
TRIMMED = "TrimmedDataAccessException"
STALE = "ExpiredIteratorException"


class Checkpoints:
    """The file of the last settled sequence number of each shard."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._positions: dict[str, str] = {}
        if path.is_file():
            self._positions = json.loads(path.read_text(encoding="utf-8"))

    def get(self, shard: str) -> str | None:
        """Return the position of a shard; None when it was never read."""
        return self._positions.get(shard)

    def put(self, shard: str, position: str) -> None:
        """Keep a position, on disk before this returns."""
        with self._lock:
            self._positions[shard] = position
            write_private(self._path, json.dumps(self._positions))


class Shard:
    """Follows one shard and spreads its records over the mapping's lanes."""

    def __init__(
        self, config: MappingConfig, shard_id: str, wire: Wire, checkpoints: Checkpoints
    ) -> None:
        self._config = config
        self._id = shard_id
        self._wire = wire
        self._checkpoints = checkpoints
        self._key = f"{config.name}/{shard_id}"
        self._lock = threading.Lock()
        self._progress = Progress()
        self._lanes = [Lane(config, wire, self) for _ in range(config.parallelization)]
        self._last = TRIM_HORIZON
        self._queue_url = ""

    def start(self) -> None:
        """Anchor the starting position, then follow the shard in threads."""
        kept = self._checkpoints.get(self._key)
        self._last = kept or self._first_position()
        if kept is None:
            self._checkpoints.put(self._key, self._last)
        log.info("%s to %s from %s", self._key, self._config.function, self._last)
        for work in (self._read, *(lane.run for lane in self._lanes)):
            threading.Thread(target=work, name=self._key, daemon=True).start()

    def settled(self, records: tuple[Record, ...]) -> None:
        """Note records that need no more work and move the checkpoint."""
        self._settle(record.sequence for record in records)

    def give_up(self, step: Step) -> None:
        """Send the positions of given-up records to the on-failure queue."""
        if not self._config.on_failure:
            return
        body = failure_report(self._config, self._id, step, now_seconds())
        try:
            self._wire.call(
                "sqs",
                f"{SQS}.SendMessage",
                {"QueueUrl": self._failure_queue(), "MessageBody": json.dumps(body)},
            )
        except HourbellError as error:
            log.warning("%s: on-failure destination: %s", self._key, error.message)

    def _failure_queue(self) -> str:
        if not self._queue_url:
            name = self._config.on_failure.rpartition(":")[2]
            found = self._wire.call("sqs", f"{SQS}.GetQueueUrl", {"QueueName": name})
            self._queue_url = found["QueueUrl"]
        return self._queue_url

    def _settle(self, sequences: Iterable[str]) -> None:
        with self._lock:
            moved = self._progress.settle(sequences)
            position = self._progress.checkpoint
        if moved and position:
            self._checkpoints.put(self._key, position)

    def _first_position(self) -> str:
        """Return where a mapping that was never read starts.

        LATEST is pinned to the last record of now: a pump that dies before its
        first record must not start later the next time.
        """
        position = TRIM_HORIZON
        if self._config.starting_position == "LATEST":
            iterator = self._iterator(TRIM_HORIZON)
            while records := (page := self._page(iterator))["Records"]:
                position = records[-1]["dynamodb"]["SequenceNumber"]
                iterator = page["NextShardIterator"]
        return position

    def _read(self) -> None:
        """Follow the shard until it is closed."""
        while True:
            try:
                self._follow()
            except Refused as error:
                self._recover(error)
            except Transient as error:
                log.warning("%s: %s", self._key, error.message)
                time.sleep(ERROR_PAUSE_SECONDS)
            else:
                return

    def _recover(self, error: Refused) -> None:
        if error.code == TRIMMED:
            self._last = TRIM_HORIZON
        elif error.code != STALE:
            log.error("%s: %s %s", self._key, error.code, error.message)
            time.sleep(ERROR_PAUSE_SECONDS)

    def _follow(self) -> None:
        iterator = self._iterator(self._last)
        busy_until = 0.0
        while iterator:
            if len(self._progress) >= MAX_OPEN_RECORDS:
                time.sleep(IDLE_POLL_SECONDS)
                continue
            page = self._page(iterator)
            iterator = page.get("NextShardIterator", "")
            if page["Records"]:
                busy_until = time.monotonic() + BUSY_SECONDS
                self._spread(page["Records"])
            else:
                is_busy = time.monotonic() < busy_until
                time.sleep(BUSY_POLL_SECONDS if is_busy else IDLE_POLL_SECONDS)

    def _spread(self, bodies: list[dict[str, Any]]) -> None:
        """Give each record to its item's lane; settle those that no filter wants."""
        dropped = []
        for body in bodies:
            change = body["dynamodb"]
            sequence = change["SequenceNumber"]
            with self._lock:
                self._progress.read(sequence)
            if passes(self._config.filters, body):
                self._lane(change["Keys"]).put(self._record(body, sequence))
            else:
                dropped.append(sequence)
            self._last = sequence
        if dropped:
            self._settle(dropped)

    def _record(self, body: dict[str, Any], sequence: str) -> Record:
        whole = {**body, "eventSourceARN": self._config.stream_arn}
        created_at = float(body["dynamodb"].get("ApproximateCreationDateTime", 0))
        payload = json.dumps(whole, separators=(",", ":")).encode()
        return Record(sequence, created_at or now_seconds(), payload)

    def _lane(self, keys: Mapping[str, Any]) -> Lane:
        if len(self._lanes) == 1:
            return self._lanes[0]
        spread = zlib.crc32(json.dumps(keys, sort_keys=True).encode())
        return self._lanes[spread % len(self._lanes)]

    def _page(self, iterator: str) -> dict[str, Any]:
        body = {"ShardIterator": iterator, "Limit": PAGE}
        return self._wire.call("dynamodb", f"{STREAMS}.GetRecords", body)

    def _iterator(self, position: str) -> str:
        where = {"ShardIteratorType": TRIM_HORIZON}
        if position != TRIM_HORIZON:
            where = {
                "ShardIteratorType": "AFTER_SEQUENCE_NUMBER",
                "SequenceNumber": position,
            }
        body = {"StreamArn": self._config.stream_arn, "ShardId": self._id, **where}
        found = self._wire.call("dynamodb", f"{STREAMS}.GetShardIterator", body)
        return str(found["ShardIterator"])


def failure_report(
    config: MappingConfig, shard_id: str, step: Step, now: float
) -> dict[str, Any]:
    """Return what Lambda tells an SQS on-failure destination: positions, no data."""
    first, last = step.given_up[0], step.given_up[-1]
    return {
        "requestContext": {
            "requestId": str(uuid4()),
            "functionArn": config.function,
            "condition": step.condition,
            "approximateInvokeCount": step.calls,
        },
        "responseContext": {
            "statusCode": 200,
            "executedVersion": "$LATEST",
            "functionError": "Unhandled",
        },
        "version": "1.0",
        "timestamp": _iso(now),
        "DDBStreamBatchInfo": {
            "shardId": shard_id,
            "startSequenceNumber": first.sequence,
            "endSequenceNumber": last.sequence,
            "approximateArrivalOfFirstRecord": _iso(first.created_at),
            "approximateArrivalOfLastRecord": _iso(last.created_at),
            "batchSize": len(step.given_up),
            "streamArn": config.stream_arn,
        },
    }


def _iso(instant: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(instant))
