"""How many requests a second the API answers, next to what its floor does.

    python -m loadtest.bench.api [--json] [--seconds N]

Starts a local stack of its own. The floor is a function that does nothing, behind the
same REST API with the same signatures: what a request costs the engine anyway. The
ratios to it say what a route costs; the requests a second are this machine's.
"""

import argparse
import io
import itertools
import json
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hourbell.adapters.clock import SystemClock
from hourbell.local import iam
from hourbell.local.errors import LocalStackError
from hourbell.local.stack import StackInfo, running
from hourbell.local.state import Credentials

from loadtest.bench._client import Answer, SignedClient, signer, together

if TYPE_CHECKING:
    import boto3

SECONDS = 3.0
WARMING_SECONDS = 1.0
CONCURRENCIES = (1, 8)
FLOOR = "floor"
SCHEDULES = "/v1/schedules"
# How many schedules the list has, which it answers on one page.
LISTED = 50
TIMING = {"expression": "30 2 * * *", "zone": "America/New_York"}
# One line, since the engine waits for one.
FLOOR_CODE = """
def handler(event, context):
    print("nothing to do")
    return {"statusCode": 200, "headers": {}, "body": "{}"}
"""

Send = Callable[[], Answer]


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one route did at one number of callers.

    Attributes:
        rate: requests a second.
        median_ms: of one request, in milliseconds.
    """

    route: str
    concurrency: int
    rate: float
    median_ms: float


class Bench:
    """A stack with a tenant that writes, and one whose list is read."""

    def __init__(self, stack: StackInfo) -> None:
        """Make the tenants, their schedules, and the floor."""
        self._stack = stack
        self._numbers = itertools.count()
        self._writer = self._tenant("bench-writer")
        self._reader = self._tenant("bench-reader")
        for _ in range(LISTED):
            self._read_id = self._created(self._reader)
        add_floor(stack)

    def routes(self) -> dict[str, Callable[[], Send]]:
        """Return what to measure: per route, how a caller gets its own request."""
        return {
            FLOOR: lambda: lambda: self._reader.send("GET", "/floor"),
            "preview": lambda: (
                lambda: self._reader.send("POST", f"{SCHEDULES}/preview", TIMING)
            ),
            "get": lambda: (
                lambda: self._reader.send("GET", f"{SCHEDULES}/{self._read_id}")
            ),
            "list": lambda: lambda: self._reader.send("GET", SCHEDULES),
            "create": lambda: lambda: self._create(self._writer),
            "patch": self._patching,
            "pause/resume": self._pausing,
            "put": self._putting,
            "run": self._running,
            "dry run": lambda: self._rehearse,
            "backfill": self._backfilling,
            "versions": lambda: (
                lambda: self._reader.send(
                    "GET", f"{SCHEDULES}/{self._read_id}/versions"
                )
            ),
            "handlers": lambda: lambda: self._reader.send("GET", "/v1/handlers"),
            "usage": lambda: lambda: self._reader.send("GET", "/v1/usage"),
        }

    def _tenant(self, tenant_id: str) -> SignedClient:
        keys = self._stack.create_user(tenant_id)
        platform = self._client(self._stack.platform_keys)
        quotas = {"schedules": 10_000}
        body = {"tenant_id": tenant_id, "principals": [keys.arn], "quotas": quotas}
        checked(platform.send("POST", "/v1/admin/tenants", body))
        client = self._client(keys)
        checked(client.send("POST", "/v1/handlers", {"name": "send"}))
        return client

    def _client(self, keys: Credentials) -> SignedClient:
        signs = signer(keys.access_key_id, keys.secret_access_key, self._stack.region)
        return SignedClient(self._stack.api_url, signs)

    def _create(self, client: SignedClient) -> Answer:
        name = f"bench-{next(self._numbers)}"
        return client.send(
            "POST", SCHEDULES, {"name": name, "handler": "send"} | TIMING
        )

    def _created(self, client: SignedClient) -> str:
        return str(checked(self._create(client)).document["schedule_id"])

    def _patching(self) -> Send:
        """Return an update that makes a version each time, of a schedule of its own."""
        place = f"{SCHEDULES}/{self._created(self._writer)}"
        revisions = itertools.count(1)

        def patch() -> Answer:
            revision = next(revisions)
            tag = {"If-Match": f'"{revision}"'}
            return self._writer.send("PATCH", place, {"payload": revision}, tag)

        return patch

    def _pausing(self) -> Send:
        """Return a pause and a resume, by turns, of a schedule of its own."""
        place = f"{SCHEDULES}/{self._created(self._writer)}"
        deeds = itertools.cycle(("pause", "resume"))
        return lambda: self._writer.send("POST", f"{place}/{next(deeds)}")

    def _putting(self) -> Send:
        """Return a put of what is there already, which looks and writes nothing."""
        place = f"{SCHEDULES}/by-name/bench-put-{next(self._numbers)}"
        body = {"handler": "send"} | TIMING
        checked(self._writer.send("PUT", place, body))
        return lambda: self._writer.send("PUT", place, body)

    def _running(self) -> Send:
        """Return a run now, each of which is an occurrence of its own."""
        place = f"{SCHEDULES}/{self._created(self._writer)}/run"
        return lambda: self._writer.send("POST", place)

    def _backfilling(self) -> Send:
        """Return a backfill of three days, made by the first and found by the rest."""
        place = f"{SCHEDULES}/{self._created(self._writer)}/backfill"
        begin = SystemClock().now() - timedelta(days=3)
        body = {"from": f"{begin:%Y-%m-%dT%H:%M:%SZ}"}
        return lambda: self._writer.send("POST", place, body)

    def _rehearse(self) -> Answer:
        body = {"name": "bench-dry", "handler": "send"} | TIMING
        return self._reader.send("POST", f"{SCHEDULES}?dry_run=true", body)


def add_floor(stack: StackInfo) -> None:
    """Put a function that does nothing behind the stack's own REST API."""
    session = stack.admin_session()
    function_arn = _make_floor(session)
    gateway = session.client("apigateway")
    *_, api_id, stage = urlsplit(stack.api_url).path.split("/")
    resources = gateway.get_resources(restApiId=api_id, limit=500)["items"]
    (root,) = [each["id"] for each in resources if each["path"] == "/"]
    place = gateway.create_resource(restApiId=api_id, parentId=root, pathPart="floor")
    method: Any = {
        "restApiId": api_id,
        "resourceId": place["id"],
        "httpMethod": "GET",
    }
    gateway.put_method(**method, authorizationType="AWS_IAM")
    gateway.put_integration(
        **method,
        type="AWS_PROXY",
        integrationHttpMethod="POST",
        uri=f"arn:aws:apigateway:{stack.region}:lambda:path/2015-03-31/functions/"
        f"{function_arn}/invocations",
    )
    gateway.create_deployment(restApiId=api_id, stageName=stage)


def _make_floor(session: "boto3.Session") -> str:
    """Create the function that does nothing; return its ARN."""
    trust = iam.allow(["sts:AssumeRole"])
    trust["Statement"][0]["Principal"] = {"Service": "lambda.amazonaws.com"}
    del trust["Statement"][0]["Resource"]
    role = session.client("iam").create_role(
        RoleName="bench-floor", AssumeRolePolicyDocument=json.dumps(trust)
    )
    code = io.BytesIO()
    with zipfile.ZipFile(code, "w") as archive:
        archive.writestr("floor.py", FLOOR_CODE)
    client = session.client("lambda")
    function = client.create_function(
        FunctionName="bench-floor",
        Runtime="python3.13",
        Role=role["Role"]["Arn"],
        Handler="floor.handler",
        Code={"ZipFile": code.getvalue()},
    )
    client.add_permission(
        FunctionName="bench-floor",
        StatementId="gateway",
        Action="lambda:InvokeFunction",
        Principal="apigateway.amazonaws.com",
    )
    return function["FunctionArn"]


def checked(answer: Answer) -> Answer:
    """Return an answer that is no refusal.

    Raises:
        RuntimeError: it is one; the figures would mean nothing.
    """
    if answer.status >= 300:
        raise RuntimeError(f"HTTP {answer.status}: {answer.text[:300]}")
    return answer


def measure(
    route: str,
    make: Callable[[], Send],
    concurrency: int,
    seconds: float,
    *,
    warming: float = WARMING_SECONDS,
) -> Measurement:
    """Let callers repeat a request, each on a connection of its own.

    Functions are started before the seconds that count.
    """
    sends = [make() for _ in range(concurrency)]
    begun = threading.Barrier(concurrency)

    def run(send: Send) -> tuple[list[float], float]:
        repeat(send, warming)
        begun.wait()
        started = time.perf_counter()
        taken = repeat(send, seconds)
        return taken, time.perf_counter() - started

    calls = [lambda send=send: run(send) for send in sends]
    results = together(calls, concurrency)
    taken = [each for times, _ in results for each in times]
    rate = sum(len(times) / span for times, span in results)
    return Measurement(route, concurrency, rate, median(taken) * 1000)


def repeat(send: Send, seconds: float) -> list[float]:
    """Send again and again for a time; return what each request took, in seconds."""
    taken = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        checked(send())
        taken.append(time.perf_counter() - started)
    return taken


def show(measured: Sequence[Measurement], floors: dict[int, float]) -> None:
    """Print a table of the figures."""
    print(
        f"\n{'route':<14}{'callers':>8}{'per second':>12}{'median':>11}{'of floor':>10}"
    )
    for each in measured:
        ratio = each.rate / floors[each.concurrency]
        print(
            f"{each.route:<14}{each.concurrency:>8}{each.rate:>12.1f}"
            f"{each.median_ms:>8.1f} ms{ratio:>10.2f}"
        )


def figures(
    measured: Sequence[Measurement], floors: dict[int, float]
) -> dict[str, dict[str, Any]]:
    """Return the figures by route and number of callers, JSON-ready."""
    found: dict[str, dict[str, Any]] = {}
    for each in measured:
        found.setdefault(each.route, {})[str(each.concurrency)] = {
            "requests_per_second": round(each.rate, 1),
            "median_ms": round(each.median_ms, 2),
            "ratio_to_floor": round(each.rate / floors[each.concurrency], 3),
        }
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench."""
    parser = argparse.ArgumentParser(prog="bench api", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="per figure")
    options = parser.parse_args(arguments)
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hourbell-bench-") as folder,
            running(folder) as stack,
        ):
            measured = [
                measure(route, make, concurrency, options.seconds)
                for route, make in Bench(stack).routes().items()
                for concurrency in CONCURRENCIES
            ]
    except LocalStackError as error:
        print(error.explain(), file=sys.stderr)
        return error.exit_code
    floors = {each.concurrency: each.rate for each in measured if each.route == FLOOR}
    # With --json, standard output is for programs.
    with redirect_stdout(sys.stderr if options.json else sys.stdout):
        show(measured, floors)
    if options.json:
        print(json.dumps({"routes": figures(measured, floors)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
