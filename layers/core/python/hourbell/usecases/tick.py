"""Order one scan of every shard group."""

from datetime import datetime

from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import GroupWork, WorkQueue


def tick(work_queue: WorkQueue, shard_map: ShardMap, now: datetime) -> int:
    """Put one order per shard group on the work queue; return how many.

    Raises:
        Transient: an order was not accepted; the caller's retry repeats them all,
            which is harmless, since a group is scanned under its lease.
    """
    work = [GroupWork(group, now) for group in range(shard_map.groups)]
    work_queue.put(work)
    return len(work)
