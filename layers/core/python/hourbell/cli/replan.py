"""`hourbell replan`: bring schedules under the present zone database.

It is the platform role's, like `hourbell tenants`, and asks for one job per tenant.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any, Final

import typer

from hourbell.cli.client import (
    PLATFORM_ENV_FILE,
    Answer,
    Api,
    AsJson,
    connect_api,
    encoded,
    pages,
    show,
)
from hourbell.cli.jobs import ended
from hourbell.cli.tables import print_table
from hourbell.cli.tenants import TENANTS, tenant_path

QUIET: Final = frozenset({"UNCHANGED", "WOULD_NOT_CHANGE"})
"""Outcomes of schedules that there is nothing to tell of."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def replan(
    *,
    tenant: Annotated[
        list[str] | None,
        typer.Option(metavar="TENANT_ID", help="Repeatable; all tenants by default."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would do, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Move the times of schedules to what the present zone database says.

    Ends with code 1 when a job failed or a schedule was refused.
    """
    api = connect_api(PLATFORM_ENV_FILE)
    # All are begun before the first one is waited for: tenants do not wait in line.
    query = encoded([("dry_run", "true")] if dry_run else [])
    begun = [
        (each, _good(api.send("POST", f"{_path(each)}{query}"), as_json=as_json))
        for each in tenant or _all_tenants(api, as_json=as_json)
    ]
    told = [_told(api, each, answer, as_json=as_json) for each, answer in begun]
    if as_json:
        typer.echo(json.dumps({"dry_run": dry_run, "tenants": told}))
    else:
        _print(told, dry_run=dry_run)
    jobs = [each["job"] for each in told]
    if any(job["state"] != "SUCCEEDED" or job["progress"]["refused"] for job in jobs):
        raise typer.Exit(1)


def _all_tenants(api: Api, *, as_json: bool) -> list[str]:
    listed = _good(pages(api, TENANTS, "tenants"), as_json=as_json)
    return [each["tenant_id"] for each in listed.document["tenants"]]


def _told(api: Api, tenant_id: str, answer: Answer, *, as_json: bool) -> dict[str, Any]:
    """Return a tenant's job when it has ended, with the results worth telling."""
    path = f"{_path(tenant_id)}/{answer.document['job_id']}"
    job = _good(ended(api, answer, path, quiet=as_json), as_json=as_json)
    listed = _good(pages(api, f"{path}/results", "results"), as_json=as_json)
    results = [
        each for each in listed.document["results"] if each["outcome"] not in QUIET
    ]
    return {"tenant_id": tenant_id, "job": job.document, "results": results}


def _good(answer: Answer, *, as_json: bool) -> Answer:
    """Return an answer that is no refusal; a refusal ends the command."""
    if answer.status >= HTTPStatus.BAD_REQUEST:
        show(answer, lambda _: None, as_json=as_json)
    return answer


def _path(tenant_id: str) -> str:
    return f"{tenant_path(tenant_id)}/replan"


def _print(told: Sequence[Mapping[str, Any]], *, dry_run: bool) -> None:
    columns = ("tenant", "schedule", "name", "local time", "was", "is")
    rows = [row for each in told for row in _rows(each)]
    if rows:
        print_table(columns, rows)
    changed = sum(each["job"]["progress"]["changed"] for each in told)
    done = sum(each["job"]["progress"]["done"] for each in told)
    verb = "would get" if dry_run else "got"
    typer.echo(f"{changed} of {done} active schedules {verb} a new version.")
    for each in told:
        job = each["job"]
        if job["state"] != "SUCCEEDED":
            why = f": {job['failure']}" if job["failure"] else ""
            typer.echo(f"{each['tenant_id']}: the job is {job['state']}{why}", err=True)


def _rows(told: Mapping[str, Any]) -> Iterator[tuple[object, ...]]:
    """Yield a line for each moved time, and one for each refusal."""
    for result in told["results"]:
        who = (told["tenant_id"], result["schedule_id"], result["name"])
        for shift in result["shifts"]:
            was, now = shift["before"] or "never", shift["after"] or "never"
            yield (*who, shift["local"].replace("T", " "), was, now)
            who = ("", "", "")
        if result["problem"]:
            problem = result["problem"]
            yield (*who, f"{problem['code']}: {problem['detail']}", "", "")
