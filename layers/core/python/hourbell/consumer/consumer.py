"""A consumer: receives, claims, lets handlers work, says how it ended, deletes."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, Final, Protocol

from botocore.config import Config
from botocore.session import Session

from hourbell.consumer.api import BATCH, WorkerApi
from hourbell.consumer.clock import Backoff, Clock, SystemClock
from hourbell.consumer.context import Context, Signals
from hourbell.consumer.endings import Endings
from hourbell.consumer.http import (
    CONNECT_SECONDS,
    READ_SECONDS,
    Endpoint,
    SignedTransport,
    Transport,
)
from hourbell.consumer.intake import Intake, Taken
from hourbell.consumer.leases import Leases
from hourbell.consumer.options import Options, worker_name
from hourbell.consumer.queue import Queue, QueueFault, Received, SqsQueue
from hourbell.consumer.taking import Taking
from hourbell.consumer.tenants import Sessions, TenantTransports
from hourbell.consumer.work import (
    LOGGER,
    Handler,
    Work,
    is_undone_by_a_call,
    run_handler,
)

LOOK_SECONDS: Final = 0.2
"""How long after a signal it is seen at the latest."""
OUTAGE = Backoff(base_seconds=1.0, cap_seconds=60.0)
"""Between receives while the queue or Hourbell does not answer."""
LEAST_OUTAGE_SECONDS: Final = 1.0
FRUITLESS_SECONDS: Final = 1.0
"""After a receive of nothing but messages of tenants that are left alone.

Longer, and those of others would wait behind them; at all, since what is hidden uses up
what a queue may have in flight.
"""
LEAST_HIDDEN_SECONDS: Final = 60
"""How long those are hidden at least: each receive counts towards the redrive."""


class LambdaContext(Protocol):
    """What is asked of the context of a Lambda invocation."""

    def get_remaining_time_in_millis(self) -> int:
        """Return how long the invocation may still take."""
        ...


class Consumer:
    """A worker of Hourbell: in a process by `run`, in a Lambda by `handle`."""

    def __init__(
        self,
        transport: Transport | TenantTransports,
        queue: Queue | None = None,
        options: Options | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Make a consumer of given parts; `connect` makes one of URLs.

        Args:
            transport: to the API; or one for each tenant, by which each call names
                occurrences of one tenant only.
            queue: to receive from; None when a Lambda event source does that.
            options: how to work.
            clock: the machine's, unless a test passes another.
        """
        self._options = options or Options()
        self._clock = clock or SystemClock()
        self._queue = queue
        self._api = WorkerApi(
            transport,
            self._clock,
            worker=self._options.worker or worker_name(),
            lease_seconds=self._options.lease_seconds,
        )
        self._handlers: dict[str, Handler] = {}
        self._leases = Leases(self._api, queue, self._clock)
        self._intake = Intake(self._api, self._leases, self._handlers, self._clock)
        self._endings = Endings(self._api, queue, self._clock)
        self._lock = threading.Lock()
        self._running: list[Work] = []
        self._is_taking = False
        self._is_over = False
        self._changed = threading.Event()
        self._stopping = threading.Event()
        self._signaled = False
        self._fault: BaseException | None = None

    @classmethod
    def connect(
        cls,
        queue_url: str | None = None,
        api_url: str | None = None,
        *,
        service: str | None = None,
        session: Session | None = None,
        tenants: Sessions | None = None,
        options: Options | None = None,
    ) -> "Consumer":
        """Return a consumer of a queue and an API, with the environment's credentials.

        Args:
            queue_url: HOURBELL_QUEUE_URL by default; a Lambda needs none.
            api_url: of the API, stage included, or of the workers' function URL;
                HOURBELL_API_URL by default.
            service: what requests are signed for, where the URL does not tell:
                `execute-api` or `lambda`; HOURBELL_API_SERVICE by default.
            session: whose credentials sign, and receive from the queue; the usual
                search by default.
            tenants: of a queue with messages of many tenants: called with the id of a
                tenant when a message of it comes first, it returns who signs for it,
                anything with `get_credentials`: a session of boto3 or botocore, or what
                AssumedRoles gives. The queue stays with `session`.
            options: how to work.

        Raises:
            ValueError: there is no URL of the API, or no region.
        """
        queue_url = queue_url or os.environ.get("HOURBELL_QUEUE_URL")
        api_url = api_url or os.environ.get("HOURBELL_API_URL")
        if not api_url:
            raise ValueError("Where is the API? Set HOURBELL_API_URL.")
        service = service or os.environ.get("HOURBELL_API_SERVICE")
        chosen = options or Options()
        core = session or Session()
        region = os.environ.get("AWS_REGION") or core.get_config_variable("region")
        endpoint = Endpoint.of(api_url, region, service)
        # As many calls may be under way as there are works, each a tenant's own.
        connections = chosen.concurrency + BATCH + 4
        queue = None
        if queue_url:
            config = Config(
                max_pool_connections=connections,
                retries={"mode": "standard", "total_max_attempts": 4},
            )
            client: Any = core.create_client("sqs", region_name=region, config=config)
            queue = SqsQueue(client, queue_url)
        # A request that hangs must not take the time of the next heartbeats.
        longest = min(READ_SECONDS, chosen.lease_seconds / 2)
        own = SignedTransport(
            endpoint, core, connections=connections, timeout=(CONNECT_SECONDS, longest)
        )
        if tenants is None:
            return cls(own, queue, chosen)
        clock = SystemClock()
        each = TenantTransports(
            lambda tenant: own.signed_by(tenants(tenant)), clock, chosen.cached_tenants
        )
        return cls(each, queue, chosen, clock)

    def handler(self, name: str) -> Callable[[Handler], Handler]:
        """Register the decorated function as what does the work of a handler.

        It is called with the message and its context, in a thread of its own, and
        again when it raises. It must be idempotent: see `once`.

        Args:
            name: as in Hourbell, `data.handler` of the message.

        Raises:
            ValueError: the name is taken, or a call of the function would begin
                nothing: it is asynchronous (wrap it with `asyncio.run`), or a
                generator.
        """

        def register(function: Handler) -> Handler:
            if is_undone_by_a_call(function):
                message = f"The function for {name!r} is asynchronous or a generator."
                raise ValueError(message)
            if name in self._handlers:
                raise ValueError(f"Two functions handle {name!r}.")
            self._handlers[name] = function
            return function

        return register

    def stop(self) -> None:
        """Receive no more; `run` returns when what runs has ended, or its grace has.

        May be called by any thread, and again.
        """
        self._stopping.set()
        self._changed.set()

    def held_off(self) -> dict[str, float]:
        """Return the tenants that are left alone now, each with the seconds left.

        Those are whose calls could not be signed, or were refused, where each tenant
        signs for itself. May be called by any thread, as for a metric.
        """
        return self._api.all_held_off()

    def run(self, *, signals: bool = True) -> int:
        """Work until stopped; return how many works were left unfinished.

        Those go on as daemons for as long as the process lives, and are told that their
        leases are lost; what they hold, leases and visibility give back.

        Args:
            signals: whether SIGTERM and SIGINT stop it. A second one does what it did
                before `run`. Python takes signals in its main thread only.

        Raises:
            ValueError: there is no queue.
            SystemExit, KeyboardInterrupt: a handler raised it.
        """
        if self._queue is None:
            raise ValueError("There is no queue: set HOURBELL_QUEUE_URL.")
        receiver = threading.Thread(
            target=self._receive, args=(self._queue,), name="hourbell-receive"
        )
        # A long poll must not keep a stopped process; what it brings stays hidden for
        # the queue's visibility, and comes again.
        receiver.daemon = True
        with self._leases.kept(), self._caught(on=signals):
            receiver.start()
            while not self._signaled:
                if self._clock.wait(self._stopping, LOOK_SECONDS):
                    break
            self.stop()
            self._until(self._is_idle, self._options.grace_seconds)
            self._endings.abandon()
        with self._lock:
            self._is_over = True
            left = list(self._running)
        for work in left:
            # Nobody is heard of it any more.
            self._leases.drop(work)
            work.lost.set()
        if self._fault is not None:
            raise self._fault
        return len(left)

    def handle(
        self, event: Mapping[str, Any], context: LambdaContext | None = None
    ) -> dict[str, Any]:
        """Work on the messages of an SQS event source with ReportBatchItemFailures.

        Args:
            event: of the invocation.
            context: of the invocation; tells how much time there is.

        Returns:
            The messages that must come again: those that nobody could claim, and what
            was not finished `margin_seconds` before the invocation's end.
        """
        # An exit in a handler of the last invocation is no matter of this one.
        self._stopping.clear()
        self._is_over = False
        end = float("inf")
        if context is not None:
            left_seconds = context.get_remaining_time_in_millis() / 1_000
            end = self._clock.now() + left_seconds - self._options.margin_seconds
        # Without receipts: deleting is the event source's.
        messages = [
            Received(each["messageId"], "", each["body"]) for each in event["Records"]
        ]
        size = self._options.concurrency
        left: list[str] = []
        # Nor must a heartbeat that hangs take the time of the answer.
        with self._leases.kept(lambda: end - self._clock.now()):
            for start in range(0, len(messages), size):
                left += self._handle(messages[start : start + size], end)
        return {"batchItemFailures": [{"itemIdentifier": each} for each in left]}

    def _handle(self, messages: Sequence[Received], end: float) -> list[str]:
        """Work on some messages; return the ids of those that must come again."""
        if self._clock.now() >= end:
            return [each.message_id for each in messages]
        taking = Taking(
            *(self._intake, self._leases, messages, self._start, self._changed.set)
        )
        try:
            self._until(taking.is_done, end - self._clock.now())
            taken = taking.result()
            self._until(
                lambda: all(work.settled.is_set() for work in taking.begun),
                end - self._clock.now(),
            )
        finally:
            done: set[str] = set()
            for work in taking.begun:
                if work.finished:
                    done.update(work.message_ids)
                    continue
                # Its thread may be frozen with the function, and go on much later.
                self._leases.drop(work)
                work.lost.set()
        done.update(each.message_id for each in taken.done)
        return [each.message_id for each in messages if each.message_id not in done]

    def _receive(self, queue: Queue) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._until(self._has_place, float("inf"))
            if self._stopping.is_set():
                # What a receive brought now would only be hidden from others.
                return
            try:
                taken = self._poll(queue)
            except QueueFault as error:
                LOGGER.error("queue: %s", error)
                taken = Taken(is_served=False)
            except BaseException as error:  # noqa: BLE001 - `run` raises it
                self._fault = error
                self.stop()
                return
            failures = taken.failures(failures)
            if failures:
                pause = OUTAGE.seconds(
                    failures, self._clock.chance(), LEAST_OUTAGE_SECONDS
                )
                self._clock.wait(self._stopping, pause)
            elif taken.is_fruitless:
                self._clock.wait(self._stopping, FRUITLESS_SECONDS)

    def _poll(self, queue: Queue) -> Taken:
        """Receive once and start what is to run; return what was received."""
        unheard = self._intake.unheard()
        free = self._options.concurrency - self._count() - unheard
        # What may be claimed already has its place, and is not to wait for others.
        wait_seconds = 0 if unheard else self._options.wait_seconds
        try:
            messages = queue.receive(min(free, BATCH), wait_seconds) if free > 0 else []
        except QueueFault:
            if not unheard:
                raise
            messages = []
        with self._lock:
            if self._stopping.is_set() or not (messages or unheard):
                return Taken()
            self._is_taking = True
        try:
            taken = self._intake.take(
                messages, self._stopping, self._start, is_lasting=True
            )
        finally:
            self._is_taking = False
            self._changed.set()
        self._endings.delete([each.receipt for each in taken.done])
        for copies, seconds in taken.held_off:
            hidden = max(ceil(seconds), LEAST_HIDDEN_SECONDS)
            self._endings.hide([each.receipt for each in copies], hidden)
        return taken

    def _start(self, work: Work) -> None:
        with self._lock:
            if self._is_over:
                # Its claim was answered after the grace: no beat would follow.
                self._leases.drop(work)
                return
            self._running.append(work)
        thread = threading.Thread(
            target=self._work, args=(work,), name=f"hourbell-{work.token}", daemon=True
        )
        try:
            thread.start()
        except BaseException:
            # There is no thread to be had: nobody is going to take it out again.
            with self._lock:
                self._running.remove(work)
            raise

    def _work(self, work: Work) -> None:
        try:
            if self._options.delete_when_claimed and work.is_tracked:
                receipts, work.receipts = work.receipts, []
                self._endings.delete(receipts)
            signals = Signals(work.cancel, work.lost, self._stopping)
            context = Context(work.message, work.attempt, signals, self._clock)
            failure = run_handler(work, context)
            work.settling = True
            work.finished = self._endings.settle(work, failure)
        except BaseException as error:  # noqa: BLE001 - `run` raises it
            LOGGER.error("%s: left: %r", work.message.occurrence_id, error)
            self._fault = error
            self.stop()
        finally:
            self._leases.drop(work)
            work.settled.set()
            with self._lock:
                self._running.remove(work)
            self._changed.set()

    def _count(self) -> int:
        with self._lock:
            return len(self._running)

    def _has_place(self) -> bool:
        return self._stopping.is_set() or self._count() < self._options.concurrency

    def _is_idle(self) -> bool:
        with self._lock:
            return not self._running and not self._is_taking

    def _until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds, at most so long; return whether it does."""
        end = self._clock.now() + seconds
        while not holds():
            left = end - self._clock.now()
            if left <= 0:
                return False
            self._changed.clear()
            # It may have come true before the event was cleared.
            if not holds():
                self._clock.wait(self._changed, min(left, LOOK_SECONDS))
        return True

    @contextmanager
    def _caught(self, *, on: bool) -> Iterator[None]:
        """Let the first SIGTERM or SIGINT stop this consumer."""
        if not on or threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.getsignal(number)
            for number in (signal.SIGTERM, signal.SIGINT)
        }

        def restore() -> None:
            for number, former in before.items():
                signal.signal(number, former)

        def note(*_: object) -> None:
            # Only a flag: to set an event here could wait for a lock that the
            # interrupted thread itself holds.
            self._signaled = True
            restore()

        for number in before:
            signal.signal(number, note)
        try:
            yield
        finally:
            restore()
