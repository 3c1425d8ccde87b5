"""That the simulation looks: each planted fault is a source patch that it must find.

The patches lie in planted/, each of one fault in the product's source. The seeds are
given a margin over what it took (docs/proof.md), since every change of the world draws
other faults.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PATCHES = ROOT / "tests" / "simulation" / "planted"
CORE = Path("layers") / "core" / "python"

# How many seeds, from 0 on, are run until one finds the fault.
SEEDS = 300
# Found by a crash in a life instead: it takes one between two calls, in one second.
# Seeds find some of them, but rarely.
BY_CRASHES = {
    "twin_not_checked": "1 shards to 4 shards, occurrences",
    "twin_not_read": "1 shards to 4 shards, occurrences",
    "attempts_of_all_replays": "TRACKED, replay",
    "deadline_counts_healthy_waits": "TRACKED, quota and deadline",
    "heartbeat_looks_at_no_version": "TRACKED, cancel of all",
    "due_rows_moved": "1 shards to 4 shards late, parking",
}


def test_every_planted_fault_still_applies() -> None:
    patches = sorted(map(str, PATCHES.glob("*.patch")))
    assert len(patches) >= 24

    for patch in patches:
        check = ["git", "apply", "--check", patch]
        found = subprocess.run(
            check, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr


def test_the_page_tells_of_every_planted_fault() -> None:
    page = (ROOT / "docs" / "proof.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)

    assert sorted(told) == sorted(each.stem for each in PATCHES.glob("*.patch"))


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("patch", sorted(each.stem for each in PATCHES.glob("*.patch")))
def test_planted_fault_is_found(patch: str, tmp_path: Path) -> None:
    shutil.copytree(
        ROOT / CORE, tmp_path / CORE, ignore=shutil.ignore_patterns("__pycache__")
    )
    subprocess.run(
        ["git", "apply", str(PATCHES / f"{patch}.patch")], cwd=tmp_path, check=True
    )

    search = ["tests.simulation.run", "--seeds", str(SEEDS), "--stop", "--json"]
    if patch in BY_CRASHES:
        life = BY_CRASHES[patch]
        search = ["tests.simulation.crash", "--memory", "--life", life, "--json"]
    run = subprocess.run(
        [sys.executable, "-m", *search],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / CORE)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 1, run.stdout + run.stderr
    found = set(re.findall('"invariant": "(.*?)"', run.stdout))
    # That it raises an error of its own is no finding of an invariant.
    assert found - {"no error of its own"}, run.stdout
