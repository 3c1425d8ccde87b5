"""A consumer in a Lambda function with an SQS event source, its books in SQLite.

The event source has `FunctionResponseTypes: [ReportBatchItemFailures]`, and its queue a
visibility of six times the function's timeout. SQLite stands for the database that a
real function reaches over the network; `once` is the same with PostgreSQL.
"""

import logging
import os
import sqlite3
import time
from contextlib import closing
from typing import Any

from hourbell.consumer import SCHEMA, Consumer, Context, Message, Options, once

LOGGER = logging.getLogger("books")
DATABASE = os.environ["EFFECTS"]
BOOKS = "CREATE TABLE IF NOT EXISTS books (occurrence_id TEXT, account TEXT)"

# Once for each worker of the function, not for each invocation.
lease_seconds = int(os.environ.get("HOURBELL_LEASE_SECONDS", "60"))
consumer = Consumer.connect(options=Options(lease_seconds=lease_seconds))
with closing(sqlite3.connect(DATABASE, timeout=30)) as _connection, _connection:
    _connection.execute(SCHEMA)
    _connection.execute(BOOKS)


@consumer.handler("report")
def book(message: Message, context: Context) -> None:
    """Book the payload's account, in one transaction with the occurrence's key."""
    order = message.payload
    LOGGER.info("working %s", message.occurrence_id)
    if context.attempt is not None and context.attempt <= order.get("fails", 0):
        raise ConnectionError("the bank does not answer")
    time.sleep(order.get("seconds", 0))
    with (
        closing(sqlite3.connect(DATABASE, timeout=30)) as connection,
        once(connection, message.occurrence_id) as first,
    ):
        if first:
            connection.execute(
                "INSERT INTO books VALUES (?, ?)",
                (message.occurrence_id, order["account"]),
            )
    LOGGER.info("booked %s", message.occurrence_id)
    time.sleep(order.get("seconds", 0))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:  # noqa: ANN401
    """Work on a batch of messages; return those that must come again."""
    return consumer.handle(event, context)
