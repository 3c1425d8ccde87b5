"""Send made-up requests to the local stack's API, and believe no answer.

`python -m loadtest.fuzz_api --cases 2000` starts a stack of its own and sends, route
by route, requests that fit schemas/openapi.json and ones that do not, each signed: as
a tenant's user, or as the platform role's where only that may call. Whatever comes
back must be documented and no 5xx; what the document forbids must be refused.

Random requests seldom get past the door. Half of them are therefore given what exists:
a schedule's id, a handler's name, an expression, the current revision. And the first
ones of each route that fit the document are made right in everything, so that each
route is got through to, whatever the rest happens to be.
"""

import argparse
import json
import re
import sys
import tempfile
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import product
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import requests
import schemathesis
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from hourbell.local.stack import StackInfo, running
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import InvalidArgument, Unsatisfiable
from hypothesis.strategies import SearchStrategy
from requests.auth import AuthBase
from schemathesis import openapi
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from loadtest.bench._client import SignedClient, signer
from loadtest.fuzz_bodies import BODIES, EXPRESSIONS, HANDLER, ZONES, batch

DOCUMENT: Final = Path(__file__).parents[1] / "schemas" / "openapi.json"
ADMIN: Final = "/v1/admin/"
CHECKS: Final = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
MODES: Final = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
TIMEOUT_SECONDS: Final = 30.0
HANDLERS: Final = (HANDLER, "spare")
TENANT: Final = "fuzzed"
NAMES: Final = ("known/0", "known/1", "put/0", "put/1")
PRINCIPALS: Final = ("role/a", "user/team/b", "role/aws-service-role/c")
# Well written, and nobody's: a stack as young as the fuzz's has parked nothing.
PARKED: Final = "MCMyMDI2MDMwOVQxMjAwWiMwMDAw"
Sent = schemathesis.Case[Any]
SCHEDULES: Final = 8
JOBS: Final = 6
# How many of each route's requests are made right in everything.
RIGHT: Final = 2
# What is seldom right when it is made up.
LOOSE: Final = (
    *("start_at", "end_at", "exclude", "tracking", "tags", "from", "overlap", "retry"),
)


def principal_arn(name: str) -> str:
    """Return the ARN of a made-up caller."""
    return f"arn:aws:iam::123456789012:{name}"


@dataclass(frozen=True, slots=True)
class Known:
    """What exists, for requests to name."""

    schedule_ids: Sequence[str]
    job_ids: Sequence[str]
    replan_id: str
    occurrence_ids: Sequence[str]
    dead_id: str

    def choices(self, path: str, method: str) -> dict[str, Sequence[str]]:
        """Return what may stand for the parameters of a path."""
        # Only some are there to be canceled or retired: others live on for the rest.
        few = 2 if method == "DELETE" else len(self.schedule_ids)
        handlers = HANDLERS if method == "GET" else HANDLERS[1:]
        return {
            "job_id": (self.replan_id,) if "/replan/" in path else self.job_ids,
            "schedule_id": self.schedule_ids[:few],
            "name": handlers if path.startswith("/v1/handlers/") else NAMES,
            "tenant_id": (TENANT,),
            "principal": list(map(principal_arn, PRINCIPALS)),
            "parked_id": (PARKED,),
            "occurrence_id": (
                (self.dead_id,) if path.endswith("/replay") else self.occurrence_ids
            ),
        }


@dataclass(slots=True)
class Tally:
    """What was sent and what came of it.

    Attributes:
        routes: route -> how many answers of each status.
        failures: route and what was wrong with an answer -> an example.
        forbidden: answers that whoever signed may not have it, which they may.
        fitting: route -> how many requests that fit the document were sent.
    """

    routes: dict[str, Counter[int]] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    forbidden: list[str] = field(default_factory=list)
    fitting: Counter[str] = field(default_factory=Counter)

    def count(self, route: str, status: int) -> None:
        """Note an answer."""
        self.routes.setdefault(route, Counter())[status] += 1

    @property
    def statuses(self) -> Counter[int]:
        """How many answers there were of each status."""
        return sum(self.routes.values(), Counter())

    @property
    def cases(self) -> int:
        """How many requests were answered."""
        return self.statuses.total()


class Signature(AuthBase):
    """Signs requests with SigV4."""

    def __init__(self, signs: SigV4Auth) -> None:
        self._signs = signs

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Sign what is about to be sent."""
        url = request.url = _canonical(str(request.url))
        kept = ("Content-Type",)
        named = {
            name: request.headers[name] for name in kept if name in request.headers
        }
        signed = AWSRequest(request.method, url, named, request.body or b"")
        self._signs.add_auth(signed)
        request.headers.update({str(n): str(v) for n, v in signed.headers.items()})
        return request


def _canonical(url: str) -> str:
    """Spell the query as SigV4 does: what is signed must be what is sent."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True, errors="surrogateescape")
    query = urlencode(pairs, quote_via=quote, safe="", errors="surrogateescape")
    return urlunsplit(parts._replace(query=query))


@dataclass(frozen=True, slots=True)
class Callers:
    """Who signs: a tenant's user, and the platform role's."""

    tenant: SigV4Auth
    platform: SigV4Auth

    def of(self, path: str) -> Signature:
        """Return who may call a path."""
        return Signature(self.platform if path.startswith(ADMIN) else self.tenant)


def fuzz(stack: StackInfo, cases: int, number: int = 1) -> Tally:
    """Send at least so many requests, spread evenly over the routes.

    Args:
        stack: a running stack.
        cases: how many.
        number: another one sends other requests.

    Raises:
        RuntimeError: the stack takes not even a schedule that is right.
    """
    callers = _callers(stack)
    platform = SignedClient(stack.api_url, callers.platform)
    platform.send("POST", "/v1/admin/tenants", {"tenant_id": TENANT})
    for each in map(principal_arn, PRINCIPALS):
        path = f"/v1/admin/tenants/{TENANT}/principals/{quote(each, safe='')}"
        platform.send("PUT", path)
    replan = platform.send("POST", f"/v1/admin/tenants/{TENANT}/replan").document
    client = SignedClient(stack.api_url, callers.tenant)
    known = _prepare(client, replan["job_id"])
    document = json.loads(DOCUMENT.read_text("utf-8"))
    # Every request is signed here; that unsigned ones are refused, others test.
    del document["security"], document["components"]["securitySchemes"]
    schema = openapi.from_dict(document)
    operations = list(map(_operation, schema.get_all_operations()))
    tally = Tally()
    # Routes that take little that is wrong, or right, leave some to be sent again.
    while (missing := cases - tally.cases) > 0:
        share = -(-missing // (len(operations) * len(MODES)))
        for operation, mode in product(operations, MODES):
            auth = callers.of(operation.path)
            sender = Sender(stack.api_url, auth, known, tally, mode)
            _send_all(operation.as_strategy(mode), sender, share, number)
        number += 1
    return tally


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends cases of one operation and notes what came of them."""

    url: str
    auth: Signature
    known: Known
    tally: Tally
    mode: GenerationMode

    def send(self, case: Sent) -> None:
        """Send a case, and compare the answer with the document."""
        if self.mode is GenerationMode.POSITIVE:
            self._fill(case)
        response = case.call(self.url, auth=self.auth, timeout=TIMEOUT_SECONDS)
        self.tally.count(case.operation.label, response.status_code)
        if response.status_code == HTTPStatus.FORBIDDEN:
            self.tally.forbidden.append(f"{response.request.url}: {response.text}")
        try:
            case.validate_response(response, checks=CHECKS)
        except FailureGroup as group:
            for failure in group.exceptions:
                what = f"{case.operation.label}: {failure}"
                self.tally.failures.setdefault(what, f"{group}")

    def _fill(self, case: Sent) -> None:
        route = case.operation.label
        self.tally.fitting[route] += 1
        if self.tally.fitting[route] <= RIGHT:
            make_right(case, self.known, self.tally.fitting[route])
        else:
            fill(case, self.known)


def fill(case: Sent, known: Known) -> None:
    """Let most of the cases name what exists; which, their content decides."""
    said = repr((case.path_parameters, case.query, case.headers, case.body))
    chance = zlib.crc32(said.encode("utf-8", "replace"))
    if chance % 4 == 0:
        return
    chance >>= 2
    for name in case.path_parameters or {}:
        choices = known.choices(case.path, case.method)[name]
        case.path_parameters[name] = quote(choices[chance % len(choices)], safe="")
    if chance & 8 and "If-Match" in {each.name for each in case.operation.headers}:
        case.headers["If-Match"] = "*"
    if isinstance(case.body, dict):
        _fill_body(case.body, chance >> 4)


def make_right(case: Sent, known: Known, number: int) -> None:
    """Make a request name what exists, and say nothing that it need not."""
    for name in case.path_parameters or {}:
        choices = known.choices(case.path, case.method)[name]
        case.path_parameters[name] = quote(choices[-number % len(choices)], safe="")
    case.headers.pop("If-Match", None)
    conditional = "If-Match" in {each.name for each in case.operation.headers}
    # With PUT it would mean that nothing may be created.
    if conditional and case.method != "PUT":
        case.headers["If-Match"] = "*"
    for name in list(case.query or {}):
        case.query.pop(name)
    right = BODIES.get(case.operation.label)
    if isinstance(case.body, dict) and right is not None:
        case.body.clear()
        case.body.update(right)


def _fill_body(body: dict[str, Any], chance: int) -> None:
    if "operation" in body and chance & 3:
        # Fields that are right each may not go together.
        body.clear()
        body.update(batch(chance))
    if "expression" in body:
        body["expression"] = EXPRESSIONS[chance % len(EXPRESSIONS)]
    if "zone" in body:
        body["zone"] = ZONES[chance % len(ZONES)]
    if "handler" in body:
        body["handler"] = HANDLER
    for place, name in enumerate(LOOSE):
        if chance >> place & 7:
            body.pop(name, None)


def _send_all(
    cases: SearchStrategy[Sent], sender: Sender, share: int, number: int
) -> None:
    """Send so many cases; none is sent twice to be made smaller."""

    @seed(number)
    @settings(
        max_examples=share,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def send(case: Sent) -> None:
        sender.send(case)

    try:
        send()
    except (Unsatisfiable, InvalidArgument):
        # Some routes take nothing that could be wrong.
        return


def _operation(result: Any) -> schemathesis.APIOperation[Any, Any, Any, Any]:  # noqa: ANN401 - has no name
    """Return an operation of the document, which is valid."""
    operation: schemathesis.APIOperation[Any, Any, Any, Any] = result.ok()
    return operation


def _callers(stack: StackInfo) -> Callers:
    user, platform = stack.state.operator, stack.platform_keys
    if user is None:
        raise RuntimeError("the stack is not deployed")
    return Callers(
        *(
            signer(keys.access_key_id, keys.secret_access_key, stack.region)
            for keys in (user, platform)
        )
    )


def _prepare(client: SignedClient, replan_id: str) -> Known:
    """Create what requests can name."""
    ids, occurrences = [], []
    for number in range(SCHEDULES):
        body = {
            "name": f"known/{number}",
            "expression": EXPRESSIONS[number % len(EXPRESSIONS)],
            "handler": HANDLER,
        }
        answer = client.send("POST", "/v1/schedules", body)
        if answer.status != HTTPStatus.CREATED:
            raise RuntimeError(f"a schedule is refused: {answer.text}")
        schedule_id = answer.document["schedule_id"]
        ids.append(schedule_id)
        time = re.sub("[-:]", "", answer.document["next_run_at"])
        occurrences.append(f"{schedule_id}.v1.{time}")
    client.send("POST", "/v1/handlers", {"name": HANDLERS[1]})
    jobs = [_stopped_job(client) for _ in range(JOBS)]
    return Known(ids, jobs, replan_id, occurrences, _dead(client))


def _dead(client: SignedClient) -> str:
    """Let an occurrence die, to be replayed; return its id."""
    body = {
        "name": "known/dead",
        "expression": EXPRESSIONS[0],
        "handler": HANDLER,
        "tracking": "TRACKED",
    }
    schedule_id = client.send("POST", "/v1/schedules", body).document["schedule_id"]
    run = client.send("POST", f"/v1/schedules/{schedule_id}/run").document
    item = {"occurrence_id": run["occurrence_id"]}
    claiming = {"worker": "fuzz", "items": [item]}
    answer = client.send("POST", "/v1/occurrences/claim", claiming)
    (claimed,) = answer.document["results"]
    if claimed["answer"] != "RUN":
        raise RuntimeError(f"a claim is refused: {answer.text}")
    failed = {
        **item,
        "lease_token": claimed["lease_token"],
        "error": {"class": "PERMANENT"},
    }
    answer = client.send("POST", "/v1/occurrences/fail", {"items": [failed]})
    if answer.document["results"][0]["state"] != "DEAD":
        raise RuntimeError(f"a failure is refused: {answer.text}")
    return str(run["occurrence_id"])


def _stopped_job(client: SignedClient) -> str:
    """Start a job that finds nothing, stop it if it is not done yet; return its id."""
    body = {"operation": "pause", "tag": {"no": "such"}}
    job_id = client.send("POST", "/v1/schedules/batch", body).document["job_id"]
    client.send("POST", f"/v1/jobs/{job_id}/cancel")
    return str(job_id)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it on a stack of its own; 1 when an answer was not as documented."""
    parser = argparse.ArgumentParser("fuzz", description="Fuzz the local stack's API.")
    parser.add_argument("--cases", type=int, default=2_000, help="requests to send")
    parser.add_argument("--seed", type=int, default=1, help="another sends others")
    options = parser.parse_args(arguments)
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, running(folder) as stack:
        tally = fuzz(stack, options.cases, options.seed)
    print(report(tally), f"{time.monotonic() - start:.0f} s", sep="\n")
    return 1 if tally.failures or tally.forbidden else 0


def report(tally: Tally) -> str:
    """Return the tally as text: statuses, and an example of each failure."""
    counts = ", ".join(
        f"{count} x {each}" for each, count in sorted(tally.statuses.items())
    )
    lines = [f"{tally.cases} requests: {counts}"]
    for label, statuses in sorted(tally.routes.items()):
        lines.append(f"  {label}: {_told(statuses)}")
    lines += [f"\n{what}\n{example}" for what, example in tally.failures.items()]
    lines += [f"\nforbidden: {each}" for each in tally.forbidden]
    lines.append(f"{len(tally.failures)} kinds of failures")
    return "\n".join(lines)


def _told(statuses: Counter[int]) -> str:
    return ", ".join(f"{count} x {each}" for each, count in sorted(statuses.items()))


if __name__ == "__main__":
    sys.exit(main())
