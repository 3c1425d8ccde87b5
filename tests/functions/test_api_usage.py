"""What a tenant may use, and does."""

from hourbell.domain.definition import Quotas, Tenant, Tier

from tests.functions.conftest import Api
from tests.functions.events import BOB


def test_usage_tells_every_quota_of_the_caller(api: Api) -> None:
    body = {"name": "bell", "expression": "0 9 * * *", "handler": "ring"}
    assert api.call("POST", "/v1/schedules", body).status == 201
    answer = api.call("GET", "/v1/usage")
    assert answer.status == 200
    assert answer.body == {
        "tenant_id": "acme",
        "tier": "standard",
        "quotas": [
            {"name": "schedules", "limit": 5000, "used": 1, "unit": "schedules"},
            {"name": "payload_bytes", "limit": 65536, "used": None, "unit": "bytes"},
            {
                "name": "min_interval_seconds",
                "limit": 60,
                "used": None,
                "unit": "seconds",
            },
            {"name": "catch_up_per_minute", "limit": 600, "used": None, "unit": "runs"},
            {
                "name": "triggers_per_minute",
                "limit": None,
                "used": None,
                "unit": "runs",
            },
            {"name": "running", "limit": None, "used": None, "unit": "runs"},
            {
                "name": "retries_per_minute",
                "limit": None,
                "used": None,
                "unit": "retries",
            },
            {"name": "retry_attempts", "limit": 100, "used": None, "unit": "attempts"},
            {
                "name": "retry_deadline_seconds",
                "limit": None,
                "used": None,
                "unit": "seconds",
            },
        ],
    }


def test_each_tenant_sees_its_own(api: Api) -> None:
    api.world.store.tenants["zenith"] = Tenant(
        "zenith", Tier.PREMIUM, quotas=Quotas(schedules=3)
    )
    answer = api.call("GET", "/v1/usage", arn=BOB).body
    assert (answer["tenant_id"], answer["quotas"][0]["limit"]) == ("zenith", 3)
    assert answer["quotas"][0]["used"] == 0


def test_usage_takes_no_parameters(api: Api) -> None:
    answer = api.call("GET", "/v1/usage", query={"tenant": ["zenith"]})
    assert (answer.status, answer.code) == (400, "unknown_parameter")
