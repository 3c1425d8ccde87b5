"""What is unusual but valid gets an answer, and one that fits its wires."""

import json
from dataclasses import replace

import pytest
from hourbell.adapters.dynamodb.job_items import encode_results

from tests.functions.conftest import Answer, Api
from tests.functions.schedules import PATH, create, get, patch, versions
from tests.functions.test_api_jobs import ask, batch, bell, work
from tests.unit.usecases.world import World

MAX_ITEM_BYTES = 400 * 1024
MAX_LAMBDA_BYTES = 6 * 1024 * 1024

# What programs send that have no instant and do not know of null.
ZERO = "0001-01-01T00:00:00Z"
LAST = "9999-12-31T23:59:59Z"


@pytest.mark.parametrize("expression", ["0 9 * * *", "rate(1 day)"])
def test_a_schedule_may_start_with_the_first_year(api: Api, expression: str) -> None:
    bounds = {"expression": expression, "start_at": ZERO, "end_at": LAST}
    made = create(api, bounds)
    assert (made["start_at"], made["end_at"]) == (ZERO, LAST)
    assert made["next_run_at"] is not None
    assert api.call("POST", f"{PATH}/preview", bounds).status == 200
    other = create(api, name="other", expression=expression)
    assert patch(api, other["schedule_id"], {"start_at": ZERO}).status == 200


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "UTC", "Pacific/Niue"])
@pytest.mark.parametrize("expression", ["0 9 * * *", "at(2027-01-01T00:00:00)"])
def test_a_preview_from_the_last_year_is_told_that_nothing_comes(
    api: Api, expression: str, zone: str
) -> None:
    body = {"expression": expression, "zone": zone, "from": LAST}
    answer = api.call("POST", f"{PATH}/preview", body)
    assert (answer.status, answer.code) == (400, "never_fires")


def test_a_page_of_large_versions_ends_before_the_answer_is_too_large(
    api: Api,
) -> None:
    made = create(api)
    # Quotes are escaped in what Lambda hands on, so that they take twice the room.
    changed = patch(api, made["schedule_id"], {"payload": '"' * 32_000})
    assert changed.status == 200, changed.text
    log = api.world.store.versions
    newest = max(log.values(), key=lambda version: version.version)
    older = (replace(newest, version=number) for number in range(3, 41))
    log |= {each.ref: each for each in older}
    first = versions(api, made["schedule_id"], limit=100)
    assert len(json.dumps(first.text)) < MAX_LAMBDA_BYTES
    told = [each["version"] for each in first.body["versions"]]
    assert told == list(range(40, told[-1] - 1, -1))
    assert 20 < len(told) < 40
    assert first.body["before"] == told[-1]
    rest = versions(api, made["schedule_id"], limit=100, before=told[-1]).body
    told += [each["version"] for each in rest["versions"]]
    assert (told, rest["before"]) == (list(range(40, 0, -1)), None)


def reversed_ranges(api: Api) -> Answer:
    """Ask for creates of which all 366 excluded ranges are wrong."""
    wrong = [{"from": "2026-12-31", "to": "2026-01-01"}] * 366
    names = [f"bell-{n}" for n in range(14)]
    return batch(api, "create", schedules=[bell(name, exclude=wrong) for name in names])


def test_results_of_much_that_is_wrong_fit_into_a_record(
    api: Api, world: World
) -> None:
    answer = reversed_ranges(api)
    work(api)
    job_id = answer.body["job_id"]
    stored = encode_results(world.store.jobs[job_id], world.store.job_results[job_id])
    assert len(json.dumps(stored, ensure_ascii=False).encode()) < MAX_ITEM_BYTES / 2
    first, *_ = ask(api, job_id, "/results").body["results"]
    assert first["problem"]["code"] == "invalid_input"
    fields = [each["field"] for each in first["problem"]["errors"]]
    assert fields == [f"exclude[{n}]" for n in range(10)]


def test_a_cursor_of_more_digits_than_an_item_has_is_none(api: Api) -> None:
    job_id = batch(api, "create", schedules=[bell("bell")]).body["job_id"]
    for cursor in ("9" * 1024, "9" * 11):
        answer = ask(api, job_id, "/results", query={"cursor": [cursor]})
        assert (answer.status, answer.code) == (400, "invalid_cursor")


def test_the_next_time_is_the_one_after_those_that_were_canceled(api: Api) -> None:
    schedule_id = create(api, expression="0 * * * *", max_occurrences=3)["schedule_id"]
    following = ["2026-03-09T14:00:00Z", "2026-03-09T15:00:00Z", None]
    for hour, expected in zip((13, 14, 15), following, strict=True):
        name = f"{schedule_id}.v1.20260309T{hour}0000Z"
        canceled = api.call("POST", f"/v1/occurrences/{name}/cancel")
        assert canceled.body["state"] == "CANCELED", canceled.text
        assert get(api, schedule_id).body["next_run_at"] == expected


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"descripton": None}, "descripton"),
        ({"misfire": {"limt": None}}, "misfire.limt"),
        ({"retry": {"max_attempt": None}}, "retry.max_attempt"),
        ({"dst": {"folds": None}}, "dst.folds"),
    ],
)
def test_a_field_that_there_is_not_cannot_be_taken_out(
    api: Api, fields: dict[str, object], place: str
) -> None:
    made = create(api, tracking="TRACKED", misfire={"policy": "CATCH_UP", "limit": 3})
    answer = patch(api, made["schedule_id"], fields)
    assert (answer.status, answer.code) == (400, "unknown_field")
    assert set(answer.findings) == {place}
    assert get(api, made["schedule_id"]).body == made
