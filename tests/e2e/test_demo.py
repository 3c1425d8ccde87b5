"""The demo as people run it: one command, its last line, its exit code, no traces."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timed]

DEADLINE_SECONDS = 240


@contextmanager
def demo(state: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Start the demo in a folder of its own; end it whatever happens."""
    command = [sys.executable, "-m", "hourbell.local.demo", "--state-dir", str(state)]
    process = subprocess.Popen(
        [*command, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    overdue = threading.Timer(DEADLINE_SECONDS, process.kill)
    overdue.start()
    try:
        yield process
    finally:
        overdue.cancel()
        process.kill()
        process.wait()


def read_until(process: "subprocess.Popen[str]", text: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text in line:
            return
    pytest.fail(f"the demo ended without saying {text!r}")


def processes_of(folder: Path) -> list[str]:
    """Return the command lines that mention a folder, or run with it as TMPDIR."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if int(entry.name) != os.getpid() and str(folder).encode() in words:
            found.append(words.decode(errors="replace")[:200])
    return found


# The gate runs the demo itself, too.
@pytest.mark.long
def test_everything_arrives_in_time_and_nothing_is_left_behind(tmp_path: Path) -> None:
    state = tmp_path / "demo"
    with demo(state, "--json") as process:
        output, errors = process.communicate()

    assert process.returncode == 0, errors
    *_, last = output.splitlines()
    summary = json.loads(last)
    assert summary["scheduled"] >= 203
    assert summary["delivered"] == summary["scheduled"]
    assert (summary["missing"], summary["early"]) == (0, 0)
    assert summary["lag_seconds"]["received"]["p99"] <= 5
    assert summary["lag_seconds"]["visible"]["p50"] >= 0
    assert not state.exists()
    assert processes_of(state) == []


def test_an_interrupt_takes_everything_down(tmp_path: Path) -> None:
    state = tmp_path / "demo"
    with demo(state) as process:
        read_until(process, "Register three tenants")
        process.send_signal(signal.SIGINT)
        process.communicate()

    assert process.returncode == 130
    assert not state.exists()
    assert processes_of(state) == []


def test_a_killed_demo_leaves_no_process(tmp_path: Path) -> None:
    state = tmp_path / "demo"
    with demo(state) as process:
        read_until(process, "Register three tenants")
        process.kill()
        process.wait()
        deadline = time.monotonic() + 15
        while (left := processes_of(state)) and time.monotonic() < deadline:
            time.sleep(0.1)

    assert left == []
