"""Batches on the deployed local stack: the queue, the worker, its rights."""

from collections.abc import Iterator
from typing import Any

import pytest
from hourbell.adapters.dynamodb.schedule_items import version_key
from hourbell.domain.definition import VersionRef

from tests.e2e.api_world import (
    HANDLER,
    SCHEDULES,
    TENANTS,
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


def test_a_version_of_an_older_release_is_replanned(world: ApiWorld) -> None:
    tenant = world.tenant("yucca")
    made = tenant.create("dawn", "0 9 * * *", zone="America/Asuncion").document
    ref = VersionRef(made["schedule_id"], 1)
    world.stack.admin_session().client("dynamodb").update_item(
        TableName=world.stack.tables["schedules"],
        Key=version_key(ref),
        UpdateExpression="SET tzdb = :old",
        ExpressionAttributeValues={":old": {"S": "2024b"}},
    )
    place = f"{TENANTS}/yucca/replan"
    job_id = world.platform.send("POST", place).document["job_id"]

    def is_done() -> bool:
        job = world.platform.send("GET", f"{place}/{job_id}").document
        return bool(job["state"] == "SUCCEEDED")

    world.stack.wait_for(is_done, WAIT_SECONDS, "the replan")
    found = world.platform.send("GET", f"{place}/{job_id}/results").document
    (result,) = found["results"]
    assert (result["outcome"], len(result["shifts"])) == ("CHANGED", 5)
    # By 2024b winter is at -4, and 09:00 at 13:00.
    assert {each["before"][11:] for each in result["shifts"]} == {"13:00:00Z"}
    assert {each["after"][11:] for each in result["shifts"]} == {"12:00:00Z"}
    log = tenant.send("GET", f"{SCHEDULES}/{ref.schedule_id}/versions").document
    new, old = log["versions"]
    assert (old["tzdb"], new["tzdb"]) == ("2024b", made["tzdb"])
    assert (new["created_by"], new["source"]) == ("system", f"job {job_id}")
