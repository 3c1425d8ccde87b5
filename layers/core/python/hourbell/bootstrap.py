# ruff: noqa: PLC0415 - see the note on imports above the factories
"""The only place that chooses adapters, from the environment of a function.

Each factory makes the ports of one function, once per process. A fault of the
environment is told when a factory is first asked, with all that is missing or wrong.
"""

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from hourbell.domain.shards import ShardMap
from hourbell.settings import (
    Settings,
    read,
    read_operators,
    read_queue_offer,
    read_settings,
)

if TYPE_CHECKING:
    from hourbell.adapters.backoff import Allowance
    from hourbell.adapters.dynamodb.client import Database
    from hourbell.usecases.change_schedule import Changes
    from hourbell.usecases.create_schedule import Registry
    from hourbell.usecases.get_schedule import Library
    from hourbell.usecases.handlers import Switchboard
    from hourbell.usecases.jobs import Office
    from hourbell.usecases.materialize import Plane
    from hourbell.usecases.parked import Yard
    from hourbell.usecases.ports import (
        Clock,
        Directory,
        SweepQueue,
        Timeline,
        WorkQueue,
    )
    from hourbell.usecases.redrive import Returns
    from hourbell.usecases.relay import Outbox
    from hourbell.usecases.reshard import Mover
    from hourbell.usecases.run_job import Workshop
    from hourbell.usecases.scan import Scanner
    from hourbell.usecases.shard_ports import EpochBook, ShardMaps
    from hourbell.usecases.tenants import Registrar
    from hourbell.usecases.workplace import Workplace


@dataclass(frozen=True, slots=True)
class ApiPorts:
    """What the API needs."""

    directory: "Directory"
    registry: "Registry"
    changes: "Changes"
    library: "Library"
    registrar: "Registrar"
    switchboard: "Switchboard"
    office: "Office"
    mover: "Mover"
    yard: "Yard"
    workplace: "Workplace"
    clock: "Clock"

    @property
    def operators(self) -> frozenset[str]:
        """Normalized principals of the platform role."""
        return self.registrar.operators


@dataclass(frozen=True, slots=True)
class WorkerPorts:
    """What the routes of workers need.

    Attributes:
        operators: normalized principals of the platform role, which is no worker.
    """

    workplace: "Workplace"
    operators: frozenset[str]

    @property
    def directory(self) -> "Directory":
        """Where callers are registered."""
        return self.workplace.directory

    @property
    def clock(self) -> "Clock":
        """Whose reading a whole request goes by."""
        return self.workplace.clock


@dataclass(frozen=True, slots=True)
class TickPorts:
    """What the tick needs.

    Attributes:
        initial: the map of the settings, which holds until a list is stored.
        office: where jobs are that may have lost their messages.
    """

    work_queue: "WorkQueue"
    book: "EpochBook"
    initial: ShardMap
    clock: "Clock"
    office: "Office"


@dataclass(frozen=True, slots=True)
class RelayPorts:
    """What the relay needs."""

    outbox: "Outbox"
    sweep_queue: "SweepQueue"


@dataclass(frozen=True, slots=True)
class JobPorts:
    """What working at jobs, and moving rows to other shards, needs."""

    workshop: "Workshop"
    mover: "Mover"


# How long a request tries what is contended. The functions that answer requests are
# ended after 15 s, and what is left must do for the last attempt and the answer.
REQUEST_SECONDS = 9.0

# Imports stand inside the factories below: a cold start pays only for the adapters
# and use cases of its own function.


@cache
def api_ports() -> ApiPorts:
    """Make the ports of the API.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.adapters.backoff import Backoff
    from hourbell.adapters.dynamodb.groups import DynamoShardGroups
    from hourbell.adapters.dynamodb.jobs import DynamoJobs
    from hourbell.adapters.dynamodb.parking import DynamoParking
    from hourbell.adapters.ids import SecretIds
    from hourbell.usecases.change_schedule import Changes
    from hourbell.usecases.create_schedule import Registry
    from hourbell.usecases.get_schedule import Library
    from hourbell.usecases.handlers import Switchboard
    from hourbell.usecases.jobs import Office
    from hourbell.usecases.parked import Yard
    from hourbell.usecases.tenants import Registrar

    settings, operators, offer, jobs_url = read(
        lambda environment: (
            read_settings(environment),
            read_operators(environment),
            read_queue_offer(environment),
            environment.text("HOURBELL_JOBS_QUEUE_URL"),
        )
    )
    database, ids = _database(settings, request_allowance()), SecretIds()
    clock, within = _clock(), Backoff(allowance=request_allowance())
    plane, groups = _plane(settings, database, clock), DynamoShardGroups(database)
    return ApiPorts(
        directory=plane.directory,
        registry=Registry(plane, groups, ids),
        changes=Changes(plane, groups, clock),
        library=Library(plane.schedules, plane.timeline, plane.shards),
        registrar=Registrar(plane.directory, operators),
        # Its clients open when a queue is registered, and not at a cold start.
        switchboard=Switchboard(
            plane.directory, sqs.SqsQueueProbe(sqs.SqsRegions()), ids, offer
        ),
        office=Office(DynamoJobs(database), sqs.SqsJobQueue(None, jobs_url, within)),
        mover=_mover(settings, database, clock, jobs_url),
        yard=Yard(DynamoParking(database), plane),
        workplace=_workplace(database, plane, clock),
        clock=clock,
    )


@cache
def worker_ports() -> WorkerPorts:
    """Make the ports of the workers' routes.

    Raises:
        SettingsError: the environment lacks something.
    """
    settings, operators = read(
        lambda environment: (read_settings(environment), read_operators(environment))
    )
    database, clock = _database(settings, request_allowance()), _clock()
    plane = _plane(settings, database, clock)
    return WorkerPorts(_workplace(database, plane, clock), operators)


@cache
def tick_ports() -> TickPorts:
    """Make the ports of the tick.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.adapters.dynamodb.epochs import DynamoEpochBook
    from hourbell.adapters.dynamodb.jobs import DynamoJobs
    from hourbell.usecases.jobs import Office

    settings, url, jobs_url = read(
        lambda environment: (
            read_settings(environment),
            environment.text("HOURBELL_WORK_QUEUE_URL"),
            environment.text("HOURBELL_JOBS_QUEUE_URL"),
        )
    )
    database, client = _database(settings), sqs.connect()
    return TickPorts(
        sqs.SqsWorkQueue(client, url),
        DynamoEpochBook(database),
        settings.shard_map,
        _clock(),
        Office(DynamoJobs(database), sqs.SqsJobQueue(client, jobs_url)),
    )


@cache
def materializer_ports() -> "Scanner":
    """Make the ports of the materializer.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.adapters.dynamodb.groups import DynamoShardGroups
    from hourbell.adapters.dynamodb.parking import DynamoParking
    from hourbell.usecases.scan import Scanner

    settings, sweep_url, work_url = read(
        lambda environment: (
            read_settings(environment),
            environment.text("HOURBELL_SWEEP_QUEUE_URL"),
            environment.text("HOURBELL_WORK_QUEUE_URL"),
        )
    )
    database, client, clock = _database(settings), sqs.connect(), _clock()
    plane = _plane(settings, database, clock)
    return Scanner(
        plane=plane,
        groups=DynamoShardGroups(database),
        parking=DynamoParking(database),
        sweep_queue=sqs.SqsSweepQueue(client, sweep_url),
        work_queue=sqs.SqsWorkQueue(client, work_url),
        clock=clock,
        workplace=_workplace(database, plane, clock),
    )


@cache
def relay_ports() -> RelayPorts:
    """Make the ports of the relay.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.adapters.dynamodb.directory import DynamoDirectory
    from hourbell.adapters.dynamodb.ledger import DynamoLedger
    from hourbell.adapters.dynamodb.schedules import DynamoSchedules
    from hourbell.adapters.dynamodb.timeline import DynamoTimeline
    from hourbell.usecases.relay import Outbox

    settings, urls, sweep_url = read(
        lambda environment: (
            read_settings(environment),
            environment.texts("HOURBELL_QUEUE_URLS"),
            environment.text("HOURBELL_SWEEP_QUEUE_URL"),
        )
    )
    database, client, clock = _database(settings), sqs.connect(), _clock()
    outbox = Outbox(
        schedules=DynamoSchedules(database),
        timeline=DynamoTimeline(database),
        queues=sqs.SqsDeliveryQueues(client, urls),
        clock=clock,
        ledger=DynamoLedger(database),
        directory=DynamoDirectory(database, clock),
        shards=_shards(settings, database, clock),
    )
    return RelayPorts(outbox, sqs.SqsSweepQueue(client, sweep_url))


@cache
def redrive_ports() -> "Returns":
    """Make the ports of the reader of what delivery queues give up.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.usecases.redrive import Returns

    settings, urls = read(
        lambda environment: (
            read_settings(environment),
            environment.texts("HOURBELL_QUEUE_URLS"),
        )
    )
    database, clock = _database(settings), _clock()
    plane = _plane(settings, database, clock)
    return Returns(
        _workplace(database, plane, clock),
        sqs.SqsDeliveryQueues(sqs.connect(), urls),
    )


@cache
def job_ports() -> JobPorts:
    """Make the ports of the job worker.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.adapters.dynamodb.groups import DynamoShardGroups
    from hourbell.adapters.dynamodb.jobs import DynamoJobs
    from hourbell.adapters.ids import SecretIds
    from hourbell.usecases.change_schedule import Changes
    from hourbell.usecases.create_schedule import Registry
    from hourbell.usecases.job_items import Bench
    from hourbell.usecases.run_job import Workshop

    settings, url = read(
        lambda environment: (
            read_settings(environment),
            environment.text("HOURBELL_JOBS_QUEUE_URL"),
        )
    )
    database, clock = _database(settings), _clock()
    plane, groups = _plane(settings, database, clock), DynamoShardGroups(database)
    return JobPorts(
        Workshop(
            jobs=DynamoJobs(database),
            queue=sqs.SqsJobQueue(sqs.connect(), url),
            directory=plane.directory,
            bench=Bench(
                Registry(plane, groups, SecretIds()),
                Changes(plane, groups, clock),
                _workplace(database, plane, clock),
            ),
            clock=clock,
        ),
        _mover(settings, database, clock, url),
    )


def _clock() -> "Clock":
    from hourbell.adapters.clock import SystemClock

    return SystemClock()


def _database(settings: Settings, allowance: "Allowance | None" = None) -> "Database":
    from hourbell.adapters.dynamodb.client import connect
    from hourbell.adapters.dynamodb.layout import TableNames

    names = TableNames(settings.schedules, settings.timeline, settings.control)
    return connect(names, allowance=allowance)


@cache
def request_allowance() -> "Allowance":
    """Return what a function that answers requests begins with each of them."""
    from hourbell.adapters.backoff import Allowance

    return Allowance(REQUEST_SECONDS)


def _plane(settings: Settings, database: "Database", clock: "Clock") -> "Plane":
    from hourbell.adapters.dynamodb.directory import DynamoDirectory
    from hourbell.adapters.dynamodb.loads import DynamoLoads
    from hourbell.adapters.dynamodb.rates import DynamoRates
    from hourbell.adapters.dynamodb.schedules import DynamoSchedules
    from hourbell.usecases.materialize import Plane

    shards = _shards(settings, database, clock)
    return Plane(
        schedules=DynamoSchedules(database),
        timeline=_timeline(database, shards),
        directory=DynamoDirectory(database, clock),
        shards=shards,
        horizon=settings.horizon,
        loads=DynamoLoads(database),
        rates=DynamoRates(database),
    )


def _workplace(database: "Database", plane: "Plane", clock: "Clock") -> "Workplace":
    from hourbell.adapters.dynamodb.ledger import DynamoLedger
    from hourbell.adapters.ids import SecretIds
    from hourbell.usecases.workplace import Workplace

    return Workplace.of(plane, DynamoLedger(database), SecretIds(), clock)


def _shards(settings: Settings, database: "Database", clock: "Clock") -> "ShardMaps":
    from hourbell.adapters.dynamodb.epochs import DynamoEpochBook, DynamoShardMaps

    return DynamoShardMaps(DynamoEpochBook(database), settings.shard_map, clock)


def _timeline(database: "Database", shards: "ShardMaps") -> "Timeline":
    from hourbell.adapters.dynamodb.relocation import DynamoRelocation
    from hourbell.adapters.dynamodb.timeline import DynamoTimeline
    from hourbell.usecases.twins import TwinTimeline

    return TwinTimeline(DynamoTimeline(database), shards, DynamoRelocation(database))


def _mover(
    settings: Settings, database: "Database", clock: "Clock", jobs_url: str
) -> "Mover":
    from hourbell.adapters import sqs
    from hourbell.adapters.dynamodb.epochs import DynamoEpochBook
    from hourbell.adapters.dynamodb.groups import DynamoShardGroups
    from hourbell.adapters.dynamodb.relocation import DynamoRelocation
    from hourbell.usecases.reshard import Mover

    return Mover(
        DynamoEpochBook(database),
        DynamoShardGroups(database),
        DynamoRelocation(database),
        sqs.SqsMoveQueue(None, jobs_url),
        clock,
        settings.shard_map,
    )
