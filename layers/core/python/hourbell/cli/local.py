"""`hourbell local`: the whole system on this machine, without an AWS account."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hourbell.local.clock import now_seconds
from hourbell.local.directory import StackDirectory, project_root
from hourbell.local.errors import LocalStackError
from hourbell.local.progress import Reporter, reporter_for_terminal
from hourbell.local.state import StackState, is_known

if TYPE_CHECKING:
    from hourbell.local.stack import StackInfo

app = typer.Typer(
    help="The whole system on this machine, without an AWS account.",
    no_args_is_help=True,
    add_completion=False,
)

TAIL_LINES = 20

Directory = Annotated[
    Path | None,
    typer.Option("--dir", help="Folder of the stack; .local of the project if absent."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


@app.command()
def up(
    *,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Return when it is ready.")
    ] = False,
    port: Annotated[
        int | None, typer.Option(help="The engine's loopback port; a free one if 0.")
    ] = None,
    restart: Annotated[
        bool,
        typer.Option("--restart/--no-restart", help="Start a dead pump again."),
    ] = True,
    directory: Directory = None,
) -> None:
    """Start engine and stream pump, deploy the synthesized templates, stay up.

    Its data is gone when it goes down.
    """
    from hourbell.local.serve import serve, start_detached  # noqa: PLC0415
    from hourbell.local.supervisor import Options  # noqa: PLC0415

    with _explained():
        place = _place(directory)
        reporter = reporter_for_terminal()
        options = Options(port=port or None)
        if not restart:
            options = Options(port=port or None, restart_pump=False)
        if detach:
            _announce(place, start_detached(place, options, reporter), reporter)
            return
        code = serve(
            place,
            options,
            reporter,
            lambda state: _announce(place, state, reporter, stay=True),
        )
    raise typer.Exit(code)


@app.command()
def down(directory: Directory = None) -> None:
    """Stop the stack, and remove what a killed one left behind."""
    from hourbell.local.stack import take_down  # noqa: PLC0415

    reporter = reporter_for_terminal()
    with _explained():
        place = _place(directory)
        if not is_known(place):
            typer.echo("No local stack runs.")
            return
        with reporter.step("Take the stack down"):
            left = take_down(place)
        if left:
            reporter.note(f"killed {left} processes that were left")


@app.command()
def status(*, as_json: AsJson = False, directory: Directory = None) -> None:
    """Show what runs, where, and since when; exit code 3 when nothing does."""
    from hourbell.local.stack import attach  # noqa: PLC0415
    from hourbell.local.status import report  # noqa: PLC0415

    with _explained():
        found = report(attach(_place(directory)), now_seconds())
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    _table("Local stack", found.rows())


@app.command()
def logs(
    name: Annotated[
        str | None,
        typer.Argument(help="engine, pump, synth, or a function; all if absent."),
    ] = None,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until Ctrl-C.")
    ] = False,
    lines: Annotated[int, typer.Option("-n", help="Last lines of each.")] = TAIL_LINES,
    names: Annotated[
        bool, typer.Option("--names", help="List what has a log, and no lines.")
    ] = False,
    directory: Directory = None,
) -> None:
    """Print the last lines of the processes and functions."""
    from hourbell.local.stack import StackInfo, attach  # noqa: PLC0415

    with _explained():
        place = _place(directory)
        # A stack that failed to start has logs of its processes as well.
        stack = StackInfo(place) if name and place.log(name).is_file() else None
        stack = stack or attach(place)
        if names:
            typer.echo("\n".join(stack.log_names()))
        elif name == "synth" and name not in stack.log_names():
            typer.echo("Nothing was synthesized: the templates were fresh.", err=True)
        elif follow:
            _follow(stack, name or "engine")
        else:
            _tail(stack, [name] if name else stack.log_names(), lines)


def _tail(stack: "StackInfo", names: list[str], count: int) -> None:
    """Print the last lines of each, below its name where there are several."""
    for name in names:
        lines = stack.log_lines(name)[-count:]
        if len(names) > 1 and lines:
            typer.secho(f"== {name}", bold=True)
        for line in lines:
            typer.echo(line)


def _follow(stack: "StackInfo", name: str) -> None:
    try:
        for line in stack.follow_log(name):
            typer.echo(line)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _place(directory: Path | None) -> StackDirectory:
    return StackDirectory.of(directory or project_root() / ".local")


def _announce(
    place: StackDirectory, state: StackState, reporter: Reporter, *, stay: bool = False
) -> None:
    """Say where things are; names and keys are in the file."""
    _table(
        "Ready",
        [
            ("API", state.api_url),
            ("engine", state.endpoint_url),
            ("environment", f"set -a; . {_short(place.env_file)}; set +a"),
            *_platform(place),
            ("logs", str(_short(place.logs))),
        ],
    )
    if stay:
        reporter.note("Ctrl-C takes it down; its data is gone then.")


def _platform(place: StackDirectory) -> list[tuple[str, str]]:
    if not place.platform_file.exists():
        return []
    return [("platform role", f"set -a; . {_short(place.platform_file)}; set +a")]


def _table(title: str, rows: list[tuple[str, str]]) -> None:
    """Print name and text in two columns, on a terminal with a frame."""
    if not sys.stdout.isatty():
        for name, text in rows:
            typer.echo(f"{name}: {text}")
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title=title, show_header=False, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def _short(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


@contextmanager
def _explained() -> Iterator[None]:
    """Turn an error of the stack into its explanation and exit code."""
    try:
        yield
    except LocalStackError as error:
        typer.secho(
            error.explain(), err=True, fg="red" if sys.stderr.isatty() else None
        )
        raise typer.Exit(error.exit_code) from None
