"""A consumer in a process: books an amount once for each occurrence, in SQLite.

    HOURBELL_API_URL=... HOURBELL_QUEUE_URL=... EFFECTS=books.db python consumer.py

It ends with SIGTERM or SIGINT, when what runs has ended.
"""

import logging
import os
import sqlite3
import sys
from contextlib import closing

from hourbell.consumer import SCHEMA, Consumer, Context, Message, Options, once

LOGGER = logging.getLogger("books")
DATABASE = os.environ["EFFECTS"]
BOOKS = "CREATE TABLE IF NOT EXISTS books (occurrence_id TEXT, account TEXT)"

lease_seconds = int(os.environ.get("HOURBELL_LEASE_SECONDS", "60"))
consumer = Consumer.connect(options=Options(lease_seconds=lease_seconds))


@consumer.handler("report")
def book(message: Message, context: Context) -> None:
    """Book the payload's account, in one transaction with the occurrence's key."""
    order = message.payload
    LOGGER.info("working %s", message.occurrence_id)
    if context.attempt is not None and context.attempt <= order.get("fails", 0):
        raise ConnectionError("the bank does not answer")
    # Work that takes its time looks whether it should still go on.
    context.wait(order.get("seconds", 0))
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
    context.wait(order.get("seconds", 0))


def main() -> None:
    """Make the tables and work until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    with closing(sqlite3.connect(DATABASE, timeout=30)) as connection, connection:
        connection.execute(SCHEMA)
        connection.execute(BOOKS)
    consumer.run()


if __name__ == "__main__":
    main()
