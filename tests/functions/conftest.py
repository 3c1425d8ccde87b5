"""The handlers on in-memory ports."""

import io
import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest
from aws_lambda_powertools import Logger
from hourbell import bootstrap
from hourbell.adapters.memory import MemoryWorkQueue
from hourbell.adapters.memory.probe import MemoryQueueProbe
from hourbell.adapters.memory.shards import (
    MemoryEpochBook,
    MemoryMoveQueue,
    MemoryRelocation,
)
from hourbell.domain.definition import Handler, Tenant, TenantState, Tier
from hourbell.domain.queue_arn import QueueArn
from hourbell.usecases.create_schedule import Registry
from hourbell.usecases.get_schedule import Library
from hourbell.usecases.handlers import QueueOffer, Switchboard
from hourbell.usecases.parked import Yard
from hourbell.usecases.redrive import Returns
from hourbell.usecases.reshard import Mover
from hourbell.usecases.tenants import Registrar

from tests.functions.contract import check_answer
from tests.functions.events import Context, api_event
from tests.unit.usecases.world import World

OPERATORS = frozenset({"123456789012:role/platform"})
WORK_PATHS = {
    f"/v1/occurrences/{verb}" for verb in ("claim", "heartbeat", "complete", "fail")
}
QUEUES = "arn:aws:sqs:eu-central-1:123456789012"
OFFER = QueueOffer(
    own=QueueArn.parse(f"{QUEUES}:hourbell"),
    dedicated=frozenset({"zenith"}),
    external=(f"{QUEUES}:*",),
)


@dataclass
class Answer:
    """An answer of the API."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def code(self) -> str:
        """The code of a problem, which must be well formed."""
        problem = self.body
        assert self.headers["Content-Type"] == "application/problem+json"
        assert problem["status"] == self.status
        assert problem["type"] == f"urn:hourbell:problem:{problem['code']}"
        assert problem["title"]
        assert problem["detail"]
        assert problem["request_id"] == self.headers["X-Request-Id"]
        code = problem["code"]
        assert isinstance(code, str)
        return code

    @property
    def findings(self) -> dict[str, dict[str, str]]:
        """The findings of a problem, by field."""
        return {each["field"]: each for each in self.body["errors"]}


class Api:
    """The handlers behind the API, called as API Gateway calls them."""

    def __init__(self, world: World) -> None:
        self.world = world

    def call(
        self, method: str, path: str, body: object = None, **kwargs: Any
    ) -> Answer:
        return self.send(api_event(method, path, body, **kwargs))

    def send(self, event: Mapping[str, Any]) -> Answer:
        # Not at the top: this file is read before the tests' environment is set.
        name = "workers" if event["path"] in WORK_PATHS else "api"
        function = import_module(f"functions.{name}.handler")
        raw = function.handler(dict(event), Context())
        assert set(raw) >= {"statusCode", "body", "multiValueHeaders"}
        written = raw["multiValueHeaders"].items()
        headers = {name: values[0] for name, values in written}
        answer = Answer(raw["statusCode"], headers, raw["body"])
        check_answer(event, answer.status, answer.headers, answer.text)
        return answer


@pytest.fixture
def world() -> World:
    """Three tenants: acme (ann), zenith (the role billing), and suspended dodo."""
    world = World()
    directory = world.directory
    world.store.principals["123456789012:user/ann"] = "acme"
    directory.register_tenant(
        Tenant("zenith", Tier.PREMIUM), ["123456789012:role/billing"]
    )
    directory.register_tenant(
        Tenant("dodo", Tier.BASIC, TenantState.SUSPENDED),
        ["123456789012:user/dodo"],
    )
    for tenant in ("acme", "zenith"):
        directory.register_handler(Handler(tenant, "ring"))
    directory.register_handler(Handler("zenith", "invoice"))
    return world


@pytest.fixture
def work_queue() -> MemoryWorkQueue:
    return MemoryWorkQueue()


@pytest.fixture
def move_queue() -> MemoryMoveQueue:
    return MemoryMoveQueue()


@pytest.fixture
def probe() -> MemoryQueueProbe:
    """Where test messages go; without answers no queue exists."""
    return MemoryQueueProbe()


@pytest.fixture(autouse=True)
def ports(
    world: World,
    work_queue: MemoryWorkQueue,
    move_queue: MemoryMoveQueue,
    probe: MemoryQueueProbe,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Let bootstrap choose the adapters in memory."""
    plane = world.plane
    mover = Mover(
        MemoryEpochBook(world.store),
        world.groups,
        MemoryRelocation(world.store),
        move_queue,
        world.clock,
        world.shard_map,
    )
    factories = {
        "api_ports": bootstrap.ApiPorts(
            directory=world.directory,
            registry=Registry(plane, world.groups, world.ids),
            changes=world.changes,
            library=Library(world.schedules, world.timeline, world.shard_map),
            registrar=Registrar(world.directory, OPERATORS),
            switchboard=Switchboard(world.directory, probe, world.ids, OFFER),
            office=world.office,
            mover=mover,
            yard=Yard(world.parking, plane),
            workplace=world.workplace,
            clock=world.clock,
        ),
        "worker_ports": bootstrap.WorkerPorts(world.workplace, OPERATORS),
        "job_ports": bootstrap.JobPorts(world.workshop, mover),
        "tick_ports": bootstrap.TickPorts(
            work_queue, mover.book, world.shard_map, world.clock, world.office
        ),
        "materializer_ports": world.scanner,
        "redrive_ports": Returns(world.workplace, world.queues),
        "relay_ports": bootstrap.RelayPorts(world.outbox, world.sweep_queue),
    }
    for name, made in factories.items():
        monkeypatch.setattr(bootstrap, name, lambda made=made: made)


class Log:
    """What the handlers logged, line by line."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def clear(self) -> None:
        self.stream.seek(0)
        self.stream.truncate()


@pytest.fixture
def log() -> Iterator[Log]:
    """Read along what goes to the functions' logger."""
    log = Log()
    handlers = [
        each for each in Logger().handlers if isinstance(each, logging.StreamHandler)
    ]
    streams = [each.setStream(log.stream) for each in handlers]
    yield log
    for each, stream in zip(handlers, streams, strict=True):
        each.setStream(stream)


def measured(output: str) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the metrics that were printed: members by their dimensions' values."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for line in output.splitlines():
        blob = json.loads(line)
        directive = blob["_aws"]["CloudWatchMetrics"][0]
        assert directive["Namespace"] == "Hourbell"
        names = [name for name in directive["Dimensions"][0] if name != "service"]
        values = {each["Name"]: blob[each["Name"]] for each in directive["Metrics"]}
        found[tuple(blob[name] for name in names)] = values
    return found


@pytest.fixture
def api(world: World) -> Api:
    return Api(world)
