"""An effect and the key of its occurrence are stored together, or neither is."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import psycopg
import pytest
from hourbell.consumer import SCHEMA, once

from tests.consumers.memory_queue import occurrence_id
from tests.consumers.postgres import server

NAME = occurrence_id(1)


class Database:
    """A database with a table of effects, and connections to it."""

    def __init__(self, kind: str, place: str) -> None:
        self._kind = kind
        self._place = place
        self._opened: list[Any] = []
        with self.connect() as connection:
            connection.execute("DROP TABLE IF EXISTS hourbell_done")
            connection.execute(SCHEMA)
            connection.execute(SCHEMA)
            connection.execute("DROP TABLE IF EXISTS effects")
            connection.execute("CREATE TABLE effects (worker TEXT)")

    def connect(self, **options: Any) -> Any:
        driver: Any = sqlite3 if self._kind == "sqlite" else psycopg
        options = options or ({"timeout": 10} if driver is sqlite3 else {})
        connection = driver.connect(self._place, **options)
        self._opened.append(connection)
        return connection

    def write(self, connection: Any, worker: str) -> None:
        statement = "INSERT INTO effects VALUES (%s)"
        if self._kind == "sqlite":
            statement = statement.replace("%s", "?")
        connection.execute(statement, (worker,))

    def effects(self) -> list[str]:
        rows = self.connect().execute("SELECT worker FROM effects ORDER BY worker")
        return [worker for (worker,) in rows.fetchall()]

    def close(self) -> None:
        for connection in self._opened:
            connection.close()


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    with server() as place:
        yield place


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    kind = request.param
    place = (
        str(tmp_path / "effects.db")
        if kind == "sqlite"
        else request.getfixturevalue("postgres")
    )
    found = Database(kind, place)
    yield found
    found.close()


def test_the_second_time_the_effect_is_there_already(database: Database) -> None:
    firsts = []
    for worker in ("a", "b"):
        connection = database.connect()
        with once(connection, NAME) as first:
            firsts.append(first)
            if first:
                database.write(connection, worker)
        connection.close()
    assert firsts == [True, False]
    assert database.effects() == ["a"]


def test_what_fails_stores_neither_key_nor_effect(database: Database) -> None:
    connection = database.connect()

    def work() -> None:
        with once(connection, NAME) as first:
            assert first
            database.write(connection, "a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        work()
    assert database.effects() == []
    with once(connection, NAME) as first:
        assert first
        database.write(connection, "b")
    assert database.effects() == ["b"]


def test_a_worker_that_dies_in_between_leaves_nothing(database: Database) -> None:
    dying = database.connect()
    with once(dying, NAME):
        database.write(dying, "a")
        # What a killed process does: its connection goes without a commit.
        dying.rollback()
    with once(database.connect(), NAME) as first:
        assert first


def test_other_occurrences_have_their_own_keys(database: Database) -> None:
    connection = database.connect()
    for number in range(3):
        with once(connection, occurrence_id(number)) as first:
            assert first


def test_two_at_the_same_time_are_one_effect(database: Database) -> None:
    firsts: list[bool] = []

    def work() -> None:
        connection = database.connect(
            **(
                {"check_same_thread": False, "timeout": 10}
                if database._kind == "sqlite"
                else {}
            )
        )
        with once(connection, NAME) as first:
            firsts.append(first)
            if first:
                database.write(connection, "a")

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(firsts) == [False] * 5 + [True]
    assert database.effects() == ["a"]


def test_a_connection_that_commits_by_itself_is_refused(database: Database) -> None:
    alone: dict[str, Any] = (
        {"isolation_level": None}
        if database._kind == "sqlite"
        else {"autocommit": True}
    )
    with (
        pytest.raises(ValueError, match="autocommit"),
        once(database.connect(**alone), NAME),
    ):
        pass


class Unknown:
    """A connection of a driver that nobody knows."""


def test_an_unknown_driver_needs_its_placeholder_named() -> None:
    with pytest.raises(ValueError, match="placeholder"), once(Unknown(), NAME):  # type: ignore[arg-type]
        pass


def test_a_placeholder_that_is_named_is_used(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "effects.db")
    connection.execute(SCHEMA)
    with once(connection, NAME, placeholder=":1") as first:
        assert first
    connection.close()
