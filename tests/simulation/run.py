"""Run seeds of the simulation, and print what did not hold.

Run: `python -m tests.simulation.run [--seeds N] [--first S] [--steps K] [--json]`, or
`--seed S [--trace]` for one seed with its timeline.
"""

import argparse
import json
import sys
import traceback
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from tests.simulation.actions import CHANGES
from tests.simulation.faults import CHANCES
from tests.simulation.log import Violation
from tests.simulation.model import Model
from tests.simulation.world import World

STEPS = 400
# Faults of the product that are known, each with a test that expects it to fail.
KNOWN: frozenset[str] = frozenset()


# From so many seeds on, each class of fault must have struck, and each call been made,
# as often as this, or the run proves too little.
MANY_SEEDS, OFTEN = 30, 3
CLASSES = (
    *CHANCES,
    *(f"call: {kind}" for kind in ("create", *sorted(CHANGES), "run", "backfill")),
)


@dataclass
class Result:
    """What came of one seed."""

    seed: int
    steps: int
    counts: Counter[str]
    violations: list[Violation]
    lines: list[str]
    names: dict[str, str]

    @property
    def news(self) -> list[Violation]:
        """The violations that are not of a known kind."""
        return [each for each in self.violations if each.invariant not in KNOWN]


def simulate(seed: int, steps: int = STEPS) -> Result:
    """Run one seed and judge it."""
    world = World(seed)
    try:
        world.run(steps)
        Model(world).judge()
    except Exception as error:  # noqa: BLE001 - a bug of either side is a finding
        told = "".join(traceback.format_exception(error)[-4:])
        world.log.violate("no error of its own", world.steps, told)
    log = world.log
    world.counts["sends"] = len(log.sends)
    world.counts["rows"] = len(world.store.all_rows())
    names = {key: each.name for key, each in world.store.schedules.items()}
    return Result(seed, world.steps, world.counts, log.violations, log.lines, names)


def main(arguments: list[str]) -> int:
    """Run what the arguments name; return 1 when something did not hold."""
    options = _options(arguments)
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    total: Counter[str] = Counter()
    failed: list[Result] = []
    steps = done = 0
    for seed in seeds:
        done += 1
        result = simulate(seed, options.steps)
        total += result.counts
        steps += result.steps
        if result.news:
            failed.append(result)
        total.update(f"known: {name}" for name in _kinds(result) & KNOWN)
        if not options.json:
            _print(result, options)
        if options.stop and failed:
            break
    if options.json:
        print(json.dumps(_summary(done, steps, total, failed), indent=2))
    else:
        print(f"{done} seeds, {steps} steps, {len(failed)} with violations")
        for name, count in sorted(total.items()):
            print(f"  {count:8} {name}")
    return 1 if failed or _is_too_rare(done, total) else 0


def _options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="dev.py simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=STEPS, help="tasks in each")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--trace", action="store_true", help="print the timeline")
    parser.add_argument("--about", help="only lines with this schedule's name")
    parser.add_argument(
        "--stop", action="store_true", help="end with the first finding"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser.parse_args(arguments)


def _is_too_rare(seeds: int, total: Counter[str]) -> bool:
    """Whether a long run met too little of something; say of what."""
    rare = [name for name in CLASSES if total[name] < OFTEN]
    if seeds < MANY_SEEDS or not rare:
        return False
    print(f"too rare to prove anything: {', '.join(rare)}", file=sys.stderr)
    return True


def _kinds(result: Result) -> set[str]:
    return {each.invariant for each in result.violations}


def _print(result: Result, options: argparse.Namespace) -> None:
    if options.trace:
        about = options.about or ""
        print(*(line for line in result.lines if about in line), sep="\n")
    shown = result.violations if options.trace else result.news
    for each in shown[: 50 if options.trace else 4]:
        text = each.text
        for schedule_id, name in result.names.items():
            text = text.replace(schedule_id, name)
        print(f"seed {result.seed} step {each.step}: {each.invariant}: {text}")
    if result.news:
        print(f"  replay: --seed {result.seed} --steps {options.steps} --trace")


def _summary(
    seeds: int, steps: int, total: Counter[str], failed: list[Result]
) -> dict[str, Any]:
    return {
        "seeds": seeds,
        "steps": steps,
        "counts": dict(sorted(total.items())),
        "failed": [
            {
                "seed": each.seed,
                "violations": [asdict(found) for found in each.violations],
            }
            for each in failed
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
