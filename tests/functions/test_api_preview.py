"""POST /v1/schedules/preview."""

import pytest

from tests.functions.conftest import Api

PATH = "/v1/schedules/preview"


def test_the_next_times_come_with_notes(api: Api) -> None:
    asked = {
        "expression": "30 2 * * *",
        "zone": "America/New_York",
        "from": "2026-03-07T12:00:00Z",
        "count": 2,
    }
    body = api.call("POST", PATH, asked).body
    assert [time["utc"] for time in body["times"]] == [
        "2026-03-09T06:30:00Z",
        "2026-03-10T06:30:00Z",
    ]
    first = body["times"][0]
    assert (first["local"], first["weekday"], first["offset"]) == (
        "2026-03-09T02:30:00",
        "Monday",
        "-04:00",
    )
    assert any("2026-03-08" in note for note in first["notes"])
    assert body["times"][1]["notes"] == []
    assert body["complete"] is False
    assert body["tzdb"]


def test_it_starts_now_and_shows_ten(api: Api) -> None:
    body = api.call("POST", PATH, {"expression": "@hourly"}).body
    assert len(body["times"]) == 10
    assert body["times"][0]["utc"] == "2026-03-09T13:00:00Z"


def test_it_says_when_no_more_come(api: Api) -> None:
    body = api.call("POST", PATH, {"expression": "at(2027-01-31T09:00:00)"}).body
    assert len(body["times"]) == 1
    assert body["complete"] is True


@pytest.mark.parametrize(
    ("fields", "complete"),
    [
        ({"expression": "at(2027-01-31T09:00:00)", "count": 1}, True),
        ({"expression": "0 9 * * *", "max_occurrences": 10}, True),
        ({"expression": "0 9 * * *", "max_occurrences": 11}, False),
        ({"expression": "0 9 * * *", "end_at": "2026-03-20T09:00:00Z"}, True),
        ({"expression": "0 9 * * *", "end_at": "2026-03-20T09:00:01Z"}, False),
    ],
)
def test_it_says_so_too_when_as_many_come_as_are_asked_for(
    api: Api, fields: dict[str, object], *, complete: bool
) -> None:
    answer = api.call("POST", PATH, fields)
    assert len(answer.body["times"]) == fields.get("count", 10)
    assert answer.body["complete"] is complete
    if "count" not in fields:
        wanted = {"name": "bell", "handler": "ring", **fields}
        query = {"dry_run": ["true"]}
        rehearsal = api.call("POST", "/v1/schedules", wanted, query=query).body
        assert (len(rehearsal["times"]), rehearsal["complete"]) == (10, complete)


def test_nothing_is_stored(api: Api) -> None:
    assert api.call("POST", PATH, {"expression": "* * * * *"}).status == 200
    assert not api.world.store.schedules
    assert not api.world.rows()


@pytest.mark.parametrize(
    ("fields", "place", "code"),
    [
        ({"count": 0}, "count", "out_of_range"),
        ({"count": 1001}, "count", "out_of_range"),
        ({"from": "tomorrow"}, "from", "invalid_timestamp"),
        ({"from_": "2026-03-07T12:00:00Z"}, "from_", "unknown_field"),
        ({"handler": "ring"}, "handler", "unknown_field"),
        ({"expression": "at(2020-01-01T00:00:00)"}, "expression", "never_fires"),
    ],
)
def test_a_fault_is_named(
    api: Api, fields: dict[str, object], place: str, code: str
) -> None:
    answer = api.call("POST", PATH, {"expression": "* * * * *"} | fields)
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}
