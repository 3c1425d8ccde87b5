"""`hourbell jobs`: what became of batches, and how to stop and resume them."""

from collections.abc import Mapping
from time import sleep
from typing import Annotated, Any, Final
from urllib.parse import quote

import typer

from hourbell.cli.client import (
    Answer,
    Api,
    AsJson,
    command_group,
    connect_api,
    pages,
    show,
)
from hourbell.cli.tables import print_facts, print_table

JOBS: Final = "/v1/jobs"
OPEN: Final = frozenset({"PENDING", "RUNNING"})
POLL_SECONDS: Final = 0.5

app = command_group("Follow, stop and resume the jobs of batches.")

JobId = Annotated[str, typer.Argument(metavar="JOB_ID")]
Wait = Annotated[
    bool, typer.Option("--wait/--no-wait", help="Until the job has ended.")
]


@app.command("list")
def list_(
    *,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Jobs at most; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tenant's jobs, the newest first."""
    listed = pages(connect_api(), JOBS, "jobs", limit=limit)
    show(listed, _print_list, as_json=as_json)


@app.command()
def get(job_id: JobId, *, as_json: AsJson = False) -> None:
    """Show a job and its progress."""
    show(connect_api().send("GET", _path(job_id)), print_job, as_json=as_json)


@app.command()
def results(
    job_id: JobId,
    *,
    outcome: Annotated[
        str | None, typer.Option(help="CREATED, CHANGED, UNCHANGED, REFUSED, WOULD_...")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Results at most; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what became of each item so far."""
    query = [("outcome", outcome)] if outcome else []
    path = f"{_path(job_id)}/results"
    listed = pages(connect_api(), path, "results", query, limit)
    show(listed, _print_results, as_json=as_json)


@app.command()
def cancel(job_id: JobId, *, as_json: AsJson = False) -> None:
    """Stop a job; what is done stays."""
    answer = connect_api().send("POST", f"{_path(job_id)}/cancel")
    show(answer, print_job, as_json=as_json)


@app.command()
def resume(job_id: JobId, *, wait: Wait = True, as_json: AsJson = False) -> None:
    """Let a job go on where it stopped."""
    api = connect_api()
    answer = api.send("POST", f"{_path(job_id)}/resume")
    show_job(api, answer, wait=wait, as_json=as_json)


def show_job(api: Api, answer: Answer, *, wait: bool, as_json: bool) -> None:
    """Print a job, when it has ended if that is to be waited for.

    Ends the command with code 1 when the job did not do all of it: it is FAILED or
    CANCELED, or an item was refused.
    """
    if wait and answer.status < 400:
        answer = ended(api, answer, _path(answer.document["job_id"]), quiet=as_json)
    show(answer, print_job, as_json=as_json)
    job = answer.document
    if job["state"] in {"FAILED", "CANCELED"} or job["progress"]["refused"]:
        if not as_json:
            typer.echo(f"See: hourbell jobs results {job['job_id']}", err=True)
        raise typer.Exit(1)


def print_job(job: Mapping[str, Any]) -> None:
    """Print a job."""
    progress = job["progress"]
    total = "?" if progress["total"] is None else progress["total"]
    print_facts(
        ("job", job["job_id"]),
        ("operation", job["operation"] + (", dry run" if job["dry_run"] else "")),
        *([("tag", _tags(job["tag"]))] if job["tag"] else []),
        ("state", job["state"] + (f": {job['failure']}" if job["failure"] else "")),
        ("done", f"{progress['done']} of {total}"),
        ("changed", progress["changed"]),
        ("unchanged", progress["unchanged"]),
        ("refused", progress["refused"]),
        ("created", f"{job['created_at']} by {job['created_by']}"),
    )


def ended(api: Api, answer: Answer, path: str, *, quiet: bool) -> Answer:
    """Return the job of a path when it has ended, drawing its progress meanwhile."""
    from rich.console import Console  # noqa: PLC0415 - not needed by programs
    from rich.progress import Progress  # noqa: PLC0415

    job_id = answer.document["job_id"]
    # Standard output is the answer's alone.
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(f"{answer.document['operation']} {job_id}", total=None)
        while answer.status < 400 and answer.document["state"] in OPEN:
            sleep(POLL_SECONDS)
            answer = api.send("GET", path)
            if answer.status < 400:
                progress = answer.document["progress"]
                bar.update(task, completed=progress["done"], total=progress["total"])
    return answer


def _path(job_id: str) -> str:
    return f"{JOBS}/{quote(job_id, safe='')}"


def _tags(tags: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in tags.items())


def _print_list(listed: Mapping[str, Any]) -> None:
    rows = [
        (
            each["job_id"],
            each["operation"] + (" (dry)" if each["dry_run"] else ""),
            each["state"],
            each["progress"]["done"],
            each["progress"]["total"],
            each["progress"]["refused"],
            each["created_at"],
        )
        for each in listed["jobs"]
    ]
    columns = ("job", "operation", "state", "done", "total", "refused", "created")
    print_table(columns, rows)


def _print_results(listed: Mapping[str, Any]) -> None:
    rows = [
        (
            each["index"],
            each["name"],
            each["schedule_id"],
            each["outcome"],
            _why(each["problem"]),
        )
        for each in listed["results"]
    ]
    print_table(("item", "name", "schedule", "outcome", "why"), rows)


def _why(problem: Mapping[str, Any] | None) -> str | None:
    return None if problem is None else f"{problem['code']}: {problem['detail']}"
