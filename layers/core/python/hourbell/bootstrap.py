# ruff: noqa: PLC0415 - see the note on imports above the factories
"""The only place that chooses adapters, from the environment of a function.

Each factory makes the ports of one function, once per process. A fault of the
environment is told when a factory is first asked, with all that is missing or wrong.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from hourbell.domain.shards import ShardMap

if TYPE_CHECKING:
    from hourbell.adapters.dynamodb.client import Database
    from hourbell.usecases.change_schedule import Changes
    from hourbell.usecases.create_schedule import Registry
    from hourbell.usecases.get_schedule import Library
    from hourbell.usecases.handlers import QueueOffer, Switchboard
    from hourbell.usecases.jobs import Office
    from hourbell.usecases.materialize import Plane
    from hourbell.usecases.parked import Yard
    from hourbell.usecases.ports import (
        Clock,
        Directory,
        SweepQueue,
        WorkQueue,
    )
    from hourbell.usecases.relay import Outbox
    from hourbell.usecases.run_job import Workshop
    from hourbell.usecases.scan import Scanner
    from hourbell.usecases.tenants import Registrar

T = TypeVar("T")

MAX_SHARDS = 4096
MAX_HORIZON_SECONDS = 900


class SettingsError(Exception):
    """The environment lacks a variable or has one that makes no sense."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class Environment:
    """Reads variables and remembers what is wrong with them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables
        self.faults: list[str] = []

    def text(self, name: str) -> str:
        """Return a mandatory variable."""
        value = self._variables.get(name, "")
        if not value:
            self.faults.append(f"{name} is not set")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Return a whole number between two bounds."""
        text = self._variables.get(name, "") or str(default)
        if text.isascii() and text.isdecimal() and low <= int(text) <= high:
            return int(text)
        self.faults.append(f"{name} must be {low} to {high}, found {text!r}")
        return default

    def texts(self, name: str) -> dict[str, str]:
        """Return a JSON object of strings."""
        text = self.text(name)
        try:
            members = json.loads(text or "{}")
        except ValueError:
            members = None
        if isinstance(members, dict) and all(
            isinstance(value, str) for value in members.values()
        ):
            return members
        self.faults.append(f"{name} must be a JSON object of strings")
        return {}

    def words(self, name: str) -> tuple[str, ...]:
        """Return a JSON array of strings; empty when it is not set."""
        text = self._variables.get(name, "") or "[]"
        try:
            words = json.loads(text)
        except ValueError:
            words = None
        if isinstance(words, list) and all(isinstance(each, str) for each in words):
            return tuple(words)
        self.faults.append(f"{name} must be a JSON array of strings")
        return ()

    def finish(self) -> None:
        """Raise what was wrong, if anything was."""
        if self.faults:
            raise SettingsError(self.faults)


@dataclass(frozen=True, slots=True)
class Settings:
    """Where the tables are and how the timeline is divided.

    Attributes:
        schedules: physical name of the table, as are `timeline` and `control`.
        horizon: how far ahead of now occurrences are materialized.
    """

    schedules: str
    timeline: str
    control: str
    shard_map: ShardMap
    horizon: timedelta


def read_settings(environment: Environment) -> Settings:
    """Read what the functions with tables have in common."""
    horizon = environment.number(
        "HOURBELL_HORIZON_SECONDS", 180, 60, MAX_HORIZON_SECONDS
    )
    return Settings(
        schedules=environment.text("HOURBELL_TABLE_SCHEDULES"),
        timeline=environment.text("HOURBELL_TABLE_TIMELINE"),
        control=environment.text("HOURBELL_TABLE_CONTROL"),
        shard_map=read_shard_map(environment),
        horizon=timedelta(seconds=horizon),
    )


def read_shard_map(environment: Environment) -> ShardMap:
    """Read the shard count and the number of groups."""
    shards = environment.number("HOURBELL_SHARDS", 16, 1, MAX_SHARDS)
    groups = environment.number("HOURBELL_SHARD_GROUPS", min(4, shards), 1, shards)
    return ShardMap.constant(shards, groups)


def read_operators(environment: Environment) -> frozenset[str]:
    """Read the principals of the platform role, normalized."""
    from hourbell.domain.errors import InvalidInput
    from hourbell.usecases.identify import registered_form

    name = "HOURBELL_PLATFORM_PRINCIPALS"
    found = set()
    for word in environment.words(name):
        try:
            found.add(registered_form(word))
        except InvalidInput as error:
            environment.faults.append(f"{name}: {word!r}: {error.message}")
    return frozenset(found)


def read_queue_offer(environment: Environment) -> "QueueOffer":
    """Read which queues besides the shared ones handlers may have."""
    from hourbell.domain.errors import InvalidInput
    from hourbell.domain.queue_arn import QueueArn
    from hourbell.usecases.handlers import QueueOffer

    name = "HOURBELL_QUEUE_ARN_BASE"
    text, own = environment.text(name), None
    try:
        own = QueueArn.parse(text) if text else None
    except InvalidInput as error:
        environment.faults.append(f"{name}: {error.message}")
    return QueueOffer(
        own,
        frozenset(environment.words("HOURBELL_DEDICATED_TENANTS")),
        environment.words("HOURBELL_EXTERNAL_QUEUE_ARNS"),
    )


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
    yard: "Yard"
    clock: "Clock"

    @property
    def operators(self) -> frozenset[str]:
        """Normalized principals of the platform role."""
        return self.registrar.operators


@dataclass(frozen=True, slots=True)
class TickPorts:
    """What the tick needs."""

    work_queue: "WorkQueue"
    shard_map: ShardMap
    clock: "Clock"


@dataclass(frozen=True, slots=True)
class RelayPorts:
    """What the relay needs."""

    outbox: "Outbox"
    sweep_queue: "SweepQueue"


@dataclass(frozen=True, slots=True)
class JobPorts:
    """What working at jobs needs."""

    workshop: "Workshop"


# Imports stand inside the factories below: a cold start pays only for the adapters
# and use cases of its own function.


@cache
def api_ports() -> ApiPorts:
    """Make the ports of the API.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
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

    settings, operators, offer, jobs_url = _read(
        lambda environment: (
            read_settings(environment),
            read_operators(environment),
            read_queue_offer(environment),
            environment.text("HOURBELL_JOBS_QUEUE_URL"),
        )
    )
    database, clock, ids = _database(settings), _clock(), SecretIds()
    plane, groups = _plane(settings, database, clock), DynamoShardGroups(database)
    return ApiPorts(
        directory=plane.directory,
        registry=Registry(plane, groups, ids),
        changes=Changes(plane, groups, clock),
        library=Library(plane.schedules, plane.timeline, plane.shard_map),
        registrar=Registrar(plane.directory, operators),
        # Its clients open when a queue is registered, and not at a cold start.
        switchboard=Switchboard(
            plane.directory, sqs.SqsQueueProbe(sqs.SqsRegions()), ids, offer
        ),
        office=Office(DynamoJobs(database), sqs.SqsJobQueue(None, jobs_url)),
        yard=Yard(DynamoParking(database), plane),
        clock=clock,
    )


@cache
def tick_ports() -> TickPorts:
    """Make the ports of the tick.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs

    url, shard_map = _read(
        lambda environment: (
            environment.text("HOURBELL_WORK_QUEUE_URL"),
            read_shard_map(environment),
        )
    )
    return TickPorts(sqs.SqsWorkQueue(sqs.connect(), url), shard_map, _clock())


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

    settings, sweep_url, work_url = _read(
        lambda environment: (
            read_settings(environment),
            environment.text("HOURBELL_SWEEP_QUEUE_URL"),
            environment.text("HOURBELL_WORK_QUEUE_URL"),
        )
    )
    database, client, clock = _database(settings), sqs.connect(), _clock()
    return Scanner(
        plane=_plane(settings, database, clock),
        groups=DynamoShardGroups(database),
        parking=DynamoParking(database),
        sweep_queue=sqs.SqsSweepQueue(client, sweep_url),
        work_queue=sqs.SqsWorkQueue(client, work_url),
        clock=clock,
    )


@cache
def relay_ports() -> RelayPorts:
    """Make the ports of the relay.

    Raises:
        SettingsError: the environment lacks something.
    """
    from hourbell.adapters import sqs
    from hourbell.adapters.dynamodb.schedules import DynamoSchedules
    from hourbell.adapters.dynamodb.timeline import DynamoTimeline
    from hourbell.usecases.relay import Outbox

    settings, urls, sweep_url = _read(
        lambda environment: (
            read_settings(environment),
            environment.texts("HOURBELL_QUEUE_URLS"),
            environment.text("HOURBELL_SWEEP_QUEUE_URL"),
        )
    )
    database, client = _database(settings), sqs.connect()
    outbox = Outbox(
        schedules=DynamoSchedules(database),
        timeline=DynamoTimeline(database),
        queues=sqs.SqsDeliveryQueues(client, urls),
        clock=_clock(),
    )
    return RelayPorts(outbox, sqs.SqsSweepQueue(client, sweep_url))


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

    settings, url = _read(
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
                Registry(plane, groups, SecretIds()), Changes(plane, groups, clock)
            ),
            clock=clock,
        )
    )


def _read(read: Callable[[Environment], T]) -> T:
    """Read settings from the process's environment.

    Raises:
        SettingsError: with all that is missing or wrong.
    """
    environment = Environment(os.environ)
    settings = read(environment)
    environment.finish()
    return settings


def _clock() -> "Clock":
    from hourbell.adapters.clock import SystemClock

    return SystemClock()


def _database(settings: Settings) -> "Database":
    from hourbell.adapters.dynamodb.client import connect
    from hourbell.adapters.dynamodb.layout import TableNames

    return connect(TableNames(settings.schedules, settings.timeline, settings.control))


def _plane(settings: Settings, database: "Database", clock: "Clock") -> "Plane":
    from hourbell.adapters.dynamodb.directory import DynamoDirectory
    from hourbell.adapters.dynamodb.loads import DynamoLoads
    from hourbell.adapters.dynamodb.rates import DynamoRates
    from hourbell.adapters.dynamodb.schedules import DynamoSchedules
    from hourbell.adapters.dynamodb.timeline import DynamoTimeline
    from hourbell.usecases.materialize import Plane

    return Plane(
        schedules=DynamoSchedules(database),
        timeline=DynamoTimeline(database),
        directory=DynamoDirectory(database, clock),
        shard_map=settings.shard_map,
        horizon=settings.horizon,
        loads=DynamoLoads(database),
        rates=DynamoRates(database),
    )
