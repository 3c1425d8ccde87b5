"""PUT /v1/schedules/by-name/{name}."""

from typing import Any

import pytest
from hourbell.domain.definition import Quotas, Tenant, Tier
from hourbell.domain.errors import Transient

from tests.functions.conftest import Api
from tests.functions.events import api_event
from tests.functions.schedules import (
    BELL,
    OTHER,
    PATH,
    act,
    cancel,
    create,
    get,
    put,
)
from tests.unit.usecases.world import MINUTE

FIELDS: dict[str, Any] = {name: value for name, value in BELL.items() if name != "name"}
ABSENT = {"If-None-Match": "*"}


def test_what_is_not_there_is_created(api: Api) -> None:
    answer = put(api, "bell", FIELDS | {"tags": {"a": "b"}})
    assert answer.status == 201
    assert answer.body["name"] == "bell"
    assert answer.body["tags"] == {"a": "b"}
    schedule_id = answer.body["schedule_id"]
    assert answer.headers["ETag"] == f'"1.{schedule_id}"'
    # Relative to /v1/schedules/by-name/bell.
    assert answer.headers["Location"] == f"../{schedule_id}"
    assert get(api, schedule_id).body == answer.body


def test_the_same_again_changes_nothing(api: Api) -> None:
    first = put(api, "bell", FIELDS | {"payload": {"n": 1}})
    api.world.clock.advance(MINUTE)
    again = put(api, "bell", FIELDS | {"payload": {"n": 1}, "zone": "UTC"})
    assert again.status == 200
    assert again.headers["ETag"] == first.headers["ETag"]
    assert again.body == first.body | {"already_dispatched": [], "finished": True}


def test_another_order_of_members_is_no_change(api: Api) -> None:
    payload = {"a": 1, "b": {"c": 1.50, "d": None}}
    first = put(api, "bell", FIELDS | {"payload": payload})
    turned = {"b": {"d": None, "c": 1.50}, "a": 1}
    again = put(api, "bell", FIELDS | {"payload": turned})
    assert again.body == first.body | {"already_dispatched": [], "finished": True}
    other = put(api, "bell", FIELDS | {"payload": turned | {"a": 1.0}})
    assert other.body["version"] == 2


def test_a_rate_that_stays_counts_on(api: Api) -> None:
    fields = {"expression": "rate(10 minutes)", "handler": "ring"}
    put(api, "bell", fields)
    api.world.clock.advance(3 * MINUTE)
    again = put(api, "bell", fields)
    assert (again.status, again.body["version"]) == (200, 1)
    assert again.body["next_run_at"] == "2026-03-09T12:10:00Z"


def test_another_definition_replaces_it_whole(api: Api) -> None:
    made = create(api, description="rings", tags={"a": "b"}, zone="Asia/Tokyo")
    answer = put(api, "bell", FIELDS | {"payload": 1})
    assert answer.status == 200
    assert answer.body["schedule_id"] == made["schedule_id"]
    assert (answer.body["version"], answer.body["revision"]) == (2, 2)
    # What is left out goes back to its default.
    names = ("description", "tags", "zone", "payload")
    assert [answer.body[name] for name in names] == ["", {}, "UTC", 1]


def test_labels_alone_make_no_version(api: Api) -> None:
    put(api, "bell", FIELDS)
    answer = put(api, "bell", FIELDS | {"description": "x"})
    assert (answer.body["version"], answer.body["revision"]) == (1, 2)


def test_a_paused_one_stays_paused(api: Api) -> None:
    made = create(api)
    act(api, made["schedule_id"], "pause")
    answer = put(api, "bell", FIELDS | {"payload": 2})
    assert (answer.status, answer.body["state"]) == (200, "PAUSED")
    assert answer.body["next_run_at"] is None


def test_a_canceled_one_is_another_one(api: Api) -> None:
    made = create(api)
    cancel(api, made["schedule_id"])
    answer = put(api, "bell", FIELDS)
    assert answer.status == 201
    assert answer.body["schedule_id"] != made["schedule_id"]


def test_names_are_a_tenants_own(api: Api) -> None:
    mine, theirs = put(api, "bell", FIELDS), put(api, "bell", FIELDS, **OTHER)
    assert (mine.status, theirs.status) == (201, 201)
    assert mine.body["schedule_id"] != theirs.body["schedule_id"]


@pytest.mark.parametrize("written", ["a/b", "a%2Fb", "a%2fb"])
def test_a_name_with_a_slash_is_found_however_it_is_passed_on(
    api: Api, written: str
) -> None:
    made = create(api, name="a/b")
    event = api_event(
        "PUT",
        f"{PATH}/by-name/{written}",
        FIELDS | {"payload": 3},
        resource=f"{PATH}/by-name/{{name}}",
        path_parameters={"name": written},
    )
    answer = api.send(event)
    assert (answer.status, answer.body["schedule_id"]) == (200, made["schedule_id"])


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("my bell", "invalid_characters"),
        ("x" * 129, "too_long"),
        ("ü", "invalid_characters"),
        ("..", "reserved"),
    ],
)
def test_a_name_must_be_one(api: Api, name: str, code: str) -> None:
    answer = put(api, name, FIELDS)
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {"name"}
    assert not api.world.store.schedules


@pytest.mark.parametrize(
    ("fields", "place", "code"),
    [
        ({"name": "bell"}, "name", "unknown_field"),
        ({"expression": "0 9 * *"}, "expression", "invalid_expression"),
        ({"handler": "bark"}, "handler", "unknown_handler"),
        ({"expression": "at(2020-01-01T00:00:00)"}, "expression", "never_fires"),
    ],
)
@pytest.mark.parametrize("there", [True, False])
def test_one_fault_is_named_with_its_field(
    api: Api, fields: dict[str, Any], place: str, code: str, *, there: bool
) -> None:
    if there:
        create(api)
    answer = put(api, "bell", FIELDS | fields)
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}
    assert len(api.world.store.versions) == int(there)


class TestConditions:
    def test_only_if_there_is_none(self, api: Api) -> None:
        assert put(api, "bell", FIELDS, headers=ABSENT).status == 201
        again = put(api, "bell", FIELDS, headers=ABSENT)
        assert (again.status, again.code) == (412, "precondition_failed")

    @pytest.mark.parametrize("tag", ['"1"', "*"])
    def test_only_if_there_is_one(self, api: Api, tag: str) -> None:
        headers = {"If-Match": tag}
        answer = put(api, "bell", FIELDS, headers=headers)
        assert (answer.status, answer.code) == (412, "precondition_failed")
        assert not api.world.store.schedules
        create(api)
        assert put(api, "bell", FIELDS, headers=headers).status == 200

    def test_only_if_it_is_this_revision(self, api: Api) -> None:
        create(api)
        headers = {"If-Match": '"2"'}
        answer = put(api, "bell", FIELDS | {"payload": 1}, headers=headers)
        assert (answer.status, answer.code) == (412, "precondition_failed")
        assert answer.body["revision"] == 1

    def test_a_tag_is_of_the_schedule_that_had_the_name_when_it_was_read(
        self, api: Api
    ) -> None:
        first = put(api, "bell", FIELDS)
        old = {"If-Match": first.headers["ETag"]}
        assert cancel(api, first.body["schedule_id"]).status == 200
        second = put(api, "bell", FIELDS)
        assert second.body["revision"] == first.body["revision"] == 1
        fields = FIELDS | {"payload": 1}
        answer = put(api, "bell", fields, headers=old)
        assert (answer.status, answer.code) == (412, "precondition_failed")
        assert answer.body["revision"] == 1
        # Who is told no more than the revision would take it for the one that was sent.
        assert "another schedule's" in answer.body["detail"]
        own = {"If-Match": second.headers["ETag"]}
        assert put(api, "bell", fields, headers=own).status == 200

    @pytest.mark.parametrize("tag", ['"1"', "x", ""])
    def test_none_match_takes_a_star_only(self, api: Api, tag: str) -> None:
        answer = put(api, "bell", FIELDS, headers={"If-None-Match": tag})
        assert (answer.status, answer.code) == (400, "unsupported_value")
        assert set(answer.findings) == {"if-none-match"}


def test_a_quota_holds(api: Api) -> None:
    api.world.store.tenants["acme"] = Tenant(
        "acme", Tier.STANDARD, quotas=Quotas(schedules=1)
    )
    assert put(api, "bell", FIELDS).status == 201
    answer = put(api, "gong", FIELDS)
    assert (answer.status, answer.code) == (429, "quota_exceeded")
    assert put(api, "bell", FIELDS | {"payload": 1}).status == 200


def test_a_name_that_others_take_meanwhile_is_updated(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = create(api)
    found = api.world.schedules.find_by_name
    answers = [None, made["schedule_id"]]

    def late(tenant_id: str, name: str) -> str | None:
        return answers.pop(0) if answers else found(tenant_id, name)

    monkeypatch.setattr(api.world.schedules, "find_by_name", late)
    # The first answer is of before the other's create, the second names its holder.
    answer = put(api, "bell", FIELDS | {"payload": 1})
    assert (answer.status, answer.body["version"]) == (200, 2)


def test_a_name_that_is_changed_all_the_time_is_a_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(api)
    monkeypatch.setattr(api.world.schedules, "find_by_name", lambda *_: None)
    answer = put(api, "bell", FIELDS)
    assert (answer.status, answer.code) == (503, "unavailable")


def test_a_store_that_is_busy_is_a_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> Any:
        raise Transient("busy")

    monkeypatch.setattr(api.world.schedules, "find_by_name", busy)
    assert put(api, "bell", FIELDS).code == "unavailable"
