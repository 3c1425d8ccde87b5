"""`hourbell handlers`: the tenant's handlers, and which queues they go to."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from hourbell.cli.client import (
    AsJson,
    Revision,
    command_group,
    connect_api,
    current_tag,
    given,
    pages,
    show,
)
from hourbell.cli.tables import print_facts, print_table

HANDLERS = "/v1/handlers"

app = command_group("Register and change handlers.")

Name = Annotated[str, typer.Argument(metavar="NAME")]
Routing = Annotated[str | None, typer.Option(help="shared, dedicated or external.")]
QueueArn = Annotated[
    str | None, typer.Option(help="Of an external queue; it gets a test message.")
]
DeadLetterQueueArn = Annotated[
    str | None, typer.Option(help="Where dead letters of an external handler go.")
]
Rate = Annotated[
    int | None, typer.Option(help="Messages a second that its target takes.")
]
Description = Annotated[str | None, typer.Option()]


@app.command()
def register(
    name: Name,
    *,
    routing: Routing = None,
    queue_arn: QueueArn = None,
    dead_letter_queue_arn: DeadLetterQueueArn = None,
    dispatch_rate: Rate = None,
    description: Description = None,
    as_json: AsJson = False,
) -> None:
    """Register a handler."""
    body = given(
        {
            "name": name,
            "routing": routing,
            "queue_arn": queue_arn,
            "dead_letter_queue_arn": dead_letter_queue_arn,
            "dispatch_rate": dispatch_rate,
            "description": description,
        }
    )
    answer = connect_api().send("POST", HANDLERS, body)
    show(answer, _print_handler, as_json=as_json)


@app.command("list")
def list_(*, as_json: AsJson = False) -> None:
    """List the tenant's handlers, retired ones too."""
    listed = pages(connect_api(), HANDLERS, "handlers")
    show(listed, _print_handlers, as_json=as_json)


@app.command()
def get(name: Name, *, as_json: AsJson = False) -> None:
    """Show a handler."""
    answer = connect_api().send("GET", _path(name))
    show(answer, _print_handler, as_json=as_json)


@app.command()
def change(  # noqa: PLR0913 - one option for each field
    name: Name,
    *,
    routing: Routing = None,
    queue_arn: QueueArn = None,
    dead_letter_queue_arn: DeadLetterQueueArn = None,
    dispatch_rate: Rate = None,
    any_rate: Annotated[
        bool, typer.Option("--any-rate", help="Lift the limit of the rate.")
    ] = False,
    description: Description = None,
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Change a handler."""
    options = {
        "routing": routing,
        "queue_arn": queue_arn,
        "dead_letter_queue_arn": dead_letter_queue_arn,
        "dispatch_rate": dispatch_rate,
        "description": description,
    }
    body = given(options) | ({"dispatch_rate": None} if any_rate else {})
    if not body:
        raise typer.BadParameter("name something to change")
    _change(name, body, revision, as_json=as_json)


@app.command()
def retire(name: Name, *, as_json: AsJson = False) -> None:
    """Let no new schedule name a handler; those that do go on."""
    answer = connect_api().send("DELETE", _path(name))
    show(answer, _print_handler, as_json=as_json)


@app.command()
def restore(name: Name, *, as_json: AsJson = False) -> None:
    """Take a retirement back."""
    _change(name, {"state": "ACTIVE"}, None, as_json=as_json)


def _change(
    name: str, body: Mapping[str, Any], revision: int | None, *, as_json: bool
) -> None:
    api, path = connect_api(), _path(name)
    headers = {"If-Match": current_tag(api, path, revision, as_json=as_json)}
    show(api.send("PATCH", path, body, headers), _print_handler, as_json=as_json)


def _path(name: str) -> str:
    return f"{HANDLERS}/{quote(name, safe='')}"


def _print_handler(handler: Mapping[str, Any]) -> None:
    rate, dead = handler["dispatch_rate"], handler["dead_letter_queue_arn"]
    print_facts(
        ("handler", handler["name"]),
        ("routing", handler["routing"]),
        ("state", handler["state"]),
        *((lane, arn) for lane, arn in handler["queues"].items()),
        *([("queue", handler["queue_arn"])] if handler["queue_arn"] else []),
        *([("dead letters", dead)] if dead else []),
        ("rate", "any" if rate is None else f"{rate} a second"),
        ("description", handler["description"]),
        ("revision", handler["revision"]),
    )


def _print_handlers(listed: Mapping[str, Any]) -> None:
    columns = ("name", "routing", "state", "dispatch_rate", "description")
    rows = [[each[name] for name in columns] for each in listed["handlers"]]
    print_table(columns, rows)
