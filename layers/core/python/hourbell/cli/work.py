"""`hourbell work`: what a worker says, said by hand, to see what becomes of it."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from hourbell.cli.client import AsJson, command_group, connect_api, given, show
from hourbell.cli.tables import print_facts

OCCURRENCES = "/v1/occurrences"

app = command_group("Claim and end work by hand, as a worker does.")

OccurrenceId = Annotated[str, typer.Argument(metavar="OCCURRENCE_ID")]
Token = Annotated[
    str, typer.Argument(metavar="LEASE_TOKEN", help="As the claim answered it.")
]
LeaseSeconds = Annotated[
    int | None, typer.Option("--lease", metavar="SECONDS", help="60 by default.")
]


@app.command()
def claim(
    occurrence_ids: Annotated[
        list[str], typer.Argument(metavar="OCCURRENCE_ID...", help="Up to ten.")
    ],
    *,
    worker: Annotated[str, typer.Option(help="What to call it.")] = "by-hand",
    lease: LeaseSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Claim occurrences."""
    items = [{"occurrence_id": each} for each in occurrence_ids]
    body = given({"worker": worker, "lease_seconds": lease}) | {"items": items}
    _say("claim", body, as_json=as_json)


@app.command()
def heartbeat(
    occurrence_id: OccurrenceId,
    lease_token: Token,
    *,
    lease: LeaseSeconds = None,
    as_json: AsJson = False,
) -> None:
    """Extend a lease, and learn whether to stop."""
    body = given({"lease_seconds": lease}) | {
        "items": [_held(occurrence_id, lease_token)]
    }
    _say("heartbeat", body, as_json=as_json)


@app.command()
def complete(
    occurrence_id: OccurrenceId, lease_token: Token, *, as_json: AsJson = False
) -> None:
    """Say that work is done."""
    body = {"items": [_held(occurrence_id, lease_token)]}
    _say("complete", body, as_json=as_json)


@app.command()
def fail(
    occurrence_id: OccurrenceId,
    lease_token: Token,
    *,
    error_class: Annotated[
        str, typer.Option("--class", help="RETRYABLE, PERMANENT or THROTTLED.")
    ] = "RETRYABLE",
    kind: Annotated[
        str | None, typer.Option("--type", help="Such as an exception's name.")
    ] = None,
    message: Annotated[str | None, typer.Option()] = None,
    retry_after: Annotated[
        int | None, typer.Option(metavar="SECONDS", help="Of THROTTLED only.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say that an attempt has failed."""
    options = {"type": kind, "message": message, "retry_after_seconds": retry_after}
    error = {"class": error_class, **given(options)}
    body = {"items": [{**_held(occurrence_id, lease_token), "error": error}]}
    _say("fail", body, as_json=as_json)


def _held(occurrence_id: str, lease_token: str) -> dict[str, str]:
    return {"occurrence_id": occurrence_id, "lease_token": lease_token}


def _say(verb: str, body: object, *, as_json: bool) -> None:
    """Send what a worker says, and show what each occurrence was answered."""
    answer = connect_api().send("POST", f"{OCCURRENCES}/{verb}", body)
    show(answer, _print_results, as_json=as_json)


def _print_results(document: Mapping[str, Any]) -> None:
    for each in document["results"]:
        facts = given(each).items()
        print_facts(*((name.replace("_", " "), value) for name, value in facts))
