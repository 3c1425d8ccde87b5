"""Start the replan of a tenant's schedules, and follow it, as the platform role."""

import hashlib
from datetime import datetime

from hourbell.domain.definition import Tenant
from hourbell.domain.errors import NotFound
from hourbell.domain.job import Job, Operation
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.identify import Caller, Operator
from hourbell.usecases.job_ports import Jobs
from hourbell.usecases.jobs import Accepted, NewJob, Office, get_job, start_job
from hourbell.usecases.replan_schedule import SYSTEM


def start_replan(
    office: Office,
    tenant: Tenant,
    operator: Operator,
    key: str,
    now: datetime,
    *,
    dry_run: bool,
) -> Accepted:
    """Store a job that replans all ACTIVE schedules of a tenant, and hand it over.

    The tenant may read it as one of its own jobs, made by `system`; it may not stop it.

    Args:
        office: the ports.
        tenant: whose schedules.
        operator: who asks for it.
        key: names the request, so that repeating it makes one job.
        now: the current instant.
        dry_run: whether to tell only what would become of them.

    Raises:
        Conflict: the key was used for another request (`idempotency_key_reused`).
        Transient: as `start_job`.
    """
    request = f"replan\n{dry_run}\n{TZDB_VERSION}"
    return start_job(
        office,
        Caller(tenant, operator.principal, SYSTEM, operator.source),
        NewJob(
            operation=Operation.REPLAN,
            # The blank keeps it apart from the keys of the tenant, which have none.
            key=f"replan {key}",
            body_hash=hashlib.sha256(request.encode()).hexdigest(),
            tags={},
            dry_run=dry_run,
        ),
        now,
    )


def find_replan(jobs: Jobs, tenant_id: str, job_id: str) -> Job:
    """Return a tenant's job that the platform has started.

    Raises:
        NotFound: there is none with this id, or it is a job of the tenant's own, or
            of another tenant.
    """
    job = get_job(jobs, tenant_id, job_id)
    if not job.operation.is_platforms:
        raise NotFound
    return job
