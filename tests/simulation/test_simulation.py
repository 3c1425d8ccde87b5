"""A few seeds of the simulation, and that what it finds can be found again."""

import json

import pytest

from tests.simulation import faults, run
from tests.simulation.run import KNOWN, main, simulate

# Chosen for what they go through: no faults, all faults, both kinds of outage.
SEEDS = (0, 1, 2, 3)
STEPS = 150


@pytest.mark.parametrize("seed", SEEDS)
def test_invariants_hold_in_a_seeded_world(seed: int) -> None:
    result = simulate(seed, STEPS)

    assert [each for each in result.violations if each.invariant not in KNOWN] == []
    assert result.counts["sends"] > 0


def test_a_seed_replays_line_by_line() -> None:
    first, second = simulate(5, 60), simulate(5, 60)

    assert first.lines == second.lines
    assert first.counts == second.counts


def test_the_command_tells_seeds_steps_and_faults_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--first", "1", "--seeds", "1", "--steps", "40", "--json"])

    told = json.loads(capsys.readouterr().out)
    assert (code, told["seeds"], told["failed"]) == (0, 1, [])
    assert told["steps"] >= 40
    assert told["counts"]["task: materializer"] > 0


def test_a_long_run_without_one_class_of_fault_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MANY_SEEDS", 1)
    monkeypatch.delitem(faults.CHANCES, "stream record lost")

    code = main(["--first", "1", "--seeds", "1", "--steps", "40"])

    assert code == 1
    assert "stream record lost" in capsys.readouterr().err
