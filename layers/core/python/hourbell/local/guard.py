"""Run one command and make sure that nothing of it outlives the supervisor.

    guard.py LOG MARK -- COMMAND ARGUMENT...

The guard leads a process group of its own. It starts the command with its output
in LOG, prints `pid N` and, in the end, `exit N`, and takes everything down when
its standard input closes (the supervisor holds the other end, so that even
`kill -9` closes it), when its parent changes, or on SIGTERM. Descendants that left
the group are found by MARK, an assignment in their environment (Linux only).

This file is run by path and imports the standard library only, so that it starts
in a few hundredths of a second.
"""

import contextlib
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

GRACE_SECONDS = 3.0
POLL_SECONDS = 0.2
PR_SET_PDEATHSIG = 1


def marked_processes(mark: str) -> list[int]:
    """Return the ids of living processes with this assignment in their environment.

    Without /proc the answer is empty: there the process group must do.
    """
    wanted = mark.encode()
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            assignments = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # gone meanwhile, or another user's
        if wanted in assignments:
            found.append(int(entry.name))
    return found


def kill_marked(mark: str, spare: int | None = None) -> int:
    """Kill every process with the mark but one; return how many there were."""
    killed = 0
    for pid in marked_processes(mark):
        if pid != spare and _signal(pid, signal.SIGKILL):
            killed += 1
    return killed


def die_with_parent(parent: int) -> None:
    """Ask Linux to kill this process when its parent dies (a no-op elsewhere)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)


def watch(child: "subprocess.Popen[bytes]", parent: int) -> None:
    """Return when the child ended, the supervisor is gone, or SIGTERM came."""
    stop = []

    def on_signal(number: int, _frame: FrameType | None) -> None:
        stop.append(number)

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while not stop and child.poll() is None and os.getppid() == parent:
        readable, _, _ = select.select([sys.stdin], [], [], POLL_SECONDS)
        if readable and not os.read(sys.stdin.fileno(), 64):
            return


def take_down(child: "subprocess.Popen[bytes]", mark: str) -> None:
    """End the child politely, then kill whatever carries the mark."""
    if child.poll() is None:
        child.terminate()
        deadline = time.monotonic() + GRACE_SECONDS
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    while kill_marked(mark, spare=os.getpid()):
        time.sleep(0.02)
    if child.poll() is None:
        child.kill()
    child.wait()


def main(arguments: list[str]) -> None:
    """Run the guard; ends by killing its own process group, itself included."""
    log, mark, separator, *command = arguments
    if separator != "--" or not command:
        raise SystemExit("usage: guard.py LOG MARK -- COMMAND ARGUMENT...")
    parent = os.getppid()
    guard = os.getpid()
    name, _, text = mark.partition("=")
    with Path(log).open("ab") as output:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, name: text},
            preexec_fn=lambda: die_with_parent(guard),  # noqa: PLW1509
        )
    _say(f"pid {child.pid}")
    watch(child, parent)
    take_down(child, mark)
    _say(f"exit {child.returncode}")
    if os.getpgid(0) == guard:
        os.killpg(0, signal.SIGKILL)


def _say(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # the supervisor is gone: nobody reads
        print(line, flush=True)


def _signal(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
