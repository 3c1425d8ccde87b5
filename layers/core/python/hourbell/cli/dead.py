"""`hourbell dead`: what is DEAD of the tenant's occurrences, and its replay."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

import typer

from hourbell.cli.batch import DryRun, Key
from hourbell.cli.client import (
    AsJson,
    command_group,
    connect_api,
    encoded,
    given,
    pages,
    show,
)
from hourbell.cli.jobs import Wait, show_job
from hourbell.cli.schedule_ids import METAVAR, checked_id
from hourbell.cli.tables import print_table

DEAD: Final = "/v1/dead-letters"

app = command_group("List dead letters, and replay what they tell of.")

Schedule = Annotated[
    str | None,
    typer.Option(metavar=METAVAR, callback=checked_id, help="Of this schedule only."),
]
Since = Annotated[str | None, typer.Option(help="What died then, or later.")]
Until = Annotated[str | None, typer.Option(help="What died before.")]


@app.command("list")
def list_(
    *,
    schedule: Schedule = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Letters at most.")] = None,
    as_json: AsJson = False,
) -> None:
    """List what is DEAD, and why."""
    query = list(_wanted(schedule, since, until).items())
    listed = pages(connect_api(), DEAD, "dead_letters", query, limit)
    show(listed, _print_list, as_json=as_json)


@app.command()
def replay(
    *,
    schedule: Schedule = None,
    since: Since = None,
    until: Until = None,
    per_minute: Annotated[
        int | None,
        typer.Option(min=1, help="How many a minute; the catch-up rate by default."),
    ] = None,
    dry_run: DryRun = False,
    key: Key = None,
    wait: Wait = True,
    as_json: AsJson = False,
) -> None:
    """Let DEAD occurrences run anew, under the same ids, by a job."""
    body = _wanted(schedule, since, until) | given({"per_minute": per_minute})
    path = f"{DEAD}/replay" + encoded([("dry_run", "true")] if dry_run else [])
    headers = {"Idempotency-Key": key} if key else {}
    api = connect_api()
    show_job(api, api.send("POST", path, body, headers), wait=wait, as_json=as_json)


def _wanted(
    schedule: str | None, since: str | None, until: str | None
) -> dict[str, Any]:
    return given({"schedule_id": schedule, "since": since, "until": until})


def _print_list(listed: Mapping[str, Any]) -> None:
    if not listed["dead_letters"]:
        typer.echo("Nothing is dead.")
        return
    columns = ("occurrence_id", "died_at", "reason", "attempt")
    rows = [[each[name] for name in columns] for each in listed["dead_letters"]]
    print_table(columns, rows)
