"""One synthesis for all tests here; they read what it wrote."""

import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from stacks.settings import ROOT
from tests.infrastructure.templates import Assembly


@pytest.fixture(scope="session")
def synthesized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("synthesis")
    done = subprocess.run(
        [sys.executable, "-m", "tests.infrastructure.synthesis", target],
        capture_output=True,
        check=False,
        cwd=ROOT,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture(scope="session")
def outcomes(synthesized: Path) -> dict[str, str | None]:
    text: dict[str, str | None] = orjson.loads(
        (synthesized / "outcomes.json").read_bytes()
    )
    return text


@pytest.fixture(scope="session")
def assembly(synthesized: Path) -> Assembly:
    return Assembly(synthesized / "default")


@pytest.fixture(scope="session")
def local_assembly(synthesized: Path) -> Assembly:
    return Assembly(synthesized / "local")


@pytest.fixture(scope="session")
def large_assembly(synthesized: Path) -> Assembly:
    return Assembly(synthesized / "large")
