"""Sixteen workers at once, with the same messages: each occurrence is one worker's."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.e2e.api_world import YEARLY, ApiWorld, Tenant

WORKERS = 16
OCCURRENCES = 10
# No machine is so slow that this one ends while a test looks on.
LONG_LEASE_SECONDS = 3600
SHORT_LEASE_SECONDS = 10
PATIENCE_SECONDS = 120.0
CLAIM = "/v1/occurrences/claim"


def occurrences(tenant: Tenant, schedule: str) -> list[str]:
    """Return the ids of occurrences of a new schedule, due now."""
    retry = {"base_seconds": 1, "cap_seconds": 1}
    made = tenant.create(schedule, YEARLY, tracking="TRACKED", retry=retry)
    place = f"/v1/schedules/{made.document['schedule_id']}/run"
    keys = [{"Idempotency-Key": f"run-{number}"} for number in range(OCCURRENCES)]
    answers = [tenant.send("POST", place, None, key) for key in keys]
    return [answer.document["occurrence_id"] for answer in answers]


def claims(
    tenant: Tenant, worker: int, names: list[str], lease_seconds: int
) -> list[dict[str, Any]]:
    """Claim all of the occurrences in one call; return the answers."""
    body = {
        "worker": f"worker-{worker}",
        "lease_seconds": lease_seconds,
        "items": [{"occurrence_id": name} for name in names],
    }
    answer = tenant.send("POST", CLAIM, body)
    assert answer.status == 200, answer.text
    results: list[dict[str, Any]] = answer.document["results"]
    assert [each["occurrence_id"] for each in results] == names
    return results


def race(tenant: Tenant, names: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Let all workers claim at the same time; return each occurrence's answers."""

    def claim(worker: int) -> list[dict[str, Any]]:
        return claims(tenant, worker, names, LONG_LEASE_SECONDS)

    with ThreadPoolExecutor(WORKERS) as pool:
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for results in pool.map(claim, range(WORKERS)):
            for each in results:
                found[each["occurrence_id"]].append(each)
    return found


def winners(answers: list[dict[str, Any]]) -> list[int]:
    """Return the numbers of the attempts that were given away."""
    return [each["attempt"] for each in answers if each["answer"] == "RUN"]


def test_of_sixteen_that_claim_the_same_one_gets_it(api_world: ApiWorld) -> None:
    rowan = api_world.tenant("rowan")
    names = occurrences(rowan, "rowan-bell")
    for name, answers in race(rowan, names).items():
        found = Counter(each["answer"] for each in answers)
        assert found == {"RUN": 1, "BUSY": WORKERS - 1}, (name, found)
        assert winners(answers) == [1]
    places = [f"/v1/occurrences/{name}" for name in names]
    states = {rowan.send("GET", place).document["state"] for place in places}
    assert states == {"RUNNING"}


def test_of_sixteen_one_gets_what_a_lease_has_ended_of(api_world: ApiWorld) -> None:
    sorrel = api_world.tenant("sorrel")
    names = occurrences(sorrel, "sorrel-bell")
    for each in claims(sorrel, 0, names, SHORT_LEASE_SECONDS):
        assert (each["answer"], each["attempt"]) == ("RUN", 1)
    given: dict[str, list[int]] = {name: [] for name in names}

    def all_are_given() -> bool:
        for name, answers in race(sorrel, names).items():
            given[name] += winners(answers)
        return all(given.values())

    # Until the leases end all are told BUSY, and WAIT if a retry is not due yet.
    api_world.stack.wait_for(all_are_given, PATIENCE_SECONDS, "a second attempt each")
    assert given == {name: [2] for name in names}
    for name, answers in race(sorrel, names).items():
        assert winners(answers) == [], name
