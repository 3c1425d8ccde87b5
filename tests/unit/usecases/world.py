"""A small world on in-memory adapters, with a clock that tests move."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

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
    SeededIds,
)
from hourbell.domain.definition import (
    Definition,
    Handler,
    Schedule,
    ScheduleState,
    Tenant,
    Tier,
    Tracking,
    Version,
)
from hourbell.domain.misfire import USUAL_MISFIRE, Misfire, MisfirePolicy
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.overlap import Overlap
from hourbell.domain.policies import WATERMARK_LAG
from hourbell.domain.retry import USUAL_RETRY, Retry
from hourbell.domain.schedule import Timing, next_planned
from hourbell.domain.shards import ShardMap
from hourbell.domain.zones import TICK, TZDB_VERSION
from hourbell.usecases.change_schedule import Changes
from hourbell.usecases.create_schedule import Registry
from hourbell.usecases.job_items import Bench
from hourbell.usecases.jobs import Office
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import Creation, GroupWork
from hourbell.usecases.relay import Outbox, RelayReport, relay_keys, relay_rows
from hourbell.usecases.run_job import Workshop
from hourbell.usecases.scan import PassReport, Scanner, run_pass
from hourbell.usecases.workplace import Workplace

START = datetime(2026, 3, 9, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
EVERYTHING = Misfire(MisfirePolicy.CATCH_UP, 1_000)
"""The policy that lets a whole backlog run."""


@dataclass
class World:
    """Every port in memory, and the steps that drive them."""

    store: MemoryStore = field(default_factory=MemoryStore)
    clock: FixedClock = field(default_factory=lambda: FixedClock(START))
    shard_map: ShardMap = field(default_factory=lambda: ShardMap.constant(4, 2))
    ids: SeededIds = field(default_factory=SeededIds)

    def __post_init__(self) -> None:
        self.schedules = MemorySchedules(self.store)
        self.timeline = MemoryTimeline(self.store)
        self.ledger = MemoryLedger(self.store)
        self.directory = MemoryDirectory(self.store)
        self.groups = MemoryShardGroups(self.store)
        self.parking = MemoryParking(self.store)
        self.rates = MemoryRates(self.store)
        self.queues = MemoryDeliveryQueues(self.clock)
        self.sweep_queue = MemorySweepQueue()
        self.loads = MemoryLoads(self.store)
        self.jobs = MemoryJobs(self.store)
        self.job_queue = MemoryJobQueue()
        self.work_queue = MemoryWorkQueue()
        self.add_tenant("acme", Tier.STANDARD)

    def add_tenant(self, tenant_id: str, tier: Tier) -> Tenant:
        """Register a tenant with the handler that `add` uses."""
        tenant = Tenant(tenant_id, tier)
        self.directory.register_tenant(tenant, [f"1:user/{tenant_id}"])
        self.directory.register_handler(Handler(tenant_id, "ring"))
        return tenant

    @property
    def changes(self) -> Changes:
        return Changes(self.plane, self.groups, self.clock)

    @property
    def plane(self) -> Plane:
        return Plane(
            self.schedules,
            self.timeline,
            self.directory,
            self.shard_map,
            timedelta(seconds=180),
            self.loads,
            self.rates,
        )

    @property
    def office(self) -> Office:
        return Office(self.jobs, self.job_queue)

    @property
    def workshop(self) -> Workshop:
        registry = Registry(self.plane, self.groups, self.ids)
        bench = Bench(registry, self.changes, self.workplace)
        return Workshop(self.jobs, self.job_queue, self.directory, bench, self.clock)

    @property
    def scanner(self) -> Scanner:
        return Scanner(
            self.plane,
            self.groups,
            self.parking,
            self.sweep_queue,
            self.work_queue,
            self.clock,
            self.workplace,
        )

    @property
    def workplace(self) -> Workplace:
        return Workplace.of(self.plane, self.ledger, self.ids, self.clock)

    @property
    def outbox(self) -> Outbox:
        return Outbox(
            self.schedules,
            self.timeline,
            self.queues,
            self.clock,
            self.ledger,
            self.directory,
            self.shard_map,
        )

    def add(
        self,
        timing: Timing,
        *,
        tenant: str = "acme",
        window: int = 0,
        tracking: Tracking = Tracking.UNTRACKED,
        misfire: Misfire = USUAL_MISFIRE,
        tzdb: str = TZDB_VERSION,
        overlap: Overlap = Overlap.ALLOW,
        retry: Retry = USUAL_RETRY,
    ) -> Occurrence:
        """Store a schedule with its first row, as a create would; return the row."""
        now = self.clock.now()
        schedule_id = self.ids.schedule_id()
        name = f"bell-{len(self.store.schedules)}"
        definition = Definition(
            timing, "ring", '{"n":1}', tracking, window, misfire, overlap, retry
        )
        version = Version(
            schedule_id,
            1,
            tenant,
            name,
            definition,
            effective_from=now + TICK,
            tzdb=tzdb,
            created_at=now,
            created_by="1:user/ann",
        )
        schedule = Schedule(
            schedule_id,
            tenant,
            name,
            definition,
            ScheduleState.ACTIVE,
            version=1,
            revision=1,
            created_at=now,
            updated_at=now,
        )
        planned = next_planned(version.timing, now, 0)
        assert planned is not None
        instant, sequence = planned
        first = Occurrence(
            schedule_id,
            1,
            instant,
            self.shard_map.shard_of(schedule_id, instant),
            tenant,
            sequence,
            tzdb,
            now,
        )
        for group in range(self.shard_map.groups):
            self.groups.ensure(group, now.replace(second=0) - WATERMARK_LAG)
        created = self.schedules.create(schedule, version, first, quota=1_000_000)
        assert created is Creation.CREATED
        return first

    def scan(
        self, holder: str = "m1", deadline: datetime | None = None
    ) -> list[PassReport]:
        """Let every group be scanned once."""
        return [
            run_pass(
                self.scanner,
                GroupWork(group, self.clock.now()),
                holder=holder,
                deadline=deadline,
            )
            for group in range(self.shard_map.groups)
        ]

    def relay_stream(self) -> RelayReport:
        """Relay what the stream holds."""
        return relay_rows(self.outbox, self.store.take_stream())

    def relay_sweep(self) -> list[RelayReport]:
        """Relay what the sweep found."""
        return [relay_keys(self.outbox, keys) for keys in self.sweep_queue.take()]

    def rows(self, state: str | None = None) -> list[Occurrence]:
        """Return all rows, or those in a state, by time."""
        found = [r for r in self.store.all_rows() if state in {None, r.state}]
        return sorted(found, key=lambda row: row.scheduled_for)


def times(rows: Sequence[Occurrence]) -> list[datetime]:
    return [row.scheduled_for for row in rows]
