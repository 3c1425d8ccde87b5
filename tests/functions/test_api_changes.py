"""PATCH and DELETE of a schedule, pause and resume."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import HandlerState, ScheduleState
from hourbell.domain.occurrence import State

from tests.functions.conftest import Answer, Api
from tests.functions.events import ANN
from tests.functions.schedules import (
    BELL,
    MINUTELY,
    NOBODY,
    OTHER,
    PATH,
    act,
    assert_foreign_is_missing,
    cancel,
    create,
    get,
    patch,
    versions,
)
from tests.unit.usecases.world import MINUTE


@pytest.fixture
def bell(api: Api) -> Any:
    return create(api, tags={"team": "ops", "floor": "2"}, payload={"n": 1, "m": 2})


def call_all(api: Api, schedule_id: str, **kwargs: Any) -> list[Answer]:
    """Change a schedule in every way there is."""
    return [
        patch(api, schedule_id, {"description": "x"}, **kwargs),
        patch(api, schedule_id, {"zone": "Asia/Tokyo"}, dry_run="true", **kwargs),
        act(api, schedule_id, "pause", **kwargs),
        act(api, schedule_id, "resume", **kwargs),
        act(api, schedule_id, "run", **kwargs),
        act(api, schedule_id, "backfill", {"from": "2026-03-09T09:00:00Z"}, **kwargs),
        cancel(api, schedule_id, **kwargs),
    ]


def test_another_tenants_schedule_answers_as_one_that_is_not(
    api: Api, bell: Any
) -> None:
    before = get(api, bell["schedule_id"]).text
    theirs = call_all(api, bell["schedule_id"], **OTHER)
    missing = call_all(api, NOBODY, **OTHER)
    for mine, none in zip(theirs, missing, strict=True):
        assert_foreign_is_missing(mine, none)
    assert get(api, bell["schedule_id"]).text == before


class TestUpdate:
    def test_a_new_definition_is_a_new_version(self, api: Api, bell: Any) -> None:
        api.world.clock.advance(MINUTE)
        answer = patch(
            api,
            bell["schedule_id"],
            {"expression": "30 8 * * *", "zone": "Europe/Berlin"},
            if_match='"1"',
        )
        assert answer.status == 200
        assert answer.headers["ETag"] == f'"2.{bell["schedule_id"]}"'
        assert answer.headers["Content-Type"] == "application/json"
        body = answer.body
        assert body.pop("already_dispatched") == []
        assert body.pop("finished")
        assert body == bell | {
            "expression": "30 8 * * *",
            "zone": "Europe/Berlin",
            "version": 2,
            "revision": 2,
            "updated_at": "2026-03-09T12:01:00Z",
            "next_run_at": "2026-03-10T07:30:00Z",
            "next_run_at_local": "2026-03-10T08:30:00+01:00",
        }
        assert get(api, bell["schedule_id"]).body == body

    def test_the_patch_merges(self, api: Api, bell: Any) -> None:
        fields = {"tags": {"floor": None, "a": "b"}, "payload": {"m": None, "k": []}}
        body = patch(api, bell["schedule_id"], fields).body
        assert body["tags"] == {"team": "ops", "a": "b"}
        assert body["payload"] == {"n": 1, "k": []}

    def test_null_takes_a_field_back_to_its_default(self, api: Api) -> None:
        made = create(api, zone="Asia/Tokyo", max_occurrences=3, payload=1)
        fields = {"zone": None, "max_occurrences": None, "payload": None}
        body = patch(api, made["schedule_id"], fields).body
        assert {name: body[name] for name in fields} == {
            "zone": "UTC",
            "max_occurrences": None,
            "payload": None,
        }

    @pytest.mark.parametrize("fields", [{"description": "x"}, {"tags": {"a": "b"}}])
    def test_labels_make_a_revision_and_no_version(
        self, api: Api, bell: Any, fields: dict[str, Any]
    ) -> None:
        rows = api.world.rows()
        answer = patch(api, bell["schedule_id"], fields, if_match='"1"')
        tag = f'"2.{bell["schedule_id"]}"'
        assert (answer.status, answer.headers["ETag"]) == (200, tag)
        assert (answer.body["version"], answer.body["revision"]) == (1, 2)
        assert api.world.rows() == rows
        assert len(api.world.store.versions) == 1

    @pytest.mark.parametrize(
        "fields",
        [{}, {"name": "bell"}, {"description": ""}, {"payload": {"n": 1}, "dst": None}],
    )
    def test_a_patch_that_changes_nothing_keeps_the_revision(
        self, api: Api, bell: Any, fields: dict[str, Any]
    ) -> None:
        answer = patch(api, bell["schedule_id"], fields, if_match='"1"')
        tag = f'"1.{bell["schedule_id"]}"'
        assert (answer.status, answer.headers["ETag"]) == (200, tag)
        assert answer.body == bell | {"already_dispatched": [], "finished": True}

    def test_a_rate_counts_on_unless_it_changes(self, api: Api) -> None:
        made = create(api, expression="rate(10 minutes)")
        api.world.clock.advance(3 * MINUTE)
        same = patch(api, made["schedule_id"], {"payload": 1}).body
        assert same["next_run_at"] == "2026-03-09T12:10:00Z"
        other = patch(api, made["schedule_id"], {"expression": "rate(5 minutes)"}).body
        assert other["next_run_at"] == "2026-03-09T12:08:00Z"

    def test_what_is_on_its_way_is_told(self, api: Api) -> None:
        made = create(api, MINUTELY)
        schedule_id = made["schedule_id"]
        answer = patch(api, schedule_id, {"payload": 2})
        assert answer.body["already_dispatched"] == [
            f"{schedule_id}.v1.20260309T12{minute}00Z" for minute in ("01", "02", "03")
        ]
        # The next is one of those that stand; the new version's come after.
        assert answer.body["next_run_at"] == "2026-03-09T12:01:00Z"
        api.world.clock.advance(5 * MINUTE)
        latest = get(api, schedule_id).body["last_occurrences"]
        assert [each["occurrence_id"].split(".", 1)[1] for each in latest] == [
            "v2.20260309T120500Z",
            "v2.20260309T120400Z",
            "v1.20260309T120300Z",
            "v1.20260309T120200Z",
            "v1.20260309T120100Z",
        ]

    @pytest.mark.parametrize(
        ("fields", "place", "code"),
        [
            ({"name": "other"}, "name", "immutable_field"),
            ({"name": None}, "name", "immutable_field"),
            ({"expression": None}, "expression", "missing"),
            ({"expression": "0 9 * *"}, "expression", "invalid_expression"),
            ({"expression": "0 0 31 4 *"}, "expression", "never_fires"),
            ({"zone": "Europe/Belin"}, "zone", "unknown_zone"),
            ({"dst": {"gap": "X"}}, "dst.gap", "unsupported_value"),
            ({"dst": {"gaps": "SKIP"}}, "dst.gaps", "unknown_field"),
            ({"handler": "bark"}, "handler", "unknown_handler"),
            ({"overlap": "QUEUE_ONE"}, "overlap", "overlap_needs_tracking"),
            ({"state": "PAUSED"}, "state", "unknown_field"),
            ({"payload": "x" * 70_000}, "payload", "payload_too_large"),
            ({"tags": {"team": 1}}, "tags.team", "wrong_type"),
        ],
    )
    def test_one_fault_is_named_with_its_field(
        self, api: Api, bell: Any, fields: dict[str, Any], place: str, code: str
    ) -> None:
        answer = patch(api, bell["schedule_id"], fields)
        assert (answer.status, answer.code) == (400, code)
        assert set(answer.findings) == {place}
        assert get(api, bell["schedule_id"]).body == bell

    def test_all_faults_are_named_at_once(self, api: Api, bell: Any) -> None:
        fields = {"name": "x", "zone": "X", "handlr": "ring"}
        answer = patch(api, bell["schedule_id"], fields)
        assert {place: each["code"] for place, each in answer.findings.items()} == {
            "name": "immutable_field",
            "zone": "unknown_zone",
            "handlr": "unknown_field",
        }
        assert answer.findings["handlr"]["suggestion"] == "handler"

    @pytest.mark.parametrize("body", [None, "", "[]", "null"])
    def test_a_patch_is_an_object(self, api: Api, bell: Any, body: str | None) -> None:
        answer = patch(api, bell["schedule_id"], body)
        assert answer.status == 400

    def test_a_retired_handler_serves_what_names_it(self, api: Api, bell: Any) -> None:
        handlers = api.world.store.handlers
        ring = handlers["acme", "ring"]
        handlers["acme", "ring"] = replace(ring, state=HandlerState.RETIRED)
        assert patch(api, bell["schedule_id"], {"payload": 5}).status == 200

    def test_a_canceled_one_cannot_be_changed(self, api: Api, bell: Any) -> None:
        cancel(api, bell["schedule_id"])
        for dry_run in (None, "true"):
            answer = patch(api, bell["schedule_id"], {"payload": 5}, dry_run=dry_run)
            assert (answer.status, answer.code) == (409, "schedule_canceled")


class TestDryRun:
    def test_it_shows_the_next_times_and_stores_nothing(
        self, api: Api, bell: Any
    ) -> None:
        fields = {"expression": "30 2 * * *", "zone": "Europe/Berlin"}
        answer = patch(api, bell["schedule_id"], fields, if_match='"1"', dry_run="true")
        assert answer.status == 200
        body = answer.body
        assert body["dry_run"] is True
        assert body["changes"] is True
        assert body["schedule"]["expression"] == "30 2 * * *"
        assert (body["schedule"]["version"], body["schedule"]["revision"]) == (2, 2)
        assert len(body["times"]) == 10
        assert body["times"][0]["utc"] == "2026-03-10T01:30:00Z"
        assert body["complete"] is False
        assert body["canceled"] == [
            f"{bell['schedule_id']}.v1.20260316T090000Z",
        ]
        assert body["already_dispatched"] == []
        assert get(api, bell["schedule_id"]).body == bell

    def test_it_tells_what_stands(self, api: Api) -> None:
        made = create(api, MINUTELY)
        schedule_id = made["schedule_id"]
        foreseen = patch(api, schedule_id, {"payload": 1}, dry_run="true").body
        done = patch(api, schedule_id, {"payload": 1}).body
        assert foreseen["already_dispatched"] == done["already_dispatched"]
        assert foreseen["canceled"] == [f"{schedule_id}.v1.20260309T120400Z"]
        canceled = api.world.rows(State.CANCELED)
        assert [row.occurrence_id for row in canceled] == foreseen["canceled"]
        assert foreseen["times"][0]["utc"] == "2026-03-09T12:04:00Z"

    def test_labels_cancel_nothing(self, api: Api, bell: Any) -> None:
        fields = {"description": "x"}
        body = patch(api, bell["schedule_id"], fields, dry_run="true").body
        assert (body["canceled"], body["already_dispatched"]) == ([], [])
        assert (body["schedule"]["version"], body["schedule"]["revision"]) == (1, 2)

    def test_it_says_that_nothing_would_change(self, api: Api, bell: Any) -> None:
        body = patch(api, bell["schedule_id"], {}, dry_run="true").body
        assert body["changes"] is False
        assert body["schedule"]["revision"] == 1

    def test_a_stale_one_is_refused(self, api: Api, bell: Any) -> None:
        answer = patch(
            api, bell["schedule_id"], {"payload": 1}, if_match='"7"', dry_run="true"
        )
        assert (answer.status, answer.code) == (412, "precondition_failed")

    def test_a_fault_is_a_fault(self, api: Api, bell: Any) -> None:
        fields = {"handler": "bark"}
        answer = patch(api, bell["schedule_id"], fields, dry_run="true")
        assert (answer.status, answer.code) == (400, "unknown_handler")


class TestPause:
    def test_a_paused_schedule_has_no_next_time(self, api: Api, bell: Any) -> None:
        answer = act(api, bell["schedule_id"], "pause", {"reason": "moving house"})
        assert answer.status == 200
        assert answer.headers["ETag"] == f'"2.{bell["schedule_id"]}"'
        assert answer.body["state"] == "PAUSED"
        assert answer.body["next_run_at"] is None
        assert answer.body["already_dispatched"] == []
        (newest, _) = versions(api, bell["schedule_id"]).body["versions"]
        assert (newest["state"], newest["reason"]) == ("PAUSED", "moving house")
        assert newest["created_by"] == ANN

    def test_what_is_on_its_way_is_told(self, api: Api) -> None:
        schedule_id = create(api, MINUTELY)["schedule_id"]
        answer = act(api, schedule_id, "pause")
        assert len(answer.body["already_dispatched"]) == 3

    def test_a_resumed_one_goes_on(self, api: Api, bell: Any) -> None:
        act(api, bell["schedule_id"], "pause")
        api.world.clock.advance(14 * 24 * 60 * MINUTE)
        answer = act(api, bell["schedule_id"], "resume", {"reason": None})
        assert answer.status == 200
        assert answer.body["state"] == "ACTIVE"
        assert answer.body["next_run_at"] == "2026-03-30T09:00:00Z"
        # Nothing is made up for.
        assert answer.body["last_occurrences"] == []

    @pytest.mark.parametrize("verb", ["pause", "resume"])
    def test_repeating_it_changes_nothing(self, api: Api, bell: Any, verb: str) -> None:
        if verb == "pause":
            act(api, bell["schedule_id"], "pause")
        before = get(api, bell["schedule_id"])
        answer = act(api, bell["schedule_id"], verb, {"reason": "again"})
        assert answer.status == 200
        assert answer.headers["ETag"] == before.headers["ETag"]
        assert answer.body == before.body | {"already_dispatched": [], "finished": True}

    @pytest.mark.parametrize("verb", ["pause", "resume"])
    def test_a_canceled_one_stays(self, api: Api, bell: Any, verb: str) -> None:
        cancel(api, bell["schedule_id"])
        answer = act(api, bell["schedule_id"], verb)
        assert (answer.status, answer.code) == (409, "schedule_canceled")

    @pytest.mark.parametrize(
        ("body", "place", "code"),
        [
            ({"reason": "x" * 513}, "reason", "too_long"),
            ({"reason": 1}, "reason", "wrong_type"),
            ({"why": "x"}, "why", "unknown_field"),
            ("[]", "body", "invalid_json"),
        ],
    )
    def test_a_fault_is_named(
        self, api: Api, bell: Any, body: object, place: str, code: str
    ) -> None:
        for verb in ("pause", "resume"):
            answer = act(api, bell["schedule_id"], verb, body)
            assert (answer.status, answer.code) == (400, code)
            assert set(answer.findings) == {place}
        assert get(api, bell["schedule_id"]).body == bell

    @pytest.mark.parametrize(
        "body", [None, "", {}, {"reason": ""}, {"reason": "x" * 512}]
    )
    def test_a_reason_may_be_missing(self, api: Api, bell: Any, body: object) -> None:
        assert act(api, bell["schedule_id"], "pause", body).status == 200


class TestCancel:
    def test_a_canceled_schedule_is_kept_and_frees_its_name(
        self, api: Api, bell: Any
    ) -> None:
        answer = cancel(api, bell["schedule_id"], reason="done with it")
        assert answer.status == 200
        assert answer.headers["ETag"] == f'"2.{bell["schedule_id"]}"'
        assert answer.body["state"] == "CANCELED"
        assert answer.body["next_run_at"] is None
        assert get(api, bell["schedule_id"]).body["state"] == "CANCELED"
        newest = versions(api, bell["schedule_id"]).body["versions"][0]
        assert (newest["state"], newest["reason"]) == ("CANCELED", "done with it")
        assert create(api)["name"] == BELL["name"]

    def test_again_is_the_same(self, api: Api, bell: Any) -> None:
        first = cancel(api, bell["schedule_id"])
        again = cancel(api, bell["schedule_id"], reason="twice")
        assert (again.status, again.body) == (200, first.body)
        assert again.headers["ETag"] == first.headers["ETag"]

    def test_a_reason_has_512_characters(self, api: Api, bell: Any) -> None:
        answer = cancel(api, bell["schedule_id"], reason="x" * 513)
        assert (answer.status, answer.code) == (400, "too_long")
        assert get(api, bell["schedule_id"]).body == bell

    def test_a_paused_one_can_be_canceled(self, api: Api, bell: Any) -> None:
        act(api, bell["schedule_id"], "pause")
        assert cancel(api, bell["schedule_id"]).body["state"] == "CANCELED"
        stored = api.world.schedules.find(bell["schedule_id"])
        assert stored is not None
        assert stored.state is ScheduleState.CANCELED


class TestRun:
    def test_it_answers_with_the_occurrence_that_was_made(
        self, api: Api, bell: Any
    ) -> None:
        answer = act(api, bell["schedule_id"], "run", {"reason": "audit"})
        assert answer.status == 201
        body = answer.body
        assert body["occurrence_id"].startswith(f"{bell['schedule_id']}.v1.")
        assert body["state"] == State.SCHEDULED
        assert body["queue"] == "standard-strict"
        assert get(api, bell["schedule_id"]).body["next_run_at"] == bell["next_run_at"]

    def test_the_same_key_runs_once(self, api: Api, bell: Any) -> None:
        headers = {"Idempotency-Key": "once"}
        path = f"{PATH}/{bell['schedule_id']}/run"
        first, again = (api.call("POST", path, headers=headers) for _ in range(2))
        assert first.body["occurrence_id"] == again.body["occurrence_id"]
        assert "Idempotency-Replayed" not in first.headers
        assert again.headers["Idempotency-Replayed"] == "true"

    def test_without_a_key_each_call_runs(self, api: Api, bell: Any) -> None:
        ids = {
            act(api, bell["schedule_id"], "run").body["occurrence_id"] for _ in range(3)
        }
        assert len(ids) == 3

    def test_a_canceled_one_is_not_run(self, api: Api, bell: Any) -> None:
        cancel(api, bell["schedule_id"])
        answer = act(api, bell["schedule_id"], "run")
        assert (answer.status, answer.body["code"]) == (409, "schedule_canceled")
