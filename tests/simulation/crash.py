"""Stop a process at every port call of an occurrence's life, and see what is lost.

Run: `python -m tests.simulation.crash [--json] [--memory] [--life TEXT]`, or
`--life TEXT --at N [--after] --trace` for one crash with its timeline. Without
`--memory`, some lives are also lived on DynamoDB and SQS adapters, against an engine
of the command's own.
"""

import argparse
import json
import os
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

from tests.simulation.crash_world import CrashWorld
from tests.simulation.hashes import hash_alike
from tests.simulation.lives import POLICIES, WINDOWS, Life, every_life
from tests.simulation.store import MOVES

# Port calls that a full enumeration must have stopped at.
CALLS = {
    *("create", "plan", "move", "post", "settle", "send", "page", "read", "look_up"),
    *("versions", "version_log", "find", "succeed", "take_over", "complete"),
    *("record_run", "record_backfill", "reopen", "find_run", "backfills"),
    *("ensure", "acquire", "release", "park", "unpark", "parked"),
    *("reserve", "add", "advance", "put", "named_handlers", "tenants"),
    *("store", "rows_from", "relocate", "plan_apart"),
    *("do", "lane", "slots", "unfinished"),
}
NOT_MADE = {"SCHEDULED -> DEAD"}
WANTED_MOVES = {f"{a} -> {b}" for a, ends in MOVES.items() for b in ends} - NOT_MADE
# What workers and their consumers bring about.
WANTED_MOVES |= {
    *("SCHEDULED -> RUNNING", "ENQUEUED -> RUNNING", "RUNNING -> SUCCEEDED"),
    *("RUNNING -> RETRY_WAIT", "RUNNING -> DEAD", "RUNNING -> CANCELED"),
    *("RETRY_WAIT -> SCHEDULED", "DEAD -> DEFERRED", "ENQUEUED -> DEAD"),
    *("ENQUEUED -> DEFERRED", "ENQUEUED -> WAITING_OVERLAP"),
    *("ENQUEUED -> SKIPPED_OVERLAP", "WAITING_OVERLAP -> SCHEDULED"),
}
# Of the points of lives of policies, so many have each value.
LEAST_POINTS = 0.1
POLICY_VALUES = (
    *(policy for policy, _ in POLICIES),
    *(f"window {window}" for window in WINDOWS),
    *("on time", "overdue", "one-time", "recurring"),
)

Maker = Callable[..., CrashWorld]


@dataclass
class Found:
    """What came of one life, stopped at all its port calls.

    Attributes:
        points: how many places there were: before and after each call.
        calls: by port call, how often a process was stopped at it.
        violations: (where, invariant, what).
    """

    life: str
    points: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    moves: set[str] = field(default_factory=set)
    policies: tuple[str, ...] = ()
    violations: list[tuple[str, str, str]] = field(default_factory=list)

    def judge(self, world: CrashWorld) -> None:
        """Take what a world violated, and what it did."""
        where = f"{world.point} {world.where}"
        self.moves |= world.moves
        self.violations += [
            (where, each.invariant, each.text) for each in world.log.violations
        ]


def enumerate_life(
    life: Life, make: Maker = CrashWorld, *, only: frozenset[str] = frozenset()
) -> Found:
    """Live a life once, and then again with a crash at each place.

    Args:
        life: what happens.
        make: makes its worlds.
        only: port calls; if there are any, it is stopped at these alone.
    """
    found = Found(life.name, policies=life.policies)
    whole = lived(make(life))
    found.judge(whole)
    # Later calls are those of passes that find nothing to do any more.
    for point in range(1, whole.last_write + 1):
        if only and whole.names[point - 1] not in only:
            continue
        for after in (False, True):
            world = lived(make(life, point, after=after))
            found.points += 1
            found.calls[world.where.split()[-1] if world.where else "nowhere"] += 1
            found.judge(world)
    return found


def lived(world: CrashWorld) -> CrashWorld:
    """Return a world after its life; an error of its own is a violation."""
    try:
        world.live()
    except Exception as error:  # noqa: BLE001 - a bug of either side is a finding
        told = "".join(traceback.format_exception(error)[-4:])
        world.log.violate("no error of its own", world.steps, told)
    return world


def summary(every: Iterable[Found]) -> dict[str, Any]:
    """Return what came of all lives, JSON-ready."""
    lives = list(every)
    calls: Counter[str] = Counter()
    policies: Counter[str] = Counter()
    moves: set[str] = set()
    for each in lives:
        calls += each.calls
        moves |= each.moves
        policies.update(dict.fromkeys(each.policies, each.points))
    return {
        "lives": len(lives),
        "crash_points": sum(each.points for each in lives),
        "policy_values": dict(policies),
        "calls": dict(sorted(calls.items())),
        "transitions": sorted(moves),
        "points_by_life": {each.life: each.points for each in lives},
        "violations": sum(len(each.violations) for each in lives),
        "failed": [
            {"life": each.life, "at": at, "invariant": name, "text": text}
            for each in lives
            for at, name, text in each.violations
        ],
    }


def missing(told: dict[str, Any]) -> list[str]:
    """Return what a full enumeration did not come to."""
    calls = sorted(CALLS - set(told["calls"]))
    moves = sorted(WANTED_MOVES - set(told["transitions"]))
    values = told["policy_values"]
    points = max(values.get("on time", 0) + values.get("overdue", 0), 1)
    rare = [
        f"{value}: {values.get(value, 0)} of {points} crash points"
        for value in POLICY_VALUES
        if values.get(value, 0) < points * LEAST_POINTS
    ]
    return [
        *(f"never stopped at {name}" for name in calls),
        *(f"never saw {move}" for move in moves),
        *rare,
    ]


def main(arguments: list[str]) -> int:
    """Run what the arguments name; return 1 when something did not hold."""
    options = _options(arguments)
    lives = [life for life in every_life() if options.life in life.name]
    if options.at is not None:
        return _replay(lives[0], options)
    with get_context("fork").Pool(options.jobs) as pool:
        # The longest first, so that no core waits for the last one.
        longest = sorted(lives, key=lambda life: life.lasts, reverse=True)
        found = pool.imap_unordered(enumerate_life, longest, chunksize=1)
        engine = None if options.memory else _on_engine(options.life)
        told = summary(found)
    told["missing"] = [] if options.life else missing(told)
    if engine is not None:
        told["engine"] = engine
        told["crash_points"] += engine["crash_points"]
        told["violations"] += engine["violations"]
        told["failed"] += engine["failed"]
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        _print(told)
    return 1 if told["violations"] or told["missing"] else 0


def _on_engine(text: str) -> dict[str, Any]:
    # What only this needs takes its time to import.
    from tests.simulation.crash_engine import on_engine  # noqa: PLC0415

    return on_engine(text)


def _replay(life: Life, options: argparse.Namespace) -> int:
    world = lived(CrashWorld(life, options.at, after=options.after))
    if options.trace:
        print(*world.log.lines, sep="\n")
    for each in world.log.violations:
        print(f"{life.name}, {world.where}: {each.invariant}: {each.text}")
    return 1 if world.log.violations else 0


def _print(told: dict[str, Any]) -> None:
    for each in told["failed"][:20]:
        print(f"{each['life']}, at {each['at']}: {each['invariant']}: {each['text']}")
    for text in told["missing"]:
        print(text)
    print(
        f"{told['lives']} lives, {told['crash_points']} crash points, "
        f"{told['violations']} violations"
    )


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py crash", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--memory", action="store_true", help="without the engine")
    parser.add_argument("--life", default="", help="only lives with this in the name")
    parser.add_argument("--at", type=int, help="stop at this port call alone")
    parser.add_argument("--after", action="store_true", help="when it took effect")
    parser.add_argument("--trace", action="store_true", help="print the timeline")
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, help="processes at once")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    hash_alike()
    sys.exit(main(sys.argv[1:]))
