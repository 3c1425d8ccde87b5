"""Buckets, shards and shard groups: where a schedule's rows lie and who scans them.

The shard count is a function of the bucket, told by a list of epochs. A new epoch goes
through three phases, and at any instant two processes are at most one phase apart:

- ANNOUNCED: rows of its buckets still lie, and are put, under the count before it. Who
  puts one sees to it that there is none under the new count.
- MOVING: new ones are put under the new count, by the same rule, and what lies under
  the old one is moved.
- SETTLED: everything has been moved. The count before it is forgotten.

While an epoch is not settled, its buckets are scanned under both counts.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from hourbell.domain.instants import floor_minute
from hourbell.domain.occurrence import RowKey, minute_of

MINUTE = timedelta(minutes=1)
MAX_SHARDS: Final = 4096
"""A partition key has four digits for the shard, and a pass has a minute for them."""

NEVER: Final = datetime.max.replace(tzinfo=UTC)
"""The watermark of a shard that has no bucket any more."""


class Phase(StrEnum):
    """How far an epoch has come."""

    ANNOUNCED = "ANNOUNCED"
    MOVING = "MOVING"
    SETTLED = "SETTLED"


def stable_hash(text: str) -> int:
    """Return 64 bits that are the same on every machine and Python version."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@dataclass(frozen=True, slots=True)
class Epoch:
    """From which bucket on a shard count holds.

    Attributes:
        since: first bucket's minute, UTC; None for the beginning of time.
        shards: how many shards its buckets have.
        groups: how many materializers share the shards.
        phase: how far it has come; the first one is settled from the beginning.
    """

    since: datetime | None
    shards: int
    groups: int
    phase: Phase = Phase.SETTLED

    def shards_of(self, group: int) -> range:
        """Return the shards of a group."""
        if group >= self.groups:
            return range(0)
        return range(group, self.shards, self.groups)


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shard count of every bucket, and the split of shards into groups.

    Attributes:
        epochs: oldest first; the first one has no `since`. Only the last one may be
            unsettled, and none has fewer groups than one before it.
    """

    epochs: tuple[Epoch, ...]

    @classmethod
    def constant(cls, shards: int, groups: int) -> "ShardMap":
        """Make a map whose shard count never changed."""
        return cls((Epoch(None, shards, groups),))

    def current(self) -> "ShardMap":
        """Return itself: a map that is given is a source of maps, too."""
        return self

    @property
    def last(self) -> Epoch:
        """The epoch that holds, or will hold, for all times to come."""
        return self.epochs[-1]

    @property
    def groups(self) -> int:
        """How many groups there are at all."""
        return self.last.groups

    @property
    def unsettled(self) -> Epoch | None:
        """The epoch whose rows may lie under two counts, if there is one."""
        return None if self.last.phase is Phase.SETTLED else self.last

    def with_phase(self, phase: Phase) -> "ShardMap":
        """Return the map with its last epoch in another phase."""
        return ShardMap((*self.epochs[:-1], replace(self.last, phase=phase)))

    def shards_at(self, instant: datetime) -> int:
        """Return the shard count under which rows of an instant's bucket are put."""
        epochs = self._at(instant)
        held = epochs[-1].phase is Phase.ANNOUNCED
        return epochs[0 if held else -1].shards

    def shard_of(self, schedule_id: str, instant: datetime) -> int:
        """Return the shard of a schedule's row at this time."""
        return stable_hash(schedule_id) % self.shards_at(instant)

    def group_of(self, shard: int) -> int:
        """Return the group that scans a shard of the last epoch's buckets.

        Other buckets' too, except for the shards of epochs with fewer groups. The
        records of all groups are there before an epoch is announced.
        """
        return shard % self.groups

    def shards_of(self, group: int, instant: datetime) -> tuple[int, ...]:
        """Return the shards of a group in the bucket that an instant lies in.

        Those of both counts while rows may lie under either.
        """
        return _shards_of(self._at(instant), group)

    def next_bucket(self, group: int, shard: int, minute: datetime) -> datetime:
        """Return the first minute from one on in which a group has a shard.

        Returns:
            NEVER when there is none.
        """
        ends = [epoch.since or NEVER for epoch in self.epochs[1:]] + [NEVER]
        for place, (epoch, end) in enumerate(zip(self.epochs, ends, strict=True)):
            if minute < end and _has(self._with_old(place), group, shard):
                return max(minute, epoch.since or minute)
        return NEVER

    def all_shards_of(self, group: int) -> tuple[int, ...]:
        """Return the shards that a group has in some bucket."""
        return _shards_of(self.epochs, group)

    def is_crossed(self, instant: datetime, now: datetime) -> bool:
        """Whether what follows a row of an instant's bucket may be behind the scan.

        Its next time lies in the same shard, in front of the watermark that the row
        holds back. Unless an epoch has begun between them: then that time's shard has
        a watermark of its own, which may be anywhere.
        """
        return any(
            epoch.since is not None
            and epoch.since <= now
            and (instant < epoch.since or epoch.phase is not Phase.SETTLED)
            for epoch in self.epochs[1:]
        )

    def twin(self, key: RowKey) -> RowKey | None:
        """Return where else a row may lie, if there is such a place.

        There is one in the buckets of an epoch that is not settled, unless both counts
        give the same shard.
        """
        epoch = self.unsettled
        if epoch is None:
            return None
        epochs = self._at(minute_of(key.bucket))
        if epochs[-1] is not epoch:
            return None
        old, new = (stable_hash(key.schedule_id) % each.shards for each in epochs)
        if old == new:
            return None
        return replace(key, shard=old if key.shard == new else new)

    def _at(self, instant: datetime) -> tuple[Epoch, ...]:
        """Return the epochs under which rows of an instant's bucket may lie."""
        minute = floor_minute(instant)
        place = len(self.epochs) - 1
        while place and minute < (self.epochs[place].since or minute):
            place -= 1
        return self._with_old(place)

    def _with_old(self, place: int) -> tuple[Epoch, ...]:
        is_settled = place == 0 or self.epochs[place].phase is Phase.SETTLED
        return self.epochs[place if is_settled else place - 1 : place + 1]


def _shards_of(epochs: tuple[Epoch, ...], group: int) -> tuple[int, ...]:
    if len(epochs) == 1:
        return tuple(epochs[0].shards_of(group))
    return tuple(sorted({shard for each in epochs for shard in each.shards_of(group)}))


def _has(epochs: tuple[Epoch, ...], group: int, shard: int) -> bool:
    return any(shard < each.shards and shard % each.groups == group for each in epochs)


def minutes_between(first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield every minute from `first` to `last`, both included and floored."""
    minute = floor_minute(first)
    while minute <= last:
        yield minute
        minute += MINUTE
