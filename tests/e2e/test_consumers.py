"""The examples on the deployed local stack: each effect once, whatever goes wrong.

Of each example: occurrences of TRACKED schedules, copies of their messages, answers of
the API that are lost, and a consumer that is killed between an effect and its word of
it. In the end everything has succeeded, under the ids that it was promised under.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hourbell.local import iam
from hourbell.local.errors import LocalStackError

from tests.consumers.examples import ALL, Example, Program, started
from tests.consumers.lossy_proxy import LossyProxy, proxied
from tests.e2e.api_world import (
    HANDLER,
    SCHEDULES,
    TENANTS,
    YEARLY,
    ApiWorld,
    Tenant,
    api_world_in,
)

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timeout(900)]

# The lease is over when its watch looks, which a pass of each minute sends it to do.
PATIENCE_SECONDS = 240.0
LEASE_SECONDS = 10
SLOW, FAILING = 3, 2
"""How many of the occurrences take time, and how many fail before they succeed.

They fail twice: an attempt whose claim is not heard of ends before it has failed.
"""
COPIES = 6
"""How many messages are there twice at least; of more than 30, a fifth are."""
LOSSES = {"claim": 3, "complete": 4, "fail": 2}
"""Of each route, every how manieth answer is lost."""
RETRY = {"max_attempts": 10, "base_seconds": 1, "cap_seconds": 2}
BY_FUNCTION_URL = {"python_process", "nodejs"}
"""Which call the workers' function URL; the others go through API Gateway."""
NAMES = [example.name for example in ALL]


@dataclass
class Story:
    """What one example was given, and what came of it.

    Attributes:
        killed: what the killed consumer had said that it booked.
        states: occurrence_id -> its state and number of attempts in the end.
        gave_up: the skip or failure by which the machine cannot run the example.
    """

    example: Example
    books: Path
    ids: list[str] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    states: dict[str, tuple[str, int]] = field(default_factory=dict)
    lost: Counter[str] = field(default_factory=Counter)
    exit_code: int | None = None
    gave_up: BaseException | None = None


class Stage:
    """One example with a tenant, a queue and a lossy proxy of its own."""

    def __init__(self, world: ApiWorld, story: Story, count: int) -> None:
        self._world = world
        self._story = story
        self._count = count
        self._name = story.example.name.replace("_", "-")
        self._service, self._url = "execute-api", world.stack.api_url
        if story.example.name in BY_FUNCTION_URL:
            self._service, self._url = "lambda", world.stack.workers_url
        self._sqs: Any = world.stack.admin_session().client("sqs")
        self._queue_url = self._sqs.create_queue(QueueName=f"inbox-{self._name}")[
            "QueueUrl"
        ]
        self._keys = world.stack.create_user(self._name, _rights(self._name))
        self._tenant = self._make_tenant()

    def _make_tenant(self) -> Tenant:
        body = {"tenant_id": self._name, "principals": [self._keys.arn]}
        assert self._world.platform.send("POST", TENANTS, body).status == 201
        client = self._world.client(self._keys)
        arn = f"arn:aws:sqs:us-east-1:{'0' * 12}:inbox-{self._name}"
        handler = {"name": HANDLER, "routing": "external", "queue_arn": arn}
        made = client.send("POST", "/v1/handlers", handler)
        assert made.status == 201, made.text
        return Tenant(self._name, client)

    def play(self) -> None:
        """Let everything happen to the example."""
        with ExitStack() as stack:
            proxy = stack.enter_context(proxied(self._url, LOSSES))
            self._order()
            self._copy_messages()
            first = stack.enter_context(self._consumer(proxy))
            self._kill_after_an_effect(first)
            second = stack.enter_context(self._consumer(proxy))
            self._wait(second)
            self._story.exit_code = second.stop()
            self._story.lost = proxy.lost

    def _order(self) -> None:
        """Run schedules at once, as often as there shall be occurrences."""
        quick = self._count - SLOW - FAILING
        for name, times, more in (
            ("slow", SLOW, {"seconds": 3}),
            ("failing", FAILING, {"fails": 2}),
            ("quick", quick, {}),
        ):
            order = {"account": "<occurrence_id>", **more}
            made = self._tenant.create(
                name, YEARLY, tracking="TRACKED", payload=order, retry=RETRY
            )
            assert made.status == 201, made.text
            place = f"{SCHEDULES}/{made.document['schedule_id']}/run"
            for number in range(times):
                key = {"Idempotency-Key": f"{name}-{number}"}
                answer = self._tenant.send("POST", place, None, key)
                assert answer.status in {200, 201, 202}, answer.text
                self._story.ids.append(answer.document["occurrence_id"])

    def _copy_messages(self) -> None:
        """Send some messages once more, as SQS may, with the same body."""
        bodies: dict[str, str] = {}
        hidden: list[str] = []

        def has_some() -> bool:
            # Hidden, or the same ten would be received for ever.
            answer = self._sqs.receive_message(
                QueueUrl=self._queue_url, MaxNumberOfMessages=10, VisibilityTimeout=600
            )
            for each in answer.get("Messages", []):
                hidden.append(each["ReceiptHandle"])
                event = json.loads(each["Body"])
                if event["id"] in self._story.ids:
                    bodies[event["id"]] = each["Body"]
            return len(bodies) >= max(COPIES, len(self._story.ids) // 5)

        self._world.stack.wait_for(has_some, PATIENCE_SECONDS, "messages")
        for body in bodies.values():
            self._sqs.send_message(QueueUrl=self._queue_url, MessageBody=body)
        for handle in hidden:
            self._sqs.change_message_visibility(
                QueueUrl=self._queue_url, ReceiptHandle=handle, VisibilityTimeout=0
            )

    def _consumer(self, proxy: LossyProxy) -> Any:
        return started(
            self._story.example,
            self._story.books,
            {
                "AWS_ACCESS_KEY_ID": self._keys.access_key_id,
                "AWS_SECRET_ACCESS_KEY": self._keys.secret_access_key,
                "AWS_REGION": self._world.stack.region,
                "AWS_ENDPOINT_URL_SQS": self._world.stack.endpoint_url,
                "HOURBELL_API_URL": proxy.url,
                "HOURBELL_API_SERVICE": self._service,
                "HOURBELL_QUEUE_URL": self._queue_url,
                "HOURBELL_LEASE_SECONDS": str(LEASE_SECONDS),
            },
        )

    def _kill_after_an_effect(self, program: Program) -> None:
        """Kill a consumer that has booked slow work and not said so yet."""
        slow = set(self._story.ids[:SLOW])

        def booked() -> list[str]:
            words = [line.split() for line in list(program.lines)]
            done = [word[1] for word in words if word[0] == "booked"]
            return [name for name in done if name in slow]

        what = "an effect of slow work"
        self._wait_for(lambda: bool(booked()), program, what)
        program.kill()
        self._story.killed = booked()

    def _wait(self, program: Program) -> None:
        waiting = set(self._story.ids)

        def is_over() -> bool:
            for name in sorted(waiting):
                found = self._tenant.send("GET", f"/v1/occurrences/{name}").document
                if found["state"] != "SUCCEEDED":
                    return False
                self._story.states[name] = (found["state"], found["attempt"])
                waiting.discard(name)
            return True

        self._wait_for(is_over, program, "the end of all")
        # Hidden ones, too: what the killed consumer had received comes again, and goes.
        names = ("Messages", "MessagesNotVisible", "MessagesDelayed")
        attributes = [f"ApproximateNumberOf{name}" for name in names]

        def is_empty() -> bool:
            found = self._sqs.get_queue_attributes(
                QueueUrl=self._queue_url, AttributeNames=attributes
            )
            return {found["Attributes"][name] for name in attributes} == {"0"}

        self._wait_for(is_empty, program, "an empty queue")

    def _wait_for(
        self, condition: Callable[[], bool], program: Program, what: str
    ) -> None:
        try:
            self._world.stack.wait_for(condition, PATIENCE_SECONDS, what)
        except LocalStackError as error:
            error.add_note(f"ended with {program.process.poll()}")
            error.add_note("\n".join([*program.lines[-20:], *program.errors[-20:]]))
            raise


def _rights(name: str) -> dict[str, Any]:
    """Return a policy with what a consumer may do, and a tenant's API."""
    queue = {
        "Effect": "Allow",
        "Action": [
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:ChangeMessageVisibility",
            # In AWS the two before cover these; the engine has rights of their own.
            "sqs:DeleteMessageBatch",
            "sqs:ChangeMessageVisibilityBatch",
        ],
        "Resource": f"arn:aws:sqs:us-east-1:{'0' * 12}:inbox-{name}",
    }
    policy: dict[str, Any] = dict(iam.invoke_api_policy())
    return {**policy, "Statement": [*policy["Statement"], queue]}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiWorld]:
    with api_world_in(tmp_path_factory.mktemp("consumers")) as found:
        yield found


def told(world: ApiWorld, folder: Path, count: int) -> dict[str, Story]:
    """Let all examples have their stories side by side: most of the time is waiting."""
    stories = {each.name: Story(each, folder / each.name) for each in ALL}

    def tell(story: Story) -> None:
        try:
            story.example.command()
            Stage(world, story, count).play()
        except BaseException as error:  # noqa: BLE001 - it is raised by its test
            story.gave_up = error

    with ThreadPoolExecutor(len(stories)) as pool:
        list(pool.map(tell, stories.values()))
    return stories


def assert_each_effect_once(story: Story, count: int) -> None:
    if story.gave_up is not None:
        raise story.gave_up
    assert len(set(story.ids)) == count
    assert story.example.books(story.books) == Counter(story.ids)
    assert {state for state, _ in story.states.values()} == {"SUCCEEDED"}
    assert story.states.keys() == set(story.ids)
    assert story.exit_code in {0, -15}
    # What was to go wrong has gone wrong.
    assert story.killed
    assert all(story.states[name][1] >= 2 for name in story.killed)
    assert all(story.states[name][1] >= 2 for name in story.ids[SLOW : SLOW + FAILING])
    assert story.lost.keys() == LOSSES.keys()


@pytest.fixture(scope="module")
def thirty(
    world: ApiWorld, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Story]:
    return told(world, tmp_path_factory.mktemp("books"), 30)


@pytest.mark.parametrize("name", NAMES)
def test_every_effect_of_thirty_happens_once(
    thirty: dict[str, Story], name: str
) -> None:
    assert_each_effect_once(thirty[name], 30)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Story]:
    with api_world_in(tmp_path_factory.mktemp("many")) as world:
        return told(world, tmp_path_factory.mktemp("books"), 300)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_every_effect_of_three_hundred_happens_once(
    many: dict[str, Story], name: str
) -> None:
    assert_each_effect_once(many[name], 300)
