"""Backfill on the deployed stack: past times arrive once, under their nominal ids."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hourbell.cli.backfill import send_backfill
from hourbell.cli.client import Answer as ApiAnswer
from hourbell.domain.occurrence import Lane, State

from loadtest.bench._client import Answer
from tests.e2e.api_world import (
    MINUTELY,
    SCHEDULES,
    ApiWorld,
    Inbox,
    Tenant,
    rows_of,
)

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

MINUTE = timedelta(minutes=1)
WAIT_SECONDS = 40.0
CALLERS = 4


def text(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


@dataclass
class Scene:
    """A minutely schedule, and who receives what is made up for."""

    world: ApiWorld
    tenant: Tenant
    inbox: Inbox
    schedule_id: str
    since: datetime

    def fill(self, first: int, last: int, **fields: Any) -> Answer:
        """Backfill the minutes of an hour ago with these numbers."""
        query = "?dry_run=true" if fields.pop("dry_run", False) else ""
        body = {
            "from": text(self.since + first * MINUTE),
            "to": text(self.since + last * MINUTE),
            **fields,
        }
        place = f"{SCHEDULES}/{self.schedule_id}/backfill{query}"
        return self.tenant.send("POST", place, body)

    def ids(self, version: int, minutes: range) -> list[str]:
        stamps = [f"{self.since + n * MINUTE:%Y%m%dT%H%M%SZ}" for n in minutes]
        return [f"{self.schedule_id}.v{version}.{stamp}" for stamp in stamps]

    def arrived(self) -> list[str]:
        return [event["id"] for event in self.inbox.of(self.schedule_id)]

    def wait_for(self, ids: list[str]) -> None:
        wanted = set(ids)
        self.world.stack.wait_for(
            lambda: wanted <= set(self.arrived()), WAIT_SECONDS, "the messages"
        )


@pytest.fixture(scope="module")
def scene(api_world: ApiWorld) -> Iterator[Scene]:
    tenant = api_world.tenant("hazel")
    made = tenant.create("backfilled", MINUTELY, payload={"edition": 1})
    assert made.status == 201, made.text
    schedule_id = made.document["schedule_id"]
    hour_ago = datetime.now(UTC).replace(second=0, microsecond=0) - 60 * MINUTE
    stack = api_world.stack
    queue = stack.queue_urls["standard-catchup"]
    with Inbox(stack.operator_session(), queue) as inbox:
        yield Scene(api_world, tenant, inbox, schedule_id, hour_ago)
    tenant.send("DELETE", f"{SCHEDULES}/{schedule_id}")


def test_past_times_arrive_once_under_their_nominal_ids(scene: Scene) -> None:
    foreseen = scene.fill(0, 5, dry_run=True).document
    assert (foreseen["would_create"], foreseen["created"]) == (5, 0)
    done = scene.fill(0, 5, reason="an outage elsewhere")
    assert done.status == 200, done.text
    assert (done.document["created"], done.document["complete"]) == (5, True)
    expected = scene.ids(1, range(5))
    assert [item["occurrence_id"] for item in done.document["items"]] == expected
    scene.wait_for(expected)
    again = scene.fill(0, 5).document
    assert (again["created"], again["existed"]) == (0, 5)
    assert [item["occurrence_id"] for item in again["items"]] == expected
    assert Counter(scene.arrived()) == Counter(expected)
    events = scene.inbox.of(scene.schedule_id)
    assert {event["data"]["payload"]["edition"] for event in events} == {1}
    rows = [
        row
        for row in rows_of(scene.world.stack, {scene.schedule_id})
        if row.occurrence_id in expected
    ]
    assert {(row.state, row.lane) for row in rows} == {(State.ENQUEUED, Lane.CATCHUP)}
    available = [row.available_at for row in rows if row.available_at]
    assert [each - available[0] for each in available] == [
        timedelta(seconds=place) for place in range(5)
    ]
    seen = [(row.visible_at, row.available_at) for row in rows]
    assert all(at and due and at >= due for at, due in seen)


def test_callers_at_once_create_each_time_once(scene: Scene) -> None:
    with ThreadPoolExecutor(CALLERS) as pool:
        calls = [
            pool.submit(scene.fill, 10, 20, per_minute=6000) for _ in range(CALLERS)
        ]
        answers = [call.result() for call in calls]
    assert [answer.status for answer in answers] == [200] * CALLERS
    created = Counter(
        item["occurrence_id"]
        for answer in answers
        for item in answer.document["items"]
        if item["outcome"] == "created"
    )
    expected = scene.ids(1, range(10, 20))
    assert created == Counter(expected)
    scene.wait_for(expected)


def test_a_range_is_gone_on_with_and_keeps_its_ids_after_an_edit(scene: Scene) -> None:
    class Client:
        """The tenant, as the command line calls the API."""

        def send(self, method: str, path: str, body: object = None) -> ApiAnswer:
            answer = scene.tenant.send(method, path, body)
            return ApiAnswer(answer.status, answer.text)

    assert scene.fill(30, 32).document["created"] == 2
    edited = scene.tenant.change(scene.schedule_id, {"payload": {"edition": 2}}, "*")
    assert edited.status == 200, edited.text
    body = {
        "from": text(scene.since + 30 * MINUTE),
        "to": text(scene.since + 37 * MINUTE),
        "limit": 3,
        "per_minute": 120,
    }
    place = f"{SCHEDULES}/{scene.schedule_id}/backfill"
    client: Any = Client()
    done = send_backfill(client, place, body, whole=True).document
    assert (done["created"], done["existed"], done["complete"]) == (5, 2, True)
    expected = [*scene.ids(1, range(30, 32)), *scene.ids(2, range(32, 37))]
    assert [item["occurrence_id"] for item in done["items"]] == expected
    scene.wait_for(expected)
    editions = {
        event["id"]: event["data"]["payload"]["edition"]
        for event in scene.inbox.of(scene.schedule_id)
    }
    assert [editions[each] for each in expected] == [1, 1, 2, 2, 2, 2, 2]
