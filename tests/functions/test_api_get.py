"""GET /v1/schedules/{schedule_id}."""

from typing import Any

import pytest

from tests.functions.conftest import Answer, Api
from tests.functions.events import ANN, BOB
from tests.unit.usecases.world import MINUTE, World

PATH = "/v1/schedules"
BELL = {
    "name": "bell",
    "expression": "* * * * *",
    "zone": "Asia/Kolkata",
    "handler": "ring",
}


def get(api: Api, schedule_id: str, **kwargs: Any) -> Answer:
    resource = f"{PATH}/{{schedule_id}}"
    return api.call("GET", f"{PATH}/{schedule_id}", resource=resource, **kwargs)


@pytest.fixture
def created(api: Api) -> Any:
    return api.call("POST", PATH, BELL).body


def run(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)


def test_a_new_schedule_reads_as_it_was_created(api: Api, created: Any) -> None:
    answer = get(api, created["schedule_id"])
    assert answer.status == 200
    assert answer.body == created
    assert answer.headers["ETag"] == f'"1.{created["schedule_id"]}"'


def test_the_latest_occurrences_show_their_times(api: Api, created: Any) -> None:
    run(api.world, 6)
    body = get(api, created["schedule_id"]).body
    assert body["next_run_at"] == "2026-03-09T12:07:00Z"
    assert body["next_run_at_local"] == "2026-03-09T17:37:00+05:30"
    assert len(body["last_occurrences"]) == 5
    latest = body["last_occurrences"][0]
    assert latest == {
        "occurrence_id": f"{created['schedule_id']}.v1.20260309T120600Z",
        "scheduled_for": "2026-03-09T12:06:00Z",
        "scheduled_for_local": "2026-03-09T17:36:00+05:30",
        "state": "ENQUEUED",
        "available_at": "2026-03-09T12:06:00Z",
        "scheduled_at": "2026-03-09T12:03:00Z",
        "enqueued_at": "2026-03-09T12:03:00Z",
        "visible_at": "2026-03-09T12:06:00Z",
        "finished_at": None,
        "misfire": False,
        "reason": None,
        "sends": 1,
    }


def test_a_time_without_a_row_is_shown_as_such(api: Api, created: Any) -> None:
    api.world.clock.advance(6 * MINUTE)
    latest = get(api, created["schedule_id"]).body["last_occurrences"]
    assert [each["state"] for each in latest][:2] == ["NONE", "NONE"]
    assert latest[0]["available_at"] is None


def test_another_tenants_schedule_answers_as_one_that_is_not(
    api: Api, created: Any
) -> None:
    theirs = get(api, created["schedule_id"], arn=BOB)
    missing = get(api, "sch" + "0" * 26, arn=BOB)
    assert theirs.code == missing.code == "not_found"
    assert (theirs.status, theirs.headers, theirs.text) == (
        missing.status,
        missing.headers,
        missing.text,
    )
    assert get(api, created["schedule_id"], arn=ANN).status == 200


@pytest.mark.parametrize("schedule_id", ["x", "sch", "DEF", "a" * 3000, "%20", "sch*"])
def test_what_cannot_be_an_id_is_not_found(api: Api, schedule_id: str) -> None:
    assert get(api, schedule_id).code in {"not_found", "unknown_route"}
