"""Measure resolved next times against croniter, on the same twelve expressions.

A resolved next time is the UTC instant of the next local time in a zone, found with an
expression that is parsed already. Three ways are measured in turn, in one process:

- hourbell: `next_time` of one Timing;
- croniter naive: `get_next` on naive local times, then made an instant with zoneinfo
  and checked against a gap: croniter's fastest use that comes near the contract;
- croniter aware: `get_next` on datetimes with a zone, which is slower and wrong at
  some transitions.

Each way walks the same row of times from 2026 on, starting anew after 2099.
Run: `python -m loadtest.bench.cron [--json] [--seconds S]`.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from statistics import geometric_mean
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from hourbell.domain.schedule import Timing, next_time

ZONE = "America/New_York"
REQUIRED_RATIO = 4.0
EXPRESSIONS = (
    "* * * * *",
    "*/5 * * * *",
    "0 * * * *",
    "30 2 * * *",
    "0 9 * * MON-FRI",
    "15,45 8-18 * * 1-5",
    "0 12 * * 0",
    "0 0 1 * *",
    "0 0 1,15 * 5",
    "7/13 */3 * 6-8 *",
    "0 6 1 1 *",
    "0 0 29 2 *",
)

START = datetime(2026, 1, 1, tzinfo=UTC)
LAST_YEAR = 2099
ROUNDS = 5
BATCH = 50

Walk = Callable[[str], Iterator[datetime]]
"""Makes an endless row of instants from an expression."""


def hourbell(expression: str) -> Iterator[datetime]:
    """Walk with a Timing."""
    timing = Timing(expression, ZONE)
    instant = START
    while True:
        found = next_time(timing, instant)
        instant = START if found is None or found.year > LAST_YEAR else found
        yield instant


def croniter_naive(expression: str) -> Iterator[datetime]:
    """Walk naive local times and resolve each."""
    info = ZoneInfo(ZONE)
    start = START.astimezone(info).replace(tzinfo=None)
    times = croniter(expression, start)
    while True:
        wall = times.get_next(datetime)
        instant = wall.replace(tzinfo=info).astimezone(UTC)
        if instant.astimezone(info).replace(tzinfo=None) != wall:
            continue
        if wall.year > LAST_YEAR:
            times.set_current(start)
        yield instant


def croniter_aware(expression: str) -> Iterator[datetime]:
    """Walk datetimes with a zone."""
    start = START.astimezone(ZoneInfo(ZONE))
    times = croniter(expression, start)
    while True:
        local = times.get_next(datetime)
        if local.year > LAST_YEAR:
            times.set_current(start)
        yield local.astimezone(UTC)


WAYS: dict[str, Walk] = {
    "hourbell": hourbell,
    "croniter_naive": croniter_naive,
    "croniter_aware": croniter_aware,
}


def rate(walk: Iterator[datetime], seconds: float) -> float:
    """Return how many times a second the walk gives, over about `seconds`."""
    count, started = 0, perf_counter()
    while True:
        for _ in range(BATCH):
            next(walk)
        count += BATCH
        spent = perf_counter() - started
        if spent >= seconds:
            return count / spent


def measure(seconds: float) -> dict[str, dict[str, float]]:
    """Measure each way on each expression; the best of several rounds counts.

    The rounds of the three ways alternate, so that a busy machine slows down all.
    """
    rates: dict[str, dict[str, float]] = {}
    for expression in EXPRESSIONS:
        walks = {name: way(expression) for name, way in WAYS.items()}
        best = dict.fromkeys(WAYS, 0.0)
        for _ in range(ROUNDS):
            for name, walk in walks.items():
                best[name] = max(best[name], rate(walk, seconds / ROUNDS))
        rates[expression] = best
    return rates


def overall(rates: dict[str, dict[str, float]], way: str) -> float:
    """Return the rate of a way over all expressions, each asked equally often."""
    return len(rates) / sum(1 / best[way] for best in rates.values())


def report(rates: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Put the figures together."""
    figures = {way: round(overall(rates, way)) for way in WAYS}
    ratios = [best["hourbell"] / best["croniter_naive"] for best in rates.values()]
    ratio = overall(rates, "hourbell") / overall(rates, "croniter_naive")
    aware = overall(rates, "hourbell") / overall(rates, "croniter_aware")
    return {
        "bench": "cron",
        "zone": ZONE,
        "expressions": len(rates),
        "per_second": figures,
        "ratio": round(ratio, 2),
        "ratio_geometric": round(geometric_mean(ratios), 2),
        "ratio_lowest": round(min(ratios), 2),
        "ratio_aware": round(aware, 2),
        "required_ratio": REQUIRED_RATIO,
        "ok": ratio >= REQUIRED_RATIO,
        "each": {
            expression: {way: round(value) for way, value in best.items()}
            for expression, best in rates.items()
        },
    }


def table(figures: dict[str, Any]) -> str:
    """Write the figures for people: an expression a line, then the whole."""
    wide = max(map(len, EXPRESSIONS))
    lines = [
        f"Resolved next times a second in {figures['zone']}, expression parsed:",
        "",
        f"{'':{wide}} {'hourbell':>10} {'croniter':>10} {'aware':>10} {'times':>7}",
    ]
    rows = [*figures["each"].items(), ("all", figures["per_second"])]
    for name, rates in rows:
        ratio = rates["hourbell"] / rates["croniter_naive"]
        numbers = " ".join(f"{rates[way]:10,}" for way in WAYS)
        lines.append(f"{name:{wide}} {numbers} {ratio:6.1f}x")
    kept = "kept" if figures["ok"] else "BROKEN"
    ratio, required = figures["ratio"], figures["required_ratio"]
    lines += [
        "",
        "croniter: on naive local times, resolved with zoneinfo. aware: with a zone.",
        f"Hourbell is {ratio} times as fast; required {required}: {kept}",
    ]
    return "\n".join(lines)


def main() -> int:
    """Print the figures; exit code 1 if the ratio is below the required one."""
    parser = argparse.ArgumentParser(description="Next times against croniter.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=0.25, help="per way and row")
    options = parser.parse_args()
    figures = report(measure(options.seconds))
    print(json.dumps(figures) if options.json else table(figures))
    return 0 if figures["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
