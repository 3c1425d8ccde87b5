"""What a tenant may use, and what of it is used."""

from dataclasses import dataclass

from hourbell.domain.definition import Tenant
from hourbell.usecases.ports import Schedules


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """One quota of a tenant.

    Attributes:
        limit: None when there is none.
        used: how much of it is used now; None when that is not counted.
        unit: what both numbers count.
    """

    name: str
    limit: int | None
    used: int | None
    unit: str


def usage(schedules: Schedules, tenant: Tenant) -> tuple[QuotaUse, ...]:
    """Return every quota of a tenant.

    Raises:
        Transient: a store did not answer.
    """
    quotas = tenant.quotas
    used = schedules.count(tenant.tenant_id)
    return (
        QuotaUse("schedules", quotas.schedules, used, "schedules"),
        QuotaUse("payload_bytes", quotas.payload_bytes, None, "bytes"),
        QuotaUse("min_interval_seconds", quotas.min_interval_seconds, None, "seconds"),
        QuotaUse("catch_up_per_minute", quotas.catch_up_per_minute, None, "runs"),
        QuotaUse("triggers_per_minute", quotas.triggers_per_minute, None, "runs"),
        QuotaUse("running", quotas.running, None, "runs"),
        QuotaUse("retries_per_minute", quotas.retries_per_minute, None, "retries"),
        QuotaUse("retry_attempts", quotas.retry_attempts, None, "attempts"),
        QuotaUse(
            "retry_deadline_seconds", quotas.retry_deadline_seconds, None, "seconds"
        ),
    )
