"""Leases: what is worked on is kept from others while it takes.

Two things run out on work: the lease at Hourbell (TRACKED), and the time for which the
queue hides the message (unless it was deleted at once). Both are extended by one beat,
every third of the lease; the first one may come sooner.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from hourbell.consumer.api import Said, WorkerApi
from hourbell.consumer.clock import Clock
from hourbell.consumer.errors import ApiRefused, NoAnswer
from hourbell.consumer.queue import Queue, QueueFault
from hourbell.consumer.threads import side_by_side
from hourbell.consumer.work import LOGGER, Work

BEATS_PER_LEASE: Final = 3
FIRST_BEAT_SECONDS: Final = 20.0
"""After how long the first beat comes at the latest.

The queue hides a message for its own time at first, 30 s unless set otherwise, and only
from then on for as long as the lease.
"""
SOONER: Final = 4
"""A beat without an answer is repeated after a fourth of the usual time."""
JOIN_SECONDS: Final = 5.0


class Leases:
    """The work that runs, and the beats that keep it."""

    def __init__(self, api: WorkerApi, queue: Queue | None, clock: Clock) -> None:
        """Remember who is told of beats.

        Args:
            api: has the leases.
            queue: hides the messages; None when somebody else sees to that.
            clock: tells when.
        """
        self._api = api
        self._queue = queue
        self._clock = clock
        self._lock = threading.Lock()
        self._works: list[Work] = []
        self.seconds: Final = float(api.lease_seconds)
        self.interval: Final = self.seconds / BEATS_PER_LEASE
        # How long a beat waits for its heartbeats, before it lets them go on alone.
        self.patience = self.interval / SOONER

    def hold(self, work: Work, since: float) -> None:
        """Keep work from now on.

        Args:
            work: what is claimed; UNTRACKED work only has a message to hide.
            since: when the claim was first sent: the lease began then or later.
        """
        work.lease_ends = since + self.seconds
        work.beat_at = since + min(self.interval, FIRST_BEAT_SECONDS)
        with self._lock:
            self._works.append(work)

    def drop(self, work: Work) -> None:
        """Let work go; safe to call twice."""
        with self._lock:
            self._works = [each for each in self._works if each is not work]

    def _has(self, work: Work) -> bool:
        with self._lock:
            return any(each is work for each in self._works)

    @contextmanager
    def kept(
        self, patience: Callable[[], float] = lambda: JOIN_SECONDS
    ) -> Iterator[None]:
        """Beat in the background for as long as the block lasts.

        Args:
            patience: tells at its end how many seconds there are for a beat that is
                under way; JOIN_SECONDS at most.
        """
        ending = threading.Event()
        thread = threading.Thread(
            target=self._keep, args=(ending,), name="hourbell-leases", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ending.set()
            thread.join(min(JOIN_SECONDS, max(patience(), 0)))

    def _keep(self, ending: threading.Event) -> None:
        # Looked at more often than needed: what is claimed meanwhile is due sooner.
        while not self._clock.wait(ending, min(1.0, self.interval / SOONER)):
            try:
                self.beat()
            except Exception:  # noqa: BLE001 - logged, and the next beat follows
                # Work must not go on unheard because of one beat.
                LOGGER.exception("a beat failed")

    def beat(self) -> None:
        """Extend what is due, and note what is lost."""
        now = self._clock.now()
        with self._lock:
            works = [each for each in self._works if not (each.settling or each.gone)]
        due = [each for each in works if now >= each.beat_at and not each.beating]
        # First, since it must not wait for heartbeats that nobody answers.
        self._hide([each for each in due if not each.is_tracked], now)
        tracked = [each for each in due if each.is_tracked]
        # Side by side, and left to themselves where they take long: one call that hangs
        # must not cost the others their leases, with this beat or the next ones.
        side_by_side(
            lambda batch: self._extend(batch, now),
            self._api.batches(tracked),
            "hourbell-beat",
            patience=self.patience,
        )
        # Not before: what was claimed long ago, and answered now, lives by its beat.
        self._note_ends(works)
        self._hide([each for each in tracked if not each.gone], now)

    def _note_ends(self, works: Sequence[Work]) -> None:
        """Note which leases have run out."""
        with self._lock:
            now = self._clock.now()
            over = [
                each
                for each in works
                if each.is_tracked
                and now >= each.lease_ends
                and not (each.settling or each.lost.is_set())
            ]
            for work in over:
                work.lost.set()
        for work in over:
            LOGGER.warning("%s: its lease ran out", work.message.occurrence_id)

    def _extend(self, works: Sequence[Work], now: float) -> None:
        for work in works:
            work.beating = True
        try:
            answers = self._api.heartbeat([work.held for work in works])
        except (NoAnswer, ApiRefused) as error:
            LOGGER.warning("heartbeat: %s", error)
            for work in works:
                work.beat_at = now + self.interval / SOONER
        except Exception:  # noqa: BLE001 - logged, and the next beat follows
            LOGGER.exception("a heartbeat failed")
        else:
            for work in works:
                self._note(work, answers[work.message.occurrence_id], now)
        finally:
            for work in works:
                work.beating = False

    def _note(self, work: Work, said: Said, now: float) -> None:
        """Keep what a heartbeat sent at `now` answered."""
        if not self._has(work):
            # Let go meanwhile: no other heartbeat is going to follow this one.
            return
        if said.status == HTTPStatus.OK:
            work.beat_at = now + self.interval
            with self._lock:
                work.lease_ends = now + self.seconds
                if self._clock.now() < work.lease_ends:
                    work.lost.clear()
            if said.cancel_requested:
                work.cancel.set()
        elif said.status in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
            # Work that ended while this was on its way may be over by its own word.
            if not work.settling:
                LOGGER.warning("%s: its lease is lost", work.message.occurrence_id)
                work.gone = True
                work.lost.set()
        else:
            work.beat_at = now + self.interval / SOONER

    def _hide(self, works: Sequence[Work], now: float) -> None:
        pause = self.interval
        receipts = [receipt for work in works for receipt in work.receipts]
        try:
            if self._queue is not None and receipts:
                self._queue.hide(receipts, round(self.seconds))
        except QueueFault as error:
            # It comes again sooner then: of TRACKED work a claim answers BUSY, other
            # work would be begun a second time.
            LOGGER.info("visibility: %s", error)
            pause = min(pause, FIRST_BEAT_SECONDS) / SOONER
        for work in works:
            if not work.is_tracked:
                work.beat_at = now + pause
