"""Keep a local stack up until somebody ends it, in the foreground or detached.

python -m hourbell.local.serve DIRECTORY [PORT]
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

from hourbell.local.directory import StackDirectory
from hourbell.local.errors import AlreadyRunning, LocalStackError
from hourbell.local.progress import Plain, Reporter
from hourbell.local.state import READY, StackState, load_state
from hourbell.local.supervisor import Options, Supervisor

SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
POLL_SECONDS = 0.1
DETACHED_SECONDS = 400.0  # more than a synthesis may take


class Interrupted(BaseException):
    """A signal asks to end; `number` is the signal's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def serve(
    directory: StackDirectory,
    options: Options,
    reporter: Reporter,
    on_ready: Callable[[StackState], None],
) -> int:
    """Start a stack, wait for a signal, take it down; return the exit code.

    Raises:
        LocalStackError: it cannot be started, or the engine ended by itself.
    """
    supervisor = Supervisor(directory, options, reporter)
    try:
        with _signals_raise():
            on_ready(supervisor.start())
            while not supervisor.failed.wait(POLL_SECONDS):
                pass
    except Interrupted as interrupted:
        return 0 if interrupted.number == signal.SIGTERM else 128 + interrupted.number
    finally:
        with reporter.step("Take the stack down"):
            supervisor.stop()
    raise LocalStackError(
        "The engine ended by itself; the stack is down.", log=directory.log("engine")
    )


def start_detached(
    directory: StackDirectory, options: Options, reporter: Reporter
) -> StackState:
    """Start a stack in a process of its own and return when it is ready.

    Raises:
        AlreadyRunning: the directory has a stack.
        LocalStackError: it did not come up; the message is the stack's own.
    """
    if directory.is_locked():
        raise AlreadyRunning(
            f"A local stack already runs in {directory.root}.",
            hint=f"hourbell local down --dir {directory.root}",
        )
    directory.root.mkdir(parents=True, exist_ok=True)
    directory.state_file.unlink(missing_ok=True)
    log = directory.root / "up.log"
    port = [str(options.port)] if options.port else []
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "hourbell.local.serve", str(directory.root), *port],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    with reporter.step("Start the local stack"):
        return _await_ready(directory, process, log)


def _await_ready(
    directory: StackDirectory, process: "subprocess.Popen[bytes]", log: Path
) -> StackState:
    deadline = time.monotonic() + DETACHED_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(LocalStackError):
            state = load_state(directory)
            if state.status == READY:
                return state
        if process.poll() is not None:
            text = log.read_text(encoding="utf-8", errors="replace").strip()
            raise LocalStackError(text or "The stack ended at once.")
        time.sleep(POLL_SECONDS)
    process.terminate()
    raise LocalStackError(f"Not up after {DETACHED_SECONDS:.0f} s.", log=log)


@contextlib.contextmanager
def _signals_raise() -> Iterator[None]:
    """Turn signals into `Interrupted`; afterwards, while cleaning up, ignore them."""

    def interrupt(number: int, _frame: FrameType | None) -> None:
        _ignore_signals()
        raise Interrupted(number)

    for number in SIGNALS:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        _ignore_signals()


def _ignore_signals() -> None:
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def main(arguments: list[str]) -> int:
    """Run a detached stack; its output is the log that the starter shows."""
    root, *port = arguments
    options = Options(port=int(port[0]) if port else None)
    try:
        return serve(StackDirectory.of(root), options, Plain(), lambda _state: None)
    except LocalStackError as error:
        Plain().note(error.explain())
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
