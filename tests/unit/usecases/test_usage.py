"""What is used of the quotas."""

from hourbell.domain.definition import Quotas, Tenant, Tier
from hourbell.domain.schedule import Timing
from hourbell.usecases.usage import QuotaUse, usage

from tests.unit.usecases.world import World


def test_usage_counts_the_tenants_own_schedules() -> None:
    world = World()
    world.add_tenant("zenith", Tier.BASIC)
    for owner in ("acme", "acme", "zenith"):
        world.add(Timing("0 9 * * *"), tenant=owner)
    tenant = Tenant(
        "acme", Tier.STANDARD, quotas=Quotas(20, 1_000, 300, 90, 40, 8, 50, 7, 600)
    )
    assert usage(world.schedules, tenant) == (
        QuotaUse("schedules", 20, 2, "schedules"),
        QuotaUse("payload_bytes", 1_000, None, "bytes"),
        QuotaUse("min_interval_seconds", 300, None, "seconds"),
        QuotaUse("catch_up_per_minute", 90, None, "runs"),
        QuotaUse("triggers_per_minute", 40, None, "runs"),
        QuotaUse("running", 8, None, "runs"),
        QuotaUse("retries_per_minute", 50, None, "retries"),
        QuotaUse("retry_attempts", 7, None, "attempts"),
        QuotaUse("retry_deadline_seconds", 600, None, "seconds"),
    )
