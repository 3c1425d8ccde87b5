"""The workers' function behind its URL: the same answers in another form."""

import base64
import json
from importlib import import_module
from typing import Any

import pytest

from tests.functions.conftest import Api
from tests.functions.events import ANN, BOB, Context, sample
from tests.functions.working import NOBODYS, TOKEN, claim, due, result, state


def url_event(
    path: str, body: object, *, arn: str | None = ANN, method: str = "POST"
) -> dict[str, Any]:
    event = sample("url")
    event["rawPath"] = path
    event["body"] = body if isinstance(body, str | None) else json.dumps(body)
    context = event["requestContext"]
    context["http"] |= {"path": path, "method": method}
    context["authorizer"]["iam"]["userArn"] = arn
    return event


def answered(event: dict[str, Any]) -> tuple[int, dict[str, str], Any]:
    """Return status, headers and document of an answer in the URL's form."""
    function = import_module("functions.workers.handler")
    raw = function.handler(event, Context())
    assert set(raw) == {"statusCode", "headers", "body", "isBase64Encoded"}
    assert all(isinstance(text, str) for text in raw["headers"].values())
    return raw["statusCode"], raw["headers"], json.loads(raw["body"])


def claiming(*ids: str) -> dict[str, Any]:
    names = [{"occurrence_id": each, "lease_token": TOKEN} for each in ids]
    return {"worker": "w1", "items": names}


CLAIM = "/v1/occurrences/claim"


def test_it_answers_as_the_api_does(api: Api) -> None:
    name = due(api)
    status, headers, document = answered(url_event(CLAIM, claiming(name, NOBODYS)))
    assert status == 200
    assert headers["Content-Type"] == "application/json"
    assert headers["X-Request-Id"] == "2f6a3c7e-91b4-4a5e-8c0d-7e1f2a3b4c5d"
    # A claim that is repeated is answered the same.
    assert claim(api, name, NOBODYS, token=TOKEN).body == document


def test_the_tenant_is_that_of_who_signed(api: Api) -> None:
    name = due(api)
    _, _, document = answered(url_event(CLAIM, claiming(name), arn=BOB))
    assert document["results"][0]["answer"] == "SKIP"
    assert state(api, name) == "ENQUEUED"
    assert result(claim(api, name))["answer"] == "RUN"


@pytest.mark.parametrize(
    "arn", [None, "", "arn:aws:iam::123456789012:user/eve", "not an arn"]
)
def test_who_is_not_known_is_refused(api: Api, arn: str | None) -> None:
    assert not api.world.store.rows
    status, headers, document = answered(url_event(CLAIM, "{not json", arn=arn))
    assert (status, document["code"]) == (403, "forbidden")
    assert headers["Content-Type"] == "application/problem+json"
    assert document["request_id"] == headers["X-Request-Id"]


def test_without_an_authorizer_nobody_has_signed() -> None:
    event = url_event(CLAIM, claiming(NOBODYS))
    del event["requestContext"]["authorizer"]
    assert answered(event)[0] == 403


def test_what_claims_to_be_of_the_rest_api_is_not_believed() -> None:
    event = url_event(CLAIM, claiming(NOBODYS), arn=None)
    event["requestContext"]["identity"] = {"userArn": ANN}
    event["headers"]["x-user-arn"] = ANN
    assert answered(event)[0] == 403


def test_a_body_in_base_64_is_read() -> None:
    event = url_event(CLAIM, claiming(NOBODYS))
    event["body"] = base64.b64encode(event["body"].encode()).decode()
    event["isBase64Encoded"] = True
    assert answered(event)[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", CLAIM), ("POST", "/v1/schedules"), ("POST", "/"), ("PUT", f"{CLAIM}/x")],
)
def test_other_routes_are_not_there(method: str, path: str) -> None:
    status, _, document = answered(url_event(path, {}, method=method))
    assert (status, document["code"]) == (404, "unknown_route")


def test_parameters_and_bodies_are_judged_as_ever() -> None:
    event = url_event(CLAIM, claiming(NOBODYS))
    event["rawQueryString"] = "dry_run=true&dry_run="
    status, _, document = answered(event)
    assert (status, document["code"]) == (400, "unknown_parameter")
    status, _, document = answered(url_event(CLAIM, None))
    assert (status, document["code"]) == (400, "missing")
    event = url_event(CLAIM, claiming(NOBODYS))
    event["headers"]["content-type"] = "text/plain"
    assert answered(event)[0] == 415
