"""Effects that happen once: the occurrence's key is stored where the effect is.

A message may come twice, and a worker may die between the effect and its `complete`.
Whoever stores the key in the same transaction as the effect finds it there the second
time, whatever happened in between.
"""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, Protocol

TABLE: Final = "hourbell_done"

SCHEMA: Final = (
    f"CREATE TABLE IF NOT EXISTS {TABLE} ("
    "occurrence_id VARCHAR(96) PRIMARY KEY, "
    "done_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP)"
)
"""Makes the table of keys; for SQLite and PostgreSQL."""


class Cursor(Protocol):
    """The cursor of a DB-API connection."""

    @property
    def execute(self) -> Callable[..., Any]:
        """Execute a statement with parameters."""
        ...

    @property
    def rowcount(self) -> int:
        """How many rows the last statement wrote."""
        ...

    def close(self) -> object:
        """Let it go."""
        ...


class Connection(Protocol):
    """A DB-API 2.0 connection (PEP 249) in which statements open a transaction."""

    @property
    def cursor(self) -> Callable[..., Any]:
        """Return a cursor."""
        ...

    def commit(self) -> object:
        """End the transaction, and keep what it wrote."""
        ...

    def rollback(self) -> object:
        """End the transaction, and keep nothing."""
        ...


@contextmanager
def once(
    connection: Connection, occurrence_id: str, *, placeholder: str | None = None
) -> Iterator[bool]:
    """Give whether an occurrence's effect is still to come, in one transaction with it.

        with once(connection, message.occurrence_id) as first:
            if first:
                connection.execute("UPDATE ...")

    The block's end commits the key together with what the block wrote; an exception in
    it rolls both back. Another worker with the same key waits for that end, in SQLite
    for as long as the connection's `timeout`, and then finds the key or not.

    Args:
        connection: of SQLite or PostgreSQL, in no transaction, autocommit off; the
            table of `SCHEMA` is there.
        occurrence_id: the key.
        placeholder: of a parameter in SQL, `?` or `%s`; read from the driver's
            `paramstyle` by default.

    Raises:
        ValueError: the connection commits each statement alone, or the driver's
            parameters are written in another way.
    """
    mark = placeholder or _placeholder(connection)
    if _commits_alone(connection):
        raise ValueError("With autocommit the key and the effect would not be one.")
    try:
        yield _store(connection, occurrence_id, mark)
        connection.commit()
    except BaseException:
        # What could not be committed, such as in a busy database, must not stay open.
        # Of a broken connection nothing does, and why the block ended counts more.
        with suppress(Exception):
            connection.rollback()
        raise


def _store(connection: Connection, occurrence_id: str, mark: str) -> bool:
    cursor: Cursor = connection.cursor()
    try:
        # The table's name and the mark are constants of this module.
        cursor.execute(
            f"INSERT INTO {TABLE} (occurrence_id) VALUES ({mark}) "  # noqa: S608
            "ON CONFLICT (occurrence_id) DO NOTHING",
            (occurrence_id,),
        )
        return cursor.rowcount == 1
    finally:
        cursor.close()


def _placeholder(connection: Connection) -> str:
    """Return how the connection's driver writes a parameter."""
    package = type(connection).__module__.partition(".")[0]
    style = getattr(sys.modules.get(package), "paramstyle", None)
    marks = {"qmark": "?", "format": "%s", "pyformat": "%s"}
    if style not in marks:
        raise ValueError(f"Parameters of style {style!r}: name the placeholder.")
    return marks[style]


def _commits_alone(connection: Connection) -> bool:
    """Return whether the connection has autocommit on, as far as it tells."""
    if isinstance(connection, sqlite3.Connection) and (
        connection.isolation_level is None
    ):
        return True
    return getattr(connection, "autocommit", False) is True
