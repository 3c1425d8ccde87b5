"""Start guarded processes, and find what belongs to a stack."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from hourbell.local import guard
from hourbell.local.errors import LocalStackError

STACK_VARIABLE = "HOURBELL_LOCAL_STACK"
GUARD_VARIABLE = "HOURBELL_LOCAL_GUARD"
INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "SYSTEMROOT")
START_SECONDS = 10.0


def clean_environment(**extra: str) -> dict[str, str]:
    """Return an environment with nothing of the user's AWS settings or proxies."""
    kept = {name: os.environ[name] for name in INHERITED if name in os.environ}
    return {**kept, "NO_PROXY": "*", **extra}


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_is_free(port: int) -> bool:
    """Return whether nothing listens on this loopback port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def is_alive(pid: int | None) -> bool:
    """Return whether a process with this id exists and is not a zombie."""
    if not pid:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return True  # no /proc here
    return status.rpartition(")")[2].split()[0] != "Z"


def stack_processes(stack_id: str) -> list[int]:
    """Return the ids of all processes of a stack, guards included (Linux only)."""
    return guard.marked_processes(f"{STACK_VARIABLE}={stack_id}")


def kill_stack(stack_id: str) -> int:
    """Kill every process of a stack; return how many there were."""
    return guard.kill_marked(f"{STACK_VARIABLE}={stack_id}")


def environment_of(pid: int) -> dict[str, str]:
    """Return the environment a process was started with; empty when unknown."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (entry.partition("=") for entry in raw.decode(errors="replace").split("\0"))
    return {name: text for name, separator, text in pairs if separator}


@dataclass(slots=True)
class Guarded:
    """One process of the stack, run under a guard.

    Attributes:
        name: what people call it; also the name of its log.
        log: where its output goes.
        pid: the process itself, not its guard.
        exit_code: how it ended; None while it runs or when nobody could tell.
    """

    name: str
    log: Path
    pid: int
    process: "subprocess.Popen[str]"
    exit_code: int | None = None
    ended: threading.Event = field(default_factory=threading.Event)

    def stop(self, timeout_seconds: float = 8.0) -> None:
        """Ask the guard to take everything down, and wait for it."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout_seconds)
        self.ended.wait(timeout_seconds)

    def follow(self) -> None:
        """Read what the guard reports until it ends."""
        stream = self.process.stdout
        for line in stream or ():
            word, _, number = line.partition(" ")
            if word == "exit":
                self.exit_code = int(number)
        self.process.wait()
        self.ended.set()


def start_guarded(
    name: str,
    command: list[str],
    environment: dict[str, str],
    log: Path,
    folder: Path | None = None,
) -> Guarded:
    """Start a command under a guard and return when its process exists.

    Args:
        name: what people call it.
        command: program and arguments.
        environment: the whole environment of the process.
        log: where its output is added.
        folder: its working directory; ours by default.

    Raises:
        LocalStackError: the command cannot be run.
    """
    mark = f"{GUARD_VARIABLE}={uuid4().hex}"
    # By path and isolated: no site, no import of this package, a fast start.
    interpreter = [sys.executable, "-I", "-S", guard.__file__]
    process = subprocess.Popen(
        [*interpreter, str(log), mark, "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    first = process.stdout.readline() if process.stdout else ""
    word, _, number = first.partition(" ")
    if word != "pid":
        raise LocalStackError(f"The {name} cannot be started: {command[0]}", log=log)
    guarded = Guarded(name, log, int(number), process)
    threading.Thread(target=guarded.follow, name=f"{name}-guard", daemon=True).start()
    return guarded


def wait_gone(pids: list[int], timeout_seconds: float) -> list[int]:
    """Wait until processes have ended; return those that have not."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        left = [pid for pid in pids if is_alive(pid)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def signal_process(pid: int, number: int = signal.SIGTERM) -> bool:
    """Send a signal; return False when the process is gone."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True
