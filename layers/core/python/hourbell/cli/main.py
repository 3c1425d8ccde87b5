"""The `hourbell` command: loads a group of commands only when it is asked for.

A module that provides commands has a `typer.Typer` named `app`. With a single command
and no callback it becomes that command, else a group.
"""

from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """Where the commands of a name come from.

    Attributes:
        module: dotted name of the module with `app`.
        summary: one line for `hourbell --help`, which loads no module.
    """

    module: str
    summary: str


ENTRIES: Final = {
    "dead": Entry("hourbell.cli.dead", "List dead letters, and replay them."),
    "handlers": Entry("hourbell.cli.handlers", "Register and change handlers."),
    "jobs": Entry("hourbell.cli.jobs", "Follow, stop and resume jobs of batches."),
    "local": Entry("hourbell.cli.local", "The local stack: up, down, status, logs."),
    "occurrences": Entry(
        "hourbell.cli.occurrences", "Show, cancel and replay single occurrences."
    ),
    "parked": Entry(
        "hourbell.cli.parked", "Show parked rows and try them again, as the platform."
    ),
    "preview": Entry("hourbell.cli.preview", "Show the next times of an expression."),
    "replan": Entry(
        "hourbell.cli.replan", "Bring schedules under a new zone database, as platform."
    ),
    "schedules": Entry(
        "hourbell.cli.schedules", "Create, change, run and list schedules."
    ),
    "shards": Entry("hourbell.cli.shards", "Show and change the timeline's shards."),
    "tenants": Entry(
        "hourbell.cli.tenants", "Administer tenants, as the platform role."
    ),
    "usage": Entry("hourbell.cli.usage", "Show quotas, and what of them is used."),
    "work": Entry("hourbell.cli.work", "Claim and end work by hand, as a worker does."),
}


class LazyGroup(TyperGroup):
    """A group whose commands are imported when they are invoked.

    Help and suggestions work on stand-ins, which have a name and a summary only.
    """

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401 (typer's settings)
        super().__init__(**settings)
        for name, entry in ENTRIES.items():
            if find_spec(entry.module) is not None:
                self.commands[name] = _stand_in(name, entry.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """Import the command that the first argument names."""
        name, command, rest = super().resolve_command(ctx, args)
        if name in ENTRIES:
            module = import_module(ENTRIES[name].module)
            command = typer.main.get_command(module.app)
            command.name = name
        return name, command, rest


app = typer.Typer(
    name="hourbell",
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(*, wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - rarely needed

        typer.echo(f"hourbell {version('hourbell')}")
        raise typer.Exit


@app.callback()
def hourbell(
    *,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and exit.",
            is_eager=True,
            callback=lambda wanted: _show_version(wanted=wanted),
        ),
    ] = False,
) -> None:
    """Turn scheduled times into messages on durable queues."""


def run() -> None:
    """Run the command line."""
    app()


def _stand_in(name: str, summary: str) -> Any:  # noqa: ANN401 (typer's own type)
    def command() -> None: ...

    stand_in = typer.Typer(add_completion=False)
    stand_in.command(name=name, help=summary)(command)
    return typer.main.get_command(stand_in)
