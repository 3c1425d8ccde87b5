"""Nobody sees or changes what is another tenant's, on any route."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import pytest
from hourbell.local.state import Credentials

from loadtest.bench._client import Answer, SignedClient
from tests.e2e.api_world import (
    DAILY,
    HANDLER,
    SCHEDULES,
    TENANTS,
    YEARLY,
    ApiWorld,
    Tenant,
    pages_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

SECRET = "only-oak-knows"
TIMING = {"expression": YEARLY}
ANY = {"If-Match": "*"}
REVISION = {"If-Match": '"1"'}
# What differs between two answers that say the same.
PER_REQUEST = re.compile(r'"request_id":"[^"]*"')
PER_CREATION = re.compile(
    r"(?:sch|job)[0-9a-z]{26}|\d{4}-\d\d-\d\dT[\d:.]+Z|[0-9a-f]{16}"
)
UNCOMPARED = {"date", "x-request-id", "x-amzn-requestid", "x-amz-request-id"}
# Its result is the caller's own; the moments differ, and so may the length.
OWN = 201
ACCEPTED = 202
JOBS = "/v1/jobs"
OCCURRENCES = "/v1/occurrences"
LETTERS = "/v1/dead-letters"
SHARDS = "/v1/admin/shards"
PARKED = "/v1/admin/parked"

Route = tuple[str, str]


@dataclass(frozen=True)
class Case:
    """A request about what `{it}` names, and the answer to who has no such thing.

    Attributes:
        kind: what `{it}` is: an `id`, a schedule's `name`, a `handler`, a `tenant`;
            `own` where nobody else may come to have one of the name.
    """

    route: Route
    kind: str
    status: int
    path: str = ""
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, client: SignedClient, it: str) -> Answer:
        path = self.path or re.sub(r"\{(?!principal)\w+\}", "{it}", self.route[1])
        path = path.replace("{it}", quote(it, safe=""))
        path = path.replace("{principal}", quote("000000000000:user/oak", safe=""))
        headers = {name: put_in(text, it) for name, text in self.headers.items()}
        return client.send(self.route[0], path, put_in(self.body, it), headers)


def put_in(body: Any, it: str) -> Any:
    if isinstance(body, dict):
        return {name: put_in(value, it) for name, value in body.items()}
    if isinstance(body, list):
        return [put_in(value, it) for value in body]
    return body.replace("{it}", it) if isinstance(body, str) else body


def on_schedule(method: str, more: str = "", **request: Any) -> Case:
    return Case((method, f"{SCHEDULES}/{{schedule_id}}{more}"), "id", 404, **request)


def on_occurrence(method: str, more: str = "", **request: Any) -> Case:
    route = (method, f"{OCCURRENCES}/{{occurrence_id}}{more}")
    return Case(route, "occurrence", 404, **request)


def of_worker(verb: str, more: Mapping[str, Any], **body: Any) -> Case:
    """Return what a worker says of one occurrence, which is answered item by item."""
    item = {"occurrence_id": "{it}", "lease_token": "0123456789abcdef", **more}
    route = ("POST", f"{OCCURRENCES}/{verb}")
    return Case(route, "occurrence", 200, body={"items": [item], **body})


def on_tenants(method: str, more: str = "", **request: Any) -> Case:
    return Case((method, f"{TENANTS}{more}"), "tenant", 403, **request)


NEW = {"name": "{it}", "handler": HANDLER, **TIMING}
PRINCIPALS = "/{tenant_id}/principals"
REPLAN = "/{tenant_id}/replan"
CASES = (
    Case(("GET", SCHEDULES), "name", 200, f"{SCHEDULES}?prefix={{it}}"),
    Case(("POST", SCHEDULES), "name", OWN, body=NEW),
    Case(
        ("POST", SCHEDULES),
        "key",
        OWN,
        body=NEW | {"name": "{it}-keyed"},
        headers={"Idempotency-Key": "{it}"},
    ),
    Case(
        ("POST", SCHEDULES),
        "handler",
        400,
        body={"name": "mine", "handler": "{it}", **TIMING},
    ),
    Case(
        ("POST", SCHEDULES),
        "name",
        200,
        f"{SCHEDULES}?dry_run=true",
        body=NEW | {"name": "{it}-dry"},
    ),
    Case(("POST", f"{SCHEDULES}/preview"), "id", 200, body=TIMING),
    Case(
        ("PUT", f"{SCHEDULES}/by-name/{{name}}"),
        "own name",
        412,
        body={"handler": HANDLER, **TIMING},
        headers=REVISION,
    ),
    on_schedule("GET"),
    on_schedule("PATCH", body={"payload": 1}, headers=REVISION),
    on_schedule("DELETE"),
    on_schedule("DELETE", headers=REVISION),
    on_schedule("POST", "/pause", body={"reason": "spite"}),
    on_schedule("POST", "/resume", headers=ANY),
    on_schedule("POST", "/run"),
    on_schedule("POST", "/run", headers={"Idempotency-Key": "oak-ran"}),
    on_schedule("POST", "/backfill", body={"from": "2026-01-01T00:00:00Z"}),
    on_schedule("GET", "/versions"),
    Case(
        ("POST", f"{SCHEDULES}/batch"),
        "key",
        ACCEPTED,
        body={"operation": "pause", "tag": {"note": "none"}},
        headers={"Idempotency-Key": "{it}"},
    ),
    Case(("GET", JOBS), "job", 200),
    Case(("GET", f"{JOBS}/{{job_id}}"), "job", 404),
    Case(("GET", f"{JOBS}/{{job_id}}/results"), "job", 404),
    Case(("POST", f"{JOBS}/{{job_id}}/cancel"), "job", 404),
    Case(("POST", f"{JOBS}/{{job_id}}/resume"), "job", 404),
    Case(("GET", "/v1/handlers"), "handler", 200),
    Case(("POST", "/v1/handlers"), "handler", OWN, body={"name": "{it}"}),
    Case(("GET", "/v1/handlers/{name}"), "own handler", 404),
    Case(
        ("PATCH", "/v1/handlers/{name}"),
        "own handler",
        404,
        body={"description": "mine"},
        headers=REVISION,
    ),
    Case(("DELETE", "/v1/handlers/{name}"), "own handler", 404),
    of_worker("claim", {}, worker="elm-1"),
    of_worker("heartbeat", {}),
    of_worker("complete", {}),
    of_worker("fail", {"error": {"class": "PERMANENT"}}),
    on_occurrence("GET"),
    on_occurrence("POST", "/cancel", body={"reason": "spite"}),
    on_occurrence("POST", "/replay"),
    Case(("GET", LETTERS), "id", 200, f"{LETTERS}?schedule_id={{it}}"),
    Case(("POST", f"{LETTERS}/replay"), "id", ACCEPTED, body={"schedule_id": "{it}"}),
    Case(("GET", "/v1/usage"), "id", 200),
    on_tenants("GET"),
    on_tenants("POST", body={"tenant_id": "{it}"}),
    on_tenants("GET", "/{tenant_id}"),
    on_tenants("PATCH", "/{tenant_id}", body={"tier": "premium"}, headers=REVISION),
    on_tenants("GET", PRINCIPALS),
    on_tenants("PUT", f"{PRINCIPALS}/{{principal}}"),
    on_tenants("DELETE", f"{PRINCIPALS}/{{principal}}"),
    Case(("GET", SHARDS), "tenant", 403),
    Case(("POST", SHARDS), "tenant", 403, body={"shards": 64}),
    Case(("POST", f"{SHARDS}/resume"), "tenant", 403),
    Case(("GET", PARKED), "tenant", 403, f"{PARKED}?tenant_id={{it}}"),
    Case(("POST", f"{PARKED}/{{parked_id}}/retry"), "tenant", 403),
    on_tenants("POST", REPLAN),
    on_tenants("GET", f"{REPLAN}/{{job_id}}"),
    on_tenants("GET", f"{REPLAN}/{{job_id}}/results"),
)
BY_TITLE = {
    f"{case.route[0]} {case.route[1]} {number}": case
    for number, case in enumerate(CASES)
}
each_case = pytest.mark.parametrize("case", BY_TITLE.values(), ids=BY_TITLE.keys())


@dataclass(frozen=True)
class Village:
    """A tenant that has things, and who would like to have them.

    Attributes:
        names: by kind, what is oak's and what is nobody's, of one length.
    """

    world: ApiWorld
    oak: Tenant
    outsiders: dict[str, Tenant]
    strangers: dict[str, tuple[SignedClient, str]]
    names: dict[str, tuple[str, str]]

    def property(self) -> list[Any]:
        """Return all that is to be seen of what oak has."""
        schedule_id = self.names["id"][0]
        place = f"{SCHEDULES}/{schedule_id}"
        occurrence = f"{OCCURRENCES}/{self.names['occurrence'][0]}"
        return [
            *(
                self.oak.send("GET", path).document
                for path in (place, f"{place}/versions", "/v1/usage", occurrence)
            ),
            pages_of(self.oak, SCHEDULES, "schedules"),
            pages_of(self.oak, "/v1/handlers", "handlers"),
            pages_of(self.oak, JOBS, "jobs"),
            self.world.platform.send("GET", f"{TENANTS}/oak").document,
            self.world.platform.send("GET", f"{TENANTS}/oak/principals").document,
        ]


@pytest.fixture(scope="module")
def village(api_world: ApiWorld) -> Village:
    oak = api_world.tenant("oak")
    for name in ("oak-bill", "oak-mail"):
        body = {"name": name, "description": SECRET}
        assert oak.send("POST", "/v1/handlers", body).status == 201
    private = {"payload": {"secret": SECRET}, "tags": {"note": SECRET}}
    made = oak.send(
        "POST",
        SCHEDULES,
        {"name": "oak-bell", "handler": "oak-bill", **TIMING, **private},
        {"Idempotency-Key": "oak-made"},
    )
    assert oak.create("oak-gong", YEARLY).status == 201
    schedule_id = made.document["schedule_id"]
    ran = oak.send(
        "POST", f"{SCHEDULES}/{schedule_id}/run", None, {"Idempotency-Key": "oak-ran"}
    )
    assert ran.status == 201, ran.text
    job_id = past_job(api_world, oak)
    drum = oak.create("oak-drum", YEARLY, tracking="TRACKED").document
    time = re.sub("[-:]", "", drum["next_run_at"])
    return Village(
        api_world,
        oak,
        {"user": api_world.tenant("elm"), "role": api_world.role_tenant("ash")},
        strangers_of(api_world),
        {
            "id": (schedule_id, f"sch{'0' * 26}"),
            "name": ("oak-bell", "fir-bell"),
            "own name": ("oak-gong", "fir-gong"),
            "key": ("oak-made", "fir-made"),
            "handler": ("oak-bill", "fir-bill"),
            "own handler": ("oak-mail", "fir-mail"),
            "tenant": ("oak", "fir"),
            "occurrence": (
                f"{drum['schedule_id']}.v1.{time}",
                f"sch{'0' * 26}.v1.{time}",
            ),
            "job": (job_id, f"job{'0' * 26}"),
        },
    )


def past_job(world: ApiWorld, oak: Tenant) -> str:
    """Let a job of oak's be done; return its id."""
    body = {"operation": "resume", "tag": {"note": SECRET}, "reason": SECRET}
    key = {"Idempotency-Key": "oak-made"}
    job_id = oak.send("POST", f"{SCHEDULES}/batch", body, key).document["job_id"]

    def is_done() -> bool:
        job = oak.send("GET", f"{JOBS}/{job_id}").document
        return bool(job["state"] == "SUCCEEDED")

    world.stack.wait_for(is_done, 40.0, "the job")
    return str(job_id)


def strangers_of(world: ApiWorld) -> dict[str, tuple[SignedClient, str]]:
    """Return who may call no route, each with the code that tells why."""
    elder = world.user("elder")
    assert (
        world.platform.send(
            "POST", TENANTS, {"tenant_id": "elder", "principals": [elder.arn]}
        ).status
        == 201
    )
    forged = Credentials(elder.access_key_id, "x" * 40, elder.arn)
    unknown = Credentials("AKIA0000000000000000", "x" * 40, elder.arn)
    return {
        "unsigned": (world.unsigned_client(), "forbidden"),
        "wrongly signed": (world.client(forged), "forbidden"),
        "stale": (world.stale_client(elder), "forbidden"),
        "of no key": (world.client(unknown), "forbidden"),
        "unregistered": (world.client(world.user("hermit")), "forbidden"),
        "suspended": (world.suspended_client("yew"), "tenant_suspended"),
    }


def said(answer: Answer, it: str) -> tuple[int, dict[str, str], str]:
    """Return an answer without what each has of its own."""
    text = PER_REQUEST.sub("", answer.text).replace(it, "IT")
    headers = {
        name: value for name, value in answer.headers.items() if name not in UNCOMPARED
    }
    if answer.status in {200, OWN, ACCEPTED}:
        text = PER_CREATION.sub("", text)
        headers.pop("content-length")
        # Location and ETag name what was created.
        headers = {
            name: PER_CREATION.sub("", value.replace(it, "IT"))
            for name, value in headers.items()
        }
    return answer.status, headers, text


def test_every_route_of_the_api_has_a_case() -> None:
    # Importing CDK takes seconds, which the other tests do without.
    from stacks.api import ROUTES  # noqa: PLC0415

    assert {case.route for case in CASES} == set(ROUTES)


@pytest.mark.parametrize("outsider", ["user", "role"])
@each_case
def test_what_is_anothers_is_as_if_it_were_not_there(
    village: Village, case: Case, outsider: str
) -> None:
    before = village.property()
    client = village.outsiders[outsider].client
    theirs, nobodys = village.names[case.kind]
    answer = case.send(client, theirs)
    assert answer.status == case.status, answer.text
    assert said(answer, theirs) == said(case.send(client, nobodys), nobodys)
    assert SECRET not in answer.text
    assert village.property() == before


@pytest.mark.parametrize("outsider", ["user", "role"])
def test_a_name_of_anothers_is_free_to_whoever_puts_it(
    village: Village, outsider: str
) -> None:
    tenant = village.outsiders[outsider]
    body = {"expression": DAILY, "handler": HANDLER}
    place = f"{SCHEDULES}/by-name/oak-put"
    assert village.oak.send("PUT", place, body).status in {200, OWN}
    before = village.property()
    answer = tenant.send("PUT", place, body)
    assert answer.status == OWN
    mine = {each["schedule_id"] for each in pages_of(tenant, SCHEDULES, "schedules")}
    theirs = {
        each["schedule_id"] for each in pages_of(village.oak, SCHEDULES, "schedules")
    }
    assert answer.document["schedule_id"] in mine
    assert not mine & theirs
    assert village.property() == before


@pytest.mark.parametrize(
    ("path", "member", "key"),
    [(SCHEDULES, "schedules", "schedule_id"), ("/v1/handlers", "handlers", "name")],
)
def test_a_cursor_of_anothers_list_opens_nothing_of_it(
    village: Village, path: str, member: str, key: str
) -> None:
    cursor = None
    size = 0
    while cursor is None and size < 3:
        size += 1
        page = village.oak.send("GET", f"{path}?limit={size}").document
        cursor = page["cursor"]
    assert cursor
    theirs = {each[key] for each in pages_of(village.oak, path, member)} - {HANDLER}
    for tenant in village.outsiders.values():
        answer = tenant.send("GET", f"{path}?cursor={quote(cursor, safe='')}")
        found = {each[key] for each in answer.document.get(member, [])}
        shared = {each[key] for each in pages_of(tenant, path, member)}
        assert not (found & theirs) - shared
        assert SECRET not in answer.text


@each_case
def test_the_platform_role_has_no_route_of_tenants(
    village: Village, case: Case
) -> None:
    if case.kind == "tenant":
        # Its own routes: but nobody else is let in, which the first test shows.
        assert case.send(village.oak.client, "oak").status == 403
        return
    answers = [case.send(village.world.platform, it) for it in village.names[case.kind]]
    for answer in answers:
        assert (answer.status, answer.document["code"]) == (403, "forbidden")
    first, second = (PER_REQUEST.sub("", answer.text) for answer in answers)
    assert first == second


STRANGERS = (
    *("unsigned", "wrongly signed", "stale", "of no key", "unregistered"),
    "suspended",
)
# Each route meets one kind in the gate, each kind a sixth of the routes; all of them
# meet in the long tests.
MEETINGS = [
    pytest.param(
        case,
        who,
        id=f"{title}-{who}",
        marks=[] if (number - place) % len(STRANGERS) == 0 else [pytest.mark.long],
    )
    for number, (title, case) in enumerate(BY_TITLE.items())
    for place, who in enumerate(STRANGERS)
]


@pytest.mark.parametrize(("case", "who"), MEETINGS)
def test_strangers_are_refused_before_anything_is_looked_at(
    village: Village, case: Case, who: str
) -> None:
    client, code = village.strangers[who]
    answers = [case.send(client, it) for it in village.names[case.kind]]
    for answer in answers:
        assert answer.status == 403
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.document["code"] == code
        assert SECRET not in answer.text


def test_a_role_is_the_tenant_whatever_its_session_is_called(
    village: Village,
) -> None:
    usage = village.outsiders["role"].send("GET", "/v1/usage").document
    assert usage["tenant_id"] == "ash"
