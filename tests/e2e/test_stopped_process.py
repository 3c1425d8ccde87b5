"""Two processes on the engine, one of them stopped for longer than its lease."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hourbell.adapters.dynamodb import Database, connect
from hourbell.adapters.dynamodb.row_items import decode_occurrence
from hourbell.adapters.dynamodb.tables import create_tables
from hourbell.domain.definition import (
    Definition,
    Handler,
    Schedule,
    ScheduleState,
    Tenant,
    Tier,
    Tracking,
    Version,
    derived_schedule_id,
)
from hourbell.domain.misfire import Misfire
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.policies import WATERMARK_LAG
from hourbell.domain.zones import TICK, TZDB_VERSION

from tests.conformance.engine import PROJECT, engine_session, running_engine
from tests.e2e.stopped_pass import LEASE, scanner_on
from tests.unit.usecases.test_leases import EVERY_FIVE, POLICIES, assert_one_chain
from tests.unit.usecases.world import MINUTE

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.engine,
    pytest.mark.timed,
    pytest.mark.timeout(120),
]

PREFIX = "stopped"
MODULE = "tests.e2e.stopped_pass"
BACK = 42 * MINUTE


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[str]:
    with running_engine(tmp_path) as url:
        yield url


@pytest.fixture
def database(endpoint: str) -> Database:
    session = engine_session()
    # Not by the product's client, which gives a slow engine no time to create tables.
    patient = session.client("dynamodb", endpoint_url=endpoint)
    tables = create_tables(patient, PREFIX)
    return connect(tables, session=session, endpoint_url=endpoint)


def start_pass(endpoint: str, holder: str, *options: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", MODULE, endpoint, PREFIX, holder, *options],
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )


def add(database: Database, misfire: Misfire, began: datetime) -> str:
    """Store a schedule of every five minutes as it was created some time ago."""
    scanner = scanner_on(database)
    schedule_id = derived_schedule_id("stopped", misfire.policy)
    definition = Definition(EVERY_FIVE, "ring", "{}", Tracking.UNTRACKED, 0, misfire)
    common = (schedule_id, "acme", misfire.policy, definition)
    version = Version(
        schedule_id,
        1,
        "acme",
        misfire.policy,
        definition,
        effective_from=began + TICK,
        tzdb=TZDB_VERSION,
        created_at=began,
        created_by="1:user/ann",
    )
    schedule = Schedule(*common, ScheduleState.ACTIVE, 1, 1, began, began)
    first = Occurrence(
        schedule_id, 1, began + 5 * MINUTE, 0, "acme", 1, TZDB_VERSION, began
    )
    scanner.groups.ensure(0, began - WATERMARK_LAG)
    scanner.plane.schedules.create(schedule, version, first, quota=10)
    return schedule_id


def rows_of(database: Database, schedule_id: str) -> list[Occurrence]:
    items = database.client.scan(
        TableName=database.tables.timeline, ConsistentRead=True
    )["Items"]
    rows = [decode_occurrence(item) for item in items]
    return [row for row in rows if row.schedule_id == schedule_id]


def test_one_that_was_stopped_in_an_overdue_page_makes_no_row_and_no_second_chain(
    endpoint: str, database: Database
) -> None:
    scanner = scanner_on(database)
    scanner.plane.directory.register_tenant(Tenant("acme", Tier.STANDARD), [])
    scanner.plane.directory.register_handler(Handler("acme", "ring"))
    ago = datetime.now(UTC) - BACK
    began = ago.replace(minute=ago.minute // 5 * 5, second=0, microsecond=0)
    schedules = {add(database, each, began): runs for each, runs in POLICIES.items()}

    stopped = start_pass(endpoint, "stopped", "stop")
    try:
        _, status = os.waitpid(stopped.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        time.sleep(LEASE.total_seconds() + 0.2)
        other = start_pass(endpoint, "other")
        assert other.communicate(timeout=60)[0] == "leased=True kept=True\n"
        before = {key: rows_of(database, key) for key in schedules}
        while os.WIFSTOPPED(status):
            # It stops again at each insert; each of them comes too late.
            os.kill(stopped.pid, signal.SIGCONT)
            _, status = os.waitpid(stopped.pid, os.WUNTRACED)
        assert stopped.stdout is not None
        assert stopped.stdout.read() == "leased=True kept=False\n"
    finally:
        stopped.kill()

    last = start_pass(endpoint, "last")
    assert last.communicate(timeout=60)[0] == "leased=True kept=True\n"
    for schedule_id, runs in schedules.items():
        rows = rows_of(database, schedule_id)
        assert_one_chain(rows, began, runs)
        # Unless a time came within reach meanwhile, there is not one row more.
        assert len(rows) - len(before[schedule_id]) <= 1
