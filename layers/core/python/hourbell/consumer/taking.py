"""Taking messages on within a time, whether Hourbell answers or not."""

import threading
from collections.abc import Callable, Sequence

from hourbell.consumer.intake import Intake, Taken
from hourbell.consumer.leases import Leases
from hourbell.consumer.queue import Received


class Taking:
    """A take in a thread of its own, for who must go on at some moment without it."""

    def __init__(
        self,
        intake: Intake,
        leases: Leases,
        messages: Sequence[Received],
        tell: Callable[[], None],
    ) -> None:
        """Begin to take messages on.

        Args:
            intake: does it.
            leases: what comes too late is dropped from them, since nobody works on it.
            messages: any number.
            tell: called when it is done.
        """
        self._intake = intake
        self._leases = leases
        self._messages = messages
        self._tell = tell
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._taken: Taken | None = None
        self._fault: BaseException | None = None
        threading.Thread(target=self._take, name="hourbell-take", daemon=True).start()

    def is_done(self) -> bool:
        """Whether there is a result."""
        return self._taken is not None or self._fault is not None

    def result(self) -> Taken | None:
        """Return what was taken; None when it takes longer, and is given up with that.

        Raises:
            BaseException: what ended the take.
        """
        with self._lock:
            self._over.set()
            if self._fault is not None:
                raise self._fault
            return self._taken

    def _take(self) -> None:
        try:
            taken = self._intake.take(self._messages, self._over)
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._fault = error
        else:
            self._keep(taken)
        self._tell()

    def _keep(self, taken: Taken) -> None:
        with self._lock:
            if not self._over.is_set():
                self._taken = taken
                return
        for work in taken.run:
            self._leases.drop(work)
