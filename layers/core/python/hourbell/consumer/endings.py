"""How work ends: what is said of it, and what becomes of its message."""

import threading
from collections.abc import Sequence
from http import HTTPStatus
from typing import Final

from hourbell.consumer.api import ErrorClass, Failure, Said, WorkerApi
from hourbell.consumer.clock import Backoff, Clock
from hourbell.consumer.errors import ApiRefused, NoAnswer
from hourbell.consumer.queue import Queue, QueueFault
from hourbell.consumer.work import LOGGER, Work

_PERHAPS_LATER: Final = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
"""What AWS itself may refuse for a moment: keys and rights are renewed."""


class Endings:
    """Ends work."""

    def __init__(self, api: WorkerApi, queue: Queue | None, clock: Clock) -> None:
        """Remember who is told.

        Args:
            api: keeps the state of what is TRACKED.
            queue: has the messages; None when somebody else deletes them.
            clock: waits between repetitions.
        """
        self._api = api
        self._queue = queue
        self._clock = clock
        self._backoff = Backoff()
        self._abandoned = threading.Event()

    def abandon(self) -> None:
        """Repeat nothing any more."""
        self._abandoned.set()

    def settle(self, work: Work, failure: Failure | None) -> bool:
        """Say how the work ended, and delete; return whether its message is done."""
        if not work.is_tracked:
            if failure is not None:
                self._postpone(work, failure)
            is_done = failure is None
        else:
            is_done = work.gone or self._tell(work, failure)
        if is_done:
            self.delete(work.receipts)
        return is_done

    def _postpone(self, work: Work, failure: Failure) -> None:
        """Let UNTRACKED work that is throttled come again when it was asked to."""
        if failure.error_class is not ErrorClass.THROTTLED:
            return
        if failure.retry_after_seconds is None:
            return
        self.hide(work.receipts, failure.retry_after_seconds)

    def _tell(self, work: Work, failure: Failure | None) -> bool:
        """Complete or fail, again and again while the lease lives.

        Returns:
            Whether it is known to be over for this worker: said, or another's.
        """
        failures = 0
        while True:
            least = 0.0
            try:
                said = self._say(work, failure)
            except ApiRefused as error:
                LOGGER.error("%s: %s", work.message.occurrence_id, error)
                return False
            except NoAnswer as error:
                LOGGER.warning("%s: %s", work.message.occurrence_id, error)
                least = error.retry_after_seconds
            else:
                if said.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                    LOGGER.info(
                        "%s: %s %s",
                        *(work.message.occurrence_id, said.status, said.state or ""),
                    )
                    return True
            failures += 1
            pause = self._backoff.seconds(failures, self._clock.chance(), least)
            if self._clock.now() + pause >= work.lease_ends:
                return False
            if self._clock.wait(self._abandoned, pause):
                return False

    def _say(self, work: Work, failure: Failure | None) -> Said:
        """Complete or fail, once.

        Raises:
            NoAnswer: there is none, or AWS refused it for what may be a moment.
            ApiRefused: it would be refused again.
        """
        try:
            if failure is None:
                return self._api.complete(work.held)
            return self._api.fail(work.held, failure)
        except ApiRefused as error:
            # Hourbell's own refusals have a code.
            if error.code or error.status not in _PERHAPS_LATER:
                raise
            raise NoAnswer(str(error)) from error

    def hide(self, receipts: Sequence[str], seconds: int) -> None:
        """Let messages come again after some time; if not, they do so sooner."""
        if self._queue is None or not receipts:
            return
        try:
            self._queue.hide(receipts, seconds)
        except QueueFault as error:
            LOGGER.warning("visibility: %s", error)

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages; what is not deleted comes again, and is skipped then."""
        if self._queue is None or not receipts:
            return
        try:
            self._queue.delete(receipts)
        except QueueFault as error:
            LOGGER.warning("delete: %s", error)
