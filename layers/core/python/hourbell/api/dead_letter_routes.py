"""Dead letters: what is DEAD, and its replay by a job."""

from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.dead_letter_models import (
    ReplayDeadLetters,
    dead_letter_list_answer,
    wanted_letters,
)
from hourbell.api.edge import answer, current_call
from hourbell.api.job_models import ScheduleId, job_answer
from hourbell.api.paging import Cursor, Limit
from hourbell.api.requests import Timestamp
from hourbell.api.schedule_routes import DryRun, IdempotencyKey
from hourbell.usecases.start_replay import list_letters, start_replay

logger = Logger()
metrics = Metrics()
router = Router()


@router.get("/v1/dead-letters")
def list_page(
    schedule_id: Annotated[
        ScheduleId | None, Query(description="Of this schedule only.")
    ] = None,
    since: Annotated[
        Timestamp | None, Query(description="What died then, or later.")
    ] = None,
    until: Annotated[Timestamp | None, Query(description="What died before.")] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response[str]:
    """List what is DEAD of the tenant's occurrences."""
    tenant_id = current_call(router).tenant_id
    wanted = wanted_letters(schedule_id, since, until)
    ledger = bootstrap.api_ports().workplace.ledger
    page = list_letters(ledger, tenant_id, wanted, after=cursor, limit=limit)
    return answer(HTTPStatus.OK, dead_letter_list_answer(*page).text)


@router.post("/v1/dead-letters/replay")
def replay(
    body: Annotated[ReplayDeadLetters | None, Body()] = None,
    idempotency_key: IdempotencyKey = None,
    dry_run: DryRun = "false",
) -> Response[str]:
    """Let DEAD occurrences run anew, at a pace, by a job."""
    call, ports = current_call(router), bootstrap.api_ports()
    said = ReplayDeadLetters() if body is None else body
    key = idempotency_key or ports.registry.ids.token()
    accepted = start_replay(
        ports.office,
        call.caller,
        said.wanted,
        said.per_minute,
        key,
        call.now,
        dry_run=dry_run == "true",
    )
    job, replayed = accepted.job, accepted.replayed
    metrics.add_metric("JobsStarted", MetricUnit.Count, int(not replayed))
    logger.info("replay of dead letters accepted", job_id=job.job_id)
    headers = {"Location": f"../jobs/{job.job_id}"}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return answer(HTTPStatus.ACCEPTED, job_answer(job).text, headers)
