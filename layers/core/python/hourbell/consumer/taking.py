"""Taking messages on within a time, whether Hourbell answers or not."""

import threading
from collections.abc import Callable, Sequence

from hourbell.consumer.intake import Intake, Taken
from hourbell.consumer.leases import Leases
from hourbell.consumer.queue import Received
from hourbell.consumer.work import Work


class Taking:
    """A take in a thread of its own, for who must go on at some moment without it."""

    def __init__(
        self,
        intake: Intake,
        leases: Leases,
        messages: Sequence[Received],
        begin: Callable[[Work], None],
        tell: Callable[[], None],
    ) -> None:
        """Begin to take messages on.

        Args:
            intake: does it.
            leases: what comes too late is dropped from them, since nobody works on it.
            messages: any number.
            begin: called with each work that is to be run, unless it comes too late.
            tell: called when it is done.
        """
        self._intake = intake
        self._leases = leases
        self._messages = messages
        self._begin = begin
        self._tell = tell
        self.begun: list[Work] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._taken = Taken()
        self._is_done = False
        self._fault: BaseException | None = None
        threading.Thread(target=self._take, name="hourbell-take", daemon=True).start()

    def is_done(self) -> bool:
        """Whether it is known of all messages what becomes of them."""
        return self._is_done

    def result(self) -> Taken:
        """Return what was taken so far; nothing more is begun from now on.

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
            self._intake.take(
                self._messages, self._over, self._begin_in_time, taken=self._taken
            )
        except BaseException as error:  # noqa: BLE001 - `result` raises it
            self._fault = error
        self._is_done = True
        self._tell()

    def _begin_in_time(self, work: Work) -> None:
        with self._lock:
            if self._over.is_set():
                self._leases.drop(work)
                return
            self._begin(work)
            self.begun.append(work)
