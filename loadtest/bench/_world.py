"""Hourbell's use cases on an engine's tables and queues, with a clock that is set.

One world is one set of tables and queues. A step of it is one minute: the tick, one
pass per shard group, and the relay of what the table's stream brings.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from hourbell.adapters.chunks import chunks
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
from hourbell.adapters.dynamodb import connect as connect_database
from hourbell.adapters.dynamodb.packed import RowWriter
from hourbell.adapters.dynamodb.row_items import decode_occurrence
from hourbell.adapters.dynamodb.tables import create_tables
from hourbell.adapters.ids import SecretIds
from hourbell.adapters.memory import FixedClock, SeededIds
from hourbell.adapters.metering import CapacityMeter
from hourbell.adapters.sqs import (
    SqsDeliveryQueues,
    SqsJobQueue,
    SqsSweepQueue,
    SqsWorkQueue,
    decode_work,
)
from hourbell.adapters.sqs import connect as connect_sqs
from hourbell.domain.definition import Handler, Tenant, Tier, Tracking
from hourbell.domain.instants import floor_minute
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.policies import LAST_LOOK, WATERMARK_LAG
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.claim import claim
from hourbell.usecases.create_schedule import NewSchedule, Registry, create_schedule
from hourbell.usecases.finish import complete_work
from hourbell.usecases.identify import admit_tenant, identify
from hourbell.usecases.jobs import Office
from hourbell.usecases.materialize import Plane
from hourbell.usecases.relay import Outbox, relay_rows
from hourbell.usecases.remind import remind
from hourbell.usecases.scan import Scanner, run_pass
from hourbell.usecases.tick import tick
from hourbell.usecases.work_values import MAX_ITEMS, ClaimOrder, Held, Outcome
from hourbell.usecases.workplace import Workplace

from loadtest.bench._sizes import BatchReads, largest_item_bytes

if TYPE_CHECKING:
    import boto3

# In the future, so that no row's expiry is past by the engine's own clock; and 20 s
# after the minute, since a tick never comes on it.
START = datetime(2040, 1, 2, 0, 0, 20, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HORIZON = timedelta(seconds=180)
SHARDS, GROUPS = 16, 4
STREAM_BATCH = 100
USER = "arn:aws:iam::000000000000:user/bench"
EMPTY_READS = 2


@dataclass(slots=True)
class Usage:
    """What a phase cost.

    Attributes:
        write_units: by table and operation.
        read_units: by table and operation.
        calls: API calls by service and operation.
    """

    write_units: Counter[str] = field(default_factory=Counter)
    read_units: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Usage") -> None:
        """Add another phase's cost."""
        self.write_units.update(other.write_units)
        self.read_units.update(other.read_units)
        self.calls.update(other.calls)


@dataclass(slots=True)
class Minutes:
    """What some steps did.

    Attributes:
        delivered: occurrences whose send was acknowledged.
        phases: cost by phase: `tick`, `pass`, `relay`.
    """

    delivered: int = 0
    phases: dict[str, Usage] = field(default_factory=dict)

    @property
    def total(self) -> Usage:
        """The cost of all phases."""
        total = Usage()
        for usage in self.phases.values():
            total.add(usage)
        return total


class World:
    """One set of tables and queues, and the use cases on them."""

    def __init__(
        self,
        session: "boto3.Session",
        prefix: str,
        writer: Callable[[Database], RowWriter] | None = None,
        *,
        shards: int = SHARDS,
        groups: int = GROUPS,
        overlap: Overlap | None = None,
    ) -> None:
        """Create tables and queues.

        Args:
            session: reaches the engine.
            prefix: tells this world's tables and queues from another's.
            writer: how rows are written; packed when None.
            shards: into how many the timeline is divided.
            groups: how many passes share them.
            overlap: of TRACKED schedules, whose occurrences a worker claims and
                completes; None: they are UNTRACKED.
        """
        self._overlap = overlap
        self._owners: dict[str, str] = {}
        self._sent: list[tuple[datetime, str]] = []
        self._prefix = prefix
        self._meter = CapacityMeter()
        self._clock = FixedClock(START)
        self._plain = session.client("dynamodb")
        tables = self._tables = create_tables(self._plain, prefix)
        database = connect_database(tables, meter=self._meter, session=session)
        self._batch_reads = BatchReads(database.client)
        self._timeline = DynamoTimeline(database, writer(database) if writer else None)
        self._schedules = DynamoSchedules(database)
        self._directory = DynamoDirectory(database, self._clock)
        self._groups = DynamoShardGroups(database)
        self._shard_map = ShardMap.constant(shards, groups)
        self._parking = DynamoParking(database)
        self._ledger = DynamoLedger(database)
        self._jobs = DynamoJobs(database)
        self._plane = Plane(
            self._schedules,
            self._timeline,
            self._directory,
            self._shard_map,
            HORIZON,
            DynamoLoads(database),
            DynamoRates(database),
        )
        self._open_queues(session)
        self._stream = _Stream(session, tables.timeline)

    def create(self, schedules: int) -> Usage:
        """Create schedules of every minute, with default attributes; return the cost.

        What the creating calls materialize is relayed, and counted here too.
        """
        registry = Registry(self._plane, self._groups, SeededIds(1))
        for place, tier in enumerate(Tier):
            tenant = Tenant(f"tenant-{tier}", tier)
            principal = f"000000000000:user/bench-{place}"
            self._directory.register_tenant(tenant, [principal])
            self._directory.register_handler(Handler(tenant.tenant_id, "send"))
        usage = Usage()
        with self._measured(usage):
            for number in range(schedules):
                arn = f"{USER}-{number % len(Tier)}"
                caller = admit_tenant(identify(self._directory, arn))
                timing = Timing("* * * * *", "America/New_York")
                request = self._request(f"bench-{number}", timing)
                created = create_schedule(registry, caller, request, self._clock.now())
                schedule_id = created.schedule.schedule_id
                self._owners[schedule_id] = caller.tenant.tenant_id
            self._relay()
        return usage

    def _request(self, name: str, timing: Timing) -> NewSchedule:
        request = NewSchedule(name, timing, "send", "0" * 64)
        if self._overlap is None:
            return request
        return replace(request, tracking=Tracking.TRACKED, overlap=self._overlap)

    def begin(self) -> None:
        """Have every group scanned from now on, though nothing was ever created.

        As if passes had done so for days: each minute has its last looks, too.
        """
        now = self._clock.now()
        mark = floor_minute(now) - WATERMARK_LAG
        for group in range(self._shard_map.groups):
            self._groups.ensure(group, mark - 2 * LAST_LOOK)
            lease = self._groups.acquire(group, "bench", now=now, duration=MINUTE)
            if lease is None:
                raise RuntimeError(f"group {group} is scanned already")
            marks = dict.fromkeys(self._shard_map.all_shards_of(group), mark)
            self._groups.release(lease, marks, now, now, mark - LAST_LOOK)

    def run(self, minutes: int) -> Minutes:
        """Go on by some minutes; return what was done and what it cost."""
        phases = {"tick": Usage(), "pass": Usage(), "relay": Usage()}
        if self._overlap is not None:
            phases |= {"claim": Usage(), "complete": Usage()}
        done = Minutes(phases=phases)
        for _ in range(minutes):
            self._clock.advance(MINUTE)
            with self._measured(done.phases["tick"]):
                tick(self._work_queue, self._shard_map, self._clock.now())
                remind(self._office, self._clock, deadline=self._clock.now() + MINUTE)
            with self._measured(done.phases["pass"]):
                self._scan()
            with self._measured(done.phases["relay"]):
                done.delivered += self._relay()
            if self._overlap is not None:
                self._work(done)
        return done

    def _work(self, done: Minutes) -> None:
        """Claim what is due, in receives of ten, and complete it.

        Raises:
            RuntimeError: a claim or a complete was not answered as it must be.
        """
        now, place = self._clock.now(), self._scanner.workplace
        due = sorted(sent for sent in self._sent if sent[0] <= now)
        self._sent = [sent for sent in self._sent if sent[0] > now]
        by_tenant: dict[str, list[str]] = {}
        for _, name in due:
            by_tenant.setdefault(self._owners[name.split(".")[0]], []).append(name)
        for tenant_id, names in by_tenant.items():
            for batch in chunks(names, MAX_ITEMS):
                orders = [ClaimOrder(name) for name in batch]
                with self._measured(done.phases["claim"]):
                    claimed = claim(
                        place, tenant_id, orders, worker="bench", lease_seconds=60
                    )
                held = [
                    Held(each.occurrence_id, each.lease_token or "") for each in claimed
                ]
                with self._measured(done.phases["complete"]):
                    ended = complete_work(place, tenant_id, held)
                if any(each.outcome is not Outcome.OK for each in ended):
                    raise RuntimeError(f"not all was completed: {claimed} {ended}")

    def largest_items(self) -> dict[str, int]:
        """Return the billed size of each table's largest item, in bytes."""
        return {
            name: largest_item_bytes(self._plain, getattr(self._tables, name))
            for name in ("schedules", "timeline", "control")
        }

    def _open_queues(self, session: "boto3.Session") -> None:
        plain = session.client("sqs")
        names = [f"{tier}-{lane}" for tier in Tier for lane in Lane]
        urls = {
            name: plain.create_queue(QueueName=f"{self._prefix}-{name}")["QueueUrl"]
            for name in (*names, "work", "sweep", "jobs")
        }
        metered = connect_sqs(meter=self._meter, session=session)
        self._receiver, self._work_url = plain, urls["work"]
        self._work_queue = SqsWorkQueue(metered, urls["work"])
        self._sweep_queue = SqsSweepQueue(metered, urls["sweep"])
        self._office = Office(self._jobs, SqsJobQueue(metered, urls["jobs"]))
        self._scanner = Scanner(
            self._plane,
            self._groups,
            self._parking,
            self._sweep_queue,
            self._work_queue,
            self._clock,
            Workplace.of(self._plane, self._ledger, SecretIds(), self._clock),
        )
        self._outbox = Outbox(
            self._schedules,
            self._timeline,
            SqsDeliveryQueues(metered, urls),
            self._clock,
            self._ledger,
            self._plane.directory,
            self._shard_map,
        )

    def _scan(self) -> None:
        """Take the orders as Lambda's poller does (unmetered), and work them off."""
        for place in range(self._shard_map.groups):
            answer = self._receiver.receive_message(QueueUrl=self._work_url)
            [order] = answer["Messages"]
            report = run_pass(
                self._scanner,
                decode_work(order["Body"]),
                holder=f"bench-{self._clock.now():%H%M}-{place}",
            )
            if not (report.leased and report.finished and report.kept) or report.swept:
                raise RuntimeError(f"the pass did not go as it must: {report}")
            self._receiver.delete_message(
                QueueUrl=self._work_url, ReceiptHandle=order["ReceiptHandle"]
            )

    def _relay(self) -> int:
        """Relay what the stream brings, in batches of its mapping's size."""
        delivered = 0
        for batch in self._stream.batches():
            self._sent += [
                (row.available_at or row.scheduled_for, row.occurrence_id)
                for row in batch
            ]
            report = relay_rows(self._outbox, batch)
            if report.unsettled:
                raise RuntimeError(f"the relay left {len(report.unsettled)} records")
            delivered += len(report.deliveries)
        return delivered

    @contextmanager
    def _measured(self, usage: Usage) -> Iterator[None]:
        self._meter.reset()
        self._batch_reads.units.clear()
        yield
        usage.add(self._taken())

    def _taken(self) -> Usage:
        """Return what the meter shows, tables by their logical names."""

        def named(key: tuple[str, str]) -> str:
            return f"{key[0].removeprefix(self._prefix).lstrip('-')}.{key[1]}"

        meter = self._meter
        reads = {
            (table, "BatchGetItem"): units
            for table, units in self._batch_reads.units.items()
        } | meter.read_units
        return Usage(
            _counter({named(key): units for key, units in meter.write_units.items()}),
            _counter({named(key): units for key, units in reads.items()}),
            _counter({named(key): count for key, count in meter.calls.items()}),
        )


def _counter(counted: Mapping[str, float]) -> "Counter[str]":
    # Counter adds up fractions as well as it does whole numbers.
    return cast("Counter[str]", Counter(counted))


class _Stream:
    """Reads the timeline's stream to its present end, as often as asked."""

    def __init__(self, session: "boto3.Session", table: str) -> None:
        self._client = session.client("dynamodbstreams")
        arn = self._client.list_streams(TableName=table)["Streams"][0]["StreamArn"]
        description: Any = self._client.describe_stream(StreamArn=arn)
        self._iterators = [
            self._client.get_shard_iterator(
                StreamArn=arn,
                ShardId=shard["ShardId"],
                ShardIteratorType="TRIM_HORIZON",
            )["ShardIterator"]
            for shard in description["StreamDescription"]["Shards"]
        ]

    def batches(self) -> Iterator[list[Occurrence]]:
        """Yield the new outbox records; Lambda's filter lets no others through."""
        for place in range(len(self._iterators)):
            waiting: list[Occurrence] = []
            for row in self._rows(place):
                waiting.append(row)
                if len(waiting) == STREAM_BATCH:
                    yield waiting
                    waiting = []
            if waiting:
                yield waiting

    def _rows(self, place: int) -> Iterator[Occurrence]:
        empty = 0
        while empty < EMPTY_READS:
            answer: Any = self._client.get_records(
                ShardIterator=self._iterators[place], Limit=1000
            )
            self._iterators[place] = answer["NextShardIterator"]
            empty = 0 if answer["Records"] else empty + 1
            for record in answer["Records"]:
                image = record["dynamodb"]["NewImage"]
                # As Lambda's filter does.
                if image.get("state", {}).get("S") == State.SCHEDULED:
                    yield decode_occurrence(image)
