"""GET /v1/schedules and GET /v1/schedules/{schedule_id}/versions."""

from typing import Any

import pytest

from tests.functions.conftest import Answer, Api
from tests.functions.events import ANN, BOB
from tests.functions.schedules import (
    NOBODY,
    PATH,
    act,
    assert_foreign_is_missing,
    cancel,
    create,
    listing,
    patch,
    versions,
)
from tests.unit.usecases.world import MINUTE


def names(answer: Answer) -> list[str]:
    assert answer.status == 200, answer.text
    return sorted(each["name"] for each in answer.body["schedules"])


def every(api: Api, **query: Any) -> list[str]:
    """Follow the cursor to the end."""
    found: list[str] = []
    while True:
        body = listing(api, **query).body
        found += [each["name"] for each in body["schedules"]]
        assert len(body["schedules"]) <= int(query.get("limit", 50))
        if body["cursor"] is None:
            return found
        query["cursor"] = body["cursor"]


class TestList:
    def test_an_entry_shows_what_the_index_has(self, api: Api) -> None:
        made = create(api, tags={"team": "ops"})
        answer = listing(api)
        shown = ("schedule_id", "name", "state", "version", "revision", "tags")
        times = ("created_at", "updated_at")
        assert answer.body == {
            "schedules": [{name: made[name] for name in (*shown, *times)}],
            "cursor": None,
        }

    def test_there_may_be_none(self, api: Api) -> None:
        assert listing(api).body == {"schedules": [], "cursor": None}

    def test_a_tenant_sees_its_own_only(self, api: Api) -> None:
        create(api, name="mine")
        assert names(listing(api, arn=BOB)) == []
        assert names(listing(api, arn=ANN)) == ["mine"]

    def test_pages_hold_each_once(self, api: Api) -> None:
        wanted = [create(api, name=f"bell-{n}")["name"] for n in range(25)]
        for limit in (1, 7, 100):
            assert sorted(every(api, limit=limit)) == sorted(wanted)

    def test_changes_between_pages_lose_and_repeat_none(self, api: Api) -> None:
        made = [create(api, name=f"bell-{n:02}") for n in range(20)]
        first = listing(api, limit=5).body
        create(api, name="bell-00a")
        listed = {each["name"] for each in first["schedules"]}
        gone = next(each for each in made if each["name"] not in listed)
        act(api, gone["schedule_id"], "pause")
        patch(api, made[0]["schedule_id"], {"description": "x"})
        rest = every(api, limit=5, cursor=first["cursor"])
        seen = [each["name"] for each in first["schedules"]] + rest
        assert {each["name"] for each in made} <= set(seen)
        assert len(seen) == len(set(seen))

    def test_by_state(self, api: Api) -> None:
        made = {name: create(api, name=name) for name in ("a", "b", "c")}
        act(api, made["b"]["schedule_id"], "pause")
        cancel(api, made["c"]["schedule_id"])
        assert names(listing(api, state="ACTIVE")) == ["a"]
        assert names(listing(api, state="PAUSED")) == ["b"]
        assert names(listing(api, state="CANCELED")) == ["c"]
        assert names(listing(api, state="COMPLETED")) == []
        assert names(listing(api)) == ["a", "b", "c"]

    def test_by_tags_all_of_which_must_be_there(self, api: Api) -> None:
        create(api, name="a", tags={"team": "ops", "floor": "1"})
        create(api, name="b", tags={"team": "ops"})
        create(api, name="c", tags={"team": "dev:ops", "x": ""})
        assert names(listing(api, tag="team:ops")) == ["a", "b"]
        assert names(listing(api, tag=["team:ops", "floor:1"])) == ["a"]
        assert names(listing(api, tag="team:dev:ops")) == ["c"]
        assert names(listing(api, tag="x:")) == ["c"]
        assert names(listing(api, tag="team:")) == []

    def test_by_the_beginning_of_the_name(self, api: Api) -> None:
        for name in ("ops/a", "ops/b", "dev/a", "op"):
            create(api, name=name)
        assert names(listing(api, prefix="ops/")) == ["ops/a", "ops/b"]
        assert sorted(every(api, prefix="op", limit=1)) == ["op", "ops/a", "ops/b"]
        assert names(listing(api, prefix="x")) == []

    def test_a_page_that_finds_little_says_where_to_go_on(self, api: Api) -> None:
        for n in range(40):
            create(api, name=f"bell-{n}", tags={"n": str(n)})
        assert every(api, limit=2, tag="n:17") == ["bell-17"]

    @pytest.mark.parametrize(
        ("query", "place", "code"),
        [
            ({"limit": 0}, "limit", "out_of_range"),
            ({"limit": 101}, "limit", "out_of_range"),
            ({"limit": "x"}, "limit", "wrong_type"),
            ({"limit": ""}, "limit", "wrong_type"),
            ({"limit": "9" * 5000}, "limit", "out_of_range"),
            ({"state": "active"}, "state", "unsupported_value"),
            ({"state": ""}, "state", "unsupported_value"),
            ({"tag": "team"}, "tag", "invalid_value"),
            ({"tag": ["a:b"] * 11}, "tag", "too_long"),
            ({"prefix": "x" * 129}, "prefix", "too_long"),
            ({"cursor": "x" * 1025}, "cursor", "too_long"),
        ],
    )
    def test_a_parameter_that_makes_no_sense_is_named(
        self, api: Api, query: dict[str, Any], place: str, code: str
    ) -> None:
        answer = listing(api, **query)
        assert (answer.status, answer.code) == (400, code)
        assert set(answer.findings) == {place}

    @pytest.mark.parametrize("cursor", ["x", "e30", "eyJhIjoxfQ==", "ü", "\x00"])
    def test_a_cursor_that_is_none_is_refused(self, api: Api, cursor: str) -> None:
        answer = listing(api, cursor=cursor)
        assert (answer.status, answer.code) == (400, "invalid_cursor")

    def test_a_cursor_opens_nobody_elses_list(self, api: Api) -> None:
        for n in range(10):
            create(api, name=f"bell-{n}")
        cursor = listing(api, limit=1).body["cursor"]
        assert cursor is not None
        answer = listing(api, cursor=cursor, arn=BOB)
        assert answer.status in {200, 400}
        assert "bell" not in answer.text


class TestVersions:
    def test_each_change_is_an_entry(self, api: Api) -> None:
        made = create(api, payload={"n": 1}, zone="Europe/Berlin")
        schedule_id = made["schedule_id"]
        api.world.clock.advance(MINUTE)
        act(api, schedule_id, "pause", {"reason": "moving house"})
        patch(api, schedule_id, {"description": "no version"})
        newest, first = versions(api, schedule_id).body["versions"]
        fields = (
            *("expression", "zone", "dst", "start_at", "end_at", "max_occurrences"),
            *("exclude", "anchor", "handler", "payload", "tracking"),
            *("flexible_window_seconds", "misfire", "overlap", "retry"),
        )
        assert first == {
            "version": 1,
            "state": "ACTIVE",
            "definition": {name: made[name] for name in fields},
            "effective_from": "2026-03-09T12:00:00.000001Z",
            "effective_to": "2026-03-09T12:01:00.000001Z",
            "tzdb": made["tzdb"],
            "created_at": "2026-03-09T12:00:00Z",
            "created_by": ANN,
            "source": "api 203.0.113.7",
            "reason": None,
        }
        assert newest["version"] == 2
        assert newest["effective_from"] == first["effective_to"]
        assert newest["effective_to"] is None
        assert (newest["state"], newest["reason"]) == ("PAUSED", "moving house")

    def test_the_log_comes_in_pages(self, api: Api) -> None:
        schedule_id = create(api)["schedule_id"]
        for n in range(4):
            patch(api, schedule_id, {"payload": n})
        first = versions(api, schedule_id, limit=2).body
        assert [each["version"] for each in first["versions"]] == [5, 4]
        assert first["before"] == 4
        last = versions(api, schedule_id, limit=3, before=4).body
        assert [each["version"] for each in last["versions"]] == [3, 2, 1]
        assert last["before"] is None
        assert versions(api, schedule_id, before=1).body == {
            "versions": [],
            "before": None,
        }

    @pytest.mark.parametrize(
        ("query", "place", "code"),
        [
            ({"limit": 0}, "limit", "out_of_range"),
            ({"limit": 101}, "limit", "out_of_range"),
            ({"before": 0}, "before", "out_of_range"),
            ({"before": 10**10}, "before", "out_of_range"),
            ({"before": "x"}, "before", "wrong_type"),
        ],
    )
    def test_a_parameter_that_makes_no_sense_is_named(
        self, api: Api, query: dict[str, Any], place: str, code: str
    ) -> None:
        answer = versions(api, create(api)["schedule_id"], **query)
        assert (answer.status, answer.code) == (400, code)
        assert set(answer.findings) == {place}

    def test_another_tenants_log_answers_as_one_that_is_not(self, api: Api) -> None:
        path = f"{PATH}/{create(api)['schedule_id']}/versions"
        theirs = api.call("GET", path, arn=BOB)
        missing = api.call("GET", f"{PATH}/{NOBODY}/versions", arn=BOB)
        assert_foreign_is_missing(theirs, missing)
