"""Queues as consumers see them: messages come late, twice, again, or not at all."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.simulation.log import Send

SECOND = timedelta(seconds=1)
# How often a message is received before it goes to the redrive queue.
RECEIVES = 4
# How long a received one cannot be seen, in seconds.
VISIBILITY = (20, 45, 90)
BATCH = 10
# How long queues of our own keep a message, and an external one.
KEPT, KEPT_OUTSIDE = timedelta(days=4), timedelta(days=14)


@dataclass(eq=False)
class Message:
    """One message of a queue.

    Attributes:
        number: which send of the occurrence it is.
        kept_until: when its queue lets go of it.
        is_poison: whoever receives it dies before it claims anything.
    """

    occurrence_id: str
    tenant: str
    queue: str
    number: int
    visible_at: datetime
    kept_until: datetime
    is_poison: bool = False
    receives: int = 0
    is_gone: bool = False


class Messages:
    """All messages of TRACKED occurrences that are in queues.

    Attributes:
        lost: (occurrence_id, send) of those that are lost for good, or were kept for
            as long as their queue keeps them.
        kept_until: likewise, of all, when the last one is kept no more.
        never_claimed: whether no message is ever claimed.
        lost_from: from which send on messages are lost; None for none.
        redriven: likewise, of those that were received too often.
    """

    def __init__(
        self,
        world: Any,
        receive: Callable[[list[Message]], None],
        redrive: Callable[[Message], None],
    ) -> None:
        self.world = world
        self._receive, self._redrive = receive, redrive
        self.never_claimed = False
        self.lost_from: int | None = None
        self.kept_until: dict[tuple[str, int], datetime] = {}
        self.queued: dict[tuple[str, str], list[Message]] = {}
        self.lost: set[tuple[str, int]] = set()
        self.redriven: set[tuple[str, int]] = set()

    def on_send(self, send: Send) -> None:
        """Take in what a relay sent, once or twice."""
        world, place = self.world, (send.occurrence_id, send.number)
        kept = KEPT_OUTSIDE if send.queue.endswith(":external") else KEPT
        kept_until = self.kept_until[place] = send.visible_at + kept
        is_lost = self.lost_from is not None and send.number >= self.lost_from
        if is_lost or world.strikes("message lost for good"):
            self.lost.add(place)
            return
        for _ in range(2 if world.strikes("message duplicated") else 1):
            visible_at = send.visible_at
            is_poison = self.never_claimed or world.strikes("message never claimed")
            if world.strikes("message late"):
                visible_at += world.rng.uniform(5, 400) * SECOND
            message = Message(
                send.occurrence_id,
                send.tenant,
                send.queue,
                send.number,
                visible_at,
                kept_until,
                is_poison,
            )
            self.queued.setdefault((message.tenant, message.queue), []).append(message)
            self._await(message)

    def delete(self, message: Message) -> None:
        """Let a message be deleted, unless that comes to nothing."""
        if not self.world.strikes("deletion without effect"):
            self._drop(message)

    def _drop(self, message: Message) -> None:
        if not message.is_gone:
            message.is_gone = True
            self.queued[message.tenant, message.queue].remove(message)

    def _await(self, message: Message) -> None:
        """Let a consumer poll some moments after a message can be seen."""
        later = self.world.rng.uniform(0.05, 1.5) * SECOND
        when = max(message.visible_at, self.world.now) + later
        self.world.at(when, "consumer", lambda: self._poll(message))

    def _poll(self, message: Message) -> None:
        """Let a consumer receive a message, and others of its queue."""
        world = self.world
        if message.is_gone:
            return
        if message.kept_until <= world.now:
            self._drop(message)
            self.lost.add((message.occurrence_id, message.number))
            return
        if message.visible_at > world.now:
            self._await(message)
            return
        if world.is_down("caller"):
            # They find nobody to ask, and slow down.
            message.visible_at = world.now + world.rng.uniform(60, 600) * SECOND
            self._await(message)
            return
        others = [
            each
            for each in self.queued[message.tenant, message.queue]
            if each is not message and each.visible_at <= world.now < each.kept_until
        ]
        most = world.rng.choice((1, 3, BATCH))
        batch = [message, *world.rng.sample(others, min(most - 1, len(others)))]
        received = [each for each in batch if self._is_received(each)]
        died = [each for each in received if each.is_poison]
        received = [each for each in received if not each.is_poison]
        if died:
            world.note(f"a consumer dies of {[each.occurrence_id for each in died]}")
        if received:
            self._receive(received)

    def _is_received(self, message: Message) -> bool:
        """Count a receive; whether it is not one too many."""
        world = self.world
        message.receives += 1
        if message.receives > 1:
            world.count("redelivery")
        if message.receives > RECEIVES:
            world.count("redrive")
            self._drop(message)
            self.redriven.add((message.occurrence_id, message.number))
            later = world.rng.uniform(1, 5) * SECOND
            world.at(world.now + later, "consumer", lambda: self._redrive(message))
            return False
        message.visible_at = world.now + world.rng.choice(VISIBILITY) * SECOND
        self._await(message)
        return True
