"""One pass of group 0, in a process of its own that may stop in the middle of it.

Usage: python -m tests.e2e.stopped_pass <endpoint> <prefix> <holder> [stop]
"""

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hourbell.adapters.clock import SystemClock
from hourbell.adapters.dynamodb import (
    Database,
    DynamoDirectory,
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
from hourbell.adapters.ids import SecretIds
from hourbell.adapters.memory import MemorySweepQueue, MemoryWorkQueue
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.shards import ShardMap
from hourbell.usecases import scan
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import GroupWork, Write
from hourbell.usecases.scan import Scanner, run_pass
from hourbell.usecases.workplace import Workplace

from tests.conformance.engine import engine_session

SHARDS = ShardMap.constant(1, 1)
# So that the test need not wait for the real one to end.
LEASE = timedelta(seconds=2)


class Stopping:
    """A timeline that stops the process after its first insert."""

    def __init__(self, port: DynamoTimeline) -> None:
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        answers = self._port.plan(rows)
        os.kill(os.getpid(), signal.SIGSTOP)
        return answers


def scanner_on(database: Database) -> Scanner:
    """Return the ports of a pass on an engine's tables."""
    clock = SystemClock()
    plane = Plane(
        DynamoSchedules(database),
        DynamoTimeline(database),
        DynamoDirectory(database, clock),
        SHARDS,
        timedelta(seconds=180),
        DynamoLoads(database),
        DynamoRates(database),
    )
    return Scanner(
        plane,
        DynamoShardGroups(database),
        DynamoParking(database),
        MemorySweepQueue(),
        MemoryWorkQueue(),
        clock,
        Workplace.of(plane, DynamoLedger(database), SecretIds(), clock),
    )


def main(endpoint: str, prefix: str, holder: str, *options: str) -> None:
    """Do the pass, and print what became of the lease."""
    database = connect(
        TableNames.with_prefix(prefix),
        session=engine_session(),
        endpoint_url=endpoint,
    )
    scanner = scanner_on(database)
    if "stop" in options:
        timeline: Any = Stopping(DynamoTimeline(database))
        scanner = replace(scanner, plane=replace(scanner.plane, timeline=timeline))
    scan.LEASE_DURATION = LEASE
    work = GroupWork(0, scanner.clock.now())
    report = run_pass(scanner, work, holder=holder)
    print(f"leased={report.leased} kept={report.kept}")


if __name__ == "__main__":
    main(*sys.argv[1:])
