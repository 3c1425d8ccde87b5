"""Batches of schedules, and the jobs that do them."""

from http import HTTPStatus
from typing import Annotated, Literal

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Path, Query
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.job_models import (
    BatchSchedules,
    job_answer,
    job_list_answer,
    results_answer,
)
from hourbell.api.paging import Cursor, Limit
from hourbell.api.schedule_routes import DryRun, IdempotencyKey
from hourbell.domain.job import Outcome
from hourbell.usecases import jobs

logger = Logger()
metrics = Metrics()
router = Router()

JobId = Annotated[str, Path()]
WantedOutcome = Annotated[
    Literal[
        "CREATED",
        "CHANGED",
        "UNCHANGED",
        "REFUSED",
        "WOULD_CREATE",
        "WOULD_CHANGE",
        "WOULD_NOT_CHANGE",
        "WOULD_REFUSE",
    ]
    | None,
    Query(),
]


@router.post("/v1/schedules/batch")
def start(
    body: Annotated[BatchSchedules, Body()],
    idempotency_key: IdempotencyKey = None,
    dry_run: DryRun = "false",
) -> Response[str]:
    """Create, pause, resume or cancel many schedules, by a job."""
    call, ports = current_call(router), bootstrap.api_ports()
    key = idempotency_key or ports.registry.ids.token()
    request = body.to_domain(key, dry_run=dry_run == "true")
    accepted = jobs.start_job(ports.office, call.caller, request, call.now)
    job, replayed = accepted.job, accepted.replayed
    metrics.add_metric("JobsStarted", MetricUnit.Count, int(not replayed))
    logger.info("job accepted", job_id=job.job_id, operation=job.operation)
    headers = {"Location": f"../jobs/{job.job_id}"}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return answer(HTTPStatus.ACCEPTED, job_answer(job).text, headers)


@router.get("/v1/jobs")
def list_page(limit: Limit = 50, cursor: Cursor = None) -> Response[str]:
    """List the tenant's jobs, the newest first."""
    tenant_id, office = current_call(router).tenant_id, bootstrap.api_ports().office
    page = jobs.list_jobs(office.jobs, tenant_id, after=cursor, limit=limit)
    return answer(HTTPStatus.OK, job_list_answer(page).text)


@router.get("/v1/jobs/<job_id>")
def get(job_id: JobId) -> Response[str]:
    """Return a job and its progress."""
    tenant_id, office = current_call(router).tenant_id, bootstrap.api_ports().office
    job = jobs.get_job(office.jobs, tenant_id, job_id)
    return answer(HTTPStatus.OK, job_answer(job).text)


@router.get("/v1/jobs/<job_id>/results")
def results(
    job_id: JobId,
    outcome: WantedOutcome = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response[str]:
    """Return what became of each item of a job so far."""
    tenant_id, office = current_call(router).tenant_id, bootstrap.api_ports().office
    page = jobs.job_results(
        office.jobs,
        tenant_id,
        job_id,
        outcome=None if outcome is None else Outcome(outcome),
        after=cursor,
        limit=limit,
    )
    return answer(HTTPStatus.OK, results_answer(page).text)


@router.post("/v1/jobs/<job_id>/cancel")
def cancel(job_id: JobId) -> Response[str]:
    """Stop a job between two of its items; what is done stays."""
    call, office = current_call(router), bootstrap.api_ports().office
    job = jobs.cancel_job(office.jobs, call.tenant_id, job_id, call.now)
    return answer(HTTPStatus.OK, job_answer(job).text)


@router.post("/v1/jobs/<job_id>/resume")
def resume(job_id: JobId) -> Response[str]:
    """Let a job go on where it stopped."""
    call, office = current_call(router), bootstrap.api_ports().office
    job = jobs.resume_job(office, call.tenant_id, job_id, call.now)
    return answer(HTTPStatus.OK, job_answer(job).text)
