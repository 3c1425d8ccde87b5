"""Time and chance, as the consumer needs them; tests pass in their own."""

import random
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Time that passes, and chance."""

    def now(self) -> float:
        """Return seconds since some moment; they never go back."""
        ...

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait until an event is set, at most so long; return whether it is."""
        ...

    def chance(self) -> float:
        """Return a number from 0 up to, but without, 1."""
        ...

    def token(self) -> str:
        """Return a new lease token: 16 to 64 of `A-Z a-z 0-9 _ -`, unguessable."""
        ...


class SystemClock:
    """The machine's."""

    def now(self) -> float:
        """Return the monotonic time."""
        return time.monotonic()

    def wait(self, event: threading.Event, seconds: float) -> bool:
        """Wait for an event."""
        return event.wait(seconds)

    def chance(self) -> float:
        """Return a pseudo-random number."""
        return random.random()  # noqa: S311 - spreads repetitions, guards nothing

    def token(self) -> str:
        """Return 32 random characters."""
        return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long to wait after failures in a row: exponential, with full jitter.

    Attributes:
        base_seconds: the longest wait after the first; it doubles each time.
        cap_seconds: the longest wait at all.
    """

    base_seconds: float = 0.2
    cap_seconds: float = 5.0

    def seconds(self, failures: int, chance: float, least: float = 0.0) -> float:
        """Return the wait after so many failures, and no less than was asked for."""
        doublings = min(max(failures - 1, 0), 30)
        longest = min(self.cap_seconds, self.base_seconds * (1 << doublings))
        return max(chance * longest, least)
