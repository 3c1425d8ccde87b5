"""A change of the shard count: who knows of it, who orders it, and what must come."""

import hashlib
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from hourbell.adapters.dynamodb.epochs import DynamoShardMaps
from hourbell.adapters.memory.shards import (
    MemoryEpochBook,
    MemoryMoveQueue,
    MemoryRelocation,
)
from hourbell.domain.errors import Conflict, HourbellError, InvalidInput
from hourbell.domain.shards import Phase, ShardMap
from hourbell.usecases.ports import Write
from hourbell.usecases.reshard import Mover, Plan, announce, move, resume
from hourbell.usecases.shard_ports import Epochs, Misplaced, MoveOrder
from hourbell.usecases.twins import TwinTimeline

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
OPERATOR = "arn:aws:iam::123456789012:role/operator"
# Shards and groups at first, and then, in turns.
COUNTS = (
    ((2, 2), (8, 2)),
    ((8, 2), (2, 2)),
    ((3, 1), (8, 3)),
    ((16, 2), (64, 2)),
    ((4, 2), (6, 3)),
    ((64, 2), (16, 2)),
)
# Chances per order on its way to a mover.
LOST, DOUBLED, LATE = "move order lost", "move order doubled", "move order late"
ANNOUNCED = "shard counts announced"
# Movers take their part of the steps, so that less is written and sent in each.
SENT_LESS = {
    "stream record lost": 2.2,
    "stream record late": 2.5,
    "stream record repeated": 1.5,
    "unclear write with effect": 1.5,
}
ORDER_CHANCES = {LOST: 0.15, DOUBLED: 0.25, LATE: 0.25}
RECEIVES = 5
REPEATED = 6 * SECOND
# How old what a process acts by may be, and how far two clocks may be apart.
LASTS, SKEW = 150 * SECOND, 4 * SECOND
# Each such block of seeds has all beginnings; every third changes its shards.
BLOCK, EVERY = 6, 3
PHASES = [Phase.ANNOUNCED, Phase.MOVING, Phase.SETTLED]


def is_resharded(seed: int) -> bool:
    """Whether the shard count changes in a seed's world."""
    return seed // BLOCK % EVERY == 1


def counts_of(seed: int) -> tuple[tuple[int, int], ...] | None:
    """Return the shard counts of a seed's world, if they change."""
    if not is_resharded(seed):
        return None
    return COUNTS[(seed + seed // BLOCK // EVERY) % len(COUNTS)]


class Known:
    """The `ShardMaps` port of one process, that remembers what it told."""

    def __init__(self, maps: Any) -> None:
        self._maps = maps
        self.told: ShardMap | None = None

    def current(self) -> ShardMap:
        told: ShardMap = self._maps.current()
        self.told = told
        return told


class WatchedRelocation(MemoryRelocation):
    """Moves rows, and tells the world's store that what it sees was moved."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self._watched = store

    def _relocate(self, row: Misplaced, shard: int) -> Write:
        with self._watched.moving(row.key) as watched:
            answer = super()._relocate(row, shard)
            watched.is_moved = answer is Write.APPLIED
        return answer


class WatchedBook(MemoryEpochBook):
    """The list of epochs, whose changes are in the timeline."""

    def __init__(self, world: Any) -> None:
        super().__init__(world.store)
        self._world = world

    def store(self, epochs: Epochs) -> Write:
        before, answer = self.read(), super().store(epochs)
        if before and answer is Write.APPLIED:
            self._judge_phase(before, epochs)
        last, progress = epochs.shard_map.last, epochs.progress
        self._world.note(
            f"epoch {answer} {last.shards} shards, {last.groups} groups, {last.phase} "
            f"since {last.since}, round {progress.round} done {sorted(progress.done)} "
            f"left {progress.left}"
        )
        return answer

    def _judge_phase(self, before: Epochs, after: Epochs) -> None:
        """A phase is not left before all know of it, by whatever clock."""
        old, new = before.shard_map, after.shard_map
        is_left = _place(old) != _place(new) and len(old.epochs) == len(new.epochs)
        lasted = after.changed_at - before.changed_at
        if is_left and lasted < LASTS - SKEW:
            text = f"{old.last} is left {lasted} after it began"
            log = self._world.log
            log.violate("a phase lasts until all know of it", self._world.steps, text)


class Sharding:
    """The shard counts of a world, as they are and as processes know them.

    Attributes:
        changes: whether they change in this world.
    """

    def __init__(self, world: Any, counts: tuple[tuple[int, int], ...] | None) -> None:
        self.world = world
        self.changes = counts is not None
        self._counts = counts or ((world.shard_count, world.group_count),)
        self.initial = ShardMap.constant(*self._counts[0])
        # Of its own, so that other worlds are what they were.
        self.rng = random.Random(f"shards {world.seed}")

    def begin(self) -> None:
        """Make the ports, and let an operator come at any step."""
        world = self.world
        self.book = WatchedBook(world)
        self.relocation = WatchedRelocation(world.store)
        self.queue = MemoryMoveQueue()
        if self.changes and world.rates:
            strength = self.rng.choice((0.5, 1.0, 2.0))
            world.rates |= {k: c * strength for k, c in ORDER_CHANCES.items()}
            world.rates |= {
                name: world.rates[name] * SENT_LESS[name]
                for name in SENT_LESS
                if name in world.rates
            }

    def await_operator(self) -> None:
        """Let an operator come at any step."""
        if self.changes:
            first = self.rng.uniform(0, 12) * MINUTE
            self.world.at(self.world.now + first, "operator")

    @property
    def now(self) -> ShardMap:
        """The map as it is."""
        epochs = self.world.store.epochs
        return self.initial if epochs is None else epochs.shard_map

    def equip(self, process: Any) -> None:
        """Give a process its knowledge of the shards, and its timeline."""
        process.shards, process.twins = self.initial, process.timeline
        if self.changes:
            maps = DynamoShardMaps(process.book, self.initial, process.clock)
            process.shards = Known(maps)
            process.twins = TwinTimeline(
                process.timeline, process.shards, process.relocation
            )

    def mover(self, process: Any) -> Mover:
        """Return what a process needs to change the shards."""
        return Mover(
            process.book,
            process.groups,
            process.relocation,
            process.move_queue,
            process.clock,
            self.initial,
        )

    # --- the operator -----------------------------------------------------------

    def operate(self, _: Any) -> None:
        """Announce the next shard count, or see that the last one is settled."""
        world = self.world
        world.at(world.now + self.rng.uniform(3, 15) * MINUTE, "operator")
        if world.is_down("caller"):
            return

        def act(process: Any, attempt: str) -> None:
            mover = self.mover(process)
            if self.now.unsettled is not None and self.rng.random() < 0.8:
                resume(mover)
                world.note(f"[{attempt}] the epoch's orders are given anew")
            elif not world.callers.closed:
                self.announce(mover, self._plan())

        try:
            world.task("caller", "the operator", act)
        except HourbellError as error:
            world.note(f"the operator failed: {error}")

    def announce_once(self) -> None:
        """Announce the other count, again and again until there is an answer."""
        world, answered = self.world, False

        def act(process: Any, _: str) -> None:
            nonlocal answered
            shards, groups = self._counts[-1]
            self.announce(self.mover(process), Plan(shards, groups))
            answered = True

        try:
            world.task("caller", "the operator", act)
        except HourbellError as error:
            world.note(f"the operator failed: {error}")
        if not answered:
            world.at(world.now + REPEATED, "announce again")

    def announce(self, mover: Mover, plan: Plan) -> None:
        """Announce a shard count, if none is under way."""
        world = self.world
        try:
            announce(mover, plan, requested_by=OPERATOR)
        except (Conflict, InvalidInput) as error:
            world.note(f"{plan} is refused: {error}")
            return
        world.count(ANNOUNCED)

    def _plan(self) -> Plan:
        last = self.now.last
        shards, groups = next(
            (each for each in self._counts if each[0] != last.shards), self._counts[-1]
        )
        since = None
        if self.rng.random() < 0.3:
            ahead = self.rng.randrange(12, 60) * MINUTE
            since = self.world.now.replace(second=0, microsecond=0) + ahead
        groups = max(groups, last.groups)
        return Plan(max(shards, groups), groups, since)

    # --- orders and movers ------------------------------------------------------

    def take(self) -> None:
        """Take what was put on the queue on its way to a mover."""
        orders, self.queue.orders = self.queue.orders, []
        for order, delay in orders:
            self._send(order, delay, 0)

    def _send(self, order: MoveOrder, delay: timedelta, receives: int) -> None:
        world = self.world
        if receives > RECEIVES or (not receives and world.strikes(LOST)):
            return
        for _ in range(2 if not receives and world.strikes(DOUBLED) else 1):
            late = world.strikes(LATE)
            wait = self.rng.uniform(20, 900) if late else self.rng.uniform(0.1, 2)
            when = world.now + delay + wait * SECOND
            world.at(when, "move", (order, receives))

    def move(self, what: tuple[MoveOrder, int]) -> None:
        """Let a mover have an order."""
        world, (order, receives) = self.world, what
        done = False

        def work(process: Any, attempt: str) -> None:
            nonlocal done
            deadline = process.clock.now() + self.rng.choice((0, 40)) * SECOND
            report = move(self.mover(process), order, deadline=deadline)
            done = True
            world.note(f"[{attempt}] {report}")

        if world.is_down("mover"):
            world.at(world.down["mover"] + SECOND, "move", what)
            return
        try:
            text = f"order {order.round}.{order.segment} after {order.after}"
            if not world.task("mover", text, work):
                world.at(world.now + SECOND, "move", what)
                return
        except HourbellError as error:
            world.note(f"the mover failed: {error}")
        if not done:
            self._send(order, 30 * SECOND, receives + 1)

    # --- what must be -----------------------------------------------------------

    def judge_knowledge(self, process: Any, name: str) -> None:
        """Whoever puts or moves a row is at most one phase behind."""
        told = getattr(process.shards, "told", None)
        if name not in {"plan", "plan_apart"} or told is None:
            return
        behind = _place(self.now) - _place(told)
        if behind > 1:
            text = f"{process.name} is {behind} phases behind at {name}"
            self._violate("nobody is two phases behind", text)

    def judge(self) -> None:
        """Judge what is left when all is quiet."""
        store, epochs = self.world.store, self.now.epochs
        if epochs[-1].phase is not Phase.SETTLED:
            text = f"{epochs[-1].shards} shards are {epochs[-1].phase}"
            self._violate("a change of the shard count ends", text)
        for each in [*store.all_rows(), *store.all_dispatches()]:
            right = shard_at(epochs, each.schedule_id, each.key.bucket)
            if each.key.shard != right:
                text = f"{each.key} should be in shard {right}"
                self._violate("no row lies astray", text)
        places = Counter(each.occurrence_id for each in store.all_rows())
        for name, count in places.items():
            if count > 1:
                self._violate("one place for each row", f"{name} has {count}")

    def _violate(self, invariant: str, text: str) -> None:
        self.world.log.violate(invariant, self.world.steps, text)


def _place(shard_map: ShardMap) -> int:
    """Return how many phases a list of epochs has behind it."""
    return 3 * len(shard_map.epochs) + PHASES.index(shard_map.last.phase)


def shard_at(epochs: Any, schedule_id: str, bucket: str) -> int:
    """Return where a row belongs when all epochs are settled."""
    minute = datetime.strptime(bucket, "%Y%m%dT%H%MZ").replace(tzinfo=UTC)
    held = [each for each in epochs if each.since is None or each.since <= minute]
    return shard_under(held[-1].shards, schedule_id)


def shard_under(count: int, schedule_id: str) -> int:
    """Return the shard of a schedule's rows under a count."""
    digest = hashlib.sha256(schedule_id.encode()).digest()
    return int.from_bytes(digest[:8], "big") % count
