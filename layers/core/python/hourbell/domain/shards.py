"""Buckets, shards and shard groups: where a schedule's rows lie and who scans them."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from hourbell.domain.instants import floor_minute

MINUTE = timedelta(minutes=1)


def stable_hash(text: str) -> int:
    """Return 64 bits that are the same on every machine and Python version."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


@dataclass(frozen=True, slots=True)
class Epoch:
    """From which bucket on a shard count holds.

    Attributes:
        since: first bucket's minute, UTC; None for the beginning of time.
        shards: how many shards its buckets have.
    """

    since: datetime | None
    shards: int


@dataclass(frozen=True, slots=True)
class ShardMap:
    """The shard count of every bucket, and the split of shards into groups.

    Attributes:
        epochs: oldest first; the first one has no `since`.
        groups: how many materializers share the shards.
    """

    epochs: tuple[Epoch, ...]
    groups: int

    @classmethod
    def constant(cls, shards: int, groups: int) -> "ShardMap":
        """Make a map whose shard count never changed."""
        return cls((Epoch(None, shards),), groups)

    def shards_at(self, instant: datetime) -> int:
        """Return the shard count of the bucket that an instant lies in."""
        minute = floor_minute(instant)
        for epoch in reversed(self.epochs):
            if epoch.since is None or epoch.since <= minute:
                return epoch.shards
        return self.epochs[0].shards

    def shard_of(self, schedule_id: str, instant: datetime) -> int:
        """Return the shard of a schedule's row at this time."""
        return stable_hash(schedule_id) % self.shards_at(instant)

    def group_of(self, shard: int) -> int:
        """Return the group that scans a shard."""
        return shard % self.groups

    def shards_of(self, group: int, instant: datetime) -> range:
        """Return the shards of a group in the bucket that an instant lies in."""
        return range(group, self.shards_at(instant), self.groups)


def minutes_between(first: datetime, last: datetime) -> Iterator[datetime]:
    """Yield every minute from `first` to `last`, both included and floored."""
    minute = floor_minute(first)
    while minute <= last:
        yield minute
        minute += MINUTE
