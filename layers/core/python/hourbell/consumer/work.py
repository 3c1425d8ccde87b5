"""A message at work: what is known of it, and how its handler ended."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import (
    isasyncgen,
    isasyncgenfunction,
    isawaitable,
    iscoroutinefunction,
    isgenerator,
    isgeneratorfunction,
)
from math import ceil, isnan

from hourbell.consumer.api import MAX_RETRY_AFTER, ErrorClass, Failure, Held
from hourbell.consumer.context import Context
from hourbell.consumer.errors import Permanent, Throttled
from hourbell.consumer.messages import Message, Tracking

LOGGER = logging.getLogger("hourbell.consumer")

Handler = Callable[[Message, Context], object]
"""Does the work of a message; returns when it is done, raises when it is not."""


@dataclass(slots=True)
class Work:
    """A message, all its copies in one receive included.

    Attributes:
        message_ids: of the copies; they share what becomes of the work.
        receipts: of the copies that are still in the queue.
        token: of the lease that it is, or will be, claimed with.
        attempt: of a claimed one.
        lease_ends: when the lease ends, by this machine's clock and never later than
            by Hourbell's; for UNTRACKED work, when its message may be seen again.
        beat_at: when that is extended next.
        beating: whether a heartbeat for it is under way.
        settling: whether the handler has ended, so that heartbeats end, too.
        gone: whether Hourbell said that the lease is another's, or over.
        finished: whether the message has no further use.
        settled: set when this worker has nothing more to do for it.
        cancel: set when Hourbell asks the work to stop.
        lost: set while another worker has the occurrence, or may have it.
    """

    message: Message
    handler: Handler
    message_ids: list[str]
    receipts: list[str]
    token: str
    attempt: int | None = None
    lease_ends: float = 0.0
    beat_at: float = 0.0
    beating: bool = False
    settling: bool = False
    gone: bool = False
    finished: bool = False
    settled: threading.Event = field(default_factory=threading.Event)
    cancel: threading.Event = field(default_factory=threading.Event)
    lost: threading.Event = field(default_factory=threading.Event)

    @property
    def is_tracked(self) -> bool:
        """Whether Hourbell keeps its state."""
        return self.message.tracking is Tracking.TRACKED

    @property
    def held(self) -> Held:
        """How it is named in the API."""
        message = self.message
        return Held(message.occurrence_id, self.token, message.send, message.tenant)


def failure_of(error: BaseException) -> Failure:
    """Return what is said of an attempt that ended with an exception."""
    kind, text = type(error).__name__, _text(error)
    if isinstance(error, Permanent):
        return Failure(ErrorClass.PERMANENT, kind, text)
    if isinstance(error, Throttled):
        return Failure(ErrorClass.THROTTLED, kind, text, _wait(error))
    return Failure(ErrorClass.RETRYABLE, kind, text)


def _text(error: BaseException) -> str:
    """Return what an exception says, if it can say it."""
    try:
        return str(error)
    except Exception as fault:  # noqa: BLE001 - it must not end the consumer
        return f"(its text cannot be had: {type(fault).__name__})"


def _wait(error: Throttled) -> int | None:
    """Return how long a target asked to wait; None where it said nothing sensible."""
    try:
        seconds = float(str(error.retry_after_seconds))
    except Exception:  # noqa: BLE001 - whatever a subclass computes must end no consumer
        return None
    if isnan(seconds):
        return None
    return ceil(min(max(seconds, 0), MAX_RETRY_AFTER))


def is_undone_by_a_call(function: object) -> bool:
    """Whether a call of a function begins nothing: coroutines and generators."""
    return (
        iscoroutinefunction(function)
        or isgeneratorfunction(function)
        or isasyncgenfunction(function)
    )


def _refuse_undone(answer: object) -> None:
    if isawaitable(answer):
        raise TypeError("The handler is asynchronous, and nobody awaits it.")
    if isgenerator(answer) or isasyncgen(answer):
        raise TypeError("The handler is a generator, and nobody takes its steps.")


def run_handler(work: Work, context: Context) -> Failure | None:
    """Let the handler work; return why it failed, or None.

    Raises:
        SystemExit, KeyboardInterrupt: they say nothing about the work, and end more
            than it.
    """
    try:
        _refuse_undone(work.handler(work.message, context))
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # Also what is no Exception, such as asyncio's CancelledError.
        failure = failure_of(error)
        LOGGER.warning(
            "%s failed: %s: %s",
            *(work.message.occurrence_id, failure.kind, failure.message),
            exc_info=error,
        )
        return failure
    return None
