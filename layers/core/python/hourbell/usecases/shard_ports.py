"""What changing the shard count needs of the outside world, on the terms of `ports`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.domain.shards import ShardMap
from hourbell.usecases.port_values import Write

__all__ = [
    "EpochBook",
    "Epochs",
    "Misplaced",
    "MoveOrder",
    "MoveProgress",
    "MoveQueue",
    "Relocation",
    "ShardMaps",
]


class ShardMaps(Protocol):
    """Tells where rows lie."""

    def current(self) -> ShardMap:
        """Return the map; what it tells may be up to EPOCH_AGE old.

        Raises:
            Transient: it is older, and could not be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class MoveProgress:
    """How far moving the rows of an epoch has come.

    Attributes:
        round: counts the walks through the whole timeline from 1; 0 before the first.
        segments: into how many parts a walk is split.
        done: the parts that this round is through with.
        moved: how many rows were moved, in all rounds.
        left: how many rows this round had to leave where they are.
    """

    round: int = 0
    segments: int = 1
    done: frozenset[int] = frozenset()
    moved: int = 0
    left: int = 0


@dataclass(frozen=True, slots=True)
class Epochs:
    """The list of epochs as it is stored.

    Attributes:
        revision: grows with every change; 0 while nothing is stored.
        changed_at: when the last epoch entered its phase.
        progress: of the last epoch.
        requested_by: ARN of who announced the last epoch; None for the first.
    """

    shard_map: ShardMap
    revision: int
    changed_at: datetime
    progress: MoveProgress = field(default_factory=MoveProgress)
    requested_by: str | None = None


class EpochBook(Protocol):
    """Where the list of epochs is stored."""

    def read(self) -> Epochs | None:
        """Return the list by a consistent read; None when none is stored."""
        ...

    def store(self, epochs: Epochs) -> Write:
        """Store the list, if what is stored has the revision before it.

        Returns:
            APPLIED, or LOST when somebody else was first.
        """
        ...


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A row of the timeline that lies under another shard count than it should.

    Attributes:
        key: where it lies.
        is_open: whether it holds the watermark back, whatever its kind.
        is_leaving: whether the relay may have it in hand.
        token: what the adapter remembers of it.
    """

    key: RowKey
    is_open: bool
    is_leaving: bool
    token: object


class Relocation(Protocol):
    """Moves rows of the timeline from shard to shard."""

    def rows_from(
        self, bucket: str, *, segment: int, segments: int, after: str | None
    ) -> tuple[tuple[Misplaced, ...], str | None]:
        """Walk through a part of the timeline by consistent reads.

        Args:
            bucket: rows of earlier buckets are left out.
            segment: which part, from 0.
            segments: how many parts there are.
            after: where to go on, as an earlier call said; None for the beginning.

        Returns:
            rows of any kind, and where to go on; None at the end.
        """
        ...

    def relocate(self, rows: Sequence[Misplaced], shards: Sequence[int]) -> list[Write]:
        """Move each row to its shard, in a transaction of its own or with others.

        A dispatch row may lie in both places, since one that is put twice does nothing
        the second time. Then it is removed, unless it is open and the other is DONE.

        Returns:
            per row APPLIED, or LOST when it changed meanwhile or its new place is
            taken; UNKNOWN when there was no clear answer.
        """
        ...

    def plan_apart(self, row: Occurrence, twin: RowKey) -> Write:
        """Insert a row if its key is free and there is nothing under the other.

        Returns:
            APPLIED, EXISTS or UNKNOWN.
        """
        ...


@dataclass(frozen=True, slots=True)
class MoveOrder:
    """The order to go on with moving rows of an epoch.

    Attributes:
        since: of the epoch.
        round: 0 to begin the next round; else of which round it is.
        segment: which part to walk through.
        after: where in it to go on.
    """

    since: datetime
    round: int = 0
    segment: int = 0
    after: str | None = None


class MoveQueue(Protocol):
    """From whoever announces an epoch, or moves its rows, to the mover."""

    def put(self, orders: Sequence[MoveOrder], *, delay: timedelta) -> None:
        """Enqueue orders that come after a delay of up to 15 minutes.

        Raises:
            Transient: one of them was not accepted after retries.
        """
        ...
