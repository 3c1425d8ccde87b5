"""What relaying needs."""

from dataclasses import dataclass

from hourbell.usecases.ports import (
    Clock,
    DeliveryQueues,
    Directory,
    Schedules,
    Timeline,
)
from hourbell.usecases.shard_ports import ShardMaps
from hourbell.usecases.work_ports import Ledger


@dataclass(frozen=True, slots=True)
class Outbox:
    """The ports of the relay."""

    schedules: Schedules
    timeline: Timeline
    queues: DeliveryQueues
    clock: Clock
    ledger: Ledger
    directory: Directory
    shards: ShardMaps
