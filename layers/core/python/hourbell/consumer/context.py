"""What a handler is told besides its message, and may ask while it works."""

import threading
from dataclasses import dataclass
from typing import Final

from hourbell.consumer.clock import Clock
from hourbell.consumer.errors import Stopped
from hourbell.consumer.messages import Message

LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class Signals:
    """The reasons for which a handler should stop, as they become known.

    Attributes:
        cancel: the occurrence, or its whole schedule, was canceled.
        lost: another worker may have the occurrence by now.
        stopping: of the consumer: it is to end.
    """

    cancel: threading.Event
    lost: threading.Event
    stopping: threading.Event


class Context:
    """One attempt, seen from inside its handler.

    Nothing stops a handler from outside: a long one looks here between its steps.
    """

    def __init__(
        self, message: Message, attempt: int | None, signals: Signals, clock: Clock
    ) -> None:
        self.message: Final = message
        self.attempt: Final = attempt
        """The attempt's number, from 1; None for UNTRACKED work."""
        self._signals = signals
        self._clock = clock

    @property
    def occurrence_id(self) -> str:
        """What to deduplicate on."""
        return self.message.occurrence_id

    @property
    def cancel_requested(self) -> bool:
        """Whether a heartbeat learned that the occurrence was canceled."""
        return self._signals.cancel.is_set()

    @property
    def lease_lost(self) -> bool:
        """Whether another worker has the occurrence, or may have it by now."""
        return self._signals.lost.is_set()

    @property
    def stopping(self) -> bool:
        """Whether the consumer is to end, and waits no longer than its grace."""
        return self._signals.stopping.is_set()

    @property
    def should_stop(self) -> bool:
        """Whether there is any reason to stop."""
        return self.cancel_requested or self.lease_lost or self.stopping

    def raise_if_stopped(self) -> None:
        """Give up when there is a reason to.

        Raises:
            Stopped: with the reason.
        """
        reasons = {
            "the lease is lost": self._signals.lost,
            "the occurrence was canceled": self._signals.cancel,
            "the consumer stops": self._signals.stopping,
        }
        for reason, event in reasons.items():
            if event.is_set():
                raise Stopped(reason)

    def wait(self, seconds: float) -> None:
        """Sleep, but not past a reason to stop.

        Raises:
            Stopped: as `raise_if_stopped`.
        """
        end = self._clock.now() + seconds
        self.raise_if_stopped()
        while (left := end - self._clock.now()) > 0:
            self._clock.wait(self._signals.stopping, min(left, LOOK_SECONDS))
            self.raise_if_stopped()
