"""The crash enumeration on DynamoDB and SQS adapters, against an engine of its own."""

import os
import tempfile
from dataclasses import asdict, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from hourbell.adapters import sqs
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
    TableNames,
    connect,
)
from hourbell.adapters.dynamodb.tables import create_tables
from hourbell.adapters.memory import MemoryJobQueue, SeededIds
from hourbell.adapters.sqs import (
    SqsDeliveryQueues,
    SqsSweepQueue,
    SqsWorkQueue,
    decode_keys,
    decode_work,
)

from tests.conformance.engine import engine_session, running_engine
from tests.conformance.worlds import still_backoff
from tests.simulation.crash import enumerate_life, summary
from tests.simulation.crash_world import CrashWorld
from tests.simulation.faults import PACKED, WRITES
from tests.simulation.insistent import Insistent
from tests.simulation.lives import Life, every_life
from tests.simulation.mirror import Mirror
from tests.simulation.store import WatchedStore
from tests.simulation.world import TrueClock

# A whole life, a change that cancels rows, an occurrence asked for by hand, and what
# workers bring about: claims with a lane and a place, heartbeats, a retry, a death with
# its letter, a replay, a worker that dies. With the port calls at which each is
# stopped, none for all: the lives with workers are at what these store.
LIVES = {
    "CATCH_UP, window 0, overdue, one-time": frozenset[str](),
    "cancel of UNTRACKED, window 0": frozenset[str](),
    "run now": frozenset[str](),
    "TRACKED, lane, place and death": frozenset({"do", "move", "post"}),
    "TRACKED, replay": frozenset({"do"}),
    "TRACKED, a worker that dies": frozenset({"do"}),
}
QUEUES = ("strict", "flexible", "catchup", "dead")
_numbers = count(1)


class Engine:
    """Clients of a running engine, and queues on it."""

    def __init__(self, url: str) -> None:
        session = engine_session()
        self.database: Database = connect(
            TableNames.with_prefix("unused"), session=session, endpoint_url=url
        )
        self.sqs: Any = sqs.connect(session=session, endpoint_url=url)
        names = [f"standard-{lane}" for lane in QUEUES]
        self.urls = {name: self._queue(name) for name in names}
        self.work, self.sweep = self._queue("work"), self._queue("sweep")

    def _queue(self, name: str) -> str:
        url: str = self.sqs.create_queue(QueueName=f"{name}-{os.getpid()}")["QueueUrl"]
        return url

    def fresh(self) -> Database:
        """Return tables of a world's own."""
        prefix = f"w{os.getpid()}x{next(_numbers)}"
        tables = create_tables(self.database.client, prefix)
        still = still_backoff()
        return replace(self.database, tables=tables, backoff=still, contended=still)

    def drop(self, database: Database) -> None:
        """Delete a world's tables."""
        for name in asdict(database.tables).values():
            database.client.delete_table(TableName=name)


class Taken:
    """A queue port whose messages can be taken, once something was put."""

    def __init__(self, port: Any, client: Any, url: str, decode: Any) -> None:
        self._port, self._client, self._url = port, client, url
        self._decode = decode
        self._filled = True  # What the world before left there goes first.
        self.take()

    def put(self, what: Any) -> None:
        self._filled = True
        self._port.put(what)

    def take(self) -> list[Any]:
        """Return and delete all messages."""
        found: list[Any] = []
        while self._filled:
            answer = self._client.receive_message(
                QueueUrl=self._url, MaxNumberOfMessages=10, WaitTimeSeconds=0
            )
            messages = answer.get("Messages", [])
            self._filled = bool(messages)
            for each in messages:
                found.append(self._decode(each["Body"]))
                self._client.delete_message(
                    QueueUrl=self._url, ReceiptHandle=each["ReceiptHandle"]
                )
        return found


class Mirrored:
    """A port on the engine's tables; the world's store follows every write.

    Args:
        port: the port.
        world: whose it is.
        tables: those that the port writes.
    """

    def __init__(self, port: Any, world: "EngineWorld", tables: str) -> None:
        self._port, self._world = port, world
        self._tables = tables.split()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name not in WRITES | PACKED:
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            finally:
                self._world.mirror.follow(self._tables)

        return call


class EngineWorld(CrashWorld):
    """A world whose ports are on the engine; what lies there is judged as ever."""

    def __init__(
        self,
        engine: Engine,
        life: Life,
        point: int | None = None,
        *,
        after: bool = False,
    ) -> None:
        self._engine = engine
        super().__init__(life, point, after=after)

    def live(self) -> None:
        """Let all of it happen, judge it, and leave no tables behind."""
        try:
            super().live()
        finally:
            self._engine.drop(self._database)

    def _make_stores(self) -> None:
        engine, database = self._engine, self._engine.fresh()
        self._database = database
        self.store = WatchedStore(self)
        self.mirror = Mirror(self, database)
        schedules, groups = DynamoSchedules(database), DynamoShardGroups(database)
        self.schedules = Mirrored(schedules, self, "schedules timeline")
        self.timeline = Mirrored(DynamoTimeline(database), self, "timeline")
        self.groups = Mirrored(groups, self, "control")
        ledger = Insistent(DynamoLedger(database), self)
        self.ledger = Mirrored(ledger, self, "timeline control")
        self.directory = DynamoDirectory(database, TrueClock(self))
        self.parking = DynamoParking(database)
        self.loads = DynamoLoads(database)
        self.places = DynamoRates(database)
        self.jobs, self.job_queue = DynamoJobs(database), MemoryJobQueue()
        self.queues = SqsDeliveryQueues(engine.sqs, engine.urls)
        sweep = SqsSweepQueue(engine.sqs, engine.sweep)
        work = SqsWorkQueue(engine.sqs, engine.work)
        self.sweep_queue = Taken(sweep, engine.sqs, engine.sweep, decode_keys)
        self.work_queue = Taken(work, engine.sqs, engine.work, decode_work)
        self.ids = SeededIds(self.seed)


def on_engine(text: str = "") -> dict[str, Any]:
    """Enumerate the crashes of some lives on the engine; return what came of it."""
    lives = [each for each in every_life() if each.name in LIVES and text in each.name]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running_engine(Path(folder)) as url,
    ):
        make = partial(EngineWorld, Engine(url))
        return summary(
            enumerate_life(life, make, only=LIVES[life.name]) for life in lives
        )
