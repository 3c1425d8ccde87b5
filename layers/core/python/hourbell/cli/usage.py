"""`hourbell usage`: the tenant's quotas, and what of them is used."""

from collections.abc import Mapping
from typing import Any

import typer

from hourbell.cli.client import AsJson, connect_api, show
from hourbell.cli.tables import print_table

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def usage(*, as_json: AsJson = False) -> None:
    """Show the tenant's quotas, and what of them is used."""
    show(connect_api().send("GET", "/v1/usage"), _print, as_json=as_json)


def _print(document: Mapping[str, Any]) -> None:
    typer.echo(f"{document['tenant_id']}, {document['tier']}")
    columns = ("name", "used", "limit", "unit")
    rows = [[each[name] for name in columns] for each in document["quotas"]]
    print_table(("quota", *columns[1:]), rows)
