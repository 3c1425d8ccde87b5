"""`hourbell occurrences`: look at single occurrences, cancel and replay them."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from hourbell.cli.client import AsJson, command_group, connect_api, given, show
from hourbell.cli.tables import print_facts, print_table

OCCURRENCES = "/v1/occurrences"

app = command_group("Show, cancel and replay single occurrences.")

OccurrenceId = Annotated[str, typer.Argument(metavar="OCCURRENCE_ID")]


@app.command("show")
def show_(occurrence_id: OccurrenceId, *, as_json: AsJson = False) -> None:
    """Show an occurrence with its attempts."""
    answer = connect_api().send("GET", _path(occurrence_id))
    show(answer, _print_told, as_json=as_json)


@app.command()
def cancel(
    occurrence_id: OccurrenceId,
    *,
    reason: Annotated[str | None, typer.Option(help="For the service's log.")] = None,
    as_json: AsJson = False,
) -> None:
    """Cancel an occurrence, or ask its worker to stop."""
    path = f"{_path(occurrence_id)}/cancel"
    answer = connect_api().send("POST", path, given({"reason": reason}))
    show(answer, _print, as_json=as_json)


@app.command()
def replay(occurrence_id: OccurrenceId, *, as_json: AsJson = False) -> None:
    """Let a dead occurrence run anew, under the same id."""
    answer = connect_api().send("POST", f"{_path(occurrence_id)}/replay")
    show(answer, _print, as_json=as_json)


def _path(occurrence_id: str) -> str:
    return f"{OCCURRENCES}/{quote(occurrence_id, safe='')}"


def _print(row: Mapping[str, Any]) -> None:
    failure = row["failure"]
    asked = " (its worker is asked to stop)" if row["cancel_requested"] else ""
    print_facts(
        ("occurrence", row["occurrence_id"]),
        ("scheduled for", row["scheduled_for"]),
        ("state", f"{row['state']}{asked}"),
        ("reason", row["reason"] or "none"),
        ("available at", row["available_at"] or "not known"),
        ("finished at", row["finished_at"] or "not yet"),
        ("sends", row["sends"]),
        ("attempts", row["attempt"]),
        ("failure", "none" if failure is None else _failure(failure)),
    )


def _print_told(told: Mapping[str, Any]) -> None:
    _print(told)
    if not told["attempts"]:
        return
    columns = ("attempt", "worker", "started at", "finished at", "result", "failure")
    rows = [
        (
            each["number"],
            each["worker"],
            each["started_at"],
            each["finished_at"],
            each["result"],
            each["failure"] and _failure(each["failure"]),
        )
        for each in told["attempts"]
    ]
    print_table(columns, rows)


def _failure(failure: Mapping[str, Any]) -> str:
    words = (failure["class"], failure["type"], failure["message"])
    return ": ".join(word for word in words if word)
