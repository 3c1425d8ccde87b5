"""The ports on each kind of adapter, with probes for what lies behind them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hourbell.adapters.backoff import Backoff
from hourbell.adapters.dynamodb import (
    Database,
    DynamoDirectory,
    DynamoJobs,
    DynamoLedger,
    DynamoLoads,
    DynamoParking,
    DynamoRates,
    DynamoSchedules,
    DynamoShardGroups,
    DynamoTimeline,
)
from hourbell.adapters.dynamodb.epochs import DynamoEpochBook
from hourbell.adapters.dynamodb.relocation import DynamoRelocation
from hourbell.adapters.dynamodb.row_items import encode_dispatch, encode_occurrence
from hourbell.adapters.memory import (
    FixedClock,
    MemoryDeliveryQueues,
    MemoryDirectory,
    MemoryJobQueue,
    MemoryJobs,
    MemoryLedger,
    MemoryLoads,
    MemoryParking,
    MemoryRates,
    MemorySchedules,
    MemoryShardGroups,
    MemoryStore,
    MemorySweepQueue,
    MemoryTimeline,
    MemoryWorkQueue,
)
from hourbell.adapters.memory.probe import MemoryQueueProbe
from hourbell.adapters.memory.shards import (
    MemoryEpochBook,
    MemoryMoveQueue,
    MemoryRelocation,
)
from hourbell.adapters.messages import decode_job, decode_move
from hourbell.adapters.sqs import (
    SqsDeliveryQueues,
    SqsJobQueue,
    SqsMoveQueue,
    SqsQueueProbe,
    SqsRegions,
    SqsSweepQueue,
    SqsWorkQueue,
    decode_keys,
    decode_work,
)
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.usecases.job_ports import JobQueue, Jobs
from hourbell.usecases.load_ports import Loads
from hourbell.usecases.ports import (
    DeliveryQueues,
    Directory,
    GroupWork,
    Parking,
    Probe,
    QueueProbe,
    Schedules,
    ShardGroups,
    SweepQueue,
    Timeline,
    WorkQueue,
)
from hourbell.usecases.rate_port import Rates
from hourbell.usecases.shard_ports import EpochBook, MoveOrder, MoveQueue, Relocation
from hourbell.usecases.work_ports import Ledger

from tests.conformance.samples import NOW

QUEUES = ("premium-strict", "basic-flexible")


@dataclass(frozen=True)
class World:
    """The ports on tables, and how to look behind them.

    Attributes:
        seed: writes rows of both kinds past the port.
        fresh_groups: makes another process's view of the shard groups.
    """

    clock: FixedClock
    schedules: Schedules
    timeline: Timeline
    directory: Directory
    groups: ShardGroups
    jobs: Jobs
    parking: Parking
    loads: Loads
    rates: Rates
    book: EpochBook
    relocation: Relocation
    ledger: Ledger
    seed: Callable[[Sequence[Occurrence | Dispatch]], None]
    fresh_groups: Callable[[], ShardGroups]


@dataclass(frozen=True)
class Queues:
    """The queue ports, and how to look behind them.

    Attributes:
        bodies: takes the bodies of a delivery queue's visible messages.
        works: takes the messages of the work queue.
        sweeps: takes the messages of the sweep queue.
        jobs: puts jobs on their queue, and `orders` takes its messages.
        moves: puts orders to move rows, and `move_orders` takes those that are due.
        arn: makes the ARN of a delivery queue that exists, or does not.
    """

    deliveries: DeliveryQueues
    work: WorkQueue
    sweep: SweepQueue
    bodies: Callable[[str], list[str]]
    works: Callable[[], list[GroupWork]]
    sweeps: Callable[[], list[tuple[RowKey, ...]]]
    probe: QueueProbe
    arn: Callable[[str], str]
    jobs: JobQueue
    orders: Callable[[], list[str]]
    moves: MoveQueue
    move_orders: Callable[[], list[MoveOrder | None]]


def memory_world() -> World:
    """Return the ports on tables, in memory."""
    store = MemoryStore()

    def seed(rows: Sequence[Occurrence | Dispatch]) -> None:
        for row in rows:
            if isinstance(row, Dispatch):
                store.put_dispatch(row)
            else:
                store.put_row(row)

    return World(
        FixedClock(NOW),
        MemorySchedules(store),
        MemoryTimeline(store),
        MemoryDirectory(store),
        MemoryShardGroups(store),
        MemoryJobs(store),
        MemoryParking(store),
        MemoryLoads(store),
        MemoryRates(store),
        MemoryEpochBook(store),
        MemoryRelocation(store),
        MemoryLedger(store),
        seed,
        lambda: MemoryShardGroups(store),
    )


def memory_queues() -> Queues:
    """Return the queue ports in memory."""
    deliveries = MemoryDeliveryQueues(FixedClock(NOW), QUEUES)
    work, sweep, jobs = MemoryWorkQueue(), MemorySweepQueue(), MemoryJobQueue()
    moves = MemoryMoveQueue()

    def bodies(queue: str) -> list[str]:
        return [each.entry.body for each in deliveries.receive(queue, 100)]

    def move_orders() -> list[MoveOrder | None]:
        return [order for order, delay in moves.orders if not delay]

    home = "arn:aws:sqs:us-east-1:123456789012"
    probe = MemoryQueueProbe()
    probe.answers = {f"{home}:{queue}": Probe.ACCEPTED for queue in QUEUES}
    return Queues(
        deliveries,
        work,
        sweep,
        bodies,
        work.take,
        sweep.take,
        probe,
        lambda queue: f"{home}:{queue}",
        jobs,
        jobs.take,
        moves,
        move_orders,
    )


def dynamo_world(database: Database, **settings: int) -> World:
    """Return the ports on DynamoDB; the tables are there already.

    Args:
        database: the tables.
        settings: of `DynamoSchedules`.
    """
    clock = FixedClock(NOW)

    def seed(rows: Sequence[Occurrence | Dispatch]) -> None:
        for row in rows:
            database.client.put_item(
                TableName=database.tables.timeline,
                Item=encode_dispatch(row)
                if isinstance(row, Dispatch)
                else encode_occurrence(row),
            )

    return World(
        clock,
        DynamoSchedules(database, **settings),
        DynamoTimeline(database),
        DynamoDirectory(database, clock),
        DynamoShardGroups(database),
        DynamoJobs(database),
        DynamoParking(database),
        DynamoLoads(database),
        DynamoRates(database),
        DynamoEpochBook(database),
        DynamoRelocation(database),
        DynamoLedger(database),
        seed,
        lambda: DynamoShardGroups(database),
    )


def sqs_queues(client: Any, prefix: str) -> Queues:
    """Return the queue ports on SQS, on new queues."""
    urls = {key: _create_queue(client, f"{prefix}-{key}") for key in QUEUES}
    work = _create_queue(client, f"{prefix}-work")
    sweep = _create_queue(client, f"{prefix}-sweep")
    jobs = _create_queue(client, f"{prefix}-jobs")
    moves = _create_queue(client, f"{prefix}-moves")
    account = work.split("/")[-2]
    home = f"arn:aws:sqs:{client.meta.region_name}:{account}"
    return Queues(
        SqsDeliveryQueues(client, urls),
        SqsWorkQueue(client, work),
        SqsSweepQueue(client, sweep),
        lambda queue: _take(client, urls[queue]),
        lambda: [decode_work(body) for body in _take(client, work)],
        lambda: [decode_keys(body) for body in _take(client, sweep)],
        SqsQueueProbe(SqsRegions(client)),
        lambda queue: f"{home}:{prefix}-{queue}",
        SqsJobQueue(client, jobs),
        lambda: [decode_job(body) for body in _take(client, jobs)],
        SqsMoveQueue(client, moves),
        lambda: [decode_move(body) for body in _take(client, moves)],
    )


def still_backoff(**settings: Any) -> Backoff:
    """Return a backoff that never really waits."""
    return Backoff(
        sleep=lambda _seconds: None,
        uniform=lambda _low, high: high,
        monotonic=lambda: 0.0,
        **settings,
    )


def _create_queue(sqs: Any, name: str) -> str:
    url: str = sqs.create_queue(QueueName=name)["QueueUrl"]
    return url


def _take(sqs: Any, url: str) -> list[str]:
    bodies: list[str] = []
    while True:
        answer = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=0
        )
        messages = answer.get("Messages", [])
        if not messages:
            return bodies
        for message in messages:
            bodies.append(message["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
