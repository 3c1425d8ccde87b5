"""Schedules: create, list, read, preview."""

from http import HTTPStatus
from typing import Annotated, Final, Literal

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import (
    Body,
    Header,
    Path,
    Query,
)
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.answers import (
    created_answer,
    list_answer,
    versions_answer,
    view_answer,
)
from hourbell.api.edge import Call, answer, current_call, entity_tag
from hourbell.api.paging import Cursor, Limit
from hourbell.api.preview_answers import create_rehearsal_answer, preview_answer
from hourbell.api.requests import MAX_NAME, CreateSchedule, PreviewTimes
from hourbell.domain.definition import ScheduleState
from hourbell.domain.errors import InvalidInput
from hourbell.domain.schedule import validate
from hourbell.usecases.create_schedule import (
    Created,
    NewSchedule,
    create_schedule,
    rehearse_create,
)
from hourbell.usecases.get_schedule import get_schedule, version_log
from hourbell.usecases.list_schedules import Filter, list_schedules
from hourbell.usecases.loads import loads_of
from hourbell.usecases.preview import is_complete, preview
from hourbell.usecases.update_schedule import SHOWN

MAX_TAG_FILTERS: Final = 10

# A version number has up to ten digits.
MAX_VERSION: Final = 9_999_999_999

logger = Logger()
metrics = Metrics()
router = Router()

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=128,
        pattern="^[!-~]+$",
        description="Names the request: repeating it creates once.",
    ),
]
DryRun = Annotated[
    Literal["true", "false"],
    Query(description="Say what would be done, and do nothing."),
]


@router.post("/v1/schedules")
def create(
    body: Annotated[CreateSchedule, Body()],
    idempotency_key: IdempotencyKey = None,
    dry_run: DryRun = "false",
) -> Response[str]:
    """Create a schedule."""
    call = current_call(router)
    request = body.to_domain(idempotency_key)
    if dry_run == "true":
        return _rehearse(call, request)
    registry = bootstrap.api_ports().registry
    created = create_schedule(registry, call.caller, request, call.now)
    replayed = created.replayed and idempotency_key is not None
    return answer_created(created, "schedules/", replayed=replayed)


def answer_created(created: Created, place: str, *, replayed: bool) -> Response[str]:
    """Count and answer a create.

    Args:
        created: what was created.
        place: of schedules, relative to the request's own URL, and so right under any
            stage or domain.
        replayed: whether an earlier request had created it.
    """
    schedule = created.schedule
    name = "CreatesReplayed" if replayed else "SchedulesCreated"
    metrics.add_metric(name, MetricUnit.Count, 1)
    if not created.materialized:
        logger.warning("left to the next pass", schedule_id=schedule.schedule_id)
    headers = {
        "Location": f"{place}{schedule.schedule_id}",
        **entity_tag(schedule.revision, schedule.schedule_id),
    }
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return answer(HTTPStatus.CREATED, created_answer(created).text, headers)


@router.get("/v1/schedules")
def list_page(
    state: Annotated[
        Literal["ACTIVE", "PAUSED", "COMPLETED", "CANCELED"] | None, Query()
    ] = None,
    tag: Annotated[
        list[str] | None,
        Query(max_length=MAX_TAG_FILTERS, description="`key:value`, all of them."),
    ] = None,
    prefix: Annotated[
        str, Query(max_length=MAX_NAME, description="How the name begins.")
    ] = "",
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response[str]:
    """List the tenant's schedules."""
    tenant_id = current_call(router).tenant_id
    wanted = Filter(
        prefix, None if state is None else ScheduleState(state), _tags(tag or [])
    )
    schedules = bootstrap.api_ports().library.schedules
    page = list_schedules(schedules, tenant_id, wanted, after=cursor, limit=limit)
    return answer(HTTPStatus.OK, list_answer(page).text)


@router.get("/v1/schedules/<schedule_id>")
def get(schedule_id: Annotated[str, Path()]) -> Response[str]:
    """Return a schedule."""
    call = current_call(router)
    library = bootstrap.api_ports().library
    view = get_schedule(library, call.tenant_id, schedule_id, call.now)
    headers = entity_tag(view.schedule.revision, schedule_id)
    return answer(HTTPStatus.OK, view_answer(view).text, headers)


@router.get("/v1/schedules/<schedule_id>/versions")
def versions(
    schedule_id: Annotated[str, Path()],
    limit: Limit = 50,
    before: Annotated[
        int | None,
        Query(ge=1, le=MAX_VERSION, description="Only versions below this one."),
    ] = None,
) -> Response[str]:
    """Return the version log of a schedule, the newest first."""
    tenant_id = current_call(router).tenant_id
    library = bootstrap.api_ports().library
    log, more = version_log(library, tenant_id, schedule_id, before=before, limit=limit)
    return answer(HTTPStatus.OK, versions_answer(log, more=more).text)


@router.post("/v1/schedules/preview")
def preview_times(body: Annotated[PreviewTimes, Body()]) -> Response[str]:
    """Show the times that a timing gives; nothing is stored."""
    timing, after = body.timing(), body.after(current_call(router).now)
    validate(timing, after)
    times = preview(timing, after, body.count)
    complete = is_complete(timing, after, body.count, times)
    return answer(HTTPStatus.OK, preview_answer(times, complete=complete).text)


def _rehearse(call: Call, request: NewSchedule) -> Response[str]:
    """Answer the dry run of a create."""
    registry = bootstrap.api_ports().registry
    rehearsal = rehearse_create(registry, call.caller, request, call.now)
    times = preview(request.timing, call.now, SHOWN)
    loads = loads_of(registry.plane.loads, [each.utc for each in times], call.now)
    named = request.idempotency_key is not None
    complete = is_complete(request.timing, call.now, SHOWN, times)
    document = create_rehearsal_answer(
        rehearsal, times, loads, complete=complete, named=named
    )
    return answer(HTTPStatus.OK, document.text)


def _tags(texts: list[str]) -> frozenset[str]:
    for text in texts:
        if ":" not in text:
            message = "Allowed is key:value."
            raise InvalidInput.of("tag", "invalid_value", message, found=text)
    return frozenset(texts)
