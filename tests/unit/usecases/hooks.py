"""Ports that run something else in the middle of a use case."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Moment:
    """One point in a use case's life: before or after its n-th port call.

    Attributes:
        nth: 1 for the first call; calls of all wrapped ports count together.
        after: whether the call takes effect first.
        action: what happens there, once; it may raise.
        calls: how many calls were seen, while armed.
        reached: whether the moment came.
    """

    nth: int
    after: bool
    action: Callable[[], None]
    calls: int = 0
    reached: bool = False
    busy: bool = field(default=False, repr=False)

    def wrap(self, port: Any) -> Any:
        """Return the port, with this moment watching its calls."""
        return _Watched(port, self)

    def call(self, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Make a call, and let the moment happen if this is it."""
        if self.busy:
            return method(*args, **kwargs)
        self.calls += 1
        here = self.calls == self.nth and not self.reached
        if here and not self.after:
            self._happen()
        answer = method(*args, **kwargs)
        if here and self.after:
            self._happen()
        return answer

    def _happen(self) -> None:
        self.reached = True
        self.busy = True
        try:
            self.action()
        finally:
            self.busy = False


class _Watched:
    def __init__(self, port: Any, moment: Moment) -> None:
        self._port = port
        self._moment = moment

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if not callable(method):
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._moment.call(method, *args, **kwargs)

        return call


class Only:
    """A port one of whose methods is another port's."""

    def __init__(self, name: str, other: Any, port: Any) -> None:
        self._name = name
        self._other = other
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._other if name == self._name else self._port, name)
