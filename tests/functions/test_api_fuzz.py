"""Whatever is sent, the API answers: never a 5xx, always JSON of a known form."""

import json
from typing import Any

from hourbell.usecases.ports import Creation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.functions.conftest import Api
from tests.functions.events import api_event

PATH = "/v1/schedules"

NASTY = st.sampled_from(
    [
        "",
        "\u0000",
        "\ufffe",
        "\U0010ffff",
        "a" * 300,
        "\u0661",
        "0 0 29 2 *",
        "0 0 31 4 *",
        "*/7 * * * *",
        "rate(1 minutes)",
        "rate(99999999 days)",
        "at(9999-12-31T23:59:59)",
        "at(2026-03-29T02:30:00)",
        "cron(0 0 L * ? 2199)",
        "@reboot",
        "Europe/Berlin",
        "Pacific/Apia",
        "../etc/passwd",
        "2026-03-09T12:00:00Z",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59Z",
        "9999-12-31T23:59:59-14:00",
        "2026-12-25",
        "9999-12-31",
        "TRACKED",
        "CATCH_UP",
        "SKIP",
        "ring",
        "bell",
        "aws:x",
    ]
)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | NUMBERS | st.text(max_size=20) | NASTY
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["gap", "fold", "from", "to", "policy", "limit", "k"])
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
FIELDS = [
    "name",
    "handler",
    "expression",
    "zone",
    "dst",
    "start_at",
    "end_at",
    "max_occurrences",
    "exclude",
    "payload",
    "tags",
    "description",
    "tracking",
    "flexible_window_seconds",
    "misfire",
    "overlap",
    "retry",
    "from",
    "count",
]
GOOD = {"name": "bell", "handler": "ring", "expression": "0 9 * * *"}
BODIES = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=8), VALUES)

IDS = st.sampled_from(
    [
        f"sch{'0' * 26}.v1.20260309T120000Z",
        f"sch{'0' * 26}.v1.99991231T235960Z",
        f"sch{'z' * 26}.v9999999999.99991231T235959Z",
        f"sch{'0' * 26}.v1.00010101T000000Z.r0123456789abcdef",
    ]
)
ITEMS = st.fixed_dictionaries(
    {
        "occurrence_id": IDS | VALUES,
        "lease_token": st.text("ab-", min_size=16, max_size=20) | VALUES,
    },
    optional={
        "error": VALUES
        | st.fixed_dictionaries(
            {"class": st.sampled_from(["THROTTLED", "PERMANENT"]) | VALUES},
            optional={"message": VALUES, "retry_after_seconds": VALUES, "type": VALUES},
        )
    },
)


def forget(api: Api) -> None:
    """Let every example begin with free names and an unused quota."""
    api.world.store.names.clear()
    api.world.store.counts.clear()


fuzz = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def judge(api: Api, event: dict[str, Any]) -> int:
    answer = api.send(event)
    if answer.status >= 400:
        assert answer.code
        assert answer.status in {400, 403, 404, 409, 412, 413, 415, 428}
    else:
        assert answer.body
    return answer.status


@fuzz
@given(body=BODIES, whole=st.booleans())
def test_no_create_is_a_server_error(
    api: Api, body: dict[str, Any], whole: bool
) -> None:
    forget(api)
    event = api_event("POST", PATH, (GOOD | body) if whole else body)
    status = judge(api, event)
    if status == 201:
        assert set(body) <= set(FIELDS)


@fuzz
@given(body=BODIES, name=st.sampled_from(FIELDS), value=VALUES)
def test_no_preview_is_a_server_error(
    api: Api, body: dict[str, Any], name: str, value: object
) -> None:
    wanted = {"expression": "*/5 * * * *", "count": 3}
    assert judge(api, api_event("POST", f"{PATH}/preview", wanted)) == 200
    judge(api, api_event("POST", f"{PATH}/preview", wanted | {name: value}))
    judge(api, api_event("POST", f"{PATH}/preview", body))


@fuzz
@given(text=st.text(max_size=200) | st.binary(max_size=200).map(repr))
def test_no_text_is_a_server_error(api: Api, text: str) -> None:
    judge(api, api_event("POST", PATH, text))


@fuzz
@given(
    path=st.text(max_size=60),
    method=st.sampled_from(["GET", "POST", "PUT", "PATCH", "DELETE", "x"]),
)
def test_no_path_is_a_server_error(api: Api, path: str, method: str) -> None:
    body = "{}" if method in {"POST", "PUT", "PATCH"} else None
    judge(api, api_event(method, f"{PATH}/{path}", body))
    judge(api, api_event(method, f"{PATH}/{path}/versions", body))
    name = {"name": path}
    resource = f"{PATH}/by-name/{{name}}"
    event = api_event(
        method, f"{PATH}/by-name/x", body, resource=resource, path_parameters=name
    )
    judge(api, event)


@fuzz
@given(
    body=BODIES | st.dictionaries(st.sampled_from(["name", "reason"]), VALUES),
    tag=st.sampled_from(["*", '"1"', '"9"', "x"]) | st.text(max_size=12),
    dry_run=st.booleans(),
)
def test_no_change_is_a_server_error(
    api: Api, body: dict[str, Any], tag: str, *, dry_run: bool
) -> None:
    forget(api)
    schedule_id = api.call("POST", PATH, GOOD).body["schedule_id"]
    path = f"{PATH}/{schedule_id}"
    headers = {"If-Match": tag}
    query = {"dry_run": ["true"]} if dry_run else None
    judge(api, api_event("PATCH", path, body, headers=headers, query=query))
    judge(api, api_event("POST", f"{path}/pause", body, headers=headers))
    judge(api, api_event("PUT", f"{PATH}/by-name/bell", GOOD | body, headers=headers))
    judge(api, api_event("POST", f"{path}/resume", body))
    judge(api, api_event("DELETE", path, headers=headers, query={"reason": [tag]}))
    assert judge(api, api_event("GET", path)) == 200
    assert judge(api, api_event("GET", f"{path}/versions")) == 200


@fuzz
@given(
    query=st.dictionaries(
        st.sampled_from(["state", "tag", "prefix", "limit", "cursor", "before", "x"]),
        st.lists(st.text(max_size=12) | NASTY, min_size=1, max_size=3),
    )
)
def test_no_query_is_a_server_error(api: Api, query: dict[str, list[str]]) -> None:
    judge(api, api_event("GET", PATH, query=query))
    judge(api, api_event("GET", f"{PATH}/sch{'0' * 26}/versions", query=query))


@fuzz
@given(
    operation=st.sampled_from(["create", "pause", "resume", "cancel", ""]) | VALUES,
    body=st.dictionaries(
        st.sampled_from(["schedules", "schedule_ids", "tag", "reason", "x"]),
        VALUES | st.lists(BODIES, max_size=3),
    ),
    query=st.dictionaries(
        st.sampled_from(["outcome", "limit", "cursor", "x"]),
        st.lists(st.text(max_size=12) | NASTY, min_size=1, max_size=2),
    ),
    text=st.text(max_size=40),
)
def test_no_batch_is_a_server_error(
    api: Api,
    operation: object,
    body: dict[str, Any],
    query: dict[str, list[str]],
    text: str,
) -> None:
    judge(api, api_event("POST", f"{PATH}/batch", {"operation": operation} | body))
    tag = {"operation": "pause", "tag": {"a": "b"}}
    job_id = api.call("POST", f"{PATH}/batch", tag).body["job_id"]
    for each in (job_id, text):
        resource, it = "/v1/jobs/{job_id}/results", {"job_id": each}
        path = "/v1/jobs/x/results"
        event = api_event(
            "GET", path, query=query, resource=resource, path_parameters=it
        )
        judge(api, event)
    judge(api, api_event("GET", "/v1/jobs", query=query))


@fuzz
@given(
    verb=st.sampled_from(["claim", "heartbeat", "complete", "fail"]),
    body=st.fixed_dictionaries(
        {"items": VALUES | st.lists(ITEMS, max_size=3)},
        optional={"worker": VALUES, "lease_seconds": VALUES, "x": VALUES},
    ),
    text=st.text(max_size=40) | NASTY,
)
def test_nothing_that_workers_say_is_a_server_error(
    api: Api, verb: str, body: dict[str, Any], text: str
) -> None:
    judge(api, api_event("POST", f"/v1/occurrences/{verb}", body))
    one = "/v1/occurrences/{occurrence_id}"
    for method, more in (("GET", ""), ("POST", "/cancel"), ("POST", "/replay")):
        event = api_event(
            method,
            f"/v1/occurrences/x{more}",
            resource=one + more,
            path_parameters={"occurrence_id": text},
        )
        judge(api, event)


@fuzz
@given(payload=VALUES)
def test_a_payload_that_is_taken_comes_back_as_it_was(
    api: Api, payload: object
) -> None:
    forget(api)
    answer = api.call("POST", PATH, GOOD | {"payload": payload})
    if answer.status == 201:
        assert json.dumps(answer.body["payload"]) == json.dumps(payload)
        schedule = api.world.schedules.find(answer.body["schedule_id"])
        assert schedule is not None
        version = api.world.store.versions[schedule.ref]
        first = api.world.rows()[0]
        assert api.world.schedules.create(schedule, version, first, quota=9) is (
            Creation.EXISTS
        )
    else:
        assert answer.status == 400
