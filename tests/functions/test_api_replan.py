"""A replan over the API: started and read by the platform role, read by the tenant."""

from typing import Any

import pytest
from hourbell.adapters.messages import encode_job
from hourbell.domain.schedule import Timing
from hourbell.domain.zones import TZDB_VERSION

from functions.jobs.handler import handler
from tests.functions.conftest import Answer, Api
from tests.functions.events import BOB, Context, sqs_event
from tests.functions.schedules import create, patch
from tests.functions.test_api_tenants import TENANTS, call

REPLAN = f"{TENANTS}/acme/replan"
NO_JOB = "job" + "0" * 26
DAILY = Timing("0 9 * * *", "America/Asuncion")


def start(api: Api, *, dry_run: bool = False, key: str | None = None) -> Answer:
    headers = {"Idempotency-Key": key} if key else None
    query = {"dry_run": ["true"]} if dry_run else None
    return call(api, "POST", REPLAN, headers=headers, query=query)


def work(api: Api) -> None:
    bodies = [encode_job(each) for each in api.world.job_queue.take()]
    handler(sqs_event(bodies), Context())


def done(api: Api, **kwargs: Any) -> tuple[Any, Any]:
    """Start a replan and let it be done; return the job and its results."""
    answer = start(api, **kwargs)
    assert answer.status == 202, answer.text
    work(api)
    place = f"{REPLAN}/{answer.body['job_id']}"
    results = call(api, "GET", f"{place}/results").body["results"]
    return call(api, "GET", place).body, results


@pytest.mark.parametrize(
    ("dry_run", "outcome"), [(True, "WOULD_CHANGE"), (False, "CHANGED")]
)
def test_the_platform_learns_what_moves(api: Api, dry_run: bool, outcome: str) -> None:
    row = api.world.add(DAILY, tzdb="2024b")
    job, (result,) = done(api, dry_run=dry_run)
    assert (job["operation"], job["state"], job["tag"]) == ("replan", "SUCCEEDED", None)
    assert job["progress"] == {
        "total": 1,
        "done": 1,
        "changed": 1,
        "unchanged": 0,
        "refused": 0,
    }
    assert (result["schedule_id"], result["outcome"]) == (row.schedule_id, outcome)
    assert result["shifts"][0] == {
        "local": "2026-03-22T09:00:00",
        "before": "2026-03-22T13:00:00Z",
        "after": "2026-03-22T12:00:00Z",
    }


def test_the_tenant_sees_the_new_version_and_reads_the_job(api: Api) -> None:
    row = api.world.add(DAILY, tzdb="2024b")
    before = api.call("GET", f"/v1/schedules/{row.schedule_id}").body
    job, _ = done(api)
    after = api.call("GET", f"/v1/schedules/{row.schedule_id}").body
    assert (before["tzdb"], after["tzdb"]) == ("2024b", TZDB_VERSION)
    assert (before["version"], after["version"]) == (1, 2)
    place = f"/v1/schedules/{row.schedule_id}/versions"
    (latest, *_) = api.call("GET", place).body["versions"]
    assert latest["created_by"] == "system"
    assert "2024b" in latest["reason"]
    read = api.call("GET", f"/v1/jobs/{job['job_id']}").body
    assert read == job
    assert read["created_by"] == "system"
    for verb in ("cancel", "resume"):
        answer = api.call("POST", f"/v1/jobs/{job['job_id']}/{verb}")
        assert (answer.status, answer.code) == (403, "forbidden")
    theirs = api.call("GET", f"/v1/jobs/{job['job_id']}", arn=BOB)
    assert (theirs.status, theirs.code) == (404, "not_found")


def test_local_times_are_told_by_the_release_that_they_come_from(api: Api) -> None:
    api.world.clock.set(api.world.clock.now().replace(month=7))
    row = api.world.add(DAILY, tzdb="2024b")
    shown = api.call("GET", f"/v1/schedules/{row.schedule_id}").body
    assert shown["next_run_at"] == "2026-07-09T13:00:00Z"
    assert shown["next_run_at_local"] == "2026-07-09T09:00:00-04:00"


def test_a_dry_run_is_told_by_the_release_that_would_hold(api: Api) -> None:
    api.world.clock.set(api.world.clock.now().replace(month=7))
    row = api.world.add(DAILY, tzdb="2024b")
    labeled, renewed, retimed = (
        patch(api, row.schedule_id, fields, dry_run="true").body
        for fields in (
            {"tags": {"a": "b"}},
            {"payload": 2},
            {"expression": "30 9 * * *"},
        )
    )
    shown = [
        (each["tzdb"], each["schedule"]["tzdb"], each["times"][0]["utc"])
        for each in (labeled, renewed, retimed)
    ]
    assert shown == [
        ("2024b", "2024b", "2026-07-09T13:00:00Z"),
        ("2024b", "2024b", "2026-07-09T13:00:00Z"),
        (TZDB_VERSION, TZDB_VERSION, "2026-07-09T12:30:00Z"),
    ]
    assert labeled["schedule"]["next_run_at_local"] == "2026-07-09T09:00:00-04:00"


def test_a_key_starts_one_job(api: Api) -> None:
    first, again = start(api, key="june"), start(api, key="june")
    assert again.body["job_id"] == first.body["job_id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    assert first.headers["Location"] == f"replan/{first.body['job_id']}"
    other = start(api, key="june", dry_run=True)
    assert (other.status, other.code) == (409, "idempotency_key_reused")


def test_what_is_not_there_is_not_found(api: Api) -> None:
    create(api)
    batch = {"operation": "pause", "tag": {"team": "ops"}}
    own = api.call("POST", "/v1/schedules/batch", batch).body["job_id"]
    replan = start(api).body["job_id"]
    for method, path in (
        ("POST", f"{TENANTS}/nobody/replan"),
        ("GET", f"{REPLAN}/{NO_JOB}"),
        ("GET", f"{REPLAN}/{NO_JOB}/results"),
        # A job of the tenant's own is not the platform's business.
        ("GET", f"{REPLAN}/{own}"),
        ("GET", f"{REPLAN}/{own}/results"),
        ("GET", f"{TENANTS}/zenith/replan/{replan}"),
        ("GET", f"{TENANTS}/zenith/replan/{replan}/results"),
    ):
        answer = call(api, method, path)
        assert (answer.status, answer.code) == (404, "not_found"), path


def test_results_are_paged_and_chosen_by_outcome(api: Api) -> None:
    for zone in ("America/Asuncion", "Europe/Berlin"):
        api.world.add(Timing("0 9 * * *", zone), tzdb="2024b")
    job, results = done(api)
    assert len(results) == 2
    place = f"{REPLAN}/{job['job_id']}/results"
    page = call(api, "GET", place, query={"limit": ["1"]}).body
    assert len(page["results"]) == 1
    wanted = call(api, "GET", place, query={"outcome": ["CHANGED"]}).body["results"]
    assert [len(each["shifts"]) for each in wanted] == [5]
    refused = call(api, "GET", place, query={"cursor": ["x"]})
    assert (refused.status, refused.code) == (400, "invalid_cursor")
