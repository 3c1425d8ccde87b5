"""Run programs step by step, saying which step runs and which one failed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"

# Neither telemetry nor a look-up of an account: every command works offline.
QUIET_TOOLS = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "CDK_DISABLE_CLI_TELEMETRY": "true",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    # This one wants the releases by name.
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "18,19,20,21,22,23,24",
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    "PYTHONUNBUFFERED": "1",
}


class StepFailedError(Exception):
    """A step of a command failed; `code` is the exit code to end with."""

    def __init__(self, step: str, code: int, hint: str = "") -> None:
        super().__init__(f"{step} failed (exit code {code})" + (hint and f": {hint}"))
        self.step = step
        self.code = code


def paint(text: str, color: int, stream_number: int = 1) -> str:
    """Return the text in an ANSI color, or as it is when nobody looks at a terminal."""
    if os.environ.get("NO_COLOR") or not os.isatty(stream_number):
        return text
    return f"\033[{color}m{text}\033[0m"


def say(text: str) -> None:
    """Print one line about the step that begins, on standard error."""
    # Standard output belongs to the command's own result, such as a line of JSON.
    print(paint(f"dev.py: {text}", 36, 2), file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Print one line about a failure, on standard error."""
    print(paint(f"dev.py: {text}", 31, 2), file=sys.stderr, flush=True)


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with the project's tools first on the path."""
    tools = [ROOT / ".venv" / "bin", ROOT / "node_modules" / ".bin"]
    path = os.pathsep.join([*map(str, tools), os.environ.get("PATH", os.defpath)])
    return {**os.environ, **QUIET_TOOLS, "PATH": path, **(extra or {})}


def run(
    step: str,
    command: Sequence[str | Path],
    extra: Mapping[str, str] | None = None,
    *,
    retell: Callable[[str], str | None] | None = None,
) -> None:
    """Run a program in the project's folder and wait for it.

    Args:
        step: what to call it.
        command: the program and its arguments.
        extra: more environment.
        retell: what to say for each line of its standard error; None is nothing.

    Raises:
        StepFailedError: The program could not start (code 127) or did not return 0.
    """
    say(step)
    words = [str(word) for word in command]
    try:
        # Open locks go with it: should this process be killed, the child still holds
        # them, and nobody clears away the folder that it writes to.
        child = subprocess.Popen(
            words,
            cwd=ROOT,
            env=environment(extra),
            close_fds=False,
            stderr=subprocess.PIPE if retell else None,
            text=True,
        )
    except FileNotFoundError as error:
        raise StepFailedError(step, 127, f"{words[0]} was not found") from error
    try:
        for line in child.stderr or ():
            told = retell(line.rstrip("\n")) if retell else None
            if told is not None:
                print(told, file=sys.stderr, flush=True)
        code = child.wait()
    except KeyboardInterrupt:
        # The terminal has told the child too: let it put its things away.
        child.wait()
        raise
    if code:
        code = code if code > 0 else 128 - code
        raise StepFailedError(step, code, shlex.join(words))


def become(step: str, command: Sequence[str | Path]) -> None:
    """Turn this process into the program, so that no parent outlives or hides it."""
    say(step)
    words = [str(word) for word in command]
    os.chdir(ROOT)
    sys.stdout.flush()
    try:
        os.execve(words[0], words, environment())  # noqa: S606 - a list, no shell
    except FileNotFoundError as error:
        raise StepFailedError(step, 127, f"{words[0]} was not found") from error


@contextlib.contextmanager
def only_one(name: str) -> Iterator[None]:
    """Let one process at a time do this, across terminals; others wait their turn."""
    LOCAL.mkdir(exist_ok=True)
    with (LOCAL / f"{name}.lock").open("w") as handle:
        os.set_inheritable(handle.fileno(), True)  # noqa: FBT003 - takes no name
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another dev.py ({name})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)


@contextlib.contextmanager
def timed(step: str) -> Iterator[None]:
    """Print how long the step took when it ends well."""
    start = time.monotonic()
    yield
    say(f"{step}: done in {time.monotonic() - start:.1f} s")
