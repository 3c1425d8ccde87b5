"""Tracking, overlap and retry policies in creates, changes and answers."""

import hashlib
from typing import Any

import pytest
from hourbell.api.requests import CreateSchedule
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass, Retry

from tests.functions.conftest import Api
from tests.functions.schedules import BELL, PATH, create, get, patch, put, versions

TRACKED: dict[str, Any] = {"tracking": "TRACKED"}
ALL = ["RETRYABLE", "THROTTLED", "LEASE_EXPIRED"]
USUAL = {
    "max_attempts": 5,
    "base_seconds": 10,
    "cap_seconds": 900,
    "deadline_seconds": 86_400,
    "retryable": ALL,
}
SOME = {
    "max_attempts": 3,
    "base_seconds": 60,
    "cap_seconds": 60,
    "deadline_seconds": None,
    "retryable": ["THROTTLED"],
}
KEY = {"Idempotency-Key": "k"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (None, USUAL),
        ({}, USUAL),
        ({"max_attempts": None, "retryable": None}, USUAL),
        (USUAL, USUAL),
        (SOME, SOME),
        ({"deadline_seconds": None}, USUAL | {"deadline_seconds": None}),
        ({"max_attempts": 1}, USUAL | {"max_attempts": 1}),
        ({"max_attempts": 100}, USUAL | {"max_attempts": 100}),
        (
            {"base_seconds": 1, "cap_seconds": 1},
            USUAL | {"base_seconds": 1, "cap_seconds": 1},
        ),
        (
            {"base_seconds": 86_400, "cap_seconds": 86_400},
            USUAL | {"base_seconds": 86_400, "cap_seconds": 86_400},
        ),
        ({"deadline_seconds": 60}, USUAL | {"deadline_seconds": 60}),
        ({"deadline_seconds": 1_209_600}, USUAL | {"deadline_seconds": 1_209_600}),
        ({"retryable": []}, USUAL | {"retryable": []}),
        # In one order, however they are said.
        ({"retryable": ALL[::-1]}, USUAL),
    ],
)
def test_what_is_said_is_shown_and_kept(
    api: Api, said: dict[str, Any] | None, shown: dict[str, Any]
) -> None:
    made = create(api, TRACKED, retry=said)
    assert (made["tracking"], made["retry"]) == ("TRACKED", shown)
    assert get(api, made["schedule_id"]).body["retry"] == shown
    (version,) = versions(api, made["schedule_id"]).body["versions"]
    assert version["definition"]["retry"] == shown


@pytest.mark.parametrize("overlap", ["ALLOW", "SKIP_IF_RUNNING", "QUEUE_ONE"])
def test_an_overlap_policy_is_shown_and_kept(api: Api, overlap: str) -> None:
    made = create(api, TRACKED, overlap=overlap)
    assert made["overlap"] == overlap
    assert get(api, made["schedule_id"]).body["overlap"] == overlap


def test_both_reach_the_version_that_is_judged_by(api: Api) -> None:
    schedule_id = create(api, TRACKED, overlap="QUEUE_ONE", retry=SOME)["schedule_id"]
    schedule = api.world.store.schedules[schedule_id]
    definition = api.world.store.versions[schedule.ref].definition
    assert definition.overlap is Overlap.QUEUE_ONE
    assert definition.retry == Retry(3, 60, 60, None, (ErrorClass.THROTTLED,))


def test_untracked_schedules_show_no_retries(api: Api) -> None:
    made = create(api)
    shown = (made["tracking"], made["overlap"], made["retry"])
    assert shown == ("UNTRACKED", "ALLOW", None)


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "overlap": ({"overlap": "QUEUE"}, "overlap", "unsupported_value"),
    "a text": ({"retry": "5"}, "retry", "wrong_type"),
    "unknown": ({"retry": {"tries": 5}}, "retry.tries", "unknown_field"),
    "no attempt": (
        {"retry": {"max_attempts": 0}},
        "retry.max_attempts",
        "out_of_range",
    ),
    "attempts": (
        {"retry": {"max_attempts": 101}},
        "retry.max_attempts",
        "out_of_range",
    ),
    "half": ({"retry": {"max_attempts": 1.5}}, "retry.max_attempts", "wrong_type"),
    "no base": ({"retry": {"base_seconds": 0}}, "retry.base_seconds", "out_of_range"),
    "base": (
        {"retry": {"base_seconds": 86_401, "cap_seconds": 86_400}},
        "retry.base_seconds",
        "out_of_range",
    ),
    "cap": ({"retry": {"cap_seconds": 86_401}}, "retry.cap_seconds", "out_of_range"),
    "cap below base": (
        {"retry": {"cap_seconds": 9}},
        "retry.cap_seconds",
        "out_of_range",
    ),
    "base above the usual cap": (
        {"retry": {"base_seconds": 901}},
        "retry.cap_seconds",
        "out_of_range",
    ),
    "deadline": (
        {"retry": {"deadline_seconds": 59}},
        "retry.deadline_seconds",
        "out_of_range",
    ),
    "long deadline": (
        {"retry": {"deadline_seconds": 1_209_601}},
        "retry.deadline_seconds",
        "out_of_range",
    ),
    "class": (
        {"retry": {"retryable": ["PERMANENT"]}},
        "retry.retryable.0",
        "unsupported_value",
    ),
    "class twice": (
        {"retry": {"retryable": ["THROTTLED", "THROTTLED"]}},
        "retry.retryable",
        "repeated_value",
    ),
}


@pytest.mark.parametrize(("said", "place", "code"), FAULTS.values(), ids=FAULTS)
def test_one_fault_is_named_with_its_field(
    api: Api, said: dict[str, Any], place: str, code: str
) -> None:
    answer = api.call("POST", PATH, BELL | TRACKED | said)
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}
    assert not api.world.store.schedules


NEEDS = {"overlap": "overlap_needs_tracking", "retry": "retry_needs_tracking"}


class TestWithoutTracking:
    @pytest.mark.parametrize(
        ("said", "place"),
        [
            ({"overlap": "SKIP_IF_RUNNING"}, "overlap"),
            ({"overlap": "QUEUE_ONE"}, "overlap"),
            ({"retry": {}}, "retry"),
            ({"retry": USUAL}, "retry"),
        ],
    )
    def test_neither_may_be_given(
        self, api: Api, said: dict[str, Any], place: str
    ) -> None:
        for more in ({}, {"tracking": "UNTRACKED"}):
            answer = api.call("POST", PATH, BELL | said | more)
            assert (answer.status, answer.code) == (400, NEEDS[place])
            assert set(answer.findings) == {place}

    def test_both_are_named_at_once(self, api: Api) -> None:
        said = {"overlap": "QUEUE_ONE", "retry": SOME}
        answer = api.call("POST", PATH, BELL | said)
        assert answer.code == "invalid_input"
        found = {name: each["code"] for name, each in answer.findings.items()}
        assert found == NEEDS

    def test_of_many_each_is_named_by_its_place(self, api: Api) -> None:
        new = [BELL, BELL | {"name": "gong", "overlap": "QUEUE_ONE"}]
        body = {"operation": "create", "schedules": new}
        answer = api.call("POST", f"{PATH}/batch", body)
        assert answer.findings["schedules.1.overlap"]["code"] == NEEDS["overlap"]

    def test_what_says_nothing_may_be_given(self, api: Api) -> None:
        assert create(api, overlap="ALLOW", retry=None)["retry"] is None


class TestPatch:
    def test_a_policy_is_a_new_version_and_null_the_default(self, api: Api) -> None:
        schedule_id = create(api, TRACKED)["schedule_id"]
        changed = patch(api, schedule_id, {"retry": SOME, "overlap": "QUEUE_ONE"}).body
        shown = (changed["retry"], changed["overlap"], changed["version"])
        assert shown == (SOME, "QUEUE_ONE", 2)
        back = patch(api, schedule_id, {"retry": None, "overlap": None}).body
        shown = (back["retry"], back["overlap"], back["version"])
        assert shown == (USUAL, "ALLOW", 3)

    def test_members_merge_and_a_deadline_of_null_is_none(self, api: Api) -> None:
        schedule_id = create(api, TRACKED, retry={"max_attempts": 9})["schedule_id"]
        none = patch(api, schedule_id, {"retry": {"deadline_seconds": None}}).body
        expected = USUAL | {"max_attempts": 9, "deadline_seconds": None}
        assert none["retry"] == expected
        more = patch(api, schedule_id, {"retry": {"max_attempts": None}}).body
        assert more["retry"] == USUAL | {"deadline_seconds": None}

    def test_as_it_was_shown_it_can_be_sent_back(self, api: Api) -> None:
        made = create(api, TRACKED, retry=SOME)
        again = patch(api, made["schedule_id"], {"retry": made["retry"]})
        assert again.body["revision"] == 1

    def test_tracking_can_be_begun_and_ended(self, api: Api) -> None:
        schedule_id = create(api)["schedule_id"]
        begun = patch(api, schedule_id, TRACKED | {"overlap": "QUEUE_ONE"}).body
        assert (begun["retry"], begun["overlap"]) == (USUAL, "QUEUE_ONE")
        refused = patch(api, schedule_id, {"tracking": "UNTRACKED"})
        assert refused.code == NEEDS["overlap"]
        ended = patch(api, schedule_id, {"tracking": None, "overlap": None}).body
        assert (ended["tracking"], ended["retry"]) == ("UNTRACKED", None)

    def test_a_policy_that_stays_behind_is_named(self, api: Api) -> None:
        schedule_id = create(api, TRACKED, retry=SOME)["schedule_id"]
        refused = patch(api, schedule_id, {"tracking": "UNTRACKED"})
        assert set(refused.findings) == {"retry"}
        both = {"tracking": "UNTRACKED", "retry": None}
        assert patch(api, schedule_id, both).status == 200

    def test_a_dry_run_shows_it(self, api: Api) -> None:
        schedule_id = create(api, TRACKED)["schedule_id"]
        shown = patch(api, schedule_id, {"retry": SOME}, dry_run="true").body
        assert (shown["changes"], shown["schedule"]["retry"]) == (True, SOME)


def test_a_put_has_it_so_and_what_is_left_out_at_its_default(api: Api) -> None:
    fields = {name: value for name, value in BELL.items() if name != "name"}
    made = put(api, "bell", fields | TRACKED | {"retry": SOME}).body
    assert made["retry"] == SOME
    sent_back = {"retry": made["retry"], "overlap": made["overlap"]}
    assert put(api, "bell", fields | TRACKED | sent_back).body["revision"] == 1
    usual = put(api, "bell", fields).body
    assert (usual["tracking"], usual["retry"]) == ("UNTRACKED", None)
    again = put(api, "bell", fields | {"retry": usual["retry"]}).body
    assert again["revision"] == usual["revision"]


def test_the_dry_run_of_a_create_shows_it(api: Api) -> None:
    body = BELL | TRACKED | {"overlap": "SKIP_IF_RUNNING", "retry": SOME}
    answer = api.call("POST", PATH, body, query={"dry_run": ["true"]})
    shown = answer.body["schedule"]
    assert (shown["overlap"], shown["retry"]) == ("SKIP_IF_RUNNING", SOME)


class TestRepeatedCreates:
    @pytest.mark.parametrize("again", [{}, USUAL, None, {"retryable": ALL[::-1]}])
    def test_a_default_that_is_spelled_out_changes_nothing(
        self, api: Api, again: object
    ) -> None:
        first = api.call("POST", PATH, BELL | TRACKED, headers=KEY)
        body = BELL | TRACKED | {"retry": again, "overlap": "ALLOW"}
        second = api.call("POST", PATH, body, headers=KEY)
        assert second.status == 201
        assert second.body["schedule_id"] == first.body["schedule_id"]

    @pytest.mark.parametrize("other", [{"retry": SOME}, {"overlap": "QUEUE_ONE"}])
    def test_another_policy_is_another_request(
        self, api: Api, other: dict[str, Any]
    ) -> None:
        assert api.call("POST", PATH, BELL | TRACKED, headers=KEY).status == 201
        second = api.call("POST", PATH, BELL | TRACKED | other, headers=KEY)
        assert (second.status, second.code) == (409, "idempotency_key_reused")

    def test_requests_from_before_there_were_policies_hash_as_they_did(self) -> None:
        text = '{"expression":"0 9 * * MON","handler":"ring","name":"bell"}'
        expected = hashlib.sha256(text.encode()).hexdigest()
        assert CreateSchedule(**BELL).to_domain().body_hash == expected
