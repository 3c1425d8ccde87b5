"""Schedules: update, put by name, pause, resume, run, backfill, cancel."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Annotated, Any

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.answers import change_answer, run_answer
from hourbell.api.backfill_models import BackfillTimes, backfill_answer
from hourbell.api.edge import Call, answer, current_call, entity_tag
from hourbell.api.merge_patch import patched
from hourbell.api.preconditions import (
    IfMatch,
    IfNoneMatch,
    need_if_match,
    read_if_match,
    read_if_none_match,
)
from hourbell.api.preview_answers import update_rehearsal_answer
from hourbell.api.requests import (
    MAX_REASON,
    GiveReason,
    PutSchedule,
    ScheduleFields,
    name_of_path,
)
from hourbell.api.schedule_routes import DryRun, IdempotencyKey, answer_created
from hourbell.domain.definition import Schedule
from hourbell.usecases import change_schedule
from hourbell.usecases.backfill import backfill
from hourbell.usecases.backfill_values import Outcome
from hourbell.usecases.by_name import Condition, put_schedule
from hourbell.usecases.change_schedule import Changed
from hourbell.usecases.create_schedule import Created, definition_of
from hourbell.usecases.expected import Expected
from hourbell.usecases.get_schedule import check_id, find_schedule, view_of
from hourbell.usecases.loads import loads_of
from hourbell.usecases.run_now import run_now
from hourbell.usecases.update_schedule import Wanted, foresee_update, update_schedule

logger = Logger()
metrics = Metrics()
router = Router()


@router.patch("/v1/schedules/<schedule_id>")
def update(
    schedule_id: Annotated[str, Path()],
    body: Annotated[dict[str, Any], Body(description="A JSON merge patch.")],
    if_match: IfMatch = None,
    dry_run: DryRun = "false",
) -> Response[str]:
    """Update a schedule."""
    call, changes = current_call(router), bootstrap.api_ports().changes
    expected = need_if_match(if_match)
    check_id(schedule_id)

    def rewrite(schedule: Schedule) -> Wanted:
        return _wanted(patched(schedule, body), schedule.name)

    if dry_run == "true":
        forecast = foresee_update(
            changes, call.caller, schedule_id, rewrite, call.now, expected=expected
        )
        times = [each.utc for each in forecast.times]
        loads = loads_of(changes.plane.loads, times, call.now)
        return answer(HTTPStatus.OK, update_rehearsal_answer(forecast, loads).text)
    changed = update_schedule(
        changes, call.caller, schedule_id, rewrite, call.now, expected=expected
    )
    return _answer_changed(call, changed)


@router.put("/v1/schedules/by-name/<name>")
def put(
    name: Annotated[str, Path()],
    body: Annotated[PutSchedule, Body()],
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> Response[str]:
    """Create a schedule of this name, or update it to this definition."""
    call, ports = current_call(router), bootstrap.api_ports()
    condition = Condition(read_if_match(if_match), read_if_none_match(if_none_match))
    done = put_schedule(
        ports.registry,
        ports.changes,
        call.caller,
        body.named(name_of_path(name)),
        call.now,
        condition=condition,
    )
    if isinstance(done, Created):
        return answer_created(done, "../", replayed=False)
    return _answer_changed(call, done)


@router.post("/v1/schedules/<schedule_id>/pause")
def pause(
    schedule_id: Annotated[str, Path()],
    body: Annotated[GiveReason | None, Body()] = None,
    if_match: IfMatch = None,
) -> Response[str]:
    """Stop a schedule until it is resumed."""
    reason = None if body is None else body.reason
    return _change(change_schedule.pause, schedule_id, if_match, reason)


@router.post("/v1/schedules/<schedule_id>/resume")
def resume(
    schedule_id: Annotated[str, Path()],
    body: Annotated[GiveReason | None, Body()] = None,
    if_match: IfMatch = None,
) -> Response[str]:
    """Let a paused schedule go on."""
    reason = None if body is None else body.reason
    return _change(change_schedule.resume, schedule_id, if_match, reason)


@router.post("/v1/schedules/<schedule_id>/run")
def run(
    schedule_id: Annotated[str, Path()],
    body: Annotated[GiveReason | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
) -> Response[str]:
    """Run a schedule once, now, beside its own times."""
    call, ports = current_call(router), bootstrap.api_ports()
    check_id(schedule_id)
    started = run_now(
        ports.changes,
        call.caller,
        schedule_id,
        call.now,
        key=idempotency_key or ports.registry.ids.token(),
        reason=None if body is None else body.reason,
    )
    metrics.add_metric("RunsStarted", MetricUnit.Count, int(not started.replayed))
    headers = {"Idempotency-Replayed": "true"} if started.replayed else {}
    return answer(HTTPStatus.CREATED, run_answer(started, started.zone).text, headers)


@router.post("/v1/schedules/<schedule_id>/backfill")
def backfill_times(
    schedule_id: Annotated[str, Path()],
    body: Annotated[BackfillTimes, Body()],
    dry_run: DryRun = "false",
) -> Response[str]:
    """Create occurrences of past times that never were, or were missed."""
    call = current_call(router)
    request = body.to_domain(dry_run=dry_run == "true")
    check_id(schedule_id)
    changes = bootstrap.api_ports().changes
    done = backfill(changes, call.caller, schedule_id, request, call.now)
    created = done.count(Outcome.CREATED)
    metrics.add_metric("OccurrencesBackfilled", MetricUnit.Count, created)
    document = backfill_answer(done, dry_run=request.dry_run)
    return answer(HTTPStatus.OK, document.text)


@router.delete("/v1/schedules/<schedule_id>")
def cancel(
    schedule_id: Annotated[str, Path()],
    reason: Annotated[
        str | None, Query(max_length=MAX_REASON, description="For the version log.")
    ] = None,
    if_match: IfMatch = None,
) -> Response[str]:
    """Cancel a schedule for good."""
    return _change(change_schedule.cancel, schedule_id, if_match, reason)


def _change(
    change: Callable[..., Changed],
    schedule_id: str,
    if_match: str | None,
    reason: str | None,
) -> Response[str]:
    """Make one of the changes of a schedule's state, and answer it."""
    call = current_call(router)
    revision = _revision(call, schedule_id, read_if_match(if_match))
    changed = change(
        bootstrap.api_ports().changes,
        call.caller,
        schedule_id,
        call.now,
        revision=revision,
        reason=reason,
    )
    return _answer_changed(call, changed)


def _revision(call: Call, schedule_id: str, expected: Expected | None) -> int | None:
    """Return the revision that must still be stored; None for any.

    Raises:
        NotFound: there is no such schedule of the tenant, as far as it was looked up.
        PreconditionFailed: the current revision is none of those.
    """
    check_id(schedule_id)
    if expected is None:
        return None
    library = bootstrap.api_ports().library
    schedule = find_schedule(library, call.tenant_id, schedule_id)
    return expected.check(schedule.revision, schedule_id)


def _wanted(fields: ScheduleFields, name: str) -> Wanted:
    request = fields.named(name)
    return Wanted(definition_of(request), request.description, request.tags)


def _answer_changed(call: Call, changed: Changed) -> Response[str]:
    """Count and answer a change."""
    schedule = changed.schedule
    if changed.changed:
        metrics.add_metric("SchedulesChanged", MetricUnit.Count, 1)
    if not changed.finished:
        logger.warning("left to the next pass", schedule_id=schedule.schedule_id)
    view = view_of(bootstrap.api_ports().library, schedule, call.now)
    document = change_answer(view, changed)
    return answer(
        HTTPStatus.OK,
        document.text,
        entity_tag(schedule.revision, schedule.schedule_id),
    )
