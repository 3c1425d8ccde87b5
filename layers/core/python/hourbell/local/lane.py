"""One lane of a stream mapping: calls the function with records, in order."""

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from hourbell.domain.errors import HourbellError
from hourbell.local.batches import (
    Batch,
    Failed,
    Outcome,
    Record,
    Step,
    Unavailable,
    expire,
    read_answer,
    settle,
)
from hourbell.local.clock import now_seconds
from hourbell.local.pump_config import MappingConfig
from hourbell.local.wire import Invocation

log = logging.getLogger(__name__)

MAX_PAYLOAD_BYTES = 6 * 1024 * 1024 - 1024  # what Lambda accepts, less the envelope


class Caller(Protocol):
    """Whoever can run a function."""

    def invoke(self, function: str, event: bytes) -> Invocation:
        """Run it with an event in JSON."""
        ...


class Sink(Protocol):
    """Whoever keeps account of a shard's records."""

    def settled(self, records: tuple[Record, ...]) -> None:
        """Note records that need no more work."""
        ...

    def give_up(self, step: Step) -> None:
        """Tell the on-failure destination what was given up."""
        ...


class Lane:
    """Delivers one lane's records; a batch is settled before the next begins."""

    def __init__(
        self,
        config: MappingConfig,
        caller: Caller,
        sink: Sink,
        *,
        now: Callable[[], float] = now_seconds,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._config = config
        self._caller = caller
        self._sink = sink
        self._now = now
        self._pause = pause
        self._waiting: deque[tuple[float, Record]] = deque()
        self._filled = threading.Condition()

    def put(self, record: Record) -> None:
        """Hand over a record."""
        with self._filled:
            self._waiting.append((time.monotonic(), record))
            self._filled.notify()

    def run(self) -> None:
        """Deliver batches for ever."""
        while True:
            self.deliver(Batch(self._take()))

    def deliver(self, batch: Batch) -> None:
        """Call the function until every record of a batch is done or given up."""
        left = [batch]
        while left:
            fresh = expire(left.pop(0), self._config.rules, self._now())
            self._account(fresh)
            for part in fresh.rest:
                step = settle(part, self._call(part), self._config.rules)
                self._account(step)
                left[:0] = step.rest
                self._pause(step.backoff_seconds)

    def _take(self) -> tuple[Record, ...]:
        """Return the next batch, waiting until it is full or its window is over."""
        size = self._config.batch_size
        with self._filled:
            self._filled.wait_for(lambda: bool(self._waiting))
            due = self._waiting[0][0] + self._config.window_seconds
            self._filled.wait_for(
                lambda: len(self._waiting) >= size, max(0.0, due - time.monotonic())
            )
            return self._cut(size)

    def _cut(self, size: int) -> tuple[Record, ...]:
        taken: list[Record] = []
        room = MAX_PAYLOAD_BYTES
        while self._waiting and len(taken) < size:
            room -= len(self._waiting[0][1].payload) + 1
            if taken and room < 0:
                break
            taken.append(self._waiting.popleft()[1])
        return tuple(taken)

    def _call(self, batch: Batch) -> Outcome:
        outcome = self._outcome(batch)
        if isinstance(outcome, Failed | Unavailable):
            log.warning(
                "%s: %d records from %s, %d failures before: %s",
                self._config.function,
                len(batch.records),
                batch.records[0].sequence,
                batch.failures,
                outcome.reason,
            )
        return outcome

    def _outcome(self, batch: Batch) -> Outcome:
        records = b",".join(record.payload for record in batch.records)
        event = b'{"Records":[' + records + b"]}"
        try:
            answer = self._caller.invoke(self._config.function, event)
        except HourbellError as error:
            return Unavailable(error.message)
        if answer.error:
            return Failed(f"{answer.error}: {json.dumps(answer.payload)[:300]}")
        return read_answer(answer.payload, batch, self._config.rules)

    def _account(self, step: Step) -> None:
        if step.given_up:
            log.error(
                "%s: gave up %d records from %s (%s)",
                self._config.function,
                len(step.given_up),
                step.given_up[0].sequence,
                step.condition,
            )
            self._sink.give_up(step)
        if step.done or step.given_up:
            self._sink.settled(step.done + step.given_up)
