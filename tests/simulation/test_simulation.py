"""A few seeds of the simulation, and that what it finds can be found again."""

import json
import os
import subprocess
import sys
from collections import Counter

import pytest

from tests.simulation import faults, report
from tests.simulation.log import Violation
from tests.simulation.report import FAULTS, MANY_SEEDS, WORK, Report, Result
from tests.simulation.run import main, simulate
from tests.simulation.specs import POLICY_VALUES

# One of each beginning: clocks go forward or back, by an hour or by half of one; and
# some whose shard counts change.
SEEDS = (0, 1, 2, 3, 6, 9)
STEPS = 150
MANY_LINES = 1000


@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_in_a_seeded_world(seed: int) -> None:
    result = simulate(seed, STEPS)

    assert result.violations == []
    assert result.counts["sends"] > 0


def test_a_seed_replays_line_by_line() -> None:
    first, second = simulate(5, 60), simulate(5, 60)

    assert first.lines == second.lines
    assert first.counts == second.counts


@pytest.mark.slow
def test_a_seed_replays_line_by_line_in_any_process() -> None:
    command = [sys.executable, "-m", "tests.simulation.run", "--seed", "21", "--trace"]
    told = {
        subprocess.run(
            [*command, "--steps", "60"],
            check=True,
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
        ).stdout
        for hash_seed in ("1", "2")
    }

    (lines,) = told
    assert len(lines.splitlines()) > MANY_LINES


def test_the_command_tells_seeds_steps_faults_and_policies_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--first", "1", "--seeds", "1", "--steps", "40", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert (code, told["seeds"], told["violations"], told["failed"]) == (0, 1, 0, [])
    assert told["steps"] >= 40
    assert set(told["faults"]) == {*FAULTS, *WORK}
    assert set(told["policy_values"]) == set(POLICY_VALUES)
    assert told["counts"]["task: materializer"] > 0


def test_a_long_run_without_one_class_of_fault_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "MANY_SEEDS", 1)
    monkeypatch.delitem(faults.CHANCES, "stream record lost")

    code = main(["--first", "1", "--seeds", "1", "--steps", "40"])

    assert code == 1
    assert "stream record lost: 0" in capsys.readouterr().err


def whole(seed: int) -> Result:
    """Return a seed that met everything often enough."""
    names = (*FAULTS, *WORK, *report.MET, *report.MOVES, *report.JOBS)
    counts = Counter(dict.fromkeys(names, 4))
    return Result(seed, 400, counts, [], set(POLICY_VALUES))


def test_what_was_met_often_enough_is_no_finding() -> None:
    told = Report()
    for seed in range(MANY_SEEDS):
        told.add(whole(seed))

    assert told.too_rare() == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"steps": 199}, "a seed of 199 steps"),
        ({"values": set(POLICY_VALUES) - {"misfire SKIP"}}, "misfire SKIP: in 0"),
        ({"counts": Counter(dict.fromkeys(FAULTS, 3))}, "tick missed: 90, needs 120"),
        ({"counts": Counter()}, "move order lost: 0, needs 12"),
        ({"counts": Counter()}, "job message lost: 0, needs 3"),
        ({"counts": Counter()}, "ended unclaimed: never"),
        ({"counts": Counter({"task: api": 100})}, "worker dies: 0, needs 30"),
    ],
)
def test_what_was_met_too_rarely_is_named(change: dict[str, object], text: str) -> None:
    told = Report()
    for seed in range(MANY_SEEDS):
        result = whole(seed)
        for name, value in change.items():
            setattr(result, name, value)
        told.add(result)

    assert any(each.startswith(text) for each in told.too_rare()), told.too_rare()


def test_a_violation_is_counted_and_named_with_its_seed() -> None:
    told = Report()
    told.add(Result(7, 400, Counter(), [Violation("nothing is early", 12, "x")]))

    assert told.as_json()["violations"] == 1
    assert told.as_json()["failed"][0]["seed"] == 7
