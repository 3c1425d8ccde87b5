"""From a message that is received too often to its replay, on the deployed stack."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.e2e.api_world import ApiWorld, Tenant

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

WAIT_SECONDS = 40.0
LETTERS = "/v1/dead-letters"
# Beyond what a delivery queue is received from before it gives a message up.
RECEIVES = 32
DEAD = "com.hourbell.occurrence.dead.v1"


class Mail:
    """What the stack's queues hold, for tests to receive."""

    def __init__(self, world: ApiWorld) -> None:
        self._world = world
        self._client = world.stack.admin_session().client("sqs")

    def receive(self, name: str, seconds: int = 30) -> dict[str, Any]:
        """Receive messages, for so many seconds nobody else; return them by id."""
        url = self._client.get_queue_url(QueueName=f"hourbell-{name}")["QueueUrl"]
        answer = self._client.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=seconds
        )
        events = [json.loads(each["Body"]) for each in answer.get("Messages", [])]
        return {each["id"]: each for each in events}

    def wait_for(self, name: str, occurrence_id: str, seconds: int = 30) -> Any:
        """Return the message of an occurrence when it is there."""
        found: dict[str, Any] = {}

        def is_there() -> bool:
            found.update(self.receive(name, seconds))
            return occurrence_id in found

        what = f"the message of {occurrence_id} on {name}"
        self._world.stack.wait_for(is_there, WAIT_SECONDS, what)
        return found[occurrence_id]

    def wear_out(self, name: str, occurrence_id: str) -> None:
        """Receive a message, and do nothing with it, until its queue gives it up."""
        for _ in range(RECEIVES):
            self.receive(name, 0)
        assert occurrence_id not in self.receive(name, 0)


@pytest.fixture(scope="module")
def mail(api_world: ApiWorld) -> Mail:
    return Mail(api_world)


@pytest.fixture(scope="module")
def tenant(api_world: ApiWorld) -> Tenant:
    return api_world.tenant("linden")


def due(tenant: Tenant, name: str, **fields: Any) -> str:
    """Create a schedule that rings once, soon; return the id of its occurrence."""
    at = datetime.now(UTC) + timedelta(seconds=3)
    made = tenant.create(name, f"at({at:%Y-%m-%dT%H:%M:%S})", **fields)
    assert made.status == 201, made.text
    return f"{made.document['schedule_id']}.v1.{at:%Y%m%dT%H%M%S}Z"


def test_what_nobody_claims_is_dead_told_and_replayed_under_the_same_id(
    api_world: ApiWorld, tenant: Tenant, mail: Mail
) -> None:
    occurrence_id = due(tenant, "unclaimed", tracking="TRACKED", payload={"n": 7})
    mail.wait_for("standard-strict", occurrence_id, 0)
    mail.wear_out("standard-strict", occurrence_id)

    letter = mail.wait_for("standard-dead", occurrence_id)
    assert letter["type"] == DEAD
    assert letter["data"]["reason"] == "NEVER_CLAIMED"
    assert letter["data"]["payload"] == {"n": 7}
    (kept,) = tenant.send("GET", LETTERS).document["dead_letters"]
    assert kept["occurrence_id"] == occurrence_id
    assert (kept["reason"], kept["attempt"]) == ("NEVER_CLAIMED", 0)

    started = tenant.send("POST", f"{LETTERS}/replay", {})
    assert started.status == 202, started.text
    place = f"/v1/jobs/{started.document['job_id']}"

    def is_done() -> bool:
        job = tenant.send("GET", place).document
        return bool(job["state"] == "SUCCEEDED")

    api_world.stack.wait_for(is_done, WAIT_SECONDS, "the replay")
    (result,) = tenant.send("GET", f"{place}/results").document["results"]
    assert (result["outcome"], result["occurrence_id"]) == ("CHANGED", occurrence_id)
    again = mail.wait_for("standard-strict", occurrence_id)
    assert again["type"] == "com.hourbell.occurrence.due.v1"
    assert again["data"]["send"] == 2
    assert tenant.send("GET", LETTERS).document["dead_letters"] == []


@pytest.mark.long
def test_what_is_not_tracked_goes_on_as_a_letter(tenant: Tenant, mail: Mail) -> None:
    occurrence_id = due(tenant, "untracked", payload="once")
    mail.wait_for("standard-strict", occurrence_id, 0)
    mail.wear_out("standard-strict", occurrence_id)
    letter = mail.wait_for("standard-dead", occurrence_id)
    assert letter["data"]["reason"] == "NEVER_RECEIVED"
    assert letter["data"]["payload"] == "once"
