"""A consumer on fakes, in one process: the machine that unit tests put it on."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hourbell.consumer import Consumer, Options
from hourbell.consumer.messages import parse_message
from hourbell.consumer.tenants import TenantTransports
from hourbell.consumer.work import Work

from tests.consumers.memory_queue import MemoryQueue, body_of, occurrence_id
from tests.consumers.worker_plane import Row, WorkerPlane

START = 1_000.0
TURN_SECONDS = 0.002


class StandingClock:
    """Time that passes only when a test says so; whoever waits gives others a turn."""

    def __init__(self) -> None:
        self.time = START
        self.pauses: list[float] = []
        self._tokens = 0

    def now(self) -> float:
        return self.time

    def wait(self, event: threading.Event, seconds: float) -> bool:
        self.pauses.append(seconds)
        return event.wait(TURN_SECONDS)

    def chance(self) -> float:
        return 0.75

    def token(self) -> str:
        self._tokens += 1
        return f"token-{self._tokens:014}"


class RunningClock(StandingClock):
    """Time that passes as much as somebody waits."""

    def wait(self, event: threading.Event, seconds: float) -> bool:
        if event.is_set():
            return True
        self.pauses.append(seconds)
        self.time += seconds
        return event.is_set()


class Tenants:
    """Hourbell as each tenant sees it, and who can be signed for.

    Attributes:
        planes: of each tenant, with nothing but its own.
        denied: the error with which a tenant's credentials are refused.
        made: how often each tenant's credentials were asked for.
    """

    def __init__(self, now: Callable[[], float], *names: str) -> None:
        self.planes = {name: WorkerPlane(now) for name in names}
        self.denied: dict[str, Exception] = {}
        self.made: Counter[str] = Counter()

    def transport(self, tenant: str) -> WorkerPlane:
        self.made[tenant] += 1
        if tenant in self.denied:
            raise self.denied[tenant]
        return self.planes[tenant]


class Rig:
    """A consumer, its queue and Hourbell; where tenants are named, each signs."""

    def __init__(
        self,
        clock: StandingClock | None = None,
        tenants: Sequence[str] = (),
        **options: Any,
    ) -> None:
        self.clock = clock or StandingClock()
        self.plane = WorkerPlane(self.clock.now)
        self.queue = MemoryQueue(self.clock.now)
        self.done: list[str] = []
        given = {"worker": "rig:1", **options}
        chosen = Options(**given)
        self.tenants = Tenants(self.clock.now, *tenants)
        transports = TenantTransports(
            self.tenants.transport, self.clock, chosen.cached_tenants
        )
        self.consumer = Consumer(
            transports if tenants else self.plane, self.queue, chosen, self.clock
        )

    def enqueue(self, *numbers: int, **data: Any) -> list[Row]:
        """Let occurrences be due; each has its message in the queue."""
        names = [occurrence_id(number) for number in numbers]
        self.queue.put(*[body_of(name, **data) for name in names])
        return [self.plane.add(name) for name in names]

    def enqueue_of(self, tenant: str, *numbers: int, **data: Any) -> list[Row]:
        """Let occurrences of a tenant be due, as `enqueue` does."""
        names = [occurrence_id(number) for number in numbers]
        self.queue.put(*[body_of(name, tenant=tenant, **data) for name in names])
        plane = self.tenants.planes.get(tenant, self.plane)
        return [plane.add(name) for name in names]

    def does(self, act: Callable[..., object] | None = None) -> None:
        """Let the handler `report` act, and be noted when it is done."""

        @self.consumer.handler("report")
        def report(message: Any, context: Any) -> None:
            if act is not None:
                act(message, context)
            self.done.append(message.occurrence_id)

    def run(self) -> int:
        """Run until a receive brings nothing; return what was left unfinished."""

        def stop_if_empty(count: int) -> None:
            if not count:
                self.consumer.stop()

        self.queue.on_receive = stop_if_empty
        return self.consumer.run(signals=False)

    def lambda_event(self) -> dict[str, Any]:
        """Return the event of an SQS event source with all that is in the queue."""
        return {
            "Records": [
                {"messageId": each.message_id, "receiptHandle": "r", "body": each.body}
                for each in self.queue.receive(10_000, 0)
            ]
        }


def work_of(number: int, **members: Any) -> Work:
    """Return work that is not claimed, with one message in the queue."""
    data = {
        name: members.pop(name) for name in ("tracking", "tenant") if name in members
    }
    message = parse_message(body_of(occurrence_id(number), **data))
    assert message is not None
    given = {
        "handler": lambda *_: None,
        "message_ids": [f"m{number}"],
        "receipts": [f"r{number}"],
        "token": f"token-of-work-{number:06}",
        **members,
    }
    return Work(message, **given)
