"""POST /v1/schedules: names, quotas, and the dry run that tells of them."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import HandlerState

from tests.functions.conftest import Answer, Api
from tests.functions.events import ANN, BOB
from tests.functions.test_api_create import BELL, KEY, PATH, create


def quotas(api: Api, **limits: int) -> None:
    """Give acme other quotas."""
    tenants = api.world.store.tenants
    acme = tenants["acme"]
    tenants["acme"] = replace(acme, quotas=replace(acme.quotas, **limits))


class TestNames:
    def test_a_name_is_given_once(self, api: Api) -> None:
        made = create(api).body
        answer = create(api, payload=1)
        assert (answer.status, answer.code) == (409, "name_taken")
        assert answer.body["field"] == "name"
        assert answer.body["schedule_id"] == made["schedule_id"]
        assert len(api.world.store.schedules) == 1

    def test_each_tenant_has_its_own(self, api: Api) -> None:
        assert create(api, arn=ANN).status == create(api, arn=BOB).status == 201

    def test_a_repeated_request_meets_its_own_name(self, api: Api) -> None:
        first, again = create(api, headers=KEY), create(api, headers=KEY)
        assert (again.status, again.body) == (201, first.body)


class TestQuotas:
    def test_the_last_schedule_that_fits_is_the_last(self, api: Api) -> None:
        quotas(api, schedules=2)
        for name in ("a", "b"):
            assert create(api, name=name).status == 201
        answer = create(api, name="c")
        assert (answer.status, answer.code) == (429, "quota_exceeded")
        members = {name: answer.body[name] for name in ("quota", "used", "allowed")}
        assert members == {"quota": "schedules", "used": 2, "allowed": 2}
        assert "Retry-After" not in answer.headers
        assert len(api.world.store.schedules) == 2

    def test_a_payload_has_the_tenants_size(self, api: Api) -> None:
        quotas(api, payload_bytes=10)
        assert create(api, payload="x" * 8).status == 201
        answer = create(api, name="b", payload="x" * 9)
        assert (answer.status, answer.code) == (400, "payload_too_large")
        assert set(answer.findings) == {"payload"}

    def test_a_retry_policy_has_the_tenants_bounds(self, api: Api) -> None:
        quotas(api, retry_attempts=3, retry_deadline_seconds=600)
        fits = {"max_attempts": 3, "deadline_seconds": 600}
        made = create(api, tracking="TRACKED", retry=fits)
        assert made.status == 201
        assert create(api, name="b").status == 201
        usual = create(api, name="c", tracking="TRACKED")
        assert usual.status == 400
        found = {place: each["code"] for place, each in usual.findings.items()}
        assert found == dict.fromkeys(
            ("retry.max_attempts", "retry.deadline_seconds"), "retry_over_quota"
        )
        path, headers = f"{PATH}/{made.body['schedule_id']}", {"If-Match": "*"}
        endless = {"retry": {"deadline_seconds": None}}
        unbounded = api.call("PATCH", path, endless, headers=headers)
        assert (unbounded.status, unbounded.code) == (400, "retry_over_quota")
        # What is so already is not judged again.
        quotas(api, retry_attempts=1)
        assert api.call("PATCH", path, {"payload": 1}, headers=headers).status == 200

    @pytest.mark.parametrize(
        ("seconds", "expression", "status"),
        [
            (60, "* * * * *", 201),
            (61, "* * * * *", 400),
            (300, "*/5 * * * *", 201),
            (301, "*/5 * * * *", 400),
            # 58 to 00 is the least distance.
            (300, "*/29 * * * *", 400),
            (300, "rate(5 minutes)", 201),
            (301, "rate(5 minutes)", 400),
            (86_400, "at(2027-01-31T09:00:00)", 201),
        ],
    )
    def test_times_keep_their_distance(
        self, api: Api, seconds: int, expression: str, status: int
    ) -> None:
        quotas(api, min_interval_seconds=seconds)
        answer = create(api, expression=expression)
        assert answer.status == status
        if status == 400:
            assert answer.code == "interval_too_short"
            assert set(answer.findings) == {"expression"}
            assert str(seconds) in answer.body["detail"]

    def test_a_retired_handler_takes_no_new_schedules(self, api: Api) -> None:
        handlers = api.world.store.handlers
        ring = handlers["acme", "ring"]
        handlers["acme", "ring"] = replace(ring, state=HandlerState.RETIRED)
        answer = create(api)
        assert (answer.status, answer.code) == (400, "handler_retired")
        assert set(answer.findings) == {"handler"}


def rehearse(api: Api, **fields: Any) -> Answer:
    headers = fields.pop("headers", None)
    query = {"dry_run": ["true"]}
    return api.call("POST", PATH, BELL | fields, query=query, headers=headers)


class TestDryRun:
    def test_it_shows_what_would_be_and_stores_nothing(self, api: Api) -> None:
        fields = {"expression": "30 2 * * *", "zone": "America/New_York"}
        answer = rehearse(api, **fields)
        assert answer.status == 200
        assert set(answer.headers) == {"Content-Type", "X-Request-Id"}
        body = answer.body
        assert (body["dry_run"], body["accepted"], body["refusals"]) == (True, True, [])
        assert len(body["times"]) == 10
        assert body["times"][0]["local"] == "2026-03-10T02:30:00"
        assert body["complete"] is False
        assert not api.world.store.schedules
        assert not api.world.rows()
        made = create(api, **fields).body
        assert body["schedule"] == made | {"schedule_id": None}

    def test_it_notes_what_the_clocks_do(self, api: Api) -> None:
        body = rehearse(api, expression="30 2 29 3 *", zone="Europe/Berlin").body
        assert "clocks go forward from 2026-03-29" in str(body["times"][0]["notes"])

    def test_a_key_tells_the_id(self, api: Api) -> None:
        body = rehearse(api, headers=KEY).body
        made = create(api, headers=KEY)
        assert body["schedule"]["schedule_id"] == made.body["schedule_id"]

    def test_every_refusal_is_told(self, api: Api) -> None:
        create(api)
        quotas(api, schedules=1, payload_bytes=2, min_interval_seconds=3600)
        answer = rehearse(api, handler="bark", payload=[1], expression="* * * * *")
        assert answer.status == 200
        assert answer.body["accepted"] is False
        found = {each["code"]: each["field"] for each in answer.body["refusals"]}
        assert found == {
            "unknown_handler": "handler",
            "payload_too_large": "payload",
            "interval_too_short": "expression",
            "name_taken": "name",
            "quota_exceeded": "",
        }

    def test_a_request_that_is_wrong_is_refused(self, api: Api) -> None:
        assert rehearse(api, expression="0 0 31 4 *").code == "never_fires"
        assert rehearse(api, zone="X").code == "unknown_zone"

    def test_false_creates(self, api: Api) -> None:
        answer = api.call("POST", PATH, BELL, query={"dry_run": ["false"]})
        assert answer.status == 201

    @pytest.mark.parametrize("text", ["", "1", "True", "yes"])
    def test_it_is_true_or_false(self, api: Api, text: str) -> None:
        answer = api.call("POST", PATH, BELL, query={"dry_run": [text]})
        assert (answer.status, answer.code) == (400, "unsupported_value")
        assert not api.world.store.schedules
