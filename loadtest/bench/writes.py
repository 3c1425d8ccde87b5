"""What one recurring occurrence costs in DynamoDB.

UNTRACKED, packed and with transactions; and TRACKED, with a claim and a complete.

    python -m loadtest.bench.writes [--json] [--schedules N] [--minutes N]

Runs the real use cases with the real adapters against the embedded engine, which
counts capacity as AWS does. Every table counts, and so do leases and watermarks of
the shard groups and the loads; creating the schedules is measured apart.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hourbell.adapters.dynamodb import Database
from hourbell.adapters.dynamodb.packed import RowWriter
from hourbell.domain.overlap import Overlap
from hourbell.local.aws import engine_session
from hourbell.local.directory import StackDirectory, project_root
from hourbell.local.engine import REGION, start_engine
from hourbell.local.errors import LocalStackError

from loadtest.bench._sizes import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from loadtest.bench._transactions import TransactionalWriter
from loadtest.bench._world import Minutes, Usage, World

if TYPE_CHECKING:
    import boto3

LIMIT = 3.1
SCHEDULES, MINUTES = 250, 5
# Measured besides, by prefix: occurrences that a worker claims in tens and completes.
TRACKED = {"tracked": Overlap.ALLOW, "one-at-a-time": Overlap.SKIP_IF_RUNNING}
# Until every bucket between watermark and horizon is filled.
SETTLING_MINUTES = 5


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one way of writing costs.

    Attributes:
        schedules: how many were created.
        creation: the cost of creating them.
        steady: the minutes that count.
        seconds: how long these minutes took here.
        largest: billed size of each table's largest item, in bytes.
    """

    schedules: int
    creation: Usage
    steady: Minutes
    seconds: float
    largest: dict[str, int]

    def per_occurrence(self, counted: Mapping[str, float]) -> float:
        """Return a sum per occurrence that was delivered."""
        return sum(counted.values()) / self.steady.delivered

    @property
    def write_units(self) -> float:
        """Write units per occurrence."""
        return self.per_occurrence(self.steady.total.write_units)

    def as_dict(self) -> dict[str, Any]:
        """Return the figures, JSON-ready."""
        total = self.steady.total
        return {
            "occurrences": self.steady.delivered,
            "write_units_per_occurrence": round(self.write_units, 4),
            "read_units_per_occurrence": round(
                self.per_occurrence(total.read_units), 4
            ),
            "api_calls_per_occurrence": round(self.per_occurrence(total.calls), 4),
            "phases": {
                name: {
                    "write_units": dict(usage.write_units),
                    "read_units": dict(usage.read_units),
                    "api_calls": dict(usage.calls),
                }
                for name, usage in self.steady.phases.items()
            },
            "creation_write_units_per_schedule": round(
                sum(self.creation.write_units.values()) / self.schedules, 4
            ),
            "largest_item_bytes": self.largest,
            "seconds": round(self.seconds, 2),
        }


def measure(
    session: "boto3.Session", prefix: str, schedules: int, minutes: int
) -> Measurement:
    """Measure the product, or with the prefix `transactions` the comparison.

    Raises:
        RuntimeError: an occurrence is missing, or an item is so large that it costs
            more than was counted; the figures would mean nothing.
    """
    writer = transactional if prefix == "transactions" else None
    world = World(session, prefix, writer, overlap=TRACKED.get(prefix))
    creation = world.create(schedules)
    world.run(SETTLING_MINUTES)
    started = time.perf_counter()
    steady = world.run(minutes)
    seconds = time.perf_counter() - started
    if steady.delivered != schedules * minutes:
        raise RuntimeError(f"{steady.delivered} of {schedules * minutes} delivered")
    largest = world.largest_items()
    if (
        largest["timeline"] > WRITE_UNIT_BYTES
        or max(largest.values()) > READ_UNIT_BYTES
    ):
        raise RuntimeError(f"items are larger than one unit holds: {largest}")
    return Measurement(schedules, creation, steady, seconds, largest)


def transactional(database: Database) -> RowWriter:
    """Return the way of writing that packed writes are compared with."""
    return TransactionalWriter(database.single, database.tables.timeline)


@contextmanager
def engine() -> Iterator["boto3.Session"]:
    """Start the engine alone, and give a session that reaches it."""
    with tempfile.TemporaryDirectory(prefix="hourbell-bench-") as folder:
        directory = StackDirectory.of(Path(folder))
        directory.wipe()
        started = start_engine(directory, project_root(), "bench-writes")
        keys = started.keys
        try:
            yield engine_session(
                started.endpoint_url,
                REGION,
                keys.access_key_id,
                keys.secret_access_key,
            )
        finally:
            started.process.stop()


def show(name: str, measured: Measurement) -> None:
    """Print the figures of one way, by phase, table and operation."""
    steady = measured.steady
    print(f"\n{name}: {steady.delivered} occurrences in {measured.seconds:.1f} s")
    for title, kind in (
        ("write units", "write_units"),
        ("read units", "read_units"),
        ("API calls", "calls"),
    ):
        total = measured.per_occurrence(getattr(steady.total, kind))
        print(f"  {title + ' per occurrence':<27} {total:8.3f}")
        for phase, usage in steady.phases.items():
            for operation, units in sorted(getattr(usage, kind).items()):
                print(f"      {units / steady.delivered:8.4f}  {phase}: {operation}")
    created = sum(measured.creation.write_units.values()) / measured.schedules
    print(f"  (creation: {created:.2f} write units per schedule, its first occurrences")
    print(f"   inside the horizon included; largest items: {measured.largest} bytes)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; return 1 when packed writes cost more than allowed."""
    parser = argparse.ArgumentParser(prog="bench writes", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--schedules", type=int, default=SCHEDULES)
    parser.add_argument("--minutes", type=int, default=MINUTES)
    options = parser.parse_args(arguments)
    try:
        with engine() as session:
            packed, transacted, *tracked = (
                measure(session, prefix, options.schedules, options.minutes)
                for prefix in ("packed", "transactions", *TRACKED)
            )
    except LocalStackError as error:
        print(error.explain(), file=sys.stderr)
        return error.exit_code
    ratio = transacted.write_units / packed.write_units
    within = packed.write_units <= LIMIT
    # With --json, standard output is for programs.
    with redirect_stdout(sys.stderr if options.json else sys.stdout):
        show("Packed conditional writes", packed)
        show("The same with transactions", transacted)
        show("TRACKED, claimed and completed", tracked[0])
        show("The same, one at a time", tracked[1])
        print(f"\ntransactions cost {ratio:.2f} times as much; limit {LIMIT}: ", end="")
        print("kept" if within else "BROKEN")
    if options.json:
        figures = packed.as_dict() | {
            "limit": LIMIT,
            "transactions": transacted.as_dict(),
            "ratio": round(ratio, 3),
            "tracked": tracked[0].as_dict(),
            "tracked_one_at_a_time": tracked[1].as_dict(),
        }
        print(json.dumps(figures))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
