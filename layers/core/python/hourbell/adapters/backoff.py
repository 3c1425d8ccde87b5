"""Waiting between attempts."""

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


class Allowance:
    """How long one request may try, over all the calls that it makes of stores.

    Each call bounds its own attempts; several that are contended one after the other
    would together outlast the function, and the caller would get no answer.
    """

    def __init__(
        self, seconds: float, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Take in how many seconds each request has; none has begun."""
        self._seconds = seconds
        self._monotonic = monotonic
        self._ends: float | None = None

    def begin(self) -> None:
        """Start a request's time."""
        self._ends = self._monotonic() + self._seconds

    def has(self, seconds: float) -> bool:
        """Whether an attempt may still be made after so many seconds."""
        return self._ends is None or self._monotonic() + seconds <= self._ends


@dataclass(frozen=True, slots=True)
class Backoff:
    """Bounded attempts with exponential pauses and full jitter between them.

    Attributes:
        attempts: how often something is tried at most.
        base_seconds: upper bound of the first pause; doubled for each further one.
        cap_seconds: upper bound of every pause.
        deadline_seconds: no attempt starts later than this after the first one.
        allowance: of the request that the call is a part of; only a first attempt is
            made without it.
        sleep: pauses the thread for seconds.
        uniform: draws a number between its two arguments.
        monotonic: reads a clock that never moves back, in seconds.
    """

    attempts: int = 5
    base_seconds: float = 0.05
    cap_seconds: float = 1.0
    deadline_seconds: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    uniform: Callable[[float, float], float] = random.uniform
    monotonic: Callable[[], float] = time.monotonic
    allowance: Allowance | None = None

    def rounds(self) -> Iterator[int]:
        """Yield 0, 1, 2 ... and pause before each but the first.

        Leave the loop when an attempt succeeded.
        """
        start = self.monotonic()
        for attempt in range(self.attempts):
            if attempt:
                bound = min(self.cap_seconds, self.base_seconds * 2 ** (attempt - 1))
                pause = self.uniform(0, bound)
                if self.monotonic() - start + pause > self.deadline_seconds:
                    return
                if self.allowance is not None and not self.allowance.has(pause):
                    return
                self.sleep(pause)
            yield attempt
