"""Change the shard count of a local stack under load, and see what came of it.

    python -m loadtest.bench.reshard [--json] [--shards N] [--groups N]

Minutely schedules run on the deployed local stack, others are created, paused and
resumed, and many have their only time far ahead. Meanwhile the shard count is changed
through the API; the bench goes on until the new epoch has begun and is settled. Then
every minute of every minutely schedule must have arrived, each occurrence must have one
row, and every row must lie where the list of epochs says.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hourbell.adapters.clock import SystemClock
from hourbell.adapters.dynamodb.row_items import decode_row_key, is_dispatch
from hourbell.domain.shards import stable_hash
from hourbell.local.errors import LocalStackError
from hourbell.local.stack import StackInfo, running

from loadtest.bench._client import SignedClient, checked, signer

if TYPE_CHECKING:
    import boto3

MINUTE: Final = timedelta(minutes=1)
SCHEDULES: Final = "/v1/schedules"
SHARDS: Final = "/v1/admin/shards"
QUEUES: Final = ("standard-strict", "standard-catchup")
MINUTELY: Final = 60
FAR: Final = 120
CHANGING: Final = 12
# After the epoch has begun, and after it is settled.
AFTERWARDS: Final = 4 * MINUTE
LIMIT: Final = 40 * MINUTE


@dataclass
class Scene:
    """The stack, who calls, and what arrived.

    Attributes:
        minutely: schedule_id -> its first minute.
        changing: ids of schedules that are paused and resumed.
        arrived: occurrence_id -> how often its message came.
    """

    stack: StackInfo
    client: SignedClient
    platform: SignedClient
    session: "boto3.Session"
    minutely: dict[str, datetime] = field(default_factory=dict)
    changing: list[str] = field(default_factory=list)
    arrived: Counter[str] = field(default_factory=Counter)
    changes: int = 0
    refused: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, stack: StackInfo) -> "Scene":
        """Take the stack's own tenant, and create its schedules."""
        keys = stack.state.operator
        if keys is None:
            raise RuntimeError("the stack has no operator")
        client, platform = (
            SignedClient(
                stack.api_url,
                signer(each.access_key_id, each.secret_access_key, stack.region),
            )
            for each in (keys, stack.platform_keys)
        )
        scene = cls(stack, client, platform, stack.operator_session())
        for number in range(MINUTELY):
            made = scene.create(f"minutely/{number}", "* * * * *")
            created = datetime.fromisoformat(made["created_at"])
            first = created.replace(second=0, microsecond=0) + MINUTE
            scene.minutely[made["schedule_id"]] = first
        for number in range(FAR):
            scene.create(f"far/{number}", "0 0 1 1 *")
        for number in range(CHANGING):
            made = scene.create(f"changing/{number}", "*/2 * * * *")
            scene.changing.append(made["schedule_id"])
        return scene

    def create(self, name: str, expression: str) -> Any:  # noqa: ANN401 - any JSON
        """Create a schedule that lets everything overdue run."""
        body = {
            "name": name,
            "handler": "report",
            "expression": expression,
            "misfire": {"policy": "CATCH_UP", "limit": 1000},
        }
        return checked(self.client.send("POST", SCHEDULES, body)).document

    def change(self) -> None:
        """Pause or resume one schedule, and create another."""
        number = self.changes
        self.changes += 1
        place = self.changing[number % CHANGING]
        act = "pause" if number // CHANGING % 2 == 0 else "resume"
        for path, body in (
            (f"{SCHEDULES}/{place}/{act}", None),
            (
                SCHEDULES,
                {
                    "name": f"new/{number}",
                    "handler": "report",
                    "expression": "*/5 * * * *",
                },
            ),
        ):
            answer = self.client.send("POST", path, body)
            if answer.status >= 300:
                self.refused[answer.status] += 1

    def receive(self) -> None:
        """Take what waits in the tenant's queues."""
        sqs = self.session.client("sqs")
        for queue in QUEUES:
            url = self.stack.queue_urls[queue]
            while messages := sqs.receive_message(
                QueueUrl=url, MaxNumberOfMessages=10
            ).get("Messages"):
                for message in messages:
                    self.arrived[json.loads(message["Body"])["id"]] += 1
                    sqs.delete_message(
                        QueueUrl=url, ReceiptHandle=message["ReceiptHandle"]
                    )

    def work_until(self, instant: datetime) -> None:
        """Receive and change schedules until then."""
        while SystemClock().now() < instant:
            self.receive()
            self.change()
            time.sleep(2)

    def shards(self) -> Any:  # noqa: ANN401 - any JSON
        """Return what the API tells of the shards."""
        return checked(self.platform.send("GET", SHARDS)).document

    def rows(self) -> list[dict[str, Any]]:
        """Return every item of the timeline."""
        client = self.session.client("dynamodb")
        pages = client.get_paginator("scan").paginate(
            TableName=self.stack.tables["timeline"], ConsistentRead=True
        )
        return [item for page in pages for item in page["Items"]]


def missing_of(scene: Scene, until: datetime) -> list[str]:
    """Return the minutely occurrences up to an instant that did not arrive."""
    wanted = (
        f"{schedule_id}.v1.{first + number * MINUTE:%Y%m%dT%H%M%SZ}"
        for schedule_id, first in scene.minutely.items()
        for number in range((until - first) // MINUTE + 1)
    )
    return [each for each in wanted if each not in scene.arrived]


def misplaced_of(
    items: Sequence[dict[str, Any]], since: datetime, counts: tuple[int, int]
) -> int:
    """Return how many rows do not lie where they should."""
    border = f"{since:%Y%m%dT%H%MZ}"
    astray = 0
    for key in map(decode_row_key, items):
        shards = counts[key.bucket >= border]
        astray += key.shard != stable_hash(key.schedule_id) % shards
    return astray


def measure(shards: int, groups: int) -> dict[str, Any]:
    """Run the whole thing; return what came of it."""
    with (
        tempfile.TemporaryDirectory(prefix="hourbell-reshard-") as folder,
        running(Path(folder)) as stack,
    ):
        scene = Scene.of(stack)
        old = scene.shards()["epochs"][0]["shards"]
        announced = SystemClock().now()
        body = {"shards": shards, "groups": groups}
        told = checked(scene.platform.send("POST", SHARDS, body)).document
        since = datetime.fromisoformat(told["epochs"][-1]["since"])
        while told["epochs"][-1]["phase"] != "SETTLED":
            if SystemClock().now() > announced + LIMIT:
                raise RuntimeError(f"not settled: {told}")
            scene.work_until(SystemClock().now() + timedelta(seconds=5))
            told = scene.shards()
        settled = datetime.fromisoformat(told["changed_at"])
        scene.work_until(max(since, settled) + AFTERWARDS)
        until = SystemClock().now() - MINUTE
        scene.receive()
        items = scene.rows()
        missing = missing_of(scene, until)
        occurrences = [each for each in items if not is_dispatch(each)]
        keys = Counter(decode_row_key(each).sort for each in occurrences)
        twice = [sort for sort, count in keys.items() if count > 1]
        astray = misplaced_of(items, since, (old, shards))
    return {
        "bench": "reshard",
        "shards": [old, shards],
        "groups": groups,
        "lead_seconds": round((since - announced).total_seconds()),
        "settled_after_seconds": round((settled - announced).total_seconds()),
        "rows": len(items),
        "moved": told["move"]["moved"],
        "walks": told["move"]["round"],
        "changes": scene.changes,
        "refused": dict(scene.refused),
        "arrived": len(scene.arrived),
        "messages": scene.arrived.total(),
        "missing": len(missing),
        "twice": len(twice),
        "astray": astray,
        "kept": not (missing or twice or astray or 500 in scene.refused),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; return 1 when something is lost, twice or astray."""
    parser = argparse.ArgumentParser(prog="bench reshard", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--shards", type=int, default=64)
    parser.add_argument("--groups", type=int, default=8)
    options = parser.parse_args(arguments)
    try:
        report = measure(options.shards, options.groups)
    except LocalStackError as error:
        print(error.explain(), file=sys.stderr)
        return error.exit_code
    if options.json:
        print(json.dumps(report))
    else:
        for name, value in report.items():
            print(f"{name.replace('_', ' '):<24}{value}")
    return 0 if report["kept"] else 1


if __name__ == "__main__":
    sys.exit(main())
