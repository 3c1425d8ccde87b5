"""In-memory implementations of every port: for tests and the simulation.

They keep the ports' contracts, not DynamoDB's or SQS's details, and are
deterministic: the same calls give the same state in the same order.
"""

from hourbell.adapters.memory.clocks import FixedClock, SteppedClock
from hourbell.adapters.memory.directory import MemoryDirectory
from hourbell.adapters.memory.groups import MemoryShardGroups
from hourbell.adapters.memory.ids import SeededIds
from hourbell.adapters.memory.jobs import MemoryJobs
from hourbell.adapters.memory.ledger import MemoryLedger
from hourbell.adapters.memory.loads import MemoryLoads
from hourbell.adapters.memory.parking import MemoryParking
from hourbell.adapters.memory.queues import (
    Delivery,
    MemoryDeliveryQueues,
    MemoryJobQueue,
    MemorySweepQueue,
    MemoryWorkQueue,
)
from hourbell.adapters.memory.rates import MemoryRates
from hourbell.adapters.memory.schedules import MemorySchedules
from hourbell.adapters.memory.store import MemoryStore
from hourbell.adapters.memory.timeline import MemoryTimeline

__all__ = [
    "Delivery",
    "FixedClock",
    "MemoryDeliveryQueues",
    "MemoryDirectory",
    "MemoryJobQueue",
    "MemoryJobs",
    "MemoryLedger",
    "MemoryLoads",
    "MemoryParking",
    "MemoryRates",
    "MemorySchedules",
    "MemoryShardGroups",
    "MemoryStore",
    "MemorySweepQueue",
    "MemoryTimeline",
    "MemoryWorkQueue",
    "SeededIds",
    "SteppedClock",
]
