"""Calls of the schedules' routes."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.functions.conftest import Answer, Api
from tests.functions.events import BOB

PATH = "/v1/schedules"
BELL: dict[str, Any] = {"name": "bell", "expression": "0 9 * * MON", "handler": "ring"}
NOBODY = "sch" + "0" * 26
MINUTELY: dict[str, Any] = BELL | {"expression": "* * * * *"}


def create(api: Api, fields: Mapping[str, Any] | None = None, **more: Any) -> Any:
    """Create a schedule and return it."""
    answer = api.call("POST", PATH, {**BELL, **(fields or {}), **more})
    assert answer.status == 201, answer.text
    return answer.body


def get(api: Api, schedule_id: str, **kwargs: Any) -> Answer:
    return api.call("GET", f"{PATH}/{schedule_id}", **kwargs)


def listing(api: Api, *, arn: str | None = None, **query: Any) -> Answer:
    """List; a parameter that is a list is given several times."""
    given: dict[str, Sequence[str]] = {
        name: value if isinstance(value, list) else [str(value)]
        for name, value in query.items()
    }
    kwargs = {"arn": arn} if arn else {}
    return api.call("GET", PATH, query=given, **kwargs)


def patch(
    api: Api,
    schedule_id: str,
    fields: object,
    *,
    if_match: str | None = "*",
    dry_run: str | None = None,
    **kwargs: Any,
) -> Answer:
    headers = {"Content-Type": "application/merge-patch+json"}
    if if_match is not None:
        headers["If-Match"] = if_match
    query = {"dry_run": [dry_run]} if dry_run else None
    path = f"{PATH}/{schedule_id}"
    return api.call("PATCH", path, fields, headers=headers, query=query, **kwargs)


def put(
    api: Api,
    name: str,
    fields: Mapping[str, Any],
    *,
    headers: Mapping[str, str] | None = None,
    **kwargs: Any,
) -> Answer:
    """Put by name, in an event as API Gateway sends it."""
    return api.call(
        "PUT",
        f"{PATH}/by-name/{name}",
        dict(fields),
        headers=headers,
        resource=f"{PATH}/by-name/{{name}}",
        path_parameters={"name": name},
        **kwargs,
    )


def act(
    api: Api,
    schedule_id: str,
    verb: str,
    body: object = None,
    *,
    if_match: str | None = None,
    **kwargs: Any,
) -> Answer:
    """Pause or resume."""
    headers = {"If-Match": if_match} if if_match else None
    path = f"{PATH}/{schedule_id}/{verb}"
    return api.call("POST", path, body, headers=headers, **kwargs)


def cancel(
    api: Api,
    schedule_id: str,
    *,
    reason: str | None = None,
    if_match: str | None = None,
    **kwargs: Any,
) -> Answer:
    headers = {"If-Match": if_match} if if_match else None
    query = {"reason": [reason]} if reason is not None else None
    path = f"{PATH}/{schedule_id}"
    return api.call("DELETE", path, headers=headers, query=query, **kwargs)


def versions(api: Api, schedule_id: str, **query: Any) -> Answer:
    given = {name: [str(value)] for name, value in query.items()}
    return api.call("GET", f"{PATH}/{schedule_id}/versions", query=given)


def assert_foreign_is_missing(theirs: Answer, missing: Answer) -> None:
    """Assert that another tenant's id answers exactly as one that does not exist."""
    assert theirs.code == missing.code == "not_found"
    assert (theirs.status, theirs.headers, theirs.text) == (
        missing.status,
        missing.headers,
        missing.text,
    )


OTHER: dict[str, Any] = {"arn": BOB}
