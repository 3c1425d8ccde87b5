"""The demo: 203 schedules reach their queues, on a local stack of its own.

    python -m hourbell.local.demo [--json] [--keep] [--state-dir FOLDER]

Everything goes the way that users go: requests signed by IAM users over HTTP, a
consumer that receives from SQS. What must arrive is computed in demo_oracle.
"""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console

from hourbell.local.demo_plan import ZONE
from hourbell.local.demo_report import print_report
from hourbell.local.demo_run import Settings, perform
from hourbell.local.demo_verdict import Verdict
from hourbell.local.demo_watch import watching
from hourbell.local.directory import StackDirectory, project_root
from hourbell.local.errors import LocalStackError
from hourbell.local.progress import Reporter, reporter_for_terminal
from hourbell.local.stack import StackInfo, running

FOLDER = ".local/demo"
API_FUNCTION = "hourbell-api"
PIPE_WIDTH = 140
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; return 0 only if everything arrived as promised."""
    options = _parse(arguments)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        directory = StackDirectory.of(options.state_dir or project_root() / FOLDER)
        return _watched(directory, options)
    except LocalStackError as error:
        print(f"The demo failed. {error.explain()}", file=sys.stderr)
        return error.exit_code


def _watched(directory: StackDirectory, options: argparse.Namespace) -> int:
    """Run, and clean up unless there is a failure to look into."""
    try:
        verdict = _run(directory, options, reporter_for_terminal())
    except KeyboardInterrupt:
        clear(directory)
        print("Interrupted; everything is taken down.", file=sys.stderr)
        return INTERRUPTED
    if not verdict.is_good:
        print(f"Logs are kept in {directory.logs}", file=sys.stderr)
        return 1
    clear(directory)
    return 0


def _run(
    directory: StackDirectory, options: argparse.Namespace, reporter: Reporter
) -> Verdict:
    with running(directory.root, reporter=reporter, reuse=False) as stack:
        try:
            with watching() as watch:
                verdict = perform(stack, Settings(), reporter, watch)
        except LocalStackError as error:
            save_function_logs(stack)
            error.log = error.log or directory.log(API_FUNCTION)
            raise
        console = _console(to_stderr=options.json)
        print_report(verdict, ZONE, console)
        if options.json:
            print(verdict.as_json(), flush=True)
        if not verdict.is_good:
            save_function_logs(stack)
        if options.keep:
            _stay(stack)
    return verdict


def _console(*, to_stderr: bool) -> Console:
    """Return where the report goes; a file or a pipe gets the wide form."""
    stream = sys.stderr if to_stderr else sys.stdout
    return Console(file=stream, width=None if stream.isatty() else PIPE_WIDTH)


def _stay(stack: StackInfo) -> None:
    """Keep the stack until somebody stops it."""
    print(
        f"The stack stays up: HTTP API {stack.api_url}\n"
        f"  use it   set -a; . {stack.directory.env_file}; set +a\n"
        f"  logs     {stack.logs}\n"
        "  stop it  Ctrl-C here",
        file=sys.stderr,
    )
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        print("Taking it down.", file=sys.stderr)


def save_function_logs(stack: StackInfo) -> None:
    """Write what the functions logged into files, which outlive the stack."""
    for function in stack.state.functions:
        text = "\n".join(stack.function_log(function))
        stack.directory.log(function).write_text(text + "\n", encoding="utf-8")


def clear(directory: StackDirectory) -> None:
    """Remove what a stack left in its directory, and the directory if it is empty."""
    directory.wipe()
    for folder in (directory.logs, directory.run):
        _remove_tree(folder)
    if directory.root.is_dir() and not any(directory.root.iterdir()):
        directory.root.rmdir()


def _remove_tree(folder: Path) -> None:
    for entry in sorted(folder.rglob("*"), reverse=True):
        if entry.is_dir() and not entry.is_symlink():
            entry.rmdir()
        else:
            entry.unlink()
    folder.rmdir()


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="demo", description="Watch 203 schedules reach their queues."
    )
    parser.add_argument(
        "--json", action="store_true", help="print a summary as the last line"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the stack up until Ctrl-C"
    )
    parser.add_argument(
        "--state-dir", type=Path, help=f"the stack's own folder ({FOLDER})"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
