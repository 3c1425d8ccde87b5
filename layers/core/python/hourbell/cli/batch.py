"""`hourbell schedules batch`: create, pause, resume or cancel many schedules."""

from typing import Annotated, Any, Final

import typer

from hourbell.api.json_text import read_json
from hourbell.cli.client import AsJson, command_group, connect_api, encoded, given
from hourbell.cli.jobs import Wait, show_job

BATCH: Final = "/v1/schedules/batch"

app = command_group("Create, pause, resume or cancel many schedules at once.")

File = Annotated[
    typer.FileText,
    typer.Option(
        encoding="utf-8",
        help="JSON: a list of schedules as the API takes them; - for input.",
    ),
]
Tag = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="Repeatable: schedules with all of them."),
]
Ids = Annotated[
    list[str] | None,
    typer.Option(metavar="ID,ID...", help="Of the schedules; repeatable."),
]
Reason = Annotated[str | None, typer.Option(help="For the version log.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what it would do, and do nothing.")
]
Key = Annotated[
    str | None, typer.Option("--idempotency-key", help="Repeating it does it once.")
]


@app.command()
def create(
    *,
    file: File,
    dry_run: DryRun = False,
    key: Key = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Create the schedules of a file, up to 100."""
    try:
        schedules = read_json(file.read())
    except ValueError as error:
        message = f"not JSON: {error}"
        raise typer.BadParameter(message, param_hint="--file") from error
    body = {"operation": "create", "schedules": schedules}
    _send(body, key, dry_run=dry_run, wait=wait, as_json=as_json)


def _add(operation: str, summary: str) -> None:
    """Add the command that does one operation to many schedules."""

    @app.command(operation, help=summary)
    def change(
        *,
        tag: Tag = None,
        ids: Ids = None,
        reason: Reason = None,
        dry_run: DryRun = False,
        key: Key = None,
        wait: Wait = True,
        as_json: AsJson = False,
    ) -> None:
        body = _change(operation, tag, ids, reason)
        _send(body, key, dry_run=dry_run, wait=wait, as_json=as_json)


_add("pause", "Stop schedules until they are resumed.")
_add("resume", "Let paused schedules go on; nothing is made up for.")
_add("cancel", "End schedules for good; they are kept, and their names are free.")


def _change(
    operation: str,
    tags: list[str] | None,
    ids: list[str] | None,
    reason: str | None,
) -> dict[str, Any]:
    """Return the body of a change of many.

    Raises:
        BadParameter: a tag has no value, or schedules are named in no or two ways.
    """
    if bool(tags) == bool(ids):
        raise typer.BadParameter("name the schedules, either by --tag or by --ids")
    named = None if ids is None else [part for each in ids for part in each.split(",")]
    tag = None if tags is None else dict(map(_pair, tags))
    if tag is not None and len(tag) < len(tags or ()):
        raise typer.BadParameter("a key stands in two tags", param_hint="--tag")
    members = {"schedule_ids": named or None, "tag": tag or None, "reason": reason}
    return {"operation": operation, **given(members)}


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(
            f"{text!r} is not KEY=VALUE; a key alone says nothing", param_hint="--tag"
        )
    return key, value


def _send(
    body: dict[str, Any], key: str | None, *, dry_run: bool, wait: bool, as_json: bool
) -> None:
    api = connect_api()
    path = BATCH + encoded([("dry_run", "true")] if dry_run else [])
    headers = {"Idempotency-Key": key} if key else {}
    answer = api.send("POST", path, body, headers)
    show_job(api, answer, wait=wait, as_json=as_json)
