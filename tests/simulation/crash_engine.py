"""The crash enumeration on DynamoDB and SQS adapters, against an engine of its own."""

import os
import tempfile
from dataclasses import asdict, replace
from datetime import datetime
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
from hourbell.adapters.dynamodb.codec import Item, encode
from hourbell.adapters.dynamodb.control_items import decode_lease
from hourbell.adapters.dynamodb.models import GroupItem
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    is_dispatch,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_run,
    decode_schedule,
    decode_version,
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
from tests.simulation.lives import Life, every_life
from tests.simulation.store import WatchedStore
from tests.simulation.world import TrueClock

# A whole life, a change that cancels rows, and an occurrence asked for by hand.
LIVES = (
    "CATCH_UP, window 0, overdue, one-time",
    "cancel of UNTRACKED, window 0",
    "run now",
)
LANES = ("strict", "flexible", "catchup")
_numbers = count(1)


class Engine:
    """Clients of a running engine, and queues on it."""

    def __init__(self, url: str) -> None:
        session = engine_session()
        self.database: Database = connect(
            TableNames.with_prefix("unused"), session=session, endpoint_url=url
        )
        self.sqs: Any = sqs.connect(session=session, endpoint_url=url)
        names = [f"standard-{lane}" for lane in LANES]
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
    """A port on the engine's tables; the world's store follows every write."""

    def __init__(self, port: Any, world: "EngineWorld") -> None:
        self._port = port
        self._world = world

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)
        if name not in WRITES | PACKED:
            return method

        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return method(*args, **kwargs)
            finally:
                self._world.follow()

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
        mirrored = partial(Mirrored, world=self)
        self.schedules = mirrored(DynamoSchedules(database))
        self.timeline = mirrored(DynamoTimeline(database))
        self.groups = mirrored(DynamoShardGroups(database))
        self.directory = DynamoDirectory(database, TrueClock(self))
        self.parking = DynamoParking(database)
        self.loads = DynamoLoads(database)
        self.places = DynamoRates(database)
        self.ledger = DynamoLedger(database)
        self.jobs, self.job_queue = DynamoJobs(database), MemoryJobQueue()
        self.queues = SqsDeliveryQueues(engine.sqs, engine.urls)
        sweep = SqsSweepQueue(engine.sqs, engine.sweep)
        work = SqsWorkQueue(engine.sqs, engine.work)
        self.sweep_queue = Taken(sweep, engine.sqs, engine.sweep, decode_keys)
        self.work_queue = Taken(work, engine.sqs, engine.work, decode_work)
        self.ids = SeededIds(self.seed)

    def follow(self) -> None:
        """Bring the store to what the tables hold."""
        tables = self._database.tables
        self._follow_schedules(self._scan(tables.schedules))
        items = self._scan(tables.timeline)
        for dispatch in [decode_dispatch(each) for each in items if is_dispatch(each)]:
            if self.store.dispatch(dispatch.key) != dispatch:
                self.store.put_dispatch(dispatch)
        for row in [decode_occurrence(each) for each in items if not is_dispatch(each)]:
            if self.store.row(row.key) != row:
                self.store.put_row(row)
        for item in self._scan(tables.control):
            if item["item"]["S"] == "LEASE" and "holder" in item:
                self._follow_lease(item)

    def _follow_lease(self, item: Item) -> None:
        # One that was given back has no end: it is over now.
        lease = decode_lease(encode_end(self.now) | item)
        if self.store.groups.get(lease.group) != lease:
            self.store.groups[lease.group] = lease

    def _follow_schedules(self, items: list[Any]) -> None:
        for item in items:
            kind = item["item"]["S"]
            if kind.startswith("V#"):
                version = decode_version(item)
                if self.store.versions.get(version.ref) != version:
                    self.store.versions[version.ref] = version
            elif kind == "DEF":
                schedule = decode_schedule(item)
                self.store.schedules[schedule.schedule_id] = schedule
            elif kind.startswith("P#r"):
                run = decode_run(item)
                self.store.runs[run.schedule_id, run.run] = run

    def _scan(self, table: str) -> list[Any]:
        answer = self._database.client.scan(TableName=table, ConsistentRead=True)
        items: list[Any] = answer["Items"]
        return items


def encode_end(now: datetime) -> Item:
    """Return the end of a lease, as an item has it."""
    return encode(GroupItem, {"lease_until": now})


def on_engine(text: str = "") -> dict[str, Any]:
    """Enumerate the crashes of some lives on the engine; return what came of it."""
    lives = [each for each in every_life() if each.name in LIVES and text in each.name]
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        running_engine(Path(folder)) as url,
    ):
        make = partial(EngineWorld, Engine(url))
        return summary(enumerate_life(life, make) for life in lives)
