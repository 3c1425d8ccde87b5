"""Stop the tick of a local stack for some minutes, and see what its schedules do.

    python -m loadtest.bench.blackout [--json] [--minutes N]

Four minutely schedules with different misfire policies run on the deployed local stack.
The EventBridge rule is disabled, so that no pass begins, and enabled again some minutes
later. Which times were overdue then follows from the clock of the pass that came first,
which stands in the gap rows; what each policy makes of them is computed here from the
rules of docs/policies.md, and compared with what the API tells of each time, and with
the messages that arrived.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hourbell.adapters.clock import SystemClock
from hourbell.local.errors import LocalStackError
from hourbell.local.stack import StackInfo, running

from loadtest.bench._client import SignedClient, checked, signer

if TYPE_CHECKING:
    import boto3

MINUTE: Final = timedelta(minutes=1)
MINUTES: Final = 10
SCHEDULES: Final = "/v1/schedules"
POLICIES: Final[dict[str, dict[str, Any]]] = {
    "skip": {"policy": "SKIP"},
    "once": {"policy": "FIRE_ONCE"},
    "two": {"policy": "CATCH_UP", "limit": 2},
    "all": {"policy": "CATCH_UP", "limit": 1000},
}
RUNS: Final = {"skip": 0, "once": 1, "two": 2, "all": 1000}
QUEUES: Final = ("standard-strict", "standard-catchup")
# The first pass after the outage, and a second one.
SETTLING_SECONDS: Final = 150


@dataclass
class Scene:
    """The stack, its tenant, and what arrived.

    Attributes:
        ids: schedule_id by policy.
        arrived: per schedule_id, time and lane of each message.
    """

    stack: StackInfo
    client: SignedClient
    session: "boto3.Session"
    ids: dict[str, str] = field(default_factory=dict)
    arrived: dict[str, list[tuple[datetime, str]]] = field(default_factory=dict)

    @classmethod
    def of(cls, stack: StackInfo) -> "Scene":
        """Take the stack's own tenant, and create its schedules."""
        keys = stack.state.operator
        if keys is None:
            raise RuntimeError("the stack has no operator")
        signs = signer(keys.access_key_id, keys.secret_access_key, stack.region)
        scene = cls(stack, SignedClient(stack.api_url, signs), stack.operator_session())
        for name, policy in POLICIES.items():
            body = {
                "name": f"blackout-{name}",
                "handler": "report",
                "expression": "* * * * *",
                "misfire": policy,
            }
            made = checked(scene.client.send("POST", SCHEDULES, body))
            scene.ids[name] = made.document["schedule_id"]
        return scene

    def receive(self) -> None:
        """Take what waits in the tenant's queues."""
        sqs = self.session.client("sqs")
        for queue in QUEUES:
            url = self.stack.queue_urls[queue]
            while True:
                answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
                messages = answer.get("Messages", [])
                for message in messages:
                    event = json.loads(message["Body"])
                    told = (_instant(event["time"]), queue.rpartition("-")[2])
                    self.arrived.setdefault(event["data"]["schedule_id"], []).append(
                        told
                    )
                    sqs.delete_message(
                        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]
                    )
                if not messages:
                    break

    def told(self, name: str) -> dict[datetime, str]:
        """Return what the API says of the schedule's last times."""
        view = checked(self.client.send("GET", f"{SCHEDULES}/{self.ids[name]}"))
        return {
            _instant(each["scheduled_for"]): each["state"]
            for each in view.document["last_occurrences"]
        }


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)


@contextmanager
def no_ticks(stack: StackInfo) -> Iterator[None]:
    """Have no pass begin for the time of the block."""
    events = stack.admin_session().client("events")
    (rule,) = [
        each["Name"] for each in events.list_rules()["Rules"] if "tick" in each["Name"]
    ]
    events.disable_rule(Name=rule)
    try:
        yield
    finally:
        events.enable_rule(Name=rule)


def overdue_times(scene: Scene, back: datetime) -> list[datetime]:
    """Return the times of the outage that were over a minute late at its end.

    The schedule that lets all run shows the first: all of its overdue times are in the
    catch-up lane, and the others' passes were the same.
    """
    caught_up = [
        instant
        for instant, lane in scene.arrived.get(scene.ids["all"], [])
        if lane == "catchup"
    ]
    if not caught_up:
        return []
    first, last = min(caught_up), max(caught_up)
    if not timedelta(0) < back - last <= 3 * MINUTE:
        raise RuntimeError(f"the last overdue time is {last}, the outage's end {back}")
    return [first + n * MINUTE for n in range((last - first) // MINUTE + 1)]


def judge(scene: Scene, overdue: Sequence[datetime]) -> list[str]:
    """Return what is not as docs/policies.md says; nothing is good."""
    faults: list[str] = []
    for name, schedule_id in scene.ids.items():
        run = set(overdue[len(overdue) - min(RUNS[name], len(overdue)) :])
        arrived = scene.arrived.get(schedule_id, [])
        caught_up = sorted(each for each, lane in arrived if lane == "catchup")
        if caught_up != sorted(run):
            faults.append(f"{name}: {len(caught_up)} caught up, expected {len(run)}")
        strict = {each for each, lane in arrived if lane == "strict"}
        if strict & set(overdue):
            faults.append(f"{name}: overdue times arrived in the lane strict")
        for instant, state in scene.told(name).items():
            if instant in overdue:
                expected = "ENQUEUED" if instant in run else "MISSED"
                if state != expected:
                    faults.append(f"{name}: {instant} is {state}, not {expected}")
    return faults


def measure(minutes: int) -> dict[str, Any]:
    """Run the whole thing; return what came of it."""
    with (
        tempfile.TemporaryDirectory(prefix="hourbell-blackout-") as folder,
        running(Path(folder)) as stack,
    ):
        scene = Scene.of(stack)
        with no_ticks(stack):
            time.sleep(minutes * 60)
        back = SystemClock().now()
        deadline = time.monotonic() + SETTLING_SECONDS
        while time.monotonic() < deadline:
            scene.receive()
            time.sleep(1)
        overdue = overdue_times(scene, back)
        faults = judge(scene, overdue)
    return {
        "bench": "blackout",
        "minutes": minutes,
        "overdue": len(overdue),
        "caught_up": {
            name: sum(lane == "catchup" for _, lane in scene.arrived.get(each, []))
            for name, each in scene.ids.items()
        },
        "faults": faults,
        "kept": bool(overdue) and not faults,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 1 when something is not as the policies say."""
    parser = argparse.ArgumentParser(prog="bench blackout", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--minutes", type=int, default=MINUTES)
    options = parser.parse_args(arguments)
    try:
        report = measure(options.minutes)
    except LocalStackError as error:
        print(error.explain(), file=sys.stderr)
        return error.exit_code
    if options.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name.replace('_', ' '):<12}{value}")
    return 0 if report["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
