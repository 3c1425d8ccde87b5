"""Batches on the deployed local stack: the queue, the worker, its rights."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.api_world import (
    HANDLER,
    SCHEDULES,
    YEARLY,
    ApiWorld,
    Tenant,
    api_world_in,
    pages_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

BATCH = f"{SCHEDULES}/batch"
WAIT_SECONDS = 60.0
COUNT = 30


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiWorld]:
    with api_world_in(tmp_path_factory.mktemp("jobs")) as found:
        yield found


@pytest.fixture(scope="module")
def tenant(world: ApiWorld) -> Tenant:
    return world.tenant("larch")


def done(world: ApiWorld, tenant: Tenant, body: dict[str, Any], query: str = "") -> Any:
    """Let a batch be done; return its job."""
    answer = tenant.send("POST", f"{BATCH}{query}", body)
    assert answer.status == 202, answer.text
    place = f"/v1/jobs/{answer.document['job_id']}"
    found: dict[str, Any] = {}

    def has_ended() -> bool:
        found.update(tenant.send("GET", place).document)
        return found["state"] not in {"PENDING", "RUNNING"}

    world.stack.wait_for(has_ended, WAIT_SECONDS, "the job")
    assert found["state"] == "SUCCEEDED"
    return found


def results(tenant: Tenant, job: dict[str, Any]) -> list[Any]:
    return pages_of(tenant, f"/v1/jobs/{job['job_id']}/results", "results")


def states(tenant: Tenant) -> dict[str, str]:
    listed = pages_of(tenant, SCHEDULES, "schedules")
    return {each["name"]: each["state"] for each in listed}


def test_thirty_schedules_are_created_paused_by_tag_and_canceled(
    world: ApiWorld, tenant: Tenant
) -> None:
    schedules = [
        {
            "name": f"bell-{n:02}",
            "handler": HANDLER,
            "expression": YEARLY,
            "payload": {"n": n},
            "tags": {"team": "ops", "parity": str(n % 2)},
        }
        for n in range(COUNT)
    ]
    job = done(world, tenant, {"operation": "create", "schedules": schedules})
    assert job["progress"]["changed"] == COUNT
    made = results(tenant, job)
    assert [each["name"] for each in made] == [each["name"] for each in schedules]
    first = tenant.send("GET", f"{SCHEDULES}/{made[7]['schedule_id']}").document
    assert first["payload"] == {"n": 7}

    odd = {"operation": "pause", "tag": {"team": "ops", "parity": "1"}}
    dry = done(world, tenant, odd, "?dry_run=true")
    assert {each["outcome"] for each in results(tenant, dry)} == {"WOULD_CHANGE"}
    assert set(states(tenant).values()) == {"ACTIVE"}
    paused = done(world, tenant, odd | {"reason": "night"})
    assert paused["progress"]["changed"] == COUNT // 2
    expected = {f"bell-{n:02}": "PAUSED" if n % 2 else "ACTIVE" for n in range(COUNT)}
    assert states(tenant) == expected
    log = tenant.send("GET", f"{SCHEDULES}/{made[1]['schedule_id']}/versions").document
    newest = log["versions"][0]
    assert newest["source"] == f"job {paused['job_id']}"
    assert newest["reason"] == "night"
    assert newest["created_by"] == paused["created_by"]

    ids = [each["schedule_id"] for each in made]
    ended = done(world, tenant, {"operation": "cancel", "schedule_ids": ids})
    assert ended["progress"]["changed"] == COUNT
    assert set(states(tenant).values()) == {"CANCELED"}


def test_a_taken_name_is_refused_and_stops_no_other(
    world: ApiWorld, tenant: Tenant
) -> None:
    taken = tenant.create("gong", YEARLY).document
    wanted = [
        {"name": name, "handler": HANDLER, "expression": YEARLY}
        for name in ("gong", "chime")
    ]
    job = done(world, tenant, {"operation": "create", "schedules": wanted})
    first, second = results(tenant, job)
    assert first["problem"]["code"] == "name_taken"
    assert first["problem"]["members"]["schedule_id"] == taken["schedule_id"]
    assert second["outcome"] == "CREATED"
