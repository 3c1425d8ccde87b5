"""Between jobs and the items of the control table."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any, cast

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.attributes import read_retry
from hourbell.adapters.dynamodb.codec import Item, decode, encode, readable, reads
from hourbell.adapters.dynamodb.models import (
    JobItem,
    JobItemsItem,
    JobResultsItem,
    ListedJobItem,
)
from hourbell.domain.definition import NewSchedule, Tracking
from hourbell.domain.errors import Finding
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.job import (
    Creator,
    Job,
    Letters,
    Outcome,
    Progress,
    Refusal,
    Result,
    Target,
    Walk,
)
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.overlap import Overlap
from hourbell.domain.replanning import Shift
from hourbell.domain.retry import USUAL_RETRY
from hourbell.domain.schedule import Timing
from hourbell.domain.work import DeadLetter
from hourbell.usecases import job_ports


def encode_job(job: Job) -> Item:
    """Write a job."""
    return job_item_key(job.job_id) | encode(JobItem, job_values(job))


def job_item_key(job_id: str) -> Item:
    """Return the key of a job."""
    values = {"control_key": layout.job_key(job_id), "item": layout.JOB_SORT}
    return encode(JobItem, values)


def job_values(job: Job) -> dict[str, Any]:
    """Return what a job has besides its key; None for what it lacks."""
    return {
        "schema": layout.SCHEMA,
        "job_id": job.job_id,
        "tenant_id": job.tenant_id,
        "operation": job.operation,
        "dry_run": job.dry_run,
        "principal": job.creator.principal,
        "created_by": job.creator.arn,
        "source": job.creator.source,
        "body_hash": job.body_hash,
        "created_at": job.created_at,
        "reason": job.reason,
        "expires_at": job.expires_at,
        **changing_values(job),
    }


def changing_values(job: Job) -> dict[str, Any]:
    """Return what changes while a job goes on; None for what it lacks."""
    walk, progress = job.walk, job.progress
    return {
        "state": job.state,
        "updated_at": job.updated_at,
        "finished_at": job.finished_at,
        "failure": job.failure,
        "total": progress.total,
        "changed": progress.changed,
        "unchanged": progress.unchanged,
        "refused": progress.refused,
        "tags": None if walk is None else dict(walk.tags),
        "walk_after": None if walk is None else walk.after,
        "walk_finished": None if walk is None else walk.finished,
        "walk_rest": walk and [_target_members(each) for each in walk.rest],
        "walk_letters": walk and walk.letters and _letters_members(walk.letters),
        "walk_next_at": None if walk is None else walk.next_at,
        "step": job.step,
    }


@reads("job")
def decode_job(item: Mapping[str, Any]) -> Job:
    """Read a job."""
    values = decode(JobItem, item)
    return Job(
        job_id=values["job_id"],
        tenant_id=values["tenant_id"],
        operation=values["operation"],
        dry_run=values["dry_run"],
        creator=Creator(values["principal"], values["created_by"], values["source"]),
        body_hash=values["body_hash"],
        created_at=values["created_at"],
        updated_at=values["updated_at"],
        expires_at=values["expires_at"],
        reason=values.get("reason"),
        state=values["state"],
        finished_at=values.get("finished_at"),
        failure=values.get("failure"),
        progress=Progress(
            values.get("total"),
            values["changed"],
            values["unchanged"],
            values["refused"],
        ),
        walk=_walk(values),
        step=values["step"],
    )


def _walk(values: Mapping[str, Any]) -> Walk | None:
    if "tags" not in values:
        return None
    return Walk(
        values["tags"],
        values.get("walk_after"),
        values["walk_finished"],
        tuple(_target(*each) for each in values["walk_rest"]),
        _letters(values.get("walk_letters")),
        values.get("walk_next_at"),
    )


def _target_members(target: Target) -> list[Any]:
    members: list[Any] = [target.schedule_id, target.name]
    letter = target.letter
    if letter is None:
        return members
    died_at, expires_at = map(format_instant, (letter.died_at, letter.expires_at))
    told = (letter.tenant_id, letter.occurrence_id, letter.attempt, letter.reason)
    return [*members, [*told, died_at, expires_at]]


def _target(
    schedule_id: str, name: str | None, letter: Sequence[Any] | None = None
) -> Target:
    if letter is None:
        return Target(schedule_id, name)
    tenant_id, occurrence_id, attempt, reason, *instants = letter
    died_at, expires_at = (parse_instant(each, field="letter") for each in instants)
    dead = DeadLetter(tenant_id, occurrence_id, died_at, attempt, reason, expires_at)
    return Target(schedule_id, name, dead)


def _letters_members(letters: Letters) -> list[Any]:
    since, until = letters.since, format_instant(letters.until)
    return [
        letters.schedule_id,
        since and format_instant(since),
        until,
        letters.per_minute,
    ]


def _letters(members: Sequence[Any] | None) -> Letters | None:
    if members is None:
        return None
    schedule_id, since, until, per_minute = members
    return Letters(
        schedule_id,
        since and parse_instant(since, field="since"),
        parse_instant(until, field="until"),
        per_minute,
    )


def encode_listed_job(job: Job) -> Item:
    """Write a job's place in the list of its tenant's."""
    values = {
        "control_key": layout.job_list_key(job.tenant_id),
        "item": job.place,
        "schema": layout.SCHEMA,
        "job_id": job.job_id,
        "expires_at": job.expires_at,
    }
    return encode(ListedJobItem, values)


@reads("listed job")
def decode_listed_job(item: Mapping[str, Any]) -> str:
    """Read the id of a listed job."""
    return cast("str", decode(ListedJobItem, item)["job_id"])


def encode_items(job: Job, start: int, items: Sequence[job_ports.JobItem]) -> Item:
    """Write some of a job's items, from an index on."""
    return job_items_key(job.job_id, start) | encode(
        JobItemsItem,
        {"schema": layout.SCHEMA, "expires_at": job.expires_at, **_items(items)},
    )


def job_items_key(job_id: str, start: int) -> Item:
    """Return the key of a job's items from an index on."""
    values = {
        "control_key": layout.job_key(job_id),
        "item": layout.job_items_sort(start),
    }
    return encode(JobItemsItem, values)


@reads("part of a job")
def decode_items(item: Mapping[str, Any]) -> tuple[job_ports.JobItem, ...]:
    """Read some of a job's items."""
    values = decode(JobItemsItem, item)
    if "schedule_ids" in values:
        return tuple(Target(each) for each in values["schedule_ids"])
    return tuple(
        _new_schedule(members, payload)
        for members, payload in zip(
            values["schedules"], values["payloads"], strict=True
        )
    )


def _items(items: Sequence[job_ports.JobItem]) -> dict[str, Any]:
    new = [each for each in items if isinstance(each, NewSchedule)]
    if not new:
        ids = [each.schedule_id for each in items if isinstance(each, Target)]
        return {"schedule_ids": ids}
    # Payloads lie apart: as text within a text their quotes would double them.
    return {
        "schedules": [_members(each) for each in new],
        "payloads": [each.payload_json for each in new],
    }


def _members(request: NewSchedule) -> dict[str, Any]:
    return {
        "name": request.name,
        "timing": request.timing.to_dict(),
        "handler": request.handler,
        "body_hash": request.body_hash,
        "tracking": request.tracking,
        "window": request.flexible_window_seconds,
        "misfire": asdict(request.misfire),
        "description": request.description,
        "tags": dict(request.tags),
        "overlap": request.overlap,
        "retry": asdict(request.retry),
    }


def _new_schedule(members: Mapping[str, Any], payload_json: str) -> NewSchedule:
    return NewSchedule(
        name=members["name"],
        timing=Timing.from_dict(members["timing"]),
        handler=members["handler"],
        body_hash=members["body_hash"],
        payload_json=payload_json,
        tracking=Tracking(members["tracking"]),
        flexible_window_seconds=members["window"],
        misfire=_misfire(members["misfire"]),
        description=members["description"],
        tags=members["tags"],
        # Jobs of the release before have neither.
        overlap=Overlap(members.get("overlap", Overlap.ALLOW)),
        retry=read_retry(members["retry"]) if "retry" in members else USUAL_RETRY,
    )


def _misfire(members: Mapping[str, Any]) -> Misfire:
    return replace(Misfire(**members), policy=MisfirePolicy(members["policy"]))


def encode_results(job: Job, results: Sequence[Result]) -> Item:
    """Write results of a job, in order, at least one."""
    sort = layout.job_results_sort(results[0].index)
    return encode(
        JobResultsItem,
        {
            "control_key": layout.job_key(job.job_id),
            "item": sort,
            "schema": layout.SCHEMA,
            "results": [_result_members(each) for each in results],
            "expires_at": job.expires_at,
        },
    )


@reads("part of a job's results")
def decode_results(item: Mapping[str, Any]) -> tuple[Result, ...]:
    """Read results of a job, in order; one that cannot be read is left out."""
    members = decode(JobResultsItem, item)["results"]
    return tuple(readable("result of a job", _result, members))


def _result_members(result: Result) -> dict[str, Any]:
    refusal = result.refusal
    return {
        "index": result.index,
        "outcome": result.outcome,
        "schedule_id": result.schedule_id,
        "name": result.name,
        "shifts": [_shift_members(each) for each in result.shifts],
        "occurrence_id": result.occurrence_id,
        "available_at": result.available_at and format_instant(result.available_at),
        "refusal": refusal
        and {
            "status": refusal.status,
            "code": refusal.code,
            "message": refusal.message,
            "findings": [each.as_dict() for each in refusal.findings],
            "members": dict(refusal.members),
        },
    }


@reads("result of a job")
def _result(members: Mapping[str, Any]) -> Result:
    refusal = members["refusal"]
    if refusal is not None:
        findings = tuple(Finding(**each) for each in refusal["findings"])
        refusal = Refusal(**{**refusal, "findings": findings})
    available_at = members.get("available_at")
    return Result(
        members["index"],
        Outcome(members["outcome"]),
        members["schedule_id"],
        members["name"],
        refusal,
        tuple(map(_shift, members.get("shifts", ()))),
        members.get("occurrence_id"),
        available_at and parse_instant(available_at, field="available_at"),
    )


def _shift_members(shift: Shift) -> list[str | None]:
    instants = (shift.before, shift.after)
    shown = [None if each is None else format_instant(each) for each in instants]
    return [shift.local.isoformat(), *shown]


def _shift(members: Sequence[Any]) -> Shift:
    local, *instants = members
    before, after = (each and parse_instant(each, field="shift") for each in instants)
    return Shift(datetime.fromisoformat(local), before, after)
