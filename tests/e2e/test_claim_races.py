"""Sixteen workers at once, with the same messages: each occurrence is one worker's."""

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hourbell.domain.policies import CLOCK_SKEW

from tests.e2e.api_world import YEARLY, ApiWorld, Tenant

WORKERS = 16
OCCURRENCES = 10
LEASE_SECONDS = 10
PATIENCE_SECONDS = 60.0
CLAIM = "/v1/occurrences/claim"


def claims(tenant: Tenant, worker: int, names: list[str]) -> list[dict[str, Any]]:
    """Claim all of the occurrences in one call; return the answers."""
    body = {
        "worker": f"worker-{worker}",
        "lease_seconds": LEASE_SECONDS,
        "items": [{"occurrence_id": name} for name in names],
    }
    answer = tenant.send("POST", CLAIM, body)
    assert answer.status == 200, answer.text
    results: list[dict[str, Any]] = answer.document["results"]
    assert [each["occurrence_id"] for each in results] == names
    return results


def race(tenant: Tenant, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Let all workers claim at the same time; return each occurrence's answers."""
    with ThreadPoolExecutor(WORKERS) as pool:
        told = pool.map(lambda worker: claims(tenant, worker, names), range(WORKERS))
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for results in told:
            for each in results:
                found[each["occurrence_id"]].append(each)
    return found


def test_of_sixteen_that_claim_the_same_one_gets_it_and_after_its_lease_one_more(
    api_world: ApiWorld,
) -> None:
    rowan = api_world.tenant("rowan")
    names = []
    retry = {"base_seconds": 1, "cap_seconds": 1}
    made = rowan.create("rowan-bell", YEARLY, tracking="TRACKED", retry=retry)
    place = f"/v1/schedules/{made.document['schedule_id']}/run"
    for number in range(OCCURRENCES):
        key = {"Idempotency-Key": f"run-{number}"}
        names.append(rowan.send("POST", place, None, key).document["occurrence_id"])

    for attempt in (1, 2):
        rounds = race(rowan, names)
        for name, answers in rounds.items():
            found = Counter(each["answer"] for each in answers)
            assert found == {"RUN": 1, "BUSY": WORKERS - 1}, (attempt, name, found)
            (run,) = (each for each in answers if each["answer"] == "RUN")
            assert run["attempt"] == attempt
        if attempt == 1:
            shown = {
                name: rowan.send("GET", f"/v1/occurrences/{name}").document
                for name in names
            }
            assert {each["state"] for each in shown.values()} == {"RUNNING"}
            _let_leases_expire(api_world)


def _let_leases_expire(world: ApiWorld) -> None:
    """Wait on the wall clock, which is what leases are counted by."""
    deadline = time.monotonic() + LEASE_SECONDS + CLOCK_SKEW.total_seconds() + 1
    world.stack.wait_for(
        lambda: time.monotonic() >= deadline, PATIENCE_SECONDS, "the leases to end"
    )
