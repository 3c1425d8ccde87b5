"""Who administers, who schedules, and where messages go, on the deployed stack."""

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

import botocore.session
import pytest
from hourbell.cli.client import Answer, Api
from hourbell.local.stack import StackInfo, running
from hourbell.local.state import Credentials

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

TENANTS = "/v1/admin/tenants"
INBOX = "arn:aws:sqs:us-east-1:000000000000:inbox"
DAILY = {"expression": "30 2 * * *", "handler": "report"}
WAIT_SECONDS = 40.0

Call = Callable[..., Answer]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackInfo]:
    with running(tmp_path_factory.mktemp("control")) as started:
        yield started


def calling(stack: StackInfo, keys: Credentials) -> Call:
    session = botocore.session.Session()
    session.set_credentials(keys.access_key_id, keys.secret_access_key)
    return Api(stack.api_url, session, stack.region).send


@pytest.fixture(scope="module")
def tenant(stack: StackInfo) -> Call:
    """Call as the user that `.local/env` names."""
    assert stack.state.operator is not None
    return calling(stack, stack.state.operator)


@pytest.fixture(scope="module")
def platform(stack: StackInfo) -> Call:
    """Call as the user that `.local/platform.env` names."""
    return calling(stack, stack.platform_keys)


def test_a_fresh_stack_takes_a_schedule(tenant: Call) -> None:
    answer = tenant("POST", "/v1/schedules", {"name": "nightly", **DAILY})
    assert answer.status == HTTPStatus.CREATED
    usage = tenant("GET", "/v1/usage").document
    assert usage["tenant_id"] == "local"
    assert usage["quotas"][0]["used"] >= 1


def test_neither_does_the_others_work(tenant: Call, platform: Call) -> None:
    for answer in (tenant("GET", TENANTS), platform("GET", "/v1/usage")):
        assert answer.status == HTTPStatus.FORBIDDEN
        assert answer.document["code"] == "forbidden"


def test_a_new_tenant_calls_until_it_is_suspended(
    stack: StackInfo, platform: Call
) -> None:
    keys = stack.create_user("north")
    north = calling(stack, keys)
    assert north("GET", "/v1/usage").status == HTTPStatus.FORBIDDEN
    body = {"tenant_id": "north", "quotas": {"schedules": 1}}
    assert platform("POST", TENANTS, body).status == HTTPStatus.CREATED
    place = f"{TENANTS}/north/principals/{quote(keys.arn, safe='')}"
    assert platform("PUT", place).status == HTTPStatus.OK
    assert north("GET", "/v1/usage").document["tenant_id"] == "north"
    assert north("POST", "/v1/handlers", {"name": "report"}).status == 201
    name = "/v1/schedules/by-name/ops%2Fnightly"
    assert north("PUT", name, DAILY).document["name"] == "ops/nightly"
    full = north("POST", "/v1/schedules", {"name": "more", **DAILY})
    assert full.status == HTTPStatus.TOO_MANY_REQUESTS
    change = {"state": "SUSPENDED", "reason": "unpaid"}
    match = {"If-Match": '"1"'}
    assert platform("PATCH", f"{TENANTS}/north", change, match).status == 200
    stale = platform("PATCH", f"{TENANTS}/north", change, match)
    assert stale.status == HTTPStatus.PRECONDITION_FAILED

    def is_suspended() -> bool:
        return "tenant_suspended" in north("GET", "/v1/usage").text

    # Functions remember a tenant for up to half a minute.
    stack.wait_for(is_suspended, WAIT_SECONDS, "the suspension")


def test_an_external_queue_gets_a_test_message_and_then_work(
    stack: StackInfo, tenant: Call
) -> None:
    body = {"name": "bill", "routing": "external", "queue_arn": INBOX}
    refused = tenant("POST", "/v1/handlers", body)
    assert refused.document["code"] == "queue_not_writable"
    client = stack.admin_session().client("sqs")
    url = client.create_queue(QueueName="inbox")["QueueUrl"]
    assert tenant("POST", "/v1/handlers", body).status == HTTPStatus.CREATED
    at = datetime.now(UTC) + timedelta(seconds=5)
    schedule = {"expression": f"at({at:%Y-%m-%dT%H:%M:%S})", "handler": "bill"}
    created = tenant("POST", "/v1/schedules", {"name": "once", **schedule})
    assert created.status == HTTPStatus.CREATED
    got: list[Any] = []

    def has_both() -> bool:
        answer = client.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        got.extend(json.loads(each["Body"]) for each in answer.get("Messages", []))
        return len(got) >= 2

    stack.wait_for(has_both, WAIT_SECONDS, "two messages")
    test, work = got
    assert test["type"] == "com.hourbell.handler.test.v1"
    assert work["type"] == "com.hourbell.occurrence.due.v1"
    assert work["data"]["schedule_id"] == created.document["schedule_id"]


def test_no_queue_of_the_stack_is_external(tenant: Call) -> None:
    arn = "arn:aws:sqs:us-east-1:000000000000:hourbell-work"
    body = {"name": "loop", "routing": "external", "queue_arn": arn}
    answer = tenant("POST", "/v1/handlers", body)
    assert answer.document["code"] == "foreign_queue"
