"""The misfire policy in creates, updates, puts, dry runs and answers."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.api.requests import CreateSchedule
from hourbell.domain.misfire import Misfire, MisfirePolicy

from tests.functions.conftest import Api
from tests.functions.schedules import (
    BELL,
    MINUTELY,
    PATH,
    create,
    get,
    patch,
    put,
    versions,
)
from tests.unit.usecases.world import MINUTE, World

USUAL = {"policy": "FIRE_ONCE", "limit": None, "max_lateness_seconds": None}
FIVE = {"policy": "CATCH_UP", "limit": 5, "max_lateness_seconds": 3600}
KEY = {"Idempotency-Key": "k"}


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ({}, USUAL),
        ({"policy": "FIRE_ONCE"}, USUAL),
        ({"policy": "SKIP", "limit": None}, USUAL | {"policy": "SKIP"}),
        ({"max_lateness_seconds": 61}, USUAL | {"max_lateness_seconds": 61}),
        (
            {"max_lateness_seconds": 1_296_000},
            USUAL | {"max_lateness_seconds": 1_296_000},
        ),
        (
            {"policy": "CATCH_UP", "limit": 1},
            USUAL | {"policy": "CATCH_UP", "limit": 1},
        ),
        (FIVE | {"limit": 1000}, FIVE | {"limit": 1000}),
    ],
)
def test_what_is_said_is_shown_and_kept(
    api: Api, said: dict[str, Any], shown: dict[str, Any]
) -> None:
    made = create(api, misfire=said)
    assert made["misfire"] == shown
    assert get(api, made["schedule_id"]).body["misfire"] == shown
    (version,) = versions(api, made["schedule_id"]).body["versions"]
    assert version["definition"]["misfire"] == shown


FAULTS: dict[str, tuple[object, str, str]] = {
    "a text": ("SKIP", "misfire", "wrong_type"),
    "another policy": ({"policy": "skip"}, "misfire.policy", "unsupported_value"),
    "unknown": ({"policy": "SKIP", "k": 1}, "misfire.k", "unknown_field"),
    "no limit": ({"policy": "CATCH_UP"}, "misfire.limit", "missing"),
    "null limit": ({"policy": "CATCH_UP", "limit": None}, "misfire.limit", "missing"),
    "limit of SKIP": ({"policy": "SKIP", "limit": 1}, "misfire.limit", "unexpected"),
    "limit of the default": ({"limit": 1}, "misfire.limit", "unexpected"),
    "none": ({"policy": "CATCH_UP", "limit": 0}, "misfire.limit", "out_of_range"),
    "many": ({"policy": "CATCH_UP", "limit": 1001}, "misfire.limit", "out_of_range"),
    "half": ({"policy": "CATCH_UP", "limit": 1.5}, "misfire.limit", "wrong_type"),
    "threshold": (
        {"max_lateness_seconds": 60},
        "misfire.max_lateness_seconds",
        "out_of_range",
    ),
    "beyond retention": (
        {"max_lateness_seconds": 1_296_001},
        "misfire.max_lateness_seconds",
        "out_of_range",
    ),
    "lateness as text": (
        {"max_lateness_seconds": "1h"},
        "misfire.max_lateness_seconds",
        "wrong_type",
    ),
}


@pytest.mark.parametrize(("said", "place", "code"), FAULTS.values(), ids=FAULTS)
def test_one_fault_is_named_with_its_field(
    api: Api, said: object, place: str, code: str
) -> None:
    answer = api.call("POST", PATH, BELL | {"misfire": said})
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}
    assert not api.world.store.schedules


def test_the_least_lateness_is_told_with_its_reason(api: Api) -> None:
    answer = api.call("POST", PATH, BELL | {"misfire": {"max_lateness_seconds": 60}})
    finding = answer.findings["misfire.max_lateness_seconds"]
    assert finding["found"] == "60"
    assert "misfire threshold of 60 s" in finding["message"]
    assert "61 to 1296000" in finding["message"]


class TestPatch:
    def test_a_policy_is_a_new_version_and_null_the_default(self, api: Api) -> None:
        schedule_id = create(api)["schedule_id"]
        some = {"policy": "CATCH_UP", "limit": 5}
        changed = patch(api, schedule_id, {"misfire": some}).body
        assert changed["misfire"] == USUAL | some
        assert (changed["version"], changed["revision"]) == (2, 2)
        back = patch(api, schedule_id, {"misfire": None}).body
        assert back["misfire"] == USUAL
        assert back["version"] == 3
        log = versions(api, schedule_id).body["versions"]
        shown = [each["definition"]["misfire"] for each in log]
        assert shown == [USUAL, USUAL | some, USUAL]

    def test_members_merge(self, api: Api) -> None:
        schedule_id = create(api, misfire=FIVE)["schedule_id"]
        more = patch(api, schedule_id, {"misfire": {"limit": 9}}).body
        assert more["misfire"] == FIVE | {"limit": 9}
        unbound = patch(api, schedule_id, {"misfire": {"max_lateness_seconds": None}})
        assert unbound.body["misfire"]["max_lateness_seconds"] is None

    def test_a_limit_that_stays_behind_is_named(self, api: Api) -> None:
        schedule_id = create(api, misfire=FIVE)["schedule_id"]
        refused = patch(api, schedule_id, {"misfire": {"policy": "SKIP"}})
        assert (refused.status, refused.code) == (400, "unexpected")
        assert refused.findings["misfire.limit"]["found"] == "5"
        skip = {"policy": "SKIP", "limit": None}
        assert patch(api, schedule_id, {"misfire": skip}).status == 200

    def test_what_is_so_already_changes_nothing(self, api: Api) -> None:
        schedule_id = create(api, misfire=FIVE)["schedule_id"]
        assert patch(api, schedule_id, {"misfire": FIVE}).body["revision"] == 1
        assert patch(api, schedule_id, {"payload": 1}).body["misfire"] == FIVE

    def test_a_dry_run_shows_it(self, api: Api) -> None:
        schedule_id = create(api)["schedule_id"]
        shown = patch(api, schedule_id, {"misfire": FIVE}, dry_run="true").body
        assert (shown["changes"], shown["schedule"]["misfire"]) == (True, FIVE)
        assert get(api, schedule_id).body["misfire"] == USUAL


def test_a_put_has_it_so_and_what_is_left_out_at_its_default(api: Api) -> None:
    fields = {name: value for name, value in BELL.items() if name != "name"}
    made = put(api, "bell", fields | {"misfire": FIVE}).body
    assert made["misfire"] == FIVE
    # As it was shown, it can be sent back.
    again = put(api, "bell", fields | {"misfire": made["misfire"]}).body
    assert (again["misfire"], again["revision"]) == (FIVE, 1)
    usual = put(api, "bell", fields).body
    assert (usual["misfire"], usual["version"]) == (USUAL, 2)


def test_the_dry_run_of_a_create_shows_it(api: Api) -> None:
    query = {"dry_run": ["true"]}
    answer = api.call("POST", PATH, BELL | {"misfire": FIVE}, query=query)
    assert answer.body["schedule"]["misfire"] == FIVE


class TestRepeatedCreates:
    @pytest.mark.parametrize(
        "again", [{}, {"policy": "FIRE_ONCE"}, USUAL, None], ids=str
    )
    def test_a_default_that_is_spelled_out_changes_nothing(
        self, api: Api, again: object
    ) -> None:
        first = api.call("POST", PATH, BELL, headers=KEY)
        second = api.call("POST", PATH, BELL | {"misfire": again}, headers=KEY)
        assert second.status == 201
        assert second.body["schedule_id"] == first.body["schedule_id"]

    @pytest.mark.parametrize(
        "other", [{"policy": "SKIP"}, FIVE, {"max_lateness_seconds": 61}], ids=str
    )
    def test_another_policy_is_another_request(self, api: Api, other: object) -> None:
        assert api.call("POST", PATH, BELL, headers=KEY).status == 201
        second = api.call("POST", PATH, BELL | {"misfire": other}, headers=KEY)
        assert (second.status, second.code) == (409, "idempotency_key_reused")

    def test_requests_from_before_there_were_policies_hash_as_they_did(self) -> None:
        text = '{"expression":"0 9 * * MON","handler":"ring","name":"bell"}'
        expected = hashlib.sha256(text.encode()).hexdigest()
        assert CreateSchedule(**BELL).to_domain().body_hash == expected


def overdue(api: Api, misfire: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the latest occurrences after an outage of half an hour, worked off."""
    world: World = api.world
    schedule_id = create(api, MINUTELY, misfire=misfire)["schedule_id"]
    world.clock.advance(30 * MINUTE + timedelta(seconds=2))
    for _ in range(3):
        world.scan()
        world.relay_stream()
    latest = get(api, schedule_id).body["last_occurrences"]
    assert isinstance(latest, list)
    return latest


class TestLatestOccurrences:
    """Created at 12:00:00, so materialized up to 12:03; looked at by 12:30:02."""

    @pytest.mark.parametrize(
        ("policy", "reason"),
        [
            ({"policy": "SKIP"}, "MISFIRE_SKIPPED"),
            ({"policy": "FIRE_ONCE"}, "MISFIRE_LATER_ONE_RUNS"),
            ({"policy": "CATCH_UP", "limit": 1}, "MISFIRE_BEYOND_LIMIT"),
            ({"max_lateness_seconds": 100}, "MISFIRE_TOO_LATE"),
        ],
    )
    def test_what_a_gap_row_covers_is_missed_with_its_reason(
        self, api: Api, policy: dict[str, Any], reason: str
    ) -> None:
        latest = overdue(api, policy)
        times = [each["scheduled_for"] for each in latest]
        minutes = (30, 29, 28, 27, 26)
        assert times == [f"2026-03-09T12:{minute}:00Z" for minute in minutes]
        # Two seconds late is on time; 62 are not.
        assert (latest[0]["state"], latest[0]["misfire"]) == ("ENQUEUED", False)
        skipped = policy.get("policy") == "SKIP"
        assert latest[1]["state"] == ("MISSED" if skipped else "ENQUEUED")
        assert latest[1]["misfire"] is True
        for each in latest[2:]:
            shown = (each["state"], each["reason"], each["misfire"], each["sends"])
            assert shown == ("MISSED", reason, True, 0)
            assert each["finished_at"] == "2026-03-09T12:30:02Z"
            assert each["available_at"] is None

    def test_people_see_the_reason_of_a_row_of_its_own(self, api: Api) -> None:
        schedule_id = create(api, MINUTELY, misfire={"policy": "SKIP"})["schedule_id"]
        api.world.clock.advance(6 * MINUTE)
        api.world.scan()
        latest = get(api, schedule_id).body["last_occurrences"]
        # 12:04 was overdue by itself, and 12:05 is 60 s late: on time.
        assert latest[2]["scheduled_for"] == "2026-03-09T12:04:00Z"
        shown = (latest[2]["state"], latest[2]["reason"])
        assert shown == ("MISSED", "MISFIRE_SKIPPED")


def test_the_rate_is_the_tenants(api: Api) -> None:
    tenants = api.world.store.tenants
    acme = tenants["acme"]
    tenants["acme"] = replace(acme, quotas=replace(acme.quotas, catch_up_per_minute=30))
    latest = overdue(api, {"policy": "CATCH_UP", "limit": 3})
    # 12:27, 12:28 and 12:29 at two seconds' distance, from 12:30:02 on.
    available = [each["available_at"] for each in latest[1:4]]
    assert available == [f"2026-03-09T12:30:0{second}Z" for second in (6, 4, 2)]


def test_the_policy_reaches_the_version_that_is_judged_by(api: Api) -> None:
    schedule_id = create(api, misfire=FIVE)["schedule_id"]
    schedule = api.world.store.schedules[schedule_id]
    expected = Misfire(MisfirePolicy.CATCH_UP, 5, 3600)
    assert api.world.store.versions[schedule.ref].definition.misfire == expected
