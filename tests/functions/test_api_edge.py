"""What the API does before any route: callers, bodies, unknown places."""

import base64
import json
from typing import Any

import pytest
from hourbell import bootstrap

from tests.functions.conftest import Api, Log, measured
from tests.functions.events import ANN, BOB, REQUEST_ID, Context, api_event

PATH = "/v1/schedules"
BELL = {"name": "bell", "expression": "0 9 * * MON", "handler": "ring"}
EVE = "arn:aws:iam::123456789012:user/eve"
DODO = "arn:aws:iam::123456789012:user/dodo"
ROOT = "arn:aws:iam::123456789012:root"


@pytest.mark.parametrize(
    ("arn", "code"),
    [
        (None, "forbidden"),
        ("", "forbidden"),
        (EVE, "forbidden"),
        (ROOT, "forbidden"),
        (DODO, "tenant_suspended"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", PATH, BELL),
        ("POST", PATH, "{not json"),
        ("POST", PATH, {"what": "ever"}),
        ("POST", f"{PATH}/preview", {"expression": "* * * * *"}),
        ("GET", f"{PATH}/sch{'0' * 26}", None),
        ("GET", "/v1/nowhere", None),
    ],
)
def test_a_caller_without_tenant_learns_nothing_else(
    api: Api, arn: str | None, code: str, method: str, path: str, body: object
) -> None:
    answer = api.call(method, path, body, arn=arn)
    assert (answer.status, answer.code) == (403, code)
    assert not api.world.store.schedules


def test_the_session_of_a_role_is_its_role(api: Api) -> None:
    assert api.call("POST", PATH, BELL | {"handler": "invoice"}, arn=BOB).status == 201


def test_an_event_without_identity_is_refused(api: Api) -> None:
    event = api_event("POST", PATH, BELL)
    del event["requestContext"]["identity"]
    assert api.send(event).code == "forbidden"


def test_without_a_gateway_the_function_names_the_request(api: Api) -> None:
    event = api_event("POST", PATH, BELL)
    event["requestContext"] = None
    assert api.send(event).headers["X-Request-Id"] == Context().aws_request_id


def test_every_answer_carries_the_request_id(api: Api) -> None:
    for body in (BELL, {}, "{"):
        answer = api.call("POST", PATH, body)
        assert answer.headers["X-Request-Id"] == REQUEST_ID


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/v1/nowhere"),
        ("POST", "/v2/schedules"),
        ("DELETE", f"{PATH}/sch{'0' * 26}"),
        ("GET", PATH),
        ("OPTIONS", PATH),
    ],
)
def test_an_unknown_route_is_a_problem(api: Api, method: str, path: str) -> None:
    answer = api.call(method, path)
    assert (answer.status, answer.code) == (404, "unknown_route")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        ("[{}]", "invalid_json"),
        ("null", "invalid_json"),
        ('"text"', "invalid_json"),
        ("{'a': 1}", "invalid_json"),
        ('{"a": NaN}', "invalid_json"),
        ('{"a": -Infinity}', "invalid_json"),
        ('{"a": 1e999}', "invalid_json"),
        ('{"a": ' + "1" * 500 + "}", "invalid_json"),
        ('{"a": 1, "a": 2}', "invalid_json"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "invalid_json"),
        ('{"\\ud800": 1, "\\ud800": 2}', "invalid_json"),
        ('{"a": "\\ud800"}', "invalid_json"),
        ('{"\\udc00": ""}', "invalid_json"),
        ('{"a": "\ud800"}', "invalid_json"),
        ('{"a": "\n"}', "invalid_json"),
        ("{} {}", "invalid_json"),
        ("\ufeff{}", "invalid_json"),
        ('{"a": ' + "[" * 32 + "]" * 32 + "}", "body_too_deep"),
        ("[" * 100_000, "body_too_deep"),
        ('{"a":' * 50_000, "body_too_deep"),
        ('{"a": "' + "x" * 262_144 + '"}', "body_too_large"),
        ('{"a": "' + "ü" * 131_072 + '"}', "body_too_large"),
        ("", "missing"),
        (None, "missing"),
    ],
)
def test_a_body_that_is_no_proper_json_is_refused(
    api: Api, body: str | None, code: str
) -> None:
    answer = api.call("POST", PATH, body)
    assert answer.status == (413 if code == "body_too_large" else 400)
    assert answer.code == code


def test_brackets_inside_strings_are_no_depth(api: Api) -> None:
    payload = {"text": '"[' * 100 + "\\"}
    assert api.call("POST", PATH, BELL | {"payload": payload}).status == 201


def test_pairs_of_surrogates_are_one_character(api: Api) -> None:
    text = json.dumps(BELL | {"payload": "\U0001f514"}, ensure_ascii=True)
    assert "\\ud83d" in text
    assert api.call("POST", PATH, text).body["payload"] == "\U0001f514"


def test_an_encoded_body_is_decoded(api: Api) -> None:
    event = api_event("POST", PATH)
    event["isBase64Encoded"] = True
    event["body"] = base64.b64encode(json.dumps(BELL).encode()).decode()
    assert api.send(event).status == 201


@pytest.mark.parametrize("body", ["%%%", "////", base64.b64encode(b"\xff{}").decode()])
def test_a_body_that_is_no_text_is_refused(api: Api, body: str) -> None:
    event = api_event("POST", PATH)
    event |= {"isBase64Encoded": True, "body": body}
    assert api.send(event).code == "invalid_json"


@pytest.mark.parametrize(
    "media_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/xml",
    ],
)
def test_other_media_types_are_refused(api: Api, media_type: str) -> None:
    body = "name=bell&expression=@daily&handler=ring"
    answer = api.call("POST", PATH, body, headers={"Content-Type": media_type})
    assert (answer.status, answer.code) == (415, "unsupported_media_type")


@pytest.mark.parametrize(
    "media_type",
    ["application/json; charset=utf-8", "Application/JSON", "application/json"],
)
def test_json_by_any_spelling_is_taken(api: Api, media_type: str) -> None:
    answer = api.call("POST", PATH, BELL, headers={"Content-Type": media_type})
    assert answer.status == 201


def test_a_body_without_a_type_is_taken_for_json(api: Api) -> None:
    event = api_event("POST", PATH, BELL)
    event["headers"] = event["multiValueHeaders"] = None
    assert api.send(event).status == 201


def test_a_query_parameter_is_refused(api: Api) -> None:
    event = api_event("POST", PATH, BELL)
    event["queryStringParameters"] = {"dry_run": "true"}
    event["multiValueQueryStringParameters"] = {"dry_run": ["true"]}
    answer = api.send(event)
    assert (answer.status, answer.code) == (400, "unknown_parameter")
    assert answer.findings["query"]["found"] == "dry_run"
    assert not api.world.store.schedules


def test_one_call_leaves_nothing_to_the_next(api: Api) -> None:
    api.call("POST", PATH, BELL, arn=BOB)
    answer = api.call("POST", PATH, BELL, arn=ANN)
    schedule = api.world.schedules.find(answer.body["schedule_id"])
    assert schedule is not None
    assert schedule.tenant_id == "acme"
    assert api.call("POST", PATH, BELL, arn=EVE).status == 403


def test_a_broken_environment_is_a_500(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise bootstrap.SettingsError(["HOURBELL_TABLE_TIMELINE is not set"])

    monkeypatch.setattr(bootstrap, "api_ports", broken)
    answer = api.call("POST", PATH, BELL)
    assert (answer.status, answer.code) == (500, "internal_error")
    assert "HOURBELL" not in answer.text


def test_each_call_is_logged_with_its_tenant(api: Api, log: Log) -> None:
    api.call("POST", PATH, BELL, arn=BOB)
    (answered,) = [line for line in log.lines if line["message"] == "answered"]
    assert answered["tenant"] == "zenith"
    assert answered["status"] == 201
    assert answered["correlation_id"] == REQUEST_ID


def test_the_log_of_a_stranger_names_no_tenant(api: Api, log: Log) -> None:
    api.call("POST", PATH, BELL, arn=BOB)
    log.clear()
    api.call("POST", PATH, BELL, arn=EVE)
    assert [line.get("tenant") for line in log.lines] == [None, None]


def test_calls_are_counted(api: Api, capsys: pytest.CaptureFixture[str]) -> None:
    api.call("POST", PATH, BELL)
    assert measured(capsys.readouterr().out) == {
        (): {"Requests": [1.0], "SchedulesCreated": [1.0]}
    }
