"""Ports that fail on demand."""

from collections.abc import Callable, Sequence
from typing import Any

from hourbell.domain.dispatch import Dispatch
from hourbell.usecases.ports import (
    Change,
    DeliveryQueues,
    Entry,
    Sent,
    Timeline,
    Write,
)


class Crash(BaseException):
    """The process ends here; nothing after it runs."""


class Crashing:
    """Wraps a port and ends the process before or after its n-th write call.

    Only the methods in `writes` count. With `after=True` the call takes effect first.
    """

    def __init__(
        self, port: Any, writes: Sequence[str], *, nth: int, after: bool
    ) -> None:
        self._port = port
        self._writes = frozenset(writes)
        self._left = nth
        self._after = after

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        return self._guard(method) if name in self._writes else method

    def _guard(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self._left -= 1
            if self._left != 0:
                return method(*args, **kwargs)
            if self._after:
                method(*args, **kwargs)
            raise Crash

        return call


class UnclearTimeline:
    """A timeline whose writes get no clear answer for rows that `hits` names.

    With `applied` the write takes effect all the same: a lost response.
    """

    def __init__(
        self,
        port: Timeline,
        hits: Callable[[str, int], bool],
        *,
        applied: bool = False,
    ) -> None:
        self._port = port
        self._hits = hits
        self._applied = applied

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def plan(self, rows: Sequence[Any]) -> list[Write]:
        return self._write("plan", rows, self._port.plan)

    def move(self, changes: Sequence[Change]) -> list[Write]:
        return self._write("move", changes, self._port.move)

    def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        return self._write("post", dispatches, self._port.post)

    def settle(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        return self._write("settle", dispatches, self._port.settle)

    def _write(
        self, name: str, things: Sequence[Any], write: Callable[..., list[Write]]
    ) -> list[Write]:
        hit = {place for place in range(len(things)) if self._hits(name, place)}
        sent = [
            thing
            for place, thing in enumerate(things)
            if self._applied or place not in hit
        ]
        answers = iter(write(sent))
        result = []
        for place in range(len(things)):
            answer = (
                next(answers) if self._applied or place not in hit else Write.UNKNOWN
            )
            result.append(Write.UNKNOWN if place in hit else answer)
        return result


class AnsweringQueues:
    """Delivery queues that give fixed answers by payload text, and keep all sends."""

    def __init__(self, port: DeliveryQueues, answers: dict[str, Sent]) -> None:
        self._port = port
        self._answers = answers
        self.batches: list[tuple[str, list[Entry]]] = []

    def send(self, queue: str, entries: Sequence[Entry]) -> dict[str, Sent]:
        self.batches.append((queue, list(entries)))
        fixed = {
            entry.entry_id: answer
            for entry in entries
            for text, answer in self._answers.items()
            if text in entry.body
        }
        passed = [entry for entry in entries if entry.entry_id not in fixed]
        return fixed | self._port.send(queue, passed)
