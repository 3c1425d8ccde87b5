"""`hourbell schedules`: create, read and change schedules through the HTTPS API."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import typer

from hourbell.cli import batch
from hourbell.cli.backfill import print_backfill, send_backfill
from hourbell.cli.client import (
    Answer,
    AsJson,
    Revision,
    command_group,
    connect_api,
    current_tag,
    encoded,
    given,
    pages,
    show,
)
from hourbell.cli.schedule_fields import with_fields
from hourbell.cli.schedule_ids import ScheduleId
from hourbell.cli.tables import print_facts, print_table

SCHEDULES = "/v1/schedules"
# How many times the average minute a minute carries that is called busy.
BUSY = 3
MERGE_PATCH = "application/merge-patch+json"

app = command_group("Create, read and change schedules.")
app.add_typer(batch.app, name="batch")

Reason = Annotated[str | None, typer.Option(help="For the version log.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what it would do, and do nothing.")
]


@app.command()
@with_fields
def create(
    *,
    name: Annotated[str | None, typer.Option(help="The schedule's name.")] = None,
    fields: Mapping[str, Any],
    idempotency_key: Annotated[
        str | None, typer.Option(help="Repeating it creates once.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create a schedule."""
    body = {**fields, **({} if name is None else {"name": name})}
    headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
    path = SCHEDULES + _dry(dry_run)
    answer = connect_api().send("POST", path, body, headers)
    _show(answer, dry_run=dry_run, as_json=as_json)


@app.command()
def get(schedule_id: ScheduleId, *, as_json: AsJson = False) -> None:
    """Show a schedule, its next time and its latest occurrences."""
    show(connect_api().send("GET", _path(schedule_id)), _print, as_json=as_json)


@app.command("list")
def list_(
    *,
    state: Annotated[
        str | None, typer.Option(help="ACTIVE, PAUSED, COMPLETED or CANCELED.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY:VALUE", help="Repeatable: all of them."),
    ] = None,
    prefix: Annotated[str | None, typer.Option(help="How the name begins.")] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Schedules at most; all by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the tenant's schedules."""
    query = [("tag", each) for each in tag or ()]
    query += [("state", state)] if state else []
    query += [("prefix", prefix)] if prefix else []
    listed = pages(connect_api(), SCHEDULES, "schedules", query, limit)
    show(listed, _print_list, as_json=as_json)


@app.command()
@with_fields
def update(
    schedule_id: ScheduleId,
    *,
    fields: Mapping[str, Any],
    unset: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Back to its default; repeatable."),
    ] = None,
    revision: Revision = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Change the fields that are named, and leave the others.

    A tag that is named is added to those that there are.
    """
    patch = {**fields, **dict.fromkeys(unset or ())}
    if not patch:
        raise typer.BadParameter("name something to change")
    api, path = connect_api(), _path(schedule_id)
    headers = {
        "Content-Type": MERGE_PATCH,
        "If-Match": current_tag(api, path, revision, as_json=as_json),
    }
    answer = api.send("PATCH", path + _dry(dry_run), patch, headers)
    _show(answer, dry_run=dry_run, as_json=as_json)


@app.command()
@with_fields
def put(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    *,
    fields: Mapping[str, Any],
    revision: Revision = None,
    only_new: Annotated[
        bool, typer.Option("--only-new", help="Refuse if there is one.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Have a schedule of this name and definition: create it, or update it whole."""
    headers = {} if revision is None else {"If-Match": f'"{revision}"'}
    headers |= {"If-None-Match": "*"} if only_new else {}
    path = f"{SCHEDULES}/by-name/{quote(name, safe='')}"
    show(connect_api().send("PUT", path, fields, headers), _print, as_json=as_json)


@app.command()
def pause(
    schedule_id: ScheduleId,
    *,
    reason: Reason = None,
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Stop a schedule until it is resumed."""
    _act(schedule_id, "pause", reason, revision, as_json=as_json)


@app.command()
def resume(
    schedule_id: ScheduleId,
    *,
    reason: Reason = None,
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """Let a paused schedule go on; nothing is made up for."""
    _act(schedule_id, "resume", reason, revision, as_json=as_json)


@app.command()
def run(
    schedule_id: ScheduleId,
    *,
    reason: Reason = None,
    key: Annotated[
        str | None,
        typer.Option("--idempotency-key", help="Repeating it runs once."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a schedule once, now, beside its own times."""
    answer = connect_api().send(
        "POST",
        f"{_path(schedule_id)}/run",
        {"reason": reason},
        {"Idempotency-Key": key} if key else {},
    )
    show(answer, _print_run, as_json=as_json)


@app.command()
def backfill(  # noqa: PLR0913 - one for each option
    schedule_id: ScheduleId,
    *,
    from_: Annotated[
        str, typer.Option("--from", metavar="TIME", help="The first instant.")
    ],
    to: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Where the range ends; now by default."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Times at most in one call.")
    ] = None,
    per_minute: Annotated[
        int | None, typer.Option(min=1, help="How many are let go in a minute.")
    ] = None,
    overlap: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="ALLOW, SKIP_IF_RUNNING, QUEUE_ONE; else its own.",
        ),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="Call after call, until the range is done.")
    ] = False,
    reason: Annotated[
        str | None, typer.Option(help="Kept with what is created.")
    ] = None,
    dry_run: DryRun = False,
    as_json: AsJson = False,
) -> None:
    """Create occurrences of past times that never were, or were missed."""
    options = {
        "to": to,
        "limit": limit,
        "per_minute": per_minute,
        "overlap": overlap,
        "reason": reason,
    }
    path = f"{_path(schedule_id)}/backfill{_dry(dry_run)}"
    body = {"from": from_, **given(options)}
    answer = send_backfill(connect_api(), path, body, whole=whole)
    show(answer, print_backfill, as_json=as_json)


@app.command()
def cancel(
    schedule_id: ScheduleId,
    *,
    reason: Reason = None,
    revision: Revision = None,
    as_json: AsJson = False,
) -> None:
    """End a schedule for good; it is kept, and its name is free."""
    path = _path(schedule_id) + encoded([("reason", reason)] if reason else [])
    answer = connect_api().send("DELETE", path, headers=_match(revision))
    show(answer, _print, as_json=as_json)


@app.command()
def versions(
    schedule_id: ScheduleId,
    *,
    limit: Annotated[int, typer.Option(min=1, max=100, help="At most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show a schedule's latest versions, and who made them when and why."""
    path = f"{_path(schedule_id)}/versions{encoded([('limit', str(limit))])}"
    show(connect_api().send("GET", path), _print_versions, as_json=as_json)


def _act(
    schedule_id: str,
    verb: str,
    reason: str | None,
    revision: int | None,
    *,
    as_json: bool,
) -> None:
    path = f"{_path(schedule_id)}/{verb}"
    body = {"reason": reason}
    answer = connect_api().send("POST", path, body, _match(revision))
    show(answer, _print, as_json=as_json)


def _path(schedule_id: str) -> str:
    return f"{SCHEDULES}/{quote(schedule_id, safe='')}"


def _match(revision: int | None) -> dict[str, str]:
    return {} if revision is None else {"If-Match": f'"{revision}"'}


def _dry(dry_run: bool) -> str:  # noqa: FBT001 - the option itself
    return encoded([("dry_run", "true")]) if dry_run else ""


def _show(answer: Answer, *, dry_run: bool, as_json: bool) -> None:
    show(answer, _print_rehearsal if dry_run else _print, as_json=as_json)


def _print_run(run: Mapping[str, Any]) -> None:
    print_facts(
        ("occurrence", run["occurrence_id"]),
        ("scheduled for", run["scheduled_for_local"]),
        ("state", run["state"]),
        ("queue", run["queue"] or "none"),
    )


def _print(schedule: Mapping[str, Any]) -> None:
    print_facts(
        ("schedule", schedule["schedule_id"] or "(not yet)"),
        ("name", schedule["name"]),
        ("state", f"{schedule['state']}, version {schedule['version']}"),
        ("timing", f"{schedule['expression']}  ({schedule['zone']})"),
        ("handler", schedule["handler"]),
        ("misfire", _misfire(schedule["misfire"])),
        *_tracked(schedule),
        ("next run", schedule["next_run_at_local"] or "none"),
        *_facts("runs anyway", schedule.get("already_dispatched", ())),
    )
    if not schedule["last_occurrences"]:
        return
    rows = [
        (
            each["scheduled_for_local"],
            each["state"],
            each["reason"],
            _lag(each["available_at"], each["enqueued_at"]),
            _lag(each["available_at"], each["visible_at"]),
        )
        for each in schedule["last_occurrences"]
    ]
    columns = ("scheduled for", "state", "reason", "enqueue lag", "visible lag")
    print_table(columns, rows)


def _print_rehearsal(rehearsal: Mapping[str, Any]) -> None:
    _print(rehearsal["schedule"])
    print_facts(
        *_facts("would be canceled", rehearsal.get("canceled", ())),
        *_facts("would run anyway", rehearsal.get("already_dispatched", ())),
        *(
            ("refused", f"{each['code']}: {each['message']}")
            for each in rehearsal.get("refusals", ())
        ),
    )
    rows = [
        (
            each["local"],
            each["offset"],
            each["weekday"],
            _load(each["load"]),
            "; ".join(each["notes"]),
        )
        for each in rehearsal["times"]
    ]
    print_table(("local", "offset", "weekday", "load", "notes"), rows)


def _print_list(listed: Mapping[str, Any]) -> None:
    columns = ("name", "state", "version", "schedule_id")
    rows = [[each[name] for name in columns] for each in listed["schedules"]]
    print_table(columns, rows)


def _print_versions(log: Mapping[str, Any]) -> None:
    rows = [
        (
            each["version"],
            each["state"],
            each["definition"]["expression"],
            each["created_at"],
            each["created_by"],
            each["reason"],
        )
        for each in log["versions"]
    ]
    print_table(("version", "state", "expression", "since", "by", "reason"), rows)


def _facts(label: str, ids: Sequence[str]) -> list[tuple[str, object]]:
    return [(label, each) for each in ids]


def _load(load: float | None) -> str:
    """Write a minute's load, and whether another one would be the better choice."""
    if load is None:
        return ""
    return f"{load:.2f}, busy minute" if load >= BUSY else f"{load:.2f}"


def _misfire(misfire: Mapping[str, Any]) -> str:
    limit, lateness = misfire["limit"], misfire["max_lateness_seconds"]
    how_many = "" if limit is None else f" {limit}"
    how_late = "" if lateness is None else f", up to {lateness} s late"
    return f"{misfire['policy']}{how_many}{how_late}"


def _tracked(schedule: Mapping[str, Any]) -> list[tuple[str, object]]:
    """Return what only a TRACKED schedule has."""
    retry = schedule["retry"]
    if retry is None:
        return []
    deadline = retry["deadline_seconds"]
    until = "" if deadline is None else f", for {deadline} s"
    waits = f"waits of {retry['base_seconds']} to {retry['cap_seconds']} s"
    return [
        ("overlap", schedule["overlap"]),
        ("retry", f"{retry['max_attempts']} attempts, {waits}{until}"),
    ]


def _lag(available_at: str | None, reached_at: str | None) -> str:
    """Write how much later one instant is; negative when it was ahead."""
    if available_at is None or reached_at is None:
        return ""
    lag = datetime.fromisoformat(reached_at) - datetime.fromisoformat(available_at)
    return f"{lag.total_seconds():+.3f} s"
