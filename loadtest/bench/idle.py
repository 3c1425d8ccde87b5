"""What a deployment costs in which nothing is due, by its number of shards.

    python -m loadtest.bench.idle [--json] [--minutes N] [--size small ...]

Ticks and passes run as ever against the embedded engine, on tables that hold no row.
The units and calls of a minute are counted there, and priced for a month of 30 days by
AWS's list prices in us-east-1. What the engine cannot tell is assumed, and reported as
such: how long a call takes on AWS, by which the passes' time in Lambda is estimated,
and how often Lambda's pollers ask the internal queues. Dashboards, alarms, logs and
storage are left out, and so is what the free tier takes off.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, Final

from hourbell.local.errors import LocalStackError

from loadtest.bench._world import Minutes, World
from loadtest.bench.writes import engine

if TYPE_CHECKING:
    import boto3

# Shards and shard groups of the sizes small, medium and large.
SIZES: Final = {"small": (16, 4), "medium": (256, 16), "large": (1024, 64)}
MINUTES: Final = 3
# Until the watermark has come as close to now as it comes.
SETTLING_MINUTES: Final = 4
LIMIT_DOLLARS: Final = 5.0

MONTH_MINUTES: Final = 30 * 24 * 60
# Dollars, us-east-1, on demand, arm64.
READ_UNIT: Final = 0.125e-6
WRITE_UNIT: Final = 0.625e-6
SQS_REQUEST: Final = 0.40e-6
INVOCATION: Final = 0.20e-6
GIGABYTE_SECOND: Final = 0.0000133334

# Assumed.
CALL_SECONDS: Final = 0.005
INVOCATION_SECONDS: Final = 0.020
MATERIALIZER_GB, TICK_GB = 1.0, 0.5
# Lambda polls a queue with at least five long polls of 20 s.
POLLS_A_MINUTE: Final = 5 * 3
POLLED_QUEUES: Final = (
    *("work", "sweep", "jobs"),
    *("premium-dlq", "standard-dlq", "basic-dlq"),
)


def measure(session: "boto3.Session", size: str, minutes: int) -> Minutes:
    """Let an empty deployment of a size go on for some minutes."""
    shards, groups = SIZES[size]
    world = World(session, f"idle-{size}", shards=shards, groups=groups)
    world.begin()
    world.run(SETTLING_MINUTES)
    return world.run(minutes)


def price(size: str, done: Minutes, minutes: int) -> dict[str, Any]:
    """Return what a month costs, item by item, in dollars."""
    shards, groups = SIZES[size]
    total = done.total
    reads = sum(total.read_units.values()) / minutes
    writes = sum(total.write_units.values()) / minutes
    calls = sum(done.phases["pass"].calls.values()) / minutes
    # Lambda takes an order and deletes it; the bench does so unmetered.
    requests = sum(n for name, n in total.calls.items() if _is_queue(name)) / minutes
    requests += groups + POLLS_A_MINUTE * len(POLLED_QUEUES)
    busy = calls * CALL_SECONDS + groups * INVOCATION_SECONDS
    seconds = busy * MATERIALIZER_GB + INVOCATION_SECONDS * TICK_GB
    dollars = {
        "reads": reads * READ_UNIT,
        "writes": writes * WRITE_UNIT,
        "queues": requests * SQS_REQUEST,
        "invocations": (groups + 1) * INVOCATION,
        "compute": seconds * GIGABYTE_SECOND,
    }
    month = {name: round(each * MONTH_MINUTES, 2) for name, each in dollars.items()}
    return {
        "shards": shards,
        "groups": groups,
        "read_units_a_month": round(reads * MONTH_MINUTES),
        "write_units_a_month": round(writes * MONTH_MINUTES),
        "calls_a_minute": round(sum(total.calls.values()) / minutes, 1),
        "dollars_a_month": month,
        "total_dollars_a_month": round(sum(month.values()), 2),
    }


def _is_queue(operation: str) -> bool:
    return "SendMessage" in operation


def show(name: str, figures: dict[str, Any]) -> None:
    """Print the figures of one size."""
    print(f"\n{name}: {figures['shards']} shards in {figures['groups']} groups")
    print(f"  read units a month   {figures['read_units_a_month']:>14,}")
    print(f"  write units a month  {figures['write_units_a_month']:>14,}")
    for item, dollars in figures["dollars_a_month"].items():
        print(f"  {item:<20} $ {dollars:>12,.2f}")
    print(f"  {'in all, a month':<20} $ {figures['total_dollars_a_month']:>12,.2f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; return 1 when the smallest size costs more than allowed."""
    parser = argparse.ArgumentParser(prog="bench idle", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--minutes", type=int, default=MINUTES)
    parser.add_argument("--size", nargs="+", choices=SIZES, default=list(SIZES))
    options = parser.parse_args(arguments)
    try:
        with engine() as session:
            sizes = {
                size: price(
                    size, measure(session, size, options.minutes), options.minutes
                )
                for size in options.size
            }
    except LocalStackError as error:
        print(error.explain(), file=sys.stderr)
        return error.exit_code
    small = sizes.get("small", {}).get("total_dollars_a_month", 0.0)
    within = bool(small <= LIMIT_DOLLARS)
    with redirect_stdout(sys.stderr if options.json else sys.stdout):
        for size, figures in sizes.items():
            show(size, figures)
        verdict = "kept" if within else "BROKEN"
        print(f"\nlimit for small: $ {LIMIT_DOLLARS:.2f} a month: {verdict}")
    if options.json:
        assumed = {
            "call_seconds": CALL_SECONDS,
            "invocation_seconds": INVOCATION_SECONDS,
            "polls_a_minute_and_queue": POLLS_A_MINUTE,
        }
        figures = {"bench": "idle", "limit": LIMIT_DOLLARS, "assumed": assumed}
        print(json.dumps(figures | sizes))
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
