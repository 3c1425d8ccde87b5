"""Workers at the URL of their function: signed, their own tenant's, and no other's."""

import threading
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.credentials import Credentials as SigningKeys
from hourbell.consumer import AssumedRoles, Consumer, Message, Options
from hourbell.local import iam
from hourbell.local.state import Credentials

from loadtest.bench._client import SignedClient
from tests.e2e.api_world import HANDLER, TENANTS, YEARLY, ApiWorld, Tenant
from tests.e2e.conftest import eventually

OCCURRENCES = "/v1/occurrences"
TOKEN = "0123456789abcdef"


def at_url(world: ApiWorld, keys: Credentials) -> SignedClient:
    """Return the workers' function as somebody with these keys sees it."""
    signing = SigningKeys(keys.access_key_id, keys.secret_access_key)
    signs = SigV4Auth(signing, "lambda", world.stack.region)
    return SignedClient(world.stack.workers_url, signs)


def test_work_is_claimed_there_and_ended_at_the_api(api_world: ApiWorld) -> None:
    alder = api_world.tenant("alder")
    schedule = alder.create(
        "alder-bell", YEARLY, tracking="TRACKED", overlap="SKIP_IF_RUNNING"
    )
    run = f"/v1/schedules/{schedule.document['schedule_id']}/run"
    name = alder.send("POST", run).document["occurrence_id"]
    item = {"occurrence_id": name, "lease_token": TOKEN}
    claiming = {"worker": "e2e", "items": [item]}
    keys, strangers = api_world.user("alder-worker"), api_world.user("stranger")
    place = f"{TENANTS}/alder/principals/{keys.arn.replace('/', '%2F')}"
    assert api_world.platform.send("PUT", place).status == 200

    unsigned = SignedClient(api_world.stack.workers_url, None)
    assert unsigned.send("POST", f"{OCCURRENCES}/claim", claiming).status == 403
    unknown = at_url(api_world, strangers)
    refused = unknown.send("POST", f"{OCCURRENCES}/claim", claiming)
    assert (refused.status, refused.document["code"]) == (403, "forbidden")

    worker = at_url(api_world, keys)
    (claimed,) = worker.send("POST", f"{OCCURRENCES}/claim", claiming).document[
        "results"
    ]
    assert (claimed["answer"], claimed["attempt"]) == ("RUN", 1)
    again = alder.send("POST", f"{OCCURRENCES}/claim", claiming).document
    assert again["results"] == [claimed]
    (beat,) = worker.send(
        "POST", f"{OCCURRENCES}/heartbeat", {"items": [item]}
    ).document["results"]
    assert beat["status"] == 200
    error = {"class": "RETRYABLE", "type": "Boom"}
    failing = {"items": [{**item, "error": error}]}
    (failed,) = worker.send("POST", f"{OCCURRENCES}/fail", failing).document["results"]
    assert failed["state"] == "RETRY_WAIT"
    shown = alder.send("GET", f"{OCCURRENCES}/{name}").document
    assert shown["failure"]["type"] == "Boom"
    assert alder.send("POST", f"{OCCURRENCES}/{name}/cancel").status == 200
    (last,) = worker.send("POST", f"{OCCURRENCES}/claim", claiming).document["results"]
    assert (last["answer"], last["reason"]) == ("SKIP", "CANCELED")


def run_once(tenant: Tenant) -> str:
    """Let an occurrence of a TRACKED schedule be due; return its id."""
    made = tenant.create(f"{tenant.tenant_id}-bell", YEARLY, tracking="TRACKED")
    run = f"/v1/schedules/{made.document['schedule_id']}/run"
    return str(tenant.send("POST", run).document["occurrence_id"])


def test_a_platforms_consumer_serves_the_tenants_of_a_shared_queue(
    api_world: ApiWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nothing else in these tests is of this tier, and so on its queues.
    served = [api_world.role_tenant(name, tier="basic") for name in ("larch", "maple")]
    orphan = api_world.tenant("nettle", tier="basic")
    ids = {tenant.tenant_id: run_once(tenant) for tenant in (orphan, *served)}
    stack = api_world.stack
    actions = ["ReceiveMessage", "DeleteMessage", "ChangeMessageVisibility"]
    rights = ["sts:AssumeRole", *[f"sqs:{action}*" for action in actions]]
    # No principal of any tenant: the API knows nothing of it.
    keys = stack.create_user("platform-consumer", iam.allow(rights))
    monkeypatch.setenv("AWS_ENDPOINT_URL", stack.endpoint_url)
    monkeypatch.setenv("AWS_REGION", stack.region)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", keys.access_key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", keys.secret_access_key)
    consumer = Consumer.connect(
        stack.queue_urls["basic-strict"],
        stack.workers_url,
        service="lambda",
        tenants=AssumedRoles(f"arn:aws:iam::{'0' * 12}:role/service/{{tenant}}"),
        options=Options(wait_seconds=1),
    )
    done: dict[str, str] = {}

    @consumer.handler(HANDLER)
    def report(message: Message, _: Any) -> None:
        done[message.tenant] = message.occurrence_id

    running = threading.Thread(target=consumer.run, kwargs={"signals": False})
    running.start()
    try:
        expected = {tenant.tenant_id: ids[tenant.tenant_id] for tenant in served}
        assert eventually(
            lambda: done == expected and "nettle" in consumer.held_off(), 60
        ), done
    finally:
        consumer.stop()
        running.join(30)
    # Its role is not there, and no other tenant's may claim for it.
    assert set(consumer.held_off()) <= {"nettle"}
    states = {
        tenant.tenant_id: tenant.send(
            "GET", f"{OCCURRENCES}/{ids[tenant.tenant_id]}"
        ).document["state"]
        for tenant in (orphan, *served)
    }
    assert states == {"nettle": "ENQUEUED", "larch": "SUCCEEDED", "maple": "SUCCEEDED"}
