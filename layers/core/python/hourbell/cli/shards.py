"""`hourbell shards`: how many shards the timeline has, and how to change that."""

from collections.abc import Mapping
from time import sleep
from typing import Annotated, Any, Final

import typer

from hourbell.cli.client import (
    PLATFORM_ENV_FILE,
    Answer,
    Api,
    AsJson,
    command_group,
    connect_api,
    given,
    show,
)
from hourbell.cli.tables import print_facts, print_table

SHARDS: Final = "/v1/admin/shards"
SETTLED: Final = "SETTLED"
POLL_SECONDS: Final = 2.0

app = command_group("The shards of the timeline, as the platform role.")

Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Until all rows have been moved.")
]


@app.command("show")
def show_(*, as_json: AsJson = False) -> None:
    """Show the shard count of every bucket, and how far a change has come."""
    show(_send("GET", SHARDS), _print, as_json=as_json)


@app.command()
def change(
    *,
    to: Annotated[int, typer.Option("--to", help="How many shards.")],
    groups: Annotated[
        int | None,
        typer.Option(help="How many materializers share them; as many as now else."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="From which minute on; the earliest possible else."),
    ] = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Give the buckets to come another shard count; nothing stops meanwhile."""
    api = connect_api(PLATFORM_ENV_FILE)
    body = given({"shards": to, "groups": groups, "since": since})
    answer = api.send("POST", SHARDS, body)
    show(_awaited(api, answer) if wait else answer, _print, as_json=as_json)


@app.command()
def resume(*, wait: Wait = False, as_json: AsJson = False) -> None:
    """Have rows moved again, when it has come to a stop."""
    api = connect_api(PLATFORM_ENV_FILE)
    answer = api.send("POST", f"{SHARDS}/resume")
    show(_awaited(api, answer) if wait else answer, _print, as_json=as_json)


def _send(method: str, path: str) -> Answer:
    return connect_api(PLATFORM_ENV_FILE).send(method, path)


def _awaited(api: Api, answer: Answer) -> Answer:
    """Return what there is to tell when the last epoch is settled."""
    while answer.status < 400 and answer.document["epochs"][-1]["phase"] != SETTLED:
        sleep(POLL_SECONDS)
        answer = api.send("GET", SHARDS)
    return answer


def _print(told: Mapping[str, Any]) -> None:
    rows = [
        (each["since"] or "the beginning", each["shards"], each["groups"])
        for each in told["epochs"]
    ]
    print_table(("since", "shards", "groups"), rows)
    move, last = told["move"], told["epochs"][-1]
    print_facts(
        ("phase", f"{last['phase']} since {told['changed_at']}"),
        *([("announced by", told["requested_by"])] if told["requested_by"] else []),
        ("moved", move["moved"]),
        *(
            [
                ("walk", f"{move['round']}: {move['done']} of {move['segments']}"),
                ("left for the next", move["left"]),
            ]
            if last["phase"] != SETTLED
            else []
        ),
    )
