"""POST /v1/schedules."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hourbell.api.requests import MAX_PAYLOAD_BYTES
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.occurrence import State

from tests.functions.conftest import Answer, Api, Log
from tests.functions.events import ANN, BOB, REQUEST_ID
from tests.unit.usecases.world import START

PATH = "/v1/schedules"
BELL: dict[str, Any] = {"name": "bell", "expression": "0 9 * * MON", "handler": "ring"}


def create(api: Api, **fields: Any) -> Answer:
    kwargs = {name: fields.pop(name) for name in ("headers", "arn") if name in fields}
    return api.call("POST", PATH, BELL | fields, **kwargs)


def test_the_answer_shows_the_schedule(api: Api) -> None:
    answer = create(
        api,
        zone="Europe/Berlin",
        description="Monday's bell",
        tags={"team": "ops", "größe": "x = 1"},
        payload={"n": 1, "text": "ü"},
        flexible_window_seconds=60,
    )
    assert answer.status == 201
    body = answer.body
    schedule_id = body.pop("schedule_id")
    assert answer.headers == {
        "Content-Type": "application/json",
        "ETag": f'"1.{schedule_id}"',
        "Location": f"schedules/{schedule_id}",
        "X-Request-Id": REQUEST_ID,
    }
    assert body == {
        "name": "bell",
        "description": "Monday's bell",
        "tags": {"team": "ops", "größe": "x = 1"},
        "state": "ACTIVE",
        "version": 1,
        "revision": 1,
        "expression": "0 9 * * MON",
        "zone": "Europe/Berlin",
        "dst": {"gap": "SKIP", "fold": "FIRST"},
        "start_at": None,
        "end_at": None,
        "max_occurrences": None,
        "exclude": [],
        "anchor": None,
        "handler": "ring",
        "payload": {"n": 1, "text": "ü"},
        "tracking": "UNTRACKED",
        "flexible_window_seconds": 60,
        "misfire": {
            "policy": "FIRE_ONCE",
            "limit": None,
            "max_lateness_seconds": None,
        },
        "overlap": "ALLOW",
        "retry": None,
        "tzdb": body["tzdb"],
        "created_at": "2026-03-09T12:00:00Z",
        "updated_at": "2026-03-09T12:00:00Z",
        "next_run_at": "2026-03-16T08:00:00Z",
        "next_run_at_local": "2026-03-16T09:00:00+01:00",
        "last_occurrences": [],
    }


def test_the_caller_is_in_the_version_log(api: Api) -> None:
    create(api, arn=BOB)
    (version,) = api.world.store.versions.values()
    assert version.tenant_id == "zenith"
    assert version.created_by == BOB
    assert version.source == "api 203.0.113.7"


def test_every_part_of_a_timing_arrives(api: Api) -> None:
    timing = {
        "expression": "30 2 * * *",
        "zone": "America/New_York",
        "dst": {"gap": "NEXT_VALID", "fold": "BOTH"},
        "start_at": "2026-04-01T00:00:00Z",
        "end_at": "2027-04-01T00:00:00Z",
        "max_occurrences": 100,
        "exclude": ["2026-12-25", {"from": "2026-12-27", "to": "2026-12-31"}],
    }
    body = create(api, **timing).body
    assert {name: body[name] for name in timing} == timing
    assert body["next_run_at_local"] == "2026-04-01T02:30:00-04:00"


OPTIONAL = (
    "zone",
    "dst",
    "start_at",
    "end_at",
    "max_occurrences",
    "exclude",
    "payload",
    "tracking",
    "flexible_window_seconds",
    "misfire",
    "overlap",
    "retry",
    "description",
    "tags",
)


def test_null_counts_as_left_out(api: Api) -> None:
    left_out = create(api).body
    for fields in (dict.fromkeys(OPTIONAL), {"dst": {"gap": None, "fold": None}}):
        said = create(api, name="other", **fields)
        assert said.status == 201, said.text
        unlike = ("schedule_id", "name")
        assert {name: said.body[name] for name in said.body if name not in unlike} == {
            name: left_out[name] for name in left_out if name not in unlike
        }
        api.call("DELETE", f"{PATH}/{said.body['schedule_id']}")


def test_null_is_no_value_of_what_is_required_or_unknown(api: Api) -> None:
    answer = create(api, handler=None, until=None)
    assert {place: each["code"] for place, each in answer.findings.items()} == {
        "handler": "wrong_type",
        "until": "unknown_field",
    }


@pytest.mark.parametrize("seconds", [1, 5, 30, 120])
def test_what_is_due_soon_is_materialized_in_the_call(api: Api, seconds: int) -> None:
    due = START + timedelta(seconds=seconds)
    answer = create(api, expression=f"at({due:%Y-%m-%dT%H:%M:%S})")
    assert answer.status == 201
    (row,) = api.world.rows()
    assert (row.state, row.scheduled_for) == (State.SCHEDULED, due)


@pytest.mark.parametrize(
    "payload",
    [
        None,
        True,
        [],
        {},
        "text",
        0.1,
        -1e-7,
        12345678901234567890123,
        ["\U0001f514", "\ufffe", "\u0000"],
        {"a": {"b": [{"c": None}]}},
    ],
)
def test_a_payload_comes_back_as_it_was(api: Api, payload: object) -> None:
    answer = create(api, payload=payload)
    assert answer.status == 201
    assert answer.body["payload"] == payload
    assert (
        api.call("GET", f"{PATH}/{answer.body['schedule_id']}").body["payload"]
        == payload
    )


def test_a_payload_may_be_64_kib(api: Api) -> None:
    text = "x" * (MAX_PAYLOAD_BYTES - 2)
    assert create(api, payload=text).status == 201
    answer = create(api, payload=text + "x")
    assert answer.code == "payload_too_large"
    assert str(MAX_PAYLOAD_BYTES + 1) in answer.body["detail"]
    # Umlauts count as the bytes they take.
    assert create(api, payload="ü" * 40_000).code == "payload_too_large"


SINGLE_FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "expression": ({"expression": "0 9 * *"}, "expression", "invalid_expression"),
    "no date": ({"expression": "0 0 31 4 *"}, "expression", "never_fires"),
    "past": ({"expression": "at(2026-03-09T11:59:59)"}, "expression", "never_fires"),
    "ended": ({"end_at": "2026-03-09T12:00:00Z"}, "expression", "never_fires"),
    "field": ({"expression": "61 * * * *"}, "expression.minute", "invalid_expression"),
    "zone": ({"zone": "Europe/Belin"}, "zone", "unknown_zone"),
    "offset": ({"start_at": "2026-04-01T00:00:00"}, "start_at", "invalid_timestamp"),
    "end": (
        {"start_at": "2027-01-01T00:00:00Z", "end_at": "2026-12-01T00:00:00Z"},
        "end_at",
        "end_before_start",
    ),
    "count": ({"max_occurrences": 0}, "max_occurrences", "out_of_range"),
    "text": ({"max_occurrences": "3"}, "max_occurrences", "wrong_type"),
    "fraction": ({"max_occurrences": 1.5}, "max_occurrences", "wrong_type"),
    "date": ({"exclude": ["25.12."]}, "exclude[0]", "invalid_date"),
    "range": ({"exclude": [{"from": "2026-12-25"}]}, "exclude[0].to", "missing"),
    "gap": ({"dst": {"gap": "skip"}}, "dst.gap", "unsupported_value"),
    "dst": ({"dst": "SKIP"}, "dst", "wrong_type"),
    "dst field": ({"dst": {"gaps": "SKIP"}}, "dst.gaps", "unknown_field"),
    "handler": ({"handler": "bark"}, "handler", "unknown_handler"),
    "foreign handler": ({"handler": "invoice"}, "handler", "unknown_handler"),
    "name": ({"name": "my bell!"}, "name", "invalid_characters"),
    "empty name": ({"name": ""}, "name", "too_short"),
    "long name": ({"name": "x" * 129}, "name", "too_long"),
    "no name": ({"name": None}, "name", "wrong_type"),
    "description": ({"description": "x" * 513}, "description", "too_long"),
    "tags": ({"tags": ["a"]}, "tags", "wrong_type"),
    "tag value": ({"tags": {"a": 1}}, "tags.a", "wrong_type"),
    "a dot": ({"name": "."}, "name", "reserved"),
    "two dots": ({"name": ".."}, "name", "reserved"),
    "no tag key": ({"tags": {"": "b"}}, "tags.", "too_short"),
    "tag key": ({"tags": {"a?": "b"}}, "tags.a?", "invalid_characters"),
    "long tag": ({"tags": {"a": "b" * 257}}, "tags.a", "too_long"),
    "aws tag": ({"tags": {"AWS:x": "b"}}, "tags.AWS:x", "reserved"),
    "many tags": ({"tags": {f"k{n}": "" for n in range(51)}}, "tags", "too_long"),
    "tracking": ({"tracking": "tracked"}, "tracking", "unsupported_value"),
    "no tracking": ({"tracking": "MAYBE"}, "tracking", "unsupported_value"),
    "window": (
        {"flexible_window_seconds": 86_401},
        "flexible_window_seconds",
        "out_of_range",
    ),
    "truth": (
        {"flexible_window_seconds": True},
        "flexible_window_seconds",
        "wrong_type",
    ),
    "unknown": ({"cron": "* * * * *"}, "cron", "unknown_field"),
    "anchor": ({"anchor": "2026-01-01T00:00:00Z"}, "anchor", "unknown_field"),
    "tenant": ({"tenant_id": "zenith"}, "tenant_id", "unknown_field"),
}


@pytest.mark.parametrize(
    ("fields", "place", "code"), SINGLE_FAULTS.values(), ids=SINGLE_FAULTS
)
def test_one_fault_is_named_with_its_field(
    api: Api, fields: dict[str, Any], place: str, code: str
) -> None:
    answer = create(api, **fields)
    assert answer.status == 400
    assert answer.code == code
    assert set(answer.findings) == {place}
    assert answer.findings[place]["message"]
    assert not api.world.store.schedules


def test_all_faults_are_named_at_once(api: Api) -> None:
    answer = api.call(
        "POST",
        PATH,
        {"expresion": "* * * * *", "zone": "X", "name": "a b", "tags": {"a": 1}},
        headers={"Idempotency-Key": "two words"},
    )
    assert answer.code == "invalid_input"
    assert {place: each["code"] for place, each in answer.findings.items()} == {
        "idempotency-key": "invalid_characters",
        "expression": "missing",
        "expresion": "unknown_field",
        "handler": "missing",
        "name": "invalid_characters",
        "tags.a": "wrong_type",
        "zone": "unknown_zone",
    }


@pytest.mark.parametrize(
    ("fields", "place", "suggestion"),
    [
        ({"expresion": "* * * * *"}, "expresion", "expression"),
        ({"dst": {"gab": "SKIP"}}, "dst.gab", "gap"),
        ({"zone": "Europe/Belin"}, "zone", "Europe/Berlin"),
        ({"name": "my bell!"}, "name", "my-bell"),
        ({"start_at": "2027-01-01T00:00:00"}, "start_at", "2027-01-01T00:00:00Z"),
    ],
)
def test_what_was_meant_is_suggested(
    api: Api, fields: dict[str, Any], place: str, suggestion: str
) -> None:
    assert create(api, **fields).findings[place]["suggestion"] == suggestion


def test_what_was_found_is_shown_and_cut(api: Api) -> None:
    shown = create(api, zone="x" * 10_000).findings["zone"]["found"]
    assert shown == "x" * 77 + "..."
    assert len(create(api, **{"y" * 10_000: 1}).text) < 2_000


KEY = {"Idempotency-Key": "order-4711"}


class TestIdempotency:
    def test_the_same_request_gets_the_same_answer(self, api: Api) -> None:
        first = create(api, headers=KEY)
        api.world.clock.advance(timedelta(days=3))
        again = create(api, headers=KEY)
        assert (first.status, again.status) == (201, 201)
        assert again.body == first.body
        assert "Idempotency-Replayed" not in first.headers
        assert again.headers["Idempotency-Replayed"] == "true"
        assert len(api.world.store.schedules) == 1

    def test_defaults_may_be_spelled_out(self, api: Api) -> None:
        first = create(api, headers=KEY)
        again = create(api, headers=KEY, zone="UTC", tracking="UNTRACKED", tags={})
        assert again.body == first.body

    @pytest.mark.parametrize(
        ("said", "again"),
        [
            ({}, {"dst": {}}),
            ({}, {"dst": {"gap": "SKIP", "fold": "FIRST"}}),
            ({}, {"exclude": [], "tags": {}, "description": ""}),
            ({}, dict.fromkeys(OPTIONAL)),
            (
                {"start_at": "2026-04-01T00:00:00Z"},
                {"start_at": "2026-04-01 02:00+02:00"},
            ),
            (
                {"exclude": ["2026-12-25"]},
                {"exclude": [{"from": "2026-12-25", "to": "2026-12-25"}]},
            ),
            (
                {"payload": {"a": 1, "b": {"c": 1.50, "d": 2}}},
                {"payload": {"b": {"d": 2, "c": 1.50}, "a": 1}},
            ),
        ],
    )
    def test_what_counts_is_what_the_request_means(
        self, api: Api, said: dict[str, Any], again: dict[str, Any]
    ) -> None:
        first = create(api, headers=KEY, **said)
        second = create(api, headers=KEY, **again)
        assert (first.status, second.status) == (201, 201)
        assert second.body["schedule_id"] == first.body["schedule_id"]

    def test_another_body_is_a_conflict(self, api: Api) -> None:
        create(api, headers=KEY)
        others: list[dict[str, Any]] = [
            {"payload": 1},
            {"payload": False},
            {"description": "x"},
            {"name": "other"},
            {"tags": {"team": "ops"}},
            {"dst": {"gap": "NEXT_VALID"}},
            {"max_occurrences": 1},
            {"flexible_window_seconds": 1},
        ]
        for fields in others:
            answer = create(api, headers=KEY, **fields)
            assert (answer.status, answer.code) == (409, "idempotency_key_reused")
        assert len(api.world.store.schedules) == 1

    def test_a_key_of_another_tenant_is_another_key(self, api: Api) -> None:
        mine = create(api, headers=KEY, arn=ANN)
        theirs = create(api, headers=KEY, arn=BOB)
        assert theirs.status == 201
        assert mine.body["schedule_id"] != theirs.body["schedule_id"]

    def test_a_header_is_found_however_it_is_written(self, api: Api) -> None:
        first = create(api, headers={"idempotency-key": "k"})
        again = create(api, headers={"IDEMPOTENCY-KEY": "k"})
        assert first.body["schedule_id"] == again.body["schedule_id"]

    @pytest.mark.parametrize(
        ("key", "code"),
        [
            ("", "too_short"),
            ("x" * 129, "too_long"),
            ("a b", "invalid_characters"),
            ("ü", "invalid_characters"),
            ("a\n", "invalid_characters"),
        ],
    )
    def test_a_bad_key_is_refused(self, api: Api, key: str, code: str) -> None:
        answer = create(api, headers={"Idempotency-Key": key})
        assert (answer.status, answer.code) == (400, code)
        assert not api.world.store.schedules


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def test_a_store_that_is_busy_is_a_503(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = failing(Transient("table secret-name"))
    monkeypatch.setattr(api.world.schedules, "create", busy)
    answer = create(api)
    assert (answer.status, answer.code) == (503, "unavailable")
    assert answer.headers["Retry-After"] == "1"
    assert "secret" not in answer.text


@pytest.mark.parametrize("error", [Permanent("secret"), KeyError("secret")])
def test_what_should_not_happen_is_a_500_that_tells_nothing(
    api: Api,
    error: Exception,
    monkeypatch: pytest.MonkeyPatch,
    log: Log,
) -> None:
    monkeypatch.setattr(api.world.schedules, "create", failing(error))
    answer = create(api)
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "secret" not in answer.text
    (line,) = [line for line in log.lines if line["level"] == "ERROR"]
    assert line["exception"].startswith("Traceback")
    assert "secret" in line["exception"]
