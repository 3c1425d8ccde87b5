"""What the API does before any route: callers, bodies, unknown places."""

import base64
import json
from typing import Any
from urllib.parse import unquote

import pytest
from hourbell import bootstrap
from hourbell.settings import SettingsError

from tests.functions.conftest import Api, Log, measured
from tests.functions.events import ANN, BOB, REQUEST_ID, Context, api_event

PATH = "/v1/schedules"
ID_PATH = f"{PATH}/sch{'0' * 26}"
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
        ("GET", PATH, None),
        ("GET", ID_PATH, None),
        ("GET", f"{ID_PATH}/versions", None),
        ("PATCH", ID_PATH, {"description": "x"}),
        ("DELETE", ID_PATH, None),
        ("POST", f"{ID_PATH}/pause", None),
        ("POST", f"{ID_PATH}/resume", {"reason": "x"}),
        ("PUT", f"{PATH}/by-name/bell", BELL),
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
        ("PUT", f"{PATH}/sch{'0' * 26}"),
        ("DELETE", PATH),
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
        ('{"a": ' + "1" * 391 + "}", "invalid_json"),
        ('{"a": 0.' + "1" * 500 + "}", "invalid_json"),
        ('{"a": 1, "a": 2}', "invalid_json"),
        ('{"a": {"b": 1, "\\u0062": 2}}', "invalid_json"),
        ('{"\\ud800": 1, "\\ud800": 2}', "invalid_json"),
        ('{"a": "\\ud800"}', "invalid_json"),
        ('{"\\udc00": ""}', "invalid_json"),
        ('{"a": "\ud800"}', "invalid_json"),
        ('{"a": "\n"}', "invalid_json"),
        ("{} {}", "invalid_json"),
        ("\ufeff{}", "invalid_json"),
        ('{"a": "' + "[" * 40, "invalid_json"),
        # Read anew from each of its quotes, it would take minutes.
        ('{"a": "' + '\\"' * 120_000, "invalid_json"),
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


def test_of_very_many_faults_the_first_hundred_are_told(api: Api) -> None:
    body = BELL | {f"x{n}": n for n in range(15_000)}
    answer = api.call("POST", PATH, body)
    assert (answer.status, answer.code) == (400, "invalid_input")
    assert len(answer.body["errors"]) == 100
    assert answer.body["errors_total"] == 15_000
    assert "15,000" in answer.body["detail"]
    assert len(answer.text) < 50_000


def test_a_few_faults_are_all_told(api: Api) -> None:
    answer = api.call("POST", PATH, BELL | {"handlr": "ring", "zone": "X"})
    assert answer.body["errors_total"] == len(answer.body["errors"]) == 2
    assert answer.findings["handlr"]["suggestion"] == "handler"


@pytest.mark.parametrize("text", ["%00", "%C3%28", "%FF", "a%2Fb", "%20", "%7B%7D"])
@pytest.mark.parametrize("decoded", [False, True])
def test_whatever_stands_for_an_id_is_none_that_is_found(
    api: Api, text: str, *, decoded: bool
) -> None:
    value = unquote(text) if decoded else text
    answer = api.call(
        "GET",
        f"{PATH}/{text}",
        resource=f"{PATH}/{{schedule_id}}",
        path_parameters={"schedule_id": value},
    )
    assert (answer.status, answer.code) == (404, "not_found")
    assert api.call("GET", f"{PATH}/{value}").status == 404


@pytest.mark.parametrize(
    ("method", "path", "name", "suggestion"),
    [
        ("POST", PATH, "dry-run", "dry_run"),
        ("GET", PATH, "tags", "tag"),
        ("GET", ID_PATH, "limit", None),
        ("POST", f"{PATH}/preview", "count", None),
        ("DELETE", ID_PATH, "dry_run", None),
    ],
)
def test_a_query_parameter_that_the_route_has_not_is_refused(
    api: Api, method: str, path: str, name: str, suggestion: str | None
) -> None:
    body = BELL if path == PATH else {"expression": "* * * * *"}
    answer = api.call(
        method, path, body if method == "POST" else None, query={name: ["true"]}
    )
    assert (answer.status, answer.code) == (400, "unknown_parameter")
    assert answer.findings["query"]["found"] == name
    assert answer.findings["query"].get("suggestion") == suggestion
    assert not api.world.store.schedules


def test_a_parameter_is_given_once(api: Api) -> None:
    answer = api.call("GET", PATH, query={"limit": ["1", "2"]})
    assert (answer.status, answer.code) == (400, "repeated_parameter")
    assert set(answer.findings) == {"limit"}


def test_faults_of_parameters_and_body_are_told_together(api: Api) -> None:
    body = BELL | {"zone": "X"}
    answer = api.call("POST", PATH, body, query={"dry_run": ["yes"], "x": ["1"]})
    assert {place: each["code"] for place, each in answer.findings.items()} == {
        "dry_run": "unsupported_value",
        "query": "unknown_parameter",
        "zone": "unknown_zone",
    }


def test_a_merge_patch_has_a_type_of_its_own(api: Api) -> None:
    made = api.call("POST", PATH, BELL).body
    headers = {"If-Match": '"1"', "Content-Type": "application/merge-patch+json"}
    path = f"{PATH}/{made['schedule_id']}"
    patch = {"description": "rings"}
    assert api.call("PATCH", path, patch, headers=headers).status == 200
    created = api.call("POST", PATH, BELL, headers=headers)
    assert (created.status, created.code) == (415, "unsupported_media_type")
    headers = {"If-Match": '"2"', "Content-Type": "application/json-patch+json"}
    assert api.call("PATCH", path, patch, headers=headers).status == 415


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
        raise SettingsError(["HOURBELL_TABLE_TIMELINE is not set"])

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
