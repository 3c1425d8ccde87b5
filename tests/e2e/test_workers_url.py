"""Workers at the URL of their function: signed, their own tenant's, and no other's."""

from botocore.auth import SigV4Auth
from botocore.credentials import Credentials as SigningKeys
from hourbell.local.state import Credentials

from loadtest.bench._client import SignedClient
from tests.e2e.api_world import TENANTS, YEARLY, ApiWorld

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
