"""A consumer on fakes, in one process: the machine that unit tests put it on."""

import threading
from collections.abc import Callable
from typing import Any

from hourbell.consumer import Consumer, Options
from hourbell.consumer.messages import parse_message
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


class Rig:
    """A consumer, its queue and Hourbell."""

    def __init__(self, clock: StandingClock | None = None, **options: Any) -> None:
        self.clock = clock or StandingClock()
        self.plane = WorkerPlane(self.clock.now)
        self.queue = MemoryQueue(self.clock.now)
        self.done: list[str] = []
        given = {"worker": "rig:1", **options}
        self.consumer = Consumer(self.plane, self.queue, Options(**given), self.clock)

    def enqueue(self, *numbers: int, **data: Any) -> list[Row]:
        """Let occurrences be due; each has its message in the queue."""
        names = [occurrence_id(number) for number in numbers]
        self.queue.put(*[body_of(name, **data) for name in names])
        return [self.plane.add(name) for name in names]

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
    tracking = members.pop("tracking", "TRACKED")
    message = parse_message(body_of(occurrence_id(number), tracking=tracking))
    assert message is not None
    given = {
        "handler": lambda *_: None,
        "message_ids": [f"m{number}"],
        "receipts": [f"r{number}"],
        "token": f"token-of-work-{number:06}",
        **members,
    }
    return Work(message, **given)
