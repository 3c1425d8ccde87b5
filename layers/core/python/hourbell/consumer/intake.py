"""From what was received to what is to be worked on: read, group, claim."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from hourbell.consumer.api import Answer, Claim, Held, WorkerApi
from hourbell.consumer.clock import Clock
from hourbell.consumer.errors import (
    ApiRefused,
    HeldOff,
    NoAnswer,
    UnreadableMessage,
)
from hourbell.consumer.leases import Leases
from hourbell.consumer.messages import Message, parse_message
from hourbell.consumer.queue import Received
from hourbell.consumer.threads import side_by_side
from hourbell.consumer.work import LOGGER, Handler, Work

UNAVAILABLE: Final = "unavailable"
UNHEARD_SECONDS: Final = 60.0
"""How long a claim without an answer is repeated at most, if its lease lasts longer.

A request that Hourbell can never answer must not hold up for long what else it claims.
"""


@dataclass(slots=True)
class _Group:
    """The copies of one message in a receive, and its work.

    Attributes:
        since: when it was claimed first, if it was.
        is_doubtful: whether it may be claimed already, though nobody said so.
    """

    work: Work
    copies: list[Received]
    since: float | None = None
    is_doubtful: bool = False

    @property
    def held(self) -> Held:
        """How it is named in the API."""
        return self.work.held

    def add(self, received: Received, message: Message) -> None:
        """Add a copy; the latest send's is what is worked on."""
        self.copies.append(received)
        if message.send > self.work.message.send:
            self.work.message = message


@dataclass(slots=True)
class Taken:
    """What is to become of received messages.

    Attributes:
        run: what was begun.
        done: messages that are of no use any more: to delete.
        left: to leave to their visibility.
        held_off: of those that are left, what is of tenants that are left alone now,
            and for how many seconds.
        unheard: occurrence_id -> what may be claimed, of those that are left.
        is_served: whether Hourbell answered; if not, receiving more would only use up
            the messages' receives.
    """

    run: list[Work] = field(default_factory=list)
    done: list[Received] = field(default_factory=list)
    left: list[Received] = field(default_factory=list)
    held_off: list[tuple[list[Received], float]] = field(default_factory=list)
    unheard: dict[str, _Group] = field(default_factory=dict)
    is_served: bool = True

    @property
    def is_fruitless(self) -> bool:
        """Whether there was nothing but what is of tenants that are left alone."""
        return bool(self.held_off) and not (self.run or self.done)

    def failures(self, before: int) -> int:
        """Return how many takes have failed in a row, with this one.

        Where Hourbell answers some, what it does not answer must not keep the others
        waiting for longer and longer.
        """
        if self.is_served:
            return 0
        return 1 if self.run or self.done else before + 1


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a take was asked for."""

    stopping: threading.Event
    begin: Callable[[Work], None]
    taken: Taken


def _is_malformed(error: Exception) -> bool:
    """Whether a claim was refused for something that stands in it."""
    return isinstance(error, ApiRefused) and error.status == HTTPStatus.BAD_REQUEST


class Intake:
    """Takes messages on."""

    def __init__(
        self,
        api: WorkerApi,
        leases: Leases,
        handlers: Mapping[str, Handler],
        clock: Clock,
    ) -> None:
        self._api = api
        self._leases = leases
        self._handlers = handlers
        self._clock = clock
        self._noting = threading.Lock()
        self._unheard: dict[str, _Group] = {}

    def unheard(self) -> int:
        """Return how many works may be claimed, though nobody said so."""
        return len(self._unheard)

    def take(
        self,
        messages: Sequence[Received],
        stopping: threading.Event,
        begin: Callable[[Work], None],
        *,
        taken: Taken | None = None,
        is_lasting: bool = False,
    ) -> Taken:
        """Claim what is TRACKED, begin what is to be run, and tell what becomes of all.

        Args:
            messages: any number.
            stopping: ends the repetition of claims.
            begin: called with each work as soon as it is held; by several threads, but
                one after the other.
            taken: where that is told, also while this goes on.
            is_lasting: whether this is called again soon. What was claimed without an
                answer, and so may have begun an attempt, is claimed again then, by its
                tokens, for as long as the lease may last.
        """
        taken = taken or Taken()
        groups = list(self._groups(messages, taken).values())
        tracked = [group for group in groups if group.work.is_tracked]
        asked = _Asked(stopping, begin, taken)
        for group in groups:
            if not group.work.is_tracked:
                self._start(group, asked)
        side_by_side(
            lambda batch: self._claim(batch, asked),
            self._api.batches(tracked),
            "hourbell-claim",
        )
        if is_lasting:
            self._unheard = taken.unheard
        return taken

    def _groups(self, messages: Sequence[Received], taken: Taken) -> dict[str, _Group]:
        found = self._unheard_again()
        for received in messages:
            try:
                message = parse_message(received.body)
            except UnreadableMessage as error:
                LOGGER.error("message %s: %s", received.message_id, error)
                taken.left.append(received)
                continue
            if message is None:
                taken.done.append(received)
            elif message.occurrence_id in found:
                found[message.occurrence_id].add(received, message)
            elif message.handler not in self._handlers:
                LOGGER.error(
                    "%s: nobody handles %r here", message.occurrence_id, message.handler
                )
                taken.left.append(received)
            else:
                handler = self._handlers[message.handler]
                work = Work(message, handler, [], [], self._clock.token())
                found[message.occurrence_id] = _Group(work, [received])
        return found

    def _unheard_again(self) -> dict[str, _Group]:
        """Return what was claimed without an answer, if it can still be that claim."""
        now, before = self._clock.now(), self._unheard
        self._unheard = {}
        seconds = min(self._leases.seconds, UNHEARD_SECONDS)
        return {
            name: group
            for name, group in before.items()
            if group.since is not None and now < group.since + seconds
        }

    def _claim(self, groups: Sequence[_Group], asked: _Asked) -> None:
        since = self._clock.now()
        for group in groups:
            group.since = since if group.since is None else group.since
        try:
            claims = self._api.claim(
                [group.work.held for group in groups], asked.stopping
            )
        except (NoAnswer, ApiRefused) as error:
            if len(groups) > 1 and _is_malformed(error):
                # One of them is no id, for which the others are not to blame.
                for group in groups:
                    self._claim([group], asked)
                return
            self._leave(groups, error, asked.taken)
            return
        with self._noting:
            for group in groups:
                claim = claims[group.work.message.occurrence_id]
                if claim.lease_token not in {None, group.work.token}:
                    # Another attempt than an earlier claim may have begun.
                    group.since = since
                self._obey(group, claim, asked)

    def _leave(
        self, groups: Sequence[_Group], error: NoAnswer | ApiRefused, taken: Taken
    ) -> None:
        """Leave what could not be claimed."""
        copies = [each for group in groups for each in group.copies]
        for group in groups:
            group.is_doubtful = group.is_doubtful or error.is_doubtful
        # What it answers to the form of a claim, it would have answered before.
        doubtful = [] if _is_malformed(error) else groups
        seconds = 0.0
        if isinstance(error, HeldOff):
            seconds = error.retry_after_seconds
        elif isinstance(error, ApiRefused):
            seconds = self._api.held_off(groups[0].work.message.tenant)
        with self._noting:
            taken.left += copies
            if seconds:
                # Its failure was told in the log when it happened.
                LOGGER.info("claim: %s, left in the queue for %.0f s", error, seconds)
                taken.held_off.append((copies, seconds))
            else:
                LOGGER.error("claim: %s", error)
                taken.is_served = False
            for group in doubtful:
                if group.is_doubtful:
                    taken.unheard[group.work.message.occurrence_id] = group

    def _obey(self, group: _Group, claim: Claim, asked: _Asked) -> None:
        taken = asked.taken
        name = group.work.message.occurrence_id
        if claim.answer is Answer.RUN:
            group.work.attempt = claim.attempt
            group.work.token = claim.lease_token or group.work.token
            self._start(group, asked)
        elif claim.is_unknown:
            tenant = group.work.message.tenant
            LOGGER.error("%s: unknown to tenant %s, left in the queue", name, tenant)
            taken.left += group.copies
        elif claim.answer is Answer.ERROR:
            LOGGER.warning("%s: %s, left in the queue", name, claim.reason)
            taken.is_served = taken.is_served and claim.reason != UNAVAILABLE
            taken.left += group.copies
        else:
            LOGGER.info("%s: %s %s", name, claim.answer, claim.reason)
            taken.done += group.copies

    def _start(self, group: _Group, asked: _Asked) -> None:
        since = self._clock.now() if group.since is None else group.since
        work = group.work
        work.message_ids = [copy.message_id for copy in group.copies]
        work.receipts = [copy.receipt for copy in group.copies if copy.receipt]
        self._leases.hold(work, since)
        try:
            asked.begin(work)
        except BaseException:
            # Nobody is going to work on it, so no beat may keep it from others.
            self._leases.drop(work)
            raise
        asked.taken.run.append(work)
