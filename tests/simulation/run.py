"""Run seeds of the simulation, and print what did not hold.

Run: `python -m tests.simulation.run [--seeds N] [--first S] [--steps K] [--json]`, or
`--seed S [--trace [--about NAME]]` for one seed with its timeline.
"""

import argparse
import json
import os
import sys
import traceback
from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

from tests.simulation.afterwards import Afterwards
from tests.simulation.coverage import covered
from tests.simulation.hashes import hash_alike
from tests.simulation.model import Model
from tests.simulation.report import Report, Result
from tests.simulation.world import World

STEPS = 450
# Faults of the product that are known, each with a test that expects it to fail.
KNOWN: frozenset[str] = frozenset()


def simulate(seed: int, steps: int = STEPS) -> Result:
    """Run one seed and judge it."""
    world = World(seed)
    values: set[str] = set()
    try:
        world.run(steps)
        model = Model(world)
        model.judge()
        values = covered(world, model.histories)
        Afterwards(world, world.faults).live()
    except Exception as error:  # noqa: BLE001 - a bug of either side is a finding
        told = "".join(traceback.format_exception(error)[-4:])
        world.log.violate("no error of its own", world.steps, told)
    log = world.log
    world.counts["sends"] = len(log.sends)
    world.counts["rows"] = len(world.store.all_rows())
    names = {key: each.name for key, each in world.store.schedules.items()}
    found = [each for each in log.violations if each.invariant not in KNOWN]
    for each in log.violations:
        world.counts[f"known: {each.invariant}"] += each.invariant in KNOWN
    return Result(seed, world.steps, world.counts, found, values, log.lines, names)


def shrunk(failed: Result, steps: int) -> int:
    """Return with how few steps a seed still breaks its first invariant."""
    first = failed.violations[0]
    tried = sorted({first.step + 1, first.step + 40, steps // 2} - {0})
    for fewer in tried:
        if fewer < steps:
            found = simulate(failed.seed, fewer).violations
            if any(each.invariant == first.invariant for each in found):
                return fewer
    return steps


def main(arguments: list[str]) -> int:
    """Run what the arguments name; return 1 when something did not hold."""
    options = _options(arguments)
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    report = Report()
    with closing(_results(seeds, options)) as results:
        for result in results:
            report.add(result)
            if not options.json:
                _print(result, options)
            if options.stop and report.failed:
                break
    if options.json:
        print(json.dumps(report.as_json(), indent=2))
    else:
        _print_report(report)
    rare = report.too_rare()
    if rare:
        print("too rare to prove anything:", *rare, sep="\n  ", file=sys.stderr)
    return 1 if report.failed or rare else 0


def _results(
    seeds: range, options: argparse.Namespace
) -> Generator[Result, None, None]:
    """Yield the results in order, computed by as many processes as there are cores."""
    workers = min(options.jobs, len(seeds))
    if workers < 2:
        yield from (simulate(seed, options.steps) for seed in seeds)
        return
    with get_context("fork").Pool(workers) as pool:
        yield from pool.imap(partial(_without_lines, steps=options.steps), seeds)


def _without_lines(seed: int, steps: int) -> Result:
    return replace(simulate(seed, steps), lines=[])


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
    cores = os.cpu_count() or 1
    parser.add_argument("--jobs", type=int, default=cores, help="processes at once")
    return parser.parse_args(arguments)


def _print(result: Result, options: argparse.Namespace) -> None:
    if options.trace:
        about = options.about or ""
        print(*(line for line in result.lines if about in line), sep="\n")
    for each in result.violations[: 50 if options.trace else 4]:
        text = result.shown(each)
        print(f"seed {result.seed} step {each.step}: {each.invariant}: {text}")
    if result.violations and not options.trace:
        steps = shrunk(result, options.steps)
        print(f"  replay: --seed {result.seed} --steps {steps} --trace")


def _print_report(report: Report) -> None:
    print(f"{report.seeds} seeds, {report.steps} steps, {report.violations} violations")
    for name, count in sorted(report.counts.items()):
        print(f"  {count:8} {name}")
    for name, count in sorted(report.values.items()):
        print(f"  {count:8} seeds with {name}")
    for name, count in report.invariants.most_common():
        print(f"  {count:8} seeds broke: {name}")


if __name__ == "__main__":
    hash_alike()
    sys.exit(main(sys.argv[1:]))
