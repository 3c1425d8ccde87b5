"""Many callers at once: one schedule, one version, exactly the quota."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import pytest

from loadtest.bench._client import Answer, together
from tests.e2e.api_world import (
    DAILY,
    HANDLER,
    SCHEDULES,
    ApiWorld,
    Tenant,
    pages_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

THREADS = 16
NUMBERS = count(1)
ATTEMPTS = 8


@pytest.fixture
def tenant(api_world: ApiWorld) -> Tenant:
    return api_world.tenant(f"crowd-{next(NUMBERS)}")


def answers_of(calls: list[Callable[[], Answer]]) -> list[Answer]:
    return together(calls, THREADS)


def statuses(answers: list[Answer]) -> Counter[int]:
    return Counter(answer.status for answer in answers)


def used(tenant: Tenant) -> Any:
    quotas = tenant.send("GET", "/v1/usage").document["quotas"]
    return next(each["used"] for each in quotas if each["name"] == "schedules")


def patiently(send: Callable[[], Answer]) -> Answer:
    """Repeat a request as a client does whom a 503 tells to."""
    answer = send()
    for _ in range(ATTEMPTS):
        if answer.status != 503:
            break
        answer = send()
    return answer


def test_creates_with_one_key_make_one_schedule(tenant: Tenant) -> None:
    body = {"name": "bell", "expression": DAILY, "handler": HANDLER}
    key = {"Idempotency-Key": "order-4711"}
    create = partial(tenant.send, "POST", SCHEDULES, body, key)
    answers = answers_of([create] * 50)
    assert statuses(answers) == {201: 50}
    assert len({answer.text for answer in answers}) == 1
    replayed = [each for each in answers if "idempotency-replayed" in each.headers]
    assert len(replayed) == 49
    (listed,) = pages_of(tenant, SCHEDULES, "schedules")
    assert listed["schedule_id"] == answers[0].document["schedule_id"]
    assert used(tenant) == 1


def test_updates_of_one_revision_make_one_version(tenant: Tenant) -> None:
    schedule_id = tenant.create("bell").document["schedule_id"]
    answers = answers_of(
        [
            partial(tenant.change, schedule_id, {"payload": number}, '"1"')
            for number in range(50)
        ]
    )
    assert statuses(answers) == {200: 1, 412: 49}
    (won,) = [answer for answer in answers if answer.status == 200]
    refused = [answer.document for answer in answers if answer.status == 412]
    assert {each["revision"] for each in refused} == {2}
    place = f"{SCHEDULES}/{schedule_id}"
    stored = tenant.send("GET", place).document
    assert stored["payload"] == won.document["payload"]
    assert (stored["version"], stored["revision"]) == (2, 2)
    log = tenant.send("GET", f"{place}/versions").document["versions"]
    assert [each["version"] for each in log] == [2, 1]


def test_a_quota_of_many_thousands_is_counted_in_slots(api_world: ApiWorld) -> None:
    tenant = api_world.tenant("vast", quotas={"schedules": 100_000})
    creates = [partial(tenant.create, f"bell-{number}") for number in range(40)]
    answers = answers_of([partial(patiently, create) for create in creates])
    assert statuses(answers) == {201: 40}
    assert used(tenant) == 40
    ids = [answer.document["schedule_id"] for answer in answers[:25]]
    answers = answers_of(
        [partial(tenant.send, "DELETE", f"{SCHEDULES}/{each}") for each in ids]
    )
    assert statuses(answers) == {200: 25}
    assert used(tenant) == 15


def test_a_quota_holds_exactly_under_creates_at_once(api_world: ApiWorld) -> None:
    tenant = api_world.tenant("full", quotas={"schedules": 100})
    answers = answers_of(
        [
            partial(patiently, partial(tenant.create, f"bell-{number}"))
            for number in range(200)
        ]
    )
    assert statuses(answers) == {201: 100, 429: 100}
    refused = [answer.document for answer in answers if answer.status == 429]
    assert {each["code"] for each in refused} == {"quota_exceeded"}
    assert {(each["quota"], each["allowed"]) for each in refused} == {
        ("schedules", 100)
    }
    created = {
        answer.document["schedule_id"] for answer in answers if answer.status == 201
    }
    listed = pages_of(tenant, SCHEDULES, "schedules")
    assert {each["schedule_id"] for each in listed} == created
    assert len(listed) == used(tenant) == 100


def test_canceling_at_once_frees_each_place_once(tenant: Tenant) -> None:
    schedule_id = tenant.create("bell").document["schedule_id"]
    assert tenant.create("gong").status == 201
    cancel = partial(
        patiently, partial(tenant.send, "DELETE", f"{SCHEDULES}/{schedule_id}")
    )
    answers = answers_of([cancel] * 32)
    assert statuses(answers) == {200: 32}
    assert {answer.document["state"] for answer in answers} == {"CANCELED"}
    assert used(tenant) == 1
    log = tenant.send("GET", f"{SCHEDULES}/{schedule_id}/versions").document
    assert [each["state"] for each in log["versions"]] == ["CANCELED", "ACTIVE"]


def test_case_23_puts_of_one_name_at_once_make_one_schedule(tenant: Tenant) -> None:
    """bullmq#2876: concurrent upserts made duplicates."""
    body = {"expression": DAILY, "handler": HANDLER, "payload": {"kind": "daily"}}
    put = partial(tenant.send, "PUT", f"{SCHEDULES}/by-name/ops%2Fbell", body)
    answers = answers_of([partial(patiently, put)] * 50)
    assert statuses(answers) == {201: 1, 200: 49}
    assert {answer.document["version"] for answer in answers} == {1}
    (listed,) = pages_of(tenant, SCHEDULES, "schedules")
    assert {each.document["schedule_id"] for each in answers} == {listed["schedule_id"]}


def test_requests_at_once_are_answered_by_several_processes(
    api_world: ApiWorld, tenant: Tenant
) -> None:
    """What the tests above show means nothing if requests came one by one."""
    answers_of([partial(tenant.create, f"bell-{number}") for number in range(32)])
    (name,) = [it for it in api_world.stack.state.functions if it.endswith("-api")]
    assert len(api_world.stack.worker_pids(name)) > 4
