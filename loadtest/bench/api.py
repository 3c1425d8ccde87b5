"""How many requests a second each route of the API answers, next to its floor.

    python -m loadtest.bench.api [--json] [--seconds N] [--route TEXT ...]

Starts a local stack of its own. The floor is a function that does nothing, behind the
same REST API with the same signatures: what a request costs the engine anyway. The
ratios to it say what a route costs; the requests a second are this machine's.

Every request does its route's work: what it needs for itself, such as a schedule to
cancel, is made beforehand and not counted. Queues, streams and jobs are worked off
meanwhile, as on any day.
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
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from hourbell.local import iam
from hourbell.local.errors import LocalStackError
from hourbell.local.stack import StackInfo, running

from loadtest.bench._api_requests import Requests
from loadtest.bench._api_routes import FLOOR, LEFT_OUT, Probe, chosen
from loadtest.bench._api_world import World
from loadtest.bench._client import checked, together

if TYPE_CHECKING:
    import boto3

SECONDS = 3.0
WARMING_SECONDS = 1.0
# How many requests are timed at least, however long they and their needs take.
LEAST = 3
# How long callers wait for each other.
WAIT_SECONDS = 120.0
# One line, since the engine waits for one.
FLOOR_CODE = """
def handler(event, context):
    print("nothing to do")
    return {"statusCode": 200, "headers": {}, "body": "{}"}
"""


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


def measure(
    name: str,
    make: Callable[[], Requests],
    concurrency: int,
    seconds: float,
    *,
    warming: float = WARMING_SECONDS,
) -> Measurement:
    """Let callers send requests, each on a connection of its own.

    Functions are started before the seconds that count. What makes a request ready is
    within these seconds, but not within what the request took.
    """
    # What is needed only once is made here, where callers cannot meet.
    callers = [begun(make()) for _ in range(concurrency)]
    barrier = threading.Barrier(concurrency)

    def run(requests: Requests) -> list[float]:
        try:
            repeat(requests, warming)
        except BaseException:
            barrier.abort()
            raise
        barrier.wait(WAIT_SECONDS)
        return repeat(requests, seconds)

    calls = [lambda requests=requests: run(requests) for requests in callers]
    results = together(calls, concurrency)
    rate = sum(len(taken) / sum(taken) for taken in results)
    everything = list(itertools.chain.from_iterable(results))
    return Measurement(name, concurrency, rate, median(everything) * 1000)


def measure_all(
    stack: StackInfo,
    probes: Sequence[Probe],
    seconds: float,
    *,
    warming: float = WARMING_SECONDS,
) -> list[Measurement]:
    """Measure routes of a stack, one after the other, in the order of the probes.

    Raises:
        RuntimeError: a request was refused, whose route is named.
    """
    add_floor(stack)
    world = World(stack)
    measured = []
    for probe in probes:
        for concurrency in probe.callers:
            try:
                figure = measure(
                    probe.name,
                    partial(probe.make, world),
                    concurrency,
                    seconds,
                    warming=warming,
                )
            except RuntimeError as error:
                raise RuntimeError(f"{probe.name}: {error}") from error
            measured.append(figure)
    return measured


def begun(requests: Requests) -> Requests:
    """Return the same requests, the first of which is ready."""
    return itertools.chain([next(requests)], requests)


def repeat(requests: Requests, seconds: float) -> list[float]:
    """Send for a time, and at least a few; return what each took, in seconds."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while len(taken) < LEAST or time.perf_counter() < end:
        send = next(requests)
        started = time.perf_counter()
        checked(send())
        taken.append(time.perf_counter() - started)
    return taken


def show(measured: Sequence[Measurement], floors: dict[int, float]) -> None:
    """Print a table of the figures, and what is missing in it."""
    width = max(len(each.route) for each in measured) + 1
    print(
        f"\n{'route':<{width}}{'callers':>8}{'per second':>12}{'median':>11}"
        f"{'of floor':>10}"
    )
    for each in measured:
        ratio = each.rate / floors[each.concurrency]
        print(
            f"{each.route:<{width}}{each.concurrency:>8}{each.rate:>12.1f}"
            f"{each.median_ms:>8.1f} ms{ratio:>10.2f}"
        )
    for name, reason in LEFT_OUT.items():
        print(f"left out: {name}: {reason}")


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
    parser.add_argument(
        "--route",
        action="append",
        default=[],
        metavar="TEXT",
        help="measure only routes with this in their names, such as '/jobs', or the "
        "one of this name; may be repeated",
    )
    options = parser.parse_args(arguments)
    try:
        probes = chosen(options.route)
    except ValueError as error:
        parser.error(str(error))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="hourbell-bench-") as folder,
            running(folder) as stack,
        ):
            measured = measure_all(stack, probes, options.seconds)
    except LocalStackError as error:
        print(error.explain(), file=sys.stderr)
        return error.exit_code
    floors = {each.concurrency: each.rate for each in measured if each.route == FLOOR}
    # With --json, standard output is for programs.
    with redirect_stdout(sys.stderr if options.json else sys.stdout):
        show(measured, floors)
    if options.json:
        found = {"routes": figures(measured, floors), "left_out": LEFT_OUT}
        print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
