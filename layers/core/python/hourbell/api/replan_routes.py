"""Replans of tenants' schedules: routes of the platform role."""

from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Path
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.job_models import job_answer, results_answer
from hourbell.api.job_routes import JobId, WantedOutcome
from hourbell.api.paging import Cursor, Limit
from hourbell.api.schedule_routes import DryRun, IdempotencyKey
from hourbell.domain.job import Outcome
from hourbell.usecases import jobs
from hourbell.usecases.identify import admit_operator
from hourbell.usecases.start_replan import find_replan, start_replan
from hourbell.usecases.tenants import get_tenant

logger = Logger()
metrics = Metrics()
router = Router()

TenantId = Annotated[str, Path()]


@router.post("/v1/admin/tenants/<tenant_id>/replan")
def start(
    tenant_id: TenantId,
    idempotency_key: IdempotencyKey = None,
    dry_run: DryRun = "false",
) -> Response[str]:
    """Bring a tenant's schedules under the present zone database, by a job."""
    call, ports = current_call(router), bootstrap.api_ports()
    operator = call.operator
    tenant = get_tenant(ports.registrar, tenant_id)
    key = idempotency_key or ports.registry.ids.token()
    accepted = start_replan(
        ports.office, tenant, operator, key, call.now, dry_run=dry_run == "true"
    )
    job, replayed = accepted.job, accepted.replayed
    metrics.add_metric("JobsStarted", MetricUnit.Count, int(not replayed))
    logger.info("replan accepted", job_id=job.job_id, tenant_id=tenant_id)
    headers = {"Location": f"replan/{job.job_id}"}
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return answer(HTTPStatus.ACCEPTED, job_answer(job).text, headers)


@router.get("/v1/admin/tenants/<tenant_id>/replan/<job_id>")
def get(tenant_id: TenantId, job_id: JobId) -> Response[str]:
    """Return a replan and its progress."""
    admit_operator(current_call(router).identity)
    job = find_replan(bootstrap.api_ports().office.jobs, tenant_id, job_id)
    return answer(HTTPStatus.OK, job_answer(job).text)


@router.get("/v1/admin/tenants/<tenant_id>/replan/<job_id>/results")
def results(
    tenant_id: TenantId,
    job_id: JobId,
    outcome: WantedOutcome = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response[str]:
    """Return what became of each schedule of a replan so far."""
    admit_operator(current_call(router).identity)
    stored = bootstrap.api_ports().office.jobs
    page = jobs.job_results(
        stored,
        tenant_id,
        find_replan(stored, tenant_id, job_id).job_id,
        outcome=None if outcome is None else Outcome(outcome),
        after=cursor,
        limit=limit,
    )
    return answer(HTTPStatus.OK, results_answer(page).text)
