"""Stacks for the end-to-end tests: real engine, real pump, on the wall clock."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hourbell.local.directory import StackDirectory, project_root
from hourbell.local.stack import StackInfo, running
from hourbell.local.state import load_state
from hourbell.local.supervisor import Options

from tests.e2e.api_world import ApiWorld, api_world_in
from tests.e2e.probe.assembly import write_assembly

WAIT_SECONDS = 30.0


@dataclass(frozen=True)
class Probe:
    """A running probe stack and what its functions wrote down."""

    stack: StackInfo
    seen_file: Path

    def seen(self, key: str | None = None) -> list[dict[str, Any]]:
        """Return what the functions got, in order; only of one key if named."""
        if not self.seen_file.exists():
            return []
        lines = self.seen_file.read_text(encoding="utf-8").splitlines()
        entries = [json.loads(line) for line in lines]
        return [entry for entry in entries if key in {None, entry["key"]}]

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        self.stack.wait_for(condition, WAIT_SECONDS, what)

    def put(self, *keys: str, wish: str = "") -> None:
        """Write items, whose stream records carry a wish to the function."""
        table = self.stack.admin_session().client("dynamodb")
        for key in keys:
            item = {"pk": {"S": key}, "wish": {"S": wish}}
            table.put_item(TableName="probe-timeline", Item=item)


@contextmanager
def probe_in(folder: Path, options: dict[str, Any], **assembly: Any) -> Iterator[Probe]:
    """Run a probe stack in a folder."""
    seen = folder / "seen.jsonl"
    output = write_assembly(folder / "cdk.out", seen, **assembly)
    chosen = Options(assembly=output, **options)
    with running(folder / "stack", options=chosen) as stack:
        yield Probe(stack, seen)


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Probe]:
    """Give one probe stack to the tests of a module."""
    with probe_in(tmp_path_factory.mktemp("probe"), {}) as running_probe:
        yield running_probe


@dataclass
class Supervisor:
    """A stack run by a process of its own, which a test may kill."""

    process: "subprocess.Popen[str]"
    directory: StackDirectory
    seen_file: Path

    def stack_id(self) -> str:
        return load_state(self.directory).stack_id


PROGRAM = """
import sys
from pathlib import Path
from hourbell.local.directory import StackDirectory
from hourbell.local.progress import Plain
from hourbell.local.serve import serve
from hourbell.local.supervisor import Options
directory, assembly = map(Path, sys.argv[1:])
sys.exit(serve(
    StackDirectory.of(directory),
    Options(assembly=assembly),
    Plain(),
    lambda state: print("READY", flush=True),
))
"""


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    """Give a probe stack whose supervisor is another process."""
    seen = tmp_path / "seen.jsonl"
    output = write_assembly(tmp_path / "cdk.out", seen)
    directory = tmp_path / "stack"
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(directory), str(output)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ.copy(),
        cwd=project_root(),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "READY\n"
    yield Supervisor(process, StackDirectory.of(directory), seen)
    process.kill()
    process.wait(10)
    process.stdout.close()


def eventually(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Return whether a condition comes true within the time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture(scope="session")
def api_world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiWorld]:
    """Give one deployed stack to all tests of the API."""
    with api_world_in(tmp_path_factory.mktemp("api")) as world:
        yield world
