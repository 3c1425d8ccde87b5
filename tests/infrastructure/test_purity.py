"""The import contracts and the clock ban hold: shown by planting what they forbid."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = "layers/core/python/hourbell"
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
RUFF = Path(sys.executable).with_name("ruff")

NOW = "from datetime import UTC, datetime\n\nNOW = datetime.now(UTC)\n"

# (contract that must break, files to plant)
VIOLATIONS = {
    "domain imports boto3": ("purity", {f"{CORE}/domain/planted.py": "import boto3\n"}),
    "domain imports time": (
        "purity",
        {f"{CORE}/domain/planted.py": "from time import time\n"},
    ),
    "use case imports os": (
        "purity",
        {f"{CORE}/usecases/planted.py": "import os.path\n"},
    ),
    "use case imports uuid within a function": (
        "purity",
        {f"{CORE}/usecases/planted.py": "def f() -> None:\n    import uuid\n"},
    ),
    "use case imports an adapter": (
        "layers",
        {f"{CORE}/usecases/planted.py": "import hourbell.adapters\n"},
    ),
    "domain imports a use case": (
        "layers",
        {f"{CORE}/domain/planted.py": "import hourbell.usecases\n"},
    ),
    "adapter imports the local stack": (
        "layers",
        {f"{CORE}/adapters/planted.py": "import hourbell.local\n"},
    ),
    "a package of the core has no layer": (
        "layers",
        {f"{CORE}/planted/__init__.py": ""},
    ),
    "function imports boto3": (
        "functions-aws",
        {"functions/planted_one/handler.py": "import boto3\n"},
    ),
    "function imports another function": (
        "functions-apart",
        {
            "functions/planted_one/handler.py": "",
            "functions/planted_two/handler.py": "import functions.planted_one\n",
        },
    ),
    "stack imports the core": (
        "stacks",
        {"stacks/planted.py": "from hourbell.domain import errors\n"},
    ),
    "stack imports a function": (
        "stacks",
        {
            "functions/planted_one/handler.py": "",
            "stacks/planted.py": "import functions.planted_one.handler\n",
        },
    ),
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of what the contracts speak of, with the contracts."""
    ignore = shutil.ignore_patterns("__pycache__")
    for folder in (CORE, "functions", "stacks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [LINT_IMPORTS, "--no-logo", "--no-cache"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "layers/core/python")},
        capture_output=True,
        text=True,
        check=False,
    )


def contract_name(contract: str) -> str:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    names = [str(one["name"]) for one in contracts if one["id"] == contract]
    assert len(names) == 1
    return names[0]


def ruff_codes(root: Path, path: str) -> set[str]:
    """Return the codes of the findings in a file or folder, by the project's rules."""
    result = subprocess.run(
        [RUFF, "check", "--no-cache", "--output-format", "concise", path],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode in {0, 1}, result.stderr
    lines = [line for line in result.stdout.splitlines() if ".py:" in line]
    return {line.split(": ", 1)[1].split(" ", 1)[0] for line in lines}


def test_contracts_hold_without_a_violation(copy: Path) -> None:
    result = lint_imports(copy)

    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.parametrize("violation", VIOLATIONS)
def test_planted_import_breaks_its_contract(copy: Path, violation: str) -> None:
    contract, files = VIOLATIONS[violation]
    plant(copy, files)

    result = lint_imports(copy)

    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract_name(contract)} BROKEN" in result.stdout
    assert "planted" in result.stdout


@pytest.mark.parametrize(
    "folder", [f"{CORE}/domain", f"{CORE}/usecases", f"{CORE}/local", "functions"]
)
def test_reading_the_clock_is_a_finding(copy: Path, folder: str) -> None:
    assert "TID251" not in ruff_codes(copy, folder)
    plant(copy, {f"{folder}/planted.py": f'"""Planted."""\n\n{NOW}'})

    assert "TID251" in ruff_codes(copy, f"{folder}/planted.py")


def test_adapters_may_read_the_clock(copy: Path) -> None:
    plant(copy, {f"{CORE}/adapters/planted.py": f'"""Planted."""\n\n{NOW}'})

    assert ruff_codes(copy, f"{CORE}/adapters/planted.py") == set()


def test_naive_local_time_is_a_finding_even_in_adapters(copy: Path) -> None:
    text = '"""Planted."""\n\nfrom datetime import datetime\n\nNOW = datetime.now()\n'
    plant(copy, {f"{CORE}/adapters/planted.py": text})

    assert "DTZ005" in ruff_codes(copy, f"{CORE}/adapters/planted.py")
