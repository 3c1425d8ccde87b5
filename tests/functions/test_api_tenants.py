"""The platform role's routes, and who may not use them."""

from typing import Any
from urllib.parse import quote

import pytest

from tests.functions.conftest import Answer, Api
from tests.functions.events import ANN, BOB

PLATFORM = "arn:aws:sts::123456789012:assumed-role/platform/ops-1"
DODO = "arn:aws:iam::123456789012:user/dodo"
EVE = "arn:aws:iam::999999999999:user/eve"
TENANTS = "/v1/admin/tenants"

ADMIN_ROUTES = [
    ("GET", TENANTS),
    ("POST", TENANTS),
    ("GET", f"{TENANTS}/acme"),
    ("PATCH", f"{TENANTS}/acme"),
    ("GET", f"{TENANTS}/acme/principals"),
    ("PUT", f"{TENANTS}/acme/principals/x"),
    ("DELETE", f"{TENANTS}/acme/principals/x"),
    ("GET", "/v1/admin/shards"),
    ("POST", "/v1/admin/shards"),
    ("POST", "/v1/admin/shards/resume"),
    ("GET", "/v1/admin/parked"),
    ("POST", "/v1/admin/parked/x/retry"),
    ("POST", f"{TENANTS}/acme/replan"),
    ("GET", f"{TENANTS}/acme/replan/job0"),
    ("GET", f"{TENANTS}/acme/replan/job0/results"),
]
TENANT_ROUTES = [
    ("GET", "/v1/schedules"),
    ("POST", "/v1/schedules"),
    ("POST", "/v1/schedules/preview"),
    ("GET", "/v1/schedules/sch0"),
    ("PATCH", "/v1/schedules/sch0"),
    ("DELETE", "/v1/schedules/sch0"),
    ("POST", "/v1/schedules/sch0/pause"),
    ("GET", "/v1/handlers"),
    ("POST", "/v1/handlers"),
    ("GET", "/v1/handlers/ring"),
    ("PATCH", "/v1/handlers/ring"),
    ("DELETE", "/v1/handlers/ring"),
    ("GET", "/v1/usage"),
]


def call(api: Api, method: str, path: str, body: Any = None, **kwargs: Any) -> Answer:
    return api.call(method, path, body, arn=PLATFORM, **kwargs)


def principal_call(api: Api, method: str, tenant_id: str, text: str) -> Answer:
    """Send a principal in the path as API Gateway passes it on."""
    return call(
        api,
        method,
        f"{TENANTS}/{tenant_id}/principals/{quote(text, safe='')}",
        resource=TENANTS + "/{tenant_id}/principals/{principal}",
        path_parameters={"tenant_id": tenant_id, "principal": text},
    )


def change(api: Api, tenant_id: str, revision: int, body: object) -> Answer:
    headers = {"If-Match": f'"{revision}"'}
    return call(api, "PATCH", f"{TENANTS}/{tenant_id}", body, headers=headers)


@pytest.mark.parametrize(("method", "path"), ADMIN_ROUTES)
@pytest.mark.parametrize(
    ("arn", "code"),
    [(ANN, "forbidden"), (BOB, "forbidden"), (DODO, "tenant_suspended"), (EVE, "")],
)
def test_only_the_platform_role_administers(
    api: Api, method: str, path: str, arn: str, code: str
) -> None:
    answer = api.call(method, path, {}, arn=arn)
    assert (answer.status, answer.code) == (403, code or "forbidden")


@pytest.mark.parametrize(("method", "path"), TENANT_ROUTES)
def test_the_platform_role_is_no_tenant(api: Api, method: str, path: str) -> None:
    answer = call(api, method, path, {})
    assert (answer.status, answer.code) == (403, "forbidden")


@pytest.mark.parametrize(("method", "path"), TENANT_ROUTES)
def test_a_suspended_tenant_gets_nowhere(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path, {}, arn=DODO)
    assert (answer.status, answer.code) == (403, "tenant_suspended")


def test_a_tenant_is_created_and_can_start_at_once(api: Api) -> None:
    arns = [
        "arn:aws:iam::222222222222:role/service/jobs",
        "arn:aws:iam::222222222222:user/team/eve",
    ]
    body = {"tenant_id": "north-1", "tier": "premium", "principals": arns}
    answer = call(api, "POST", TENANTS, body)
    assert answer.status == 201
    assert answer.headers["ETag"] == '"1"'
    assert answer.headers["Location"] == "tenants/north-1"
    assert answer.body == {
        "tenant_id": "north-1",
        "tier": "premium",
        "state": "ACTIVE",
        "reason": "",
        "quotas": {
            "schedules": 5_000,
            "payload_bytes": 65_536,
            "min_interval_seconds": 60,
            "catch_up_per_minute": 600,
            "triggers_per_minute": None,
            "running": None,
            "retries_per_minute": None,
            "retry_attempts": 100,
            "retry_deadline_seconds": None,
        },
        "weight": 1,
        "revision": 1,
    }
    listed = call(api, "GET", f"{TENANTS}/north-1/principals").body["principals"]
    assert listed == ["222222222222:role/jobs", "222222222222:user/team/eve"]
    session = "arn:aws:sts::222222222222:assumed-role/jobs/i-1"
    usage = api.call("GET", "/v1/usage", arn=session)
    assert usage.body["tenant_id"] == "north-1"


@pytest.mark.parametrize(
    ("field", "value", "place", "code"),
    [
        ("tenant_id", "North", "tenant_id", "invalid_characters"),
        ("tenant_id", "n", "tenant_id", "invalid_characters"),
        ("tier", "gold", "tier", "unsupported_value"),
        ("weight", 101, "weight", "out_of_range"),
        ("quotas", {"schedules": 20_000_001}, "quotas.schedules", "out_of_range"),
        ("quotas", {"payload_bytes": 0}, "quotas.payload_bytes", "out_of_range"),
        (
            "quotas",
            {"catch_up_per_minute": 0},
            "quotas.catch_up_per_minute",
            "out_of_range",
        ),
        (
            "quotas",
            {"catch_up_per_minute": 60_001},
            "quotas.catch_up_per_minute",
            "out_of_range",
        ),
        (
            "quotas",
            {"triggers_per_minute": 0},
            "quotas.triggers_per_minute",
            "out_of_range",
        ),
        (
            "quotas",
            {"triggers_per_minute": 6_000_001},
            "quotas.triggers_per_minute",
            "out_of_range",
        ),
        ("quotas", {"running": 0}, "quotas.running", "out_of_range"),
        ("quotas", {"running": 1_001}, "quotas.running", "out_of_range"),
        (
            "quotas",
            {"retries_per_minute": 0},
            "quotas.retries_per_minute",
            "out_of_range",
        ),
        (
            "quotas",
            {"retries_per_minute": 6_000_001},
            "quotas.retries_per_minute",
            "out_of_range",
        ),
        ("quotas", {"retry_attempts": 101}, "quotas.retry_attempts", "out_of_range"),
        (
            "quotas",
            {"retry_deadline_seconds": 59},
            "quotas.retry_deadline_seconds",
            "out_of_range",
        ),
        ("quotas", {"rate": 1}, "quotas.rate", "unknown_field"),
        (
            "quotas",
            {"min_interval_seconds": 59},
            "quotas.min_interval_seconds",
            "out_of_range",
        ),
        (
            "principals",
            ["arn:aws:iam::222222222222:root"],
            "principals.0",
            "invalid_principal",
        ),
        (
            "principals",
            ["arn:aws:iam::222222222222:role/*"],
            "principals.0",
            "invalid_principal",
        ),
        ("principals", "all", "principals", "wrong_type"),
    ],
)
def test_a_field_out_of_bounds_is_named(
    api: Api, field: str, value: object, place: str, code: str
) -> None:
    answer = call(api, "POST", TENANTS, {"tenant_id": "north", field: value})
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}


def test_an_id_and_a_principal_are_taken_once(api: Api) -> None:
    again = call(api, "POST", TENANTS, {"tenant_id": "acme"})
    assert (again.status, again.code) == (409, "tenant_exists")
    body = {"tenant_id": "north", "principals": [ANN]}
    taken = call(api, "POST", TENANTS, body)
    assert (taken.status, taken.code) == (409, "principal_taken")
    assert "acme" not in taken.text
    assert call(api, "GET", f"{TENANTS}/north").status == 404


def test_tenants_are_listed_page_by_page(api: Api) -> None:
    ids, cursor = [], None
    for _ in range(3):
        query = {"limit": ["1"]} | ({"cursor": [cursor]} if cursor else {})
        page = call(api, "GET", TENANTS, query=query).body
        ids += [each["tenant_id"] for each in page["tenants"]]
        cursor = page["cursor"]
    assert (ids, cursor) == (["acme", "dodo", "zenith"], None)
    bad = call(api, "GET", TENANTS, query={"cursor": ["%"]})
    assert (bad.status, bad.code) == (400, "invalid_cursor")


def test_a_change_needs_the_revision_it_was_made_for(api: Api) -> None:
    missing = call(api, "PATCH", f"{TENANTS}/acme", {"weight": 2})
    assert (missing.status, missing.code) == (428, "precondition_required")
    done = change(api, "acme", 1, {"weight": 2, "quotas": {"schedules": 7}})
    assert (done.status, done.headers["ETag"]) == (200, '"2"')
    assert done.body["quotas"]["schedules"] == 7
    assert done.body["quotas"]["payload_bytes"] == 65_536
    stale = change(api, "acme", 1, {"weight": 3})
    assert (stale.status, stale.code) == (412, "precondition_failed")
    assert stale.body["revision"] == 2


@pytest.mark.parametrize("rate", [1, 60_000])
def test_the_catch_up_rate_is_changed_within_its_bounds(api: Api, rate: int) -> None:
    done = change(api, "acme", 1, {"quotas": {"catch_up_per_minute": rate}})
    assert done.status == 200
    assert done.body["quotas"]["catch_up_per_minute"] == rate
    assert api.world.store.tenants["acme"].quotas.catch_up_per_minute == rate
    assert usage_of(api)["catch_up_per_minute"] == rate


def usage_of(api: Api) -> dict[str, int | None]:
    """Return the limits that ann is shown, by quota."""
    quotas = api.call("GET", "/v1/usage").body["quotas"]
    return {each["name"]: each["limit"] for each in quotas}


@pytest.mark.parametrize(
    "name",
    [
        *("triggers_per_minute", "running", "retries_per_minute"),
        "retry_deadline_seconds",
    ],
)
def test_a_limit_that_may_be_lifted_is_set_kept_and_lifted(api: Api, name: str) -> None:
    def limit() -> int | None:
        shown = call(api, "GET", f"{TENANTS}/acme").body["quotas"]
        stored: int | None = getattr(api.world.store.tenants["acme"].quotas, name)
        assert shown[name] == usage_of(api)[name] == stored
        return stored

    assert limit() is None
    change(api, "acme", 1, {"quotas": {name: 90}})
    assert limit() == 90
    change(api, "acme", 2, {"quotas": {"schedules": 7}})
    assert limit() == 90
    change(api, "acme", 3, {"quotas": {name: None}})
    assert limit() is None


def test_a_suspension_needs_a_reason_and_can_be_taken_back(api: Api) -> None:
    bare = change(api, "acme", 1, {"state": "SUSPENDED"})
    assert (bare.status, bare.code) == (400, "missing")
    done = change(api, "acme", 1, {"state": "SUSPENDED", "reason": "unpaid"})
    assert (done.body["state"], done.body["reason"]) == ("SUSPENDED", "unpaid")
    refused = api.call("GET", "/v1/usage")
    assert (refused.status, refused.code) == (403, "tenant_suspended")
    back = change(api, "acme", 2, {"state": "ACTIVE", "reason": "paid"})
    assert back.body["state"] == "ACTIVE"
    assert api.call("GET", "/v1/usage").status == 200


def test_null_is_no_value_of_a_change(api: Api) -> None:
    answer = change(api, "acme", 1, {"tier": None, "quotas": {"schedules": None}})
    assert set(answer.findings) == {"tier", "quotas.schedules"}
    assert {each["code"] for each in answer.findings.values()} == {"wrong_type"}


@pytest.mark.parametrize("tenant_id", ["north", "No", "x" * 80])
def test_an_unknown_tenant_is_not_found(api: Api, tenant_id: str) -> None:
    for answer in (
        call(api, "GET", f"{TENANTS}/{tenant_id}"),
        change(api, tenant_id, 1, {"weight": 2}),
        call(api, "GET", f"{TENANTS}/{tenant_id}/principals"),
        principal_call(api, "PUT", tenant_id, EVE),
        principal_call(api, "DELETE", tenant_id, EVE),
    ):
        assert (answer.status, answer.code) == (404, "not_found")


@pytest.mark.parametrize(
    ("text", "registered"),
    [
        ("arn:aws:iam::222222222222:user/team/a/eve", "222222222222:user/team/a/eve"),
        ("arn:aws:iam::222222222222:role/x/jobs", "222222222222:role/jobs"),
        ("222222222222:role/jobs", "222222222222:role/jobs"),
        ("arn:aws:iam::222222222222:user/a+b=c@d", "222222222222:user/a+b=c@d"),
    ],
)
def test_a_principal_comes_and_goes_by_its_arn(
    api: Api, text: str, registered: str
) -> None:
    for _ in range(2):
        added = principal_call(api, "PUT", "acme", text)
        assert (added.status, added.body["principal"]) == (200, registered)
    listed = call(api, "GET", f"{TENANTS}/acme/principals").body["principals"]
    assert registered in listed
    taken = principal_call(api, "PUT", "zenith", text)
    assert (taken.status, taken.code) == (409, "principal_taken")
    assert "acme" not in taken.text
    assert principal_call(api, "DELETE", "acme", text).status == 200
    gone = principal_call(api, "DELETE", "acme", text)
    assert (gone.status, gone.code) == (404, "not_found")


def test_an_encoded_principal_is_decoded_once(api: Api) -> None:
    # As API Gateway passes it on when it has not decoded the parameter itself.
    text = quote("arn:aws:iam::222222222222:user/team/eve", safe="")
    added = principal_call(api, "PUT", "acme", text)
    assert added.body["principal"] == "222222222222:user/team/eve"


def test_the_platform_role_cannot_become_a_tenant(api: Api) -> None:
    arn = "arn:aws:iam::123456789012:role/platform"
    answer = principal_call(api, "PUT", "acme", arn)
    assert (answer.status, answer.code) == (409, "principal_taken")
    answer = call(api, "POST", TENANTS, {"tenant_id": "north", "principals": [arn]})
    assert (answer.status, answer.code) == (409, "principal_taken")
