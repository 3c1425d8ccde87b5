"""Leases and watermarks of the shard groups in memory."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hourbell.adapters.memory.store import MemoryStore
from hourbell.usecases.ports import Lease, Write

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class MemoryShardGroups:
    """The `ShardGroups` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._groups = store.groups

    def ensure(self, group: int, floor: datetime) -> None:
        """Create the group's record unless it exists."""
        record = Lease(group, "", 0, _LONG_AGO, floor, {})
        self._groups.setdefault(group, record)

    def acquire(
        self, group: int, holder: str, *, now: datetime, duration: timedelta
    ) -> Lease | None:
        """Take the lease if it is free, expired, or the holder's own."""
        record = self._groups.get(group)
        if record is None:
            return None
        if record.holder != holder and record.expires_at > now:
            return None
        lease = replace(
            record,
            holder=holder,
            generation=record.generation + 1,
            expires_at=now + duration,
        )
        self._groups[group] = lease
        return lease

    def release(
        self,
        lease: Lease,
        watermarks: Mapping[int, datetime],
        passed_at: datetime | None = None,
        looked_at: datetime | None = None,
        looked_until: datetime | None = None,
    ) -> Write:
        """Store watermarks over the lease's own ones, and let the lease expire.

        A second release of the same lease applies again: the answer to the first
        one may have been lost.
        """
        record = self._groups.get(lease.group)
        if record is None or not _same(record, lease):
            return Write.LOST
        merged = {**lease.watermarks, **watermarks}
        self._groups[lease.group] = replace(
            record,
            expires_at=_LONG_AGO,
            watermarks=merged,
            passed_at=passed_at or record.passed_at,
            looked_at=looked_at or record.looked_at,
            looked_until=looked_until or record.looked_until,
        )
        return Write.APPLIED


def _same(record: Lease, lease: Lease) -> bool:
    return (record.holder, record.generation) == (lease.holder, lease.generation)
