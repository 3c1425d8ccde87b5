"""Every port on every kind of adapter: in memory, on moto, on the engine."""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hourbell.adapters import sqs
from hourbell.adapters.dynamodb import Database, TableNames, connect
from hourbell.adapters.dynamodb.tables import create_tables
from moto import mock_aws

from tests.conformance.engine import engine_session, running_engine
from tests.conformance.worlds import (
    Queues,
    World,
    dynamo_world,
    memory_queues,
    memory_world,
    sqs_queues,
    still_backoff,
)

_numbers = count(1)


@pytest.fixture(scope="session")
def engine_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_engine(tmp_path_factory.mktemp("engine")) as url:
        yield url


@pytest.fixture(scope="session")
def engine_clients(engine_url: str) -> tuple[Database, Any]:
    session = engine_session()
    database = connect(
        TableNames.with_prefix("unused"), session=session, endpoint_url=engine_url
    )
    return database, sqs.connect(session=session, endpoint_url=engine_url)


@pytest.fixture
def engine_database(engine_clients: tuple[Database, Any]) -> Database:
    """Tables of the test's own on the engine."""
    return fresh_tables(engine_clients[0])


@pytest.fixture(scope="session")
def moto_clients() -> tuple[Database, Any]:
    """Clients that moto answers while it is active; making them is what takes time."""
    with mock_aws():
        return connect(TableNames.with_prefix("unused")), sqs.connect()


@pytest.fixture
def moto_database(moto_clients: tuple[Database, Any]) -> Iterator[Database]:
    """Tables of the test's own on moto."""
    with mock_aws():
        yield fresh_tables(moto_clients[0])


KINDS = ["memory", "moto", pytest.param("engine", marks=pytest.mark.engine)]


@pytest.fixture(params=KINDS)
def world(request: pytest.FixtureRequest) -> World:
    """The ports on tables, on each kind of adapter."""
    return _world(request)


@pytest.fixture(params=["memory", pytest.param("engine", marks=pytest.mark.engine)])
def packed_world(request: pytest.FixtureRequest) -> World:
    """The worlds that can do packed writes: moto's PartiQL parser cannot."""
    return _world(request)


def _world(request: pytest.FixtureRequest) -> World:
    if request.param == "memory":
        return memory_world()
    return dynamo_world(request.getfixturevalue(f"{request.param}_database"))


@pytest.fixture(params=KINDS)
def queues(request: pytest.FixtureRequest) -> Iterator[Queues]:
    """The queue ports, on each kind of adapter."""
    if request.param == "memory":
        yield memory_queues()
        return
    _, client = request.getfixturevalue(f"{request.param}_clients")
    with mock_aws() if request.param == "moto" else nullcontext():
        yield sqs_queues(client, f"q{next(_numbers)}")


def fresh_tables(database: Database) -> Database:
    """Create tables under a new prefix, and return the database of them."""
    tables = create_tables(database.client, f"t{next(_numbers)}")
    still = still_backoff()
    return replace(database, tables=tables, backoff=still, contended=still)
