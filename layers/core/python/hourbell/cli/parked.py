"""`hourbell parked`: rows that passes keep aside, seen by the platform role.

Whose keys sign, the environment says, as for all commands. Without HOURBELL_API_URL
the local stack is meant, and its platform role.
"""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

import typer

from hourbell.cli.client import (
    PLATFORM_ENV_FILE,
    AsJson,
    command_group,
    connect_api,
    given,
    pages,
    show,
)
from hourbell.cli.tables import print_facts, print_table

PARKED = "/v1/admin/parked"

app = command_group("Show parked rows and try them again, as the platform role.")


@app.command("list")
def list_(
    *,
    group: Annotated[int | None, typer.Option(help="Of this shard group only.")] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="TENANT_ID", help="Of this tenant only.")
    ] = None,
    reason: Annotated[
        str | None, typer.Option(help="Parked for it only, such as UNSENT.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Rows at most.")] = None,
    as_json: AsJson = False,
) -> None:
    """List parked rows."""
    options = given({"group": group, "tenant_id": tenant, "reason": reason})
    query = [(name, str(value)) for name, value in options.items()]
    api = connect_api(PLATFORM_ENV_FILE)
    listed = pages(api, PARKED, "parked", query, limit)
    show(listed, _print_list, as_json=as_json)


@app.command()
def retry(
    parked_id: Annotated[
        str, typer.Argument(metavar="PARKED_ID", help="As the list shows it.")
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Have the next pass try a parked row again."""
    path = f"{PARKED}/{quote(parked_id, safe='')}/retry"
    answer = connect_api(PLATFORM_ENV_FILE).send("POST", path)
    show(answer, _print_row, as_json=as_json)


def _print_list(listed: Mapping[str, Any]) -> None:
    if not listed["parked"]:
        typer.echo("No row is parked.")
        return
    columns = ("parked_id", "reason", "tenant_id", "since", "tries", "next_try_at")
    rows = [[each[name] for name in columns] for each in listed["parked"]]
    print_table(columns, rows)


def _print_row(row: Mapping[str, Any]) -> None:
    print_facts(
        ("parked", row["parked_id"]),
        ("group", row["group"]),
        ("partition", row["partition"]),
        ("sort", row["sort"]),
        ("reason", row["reason"]),
        ("tenant", row["tenant_id"] or "not known"),
        ("since", row["since"]),
        ("tries", row["tries"]),
        ("next try", row["next_try_at"]),
    )
