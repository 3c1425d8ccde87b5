"""Calls of the workers' routes, and occurrences to work on."""

from typing import Any

from tests.functions.conftest import Answer, Api
from tests.functions.events import ANN
from tests.functions.schedules import MINUTELY, create
from tests.unit.usecases.world import MINUTE

OCCURRENCES = "/v1/occurrences"
# Of a schedule that nobody has.
NOBODYS = f"sch{'0' * 26}.v1.20260309T120100Z"
TOKEN = "t" * 16


def due(api: Api, **fields: Any) -> str:
    """Let the first occurrence of a new TRACKED schedule be due; return its id."""
    schedule = create(api, MINUTELY, **({"tracking": "TRACKED"} | fields))
    api.world.relay_stream()
    api.world.clock.advance(MINUTE)
    occurrence_id = f"{schedule['schedule_id']}.v1.20260309T120100Z"
    assert state(api, occurrence_id) == "ENQUEUED"
    return occurrence_id


def state(api: Api, occurrence_id: str) -> str:
    key = api.world.workplace.key_of(occurrence_id)
    row = api.world.store.row(key)
    assert row is not None
    return row.state


def say(api: Api, verb: str, body: object, *, arn: str = ANN) -> Answer:
    return api.call("POST", f"{OCCURRENCES}/{verb}", body, arn=arn)


def claim(
    api: Api, *ids: str, token: str | None = None, arn: str = ANN, **more: Any
) -> Answer:
    """Claim occurrences, all with one token."""
    given = {} if token is None else {"lease_token": token}
    items = [{"occurrence_id": each, **given} for each in ids]
    return say(api, "claim", {"worker": "w1", "items": items, **more}, arn=arn)


def held(occurrence_id: str, token: str = TOKEN, **more: Any) -> dict[str, Any]:
    return {"occurrence_id": occurrence_id, "lease_token": token, **more}


def items(*each: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"items": list(each), **more}


def result(answer: Answer) -> dict[str, Any]:
    """Return the only result."""
    assert answer.status == 200, answer.text
    (found,) = answer.body["results"]
    assert isinstance(found, dict)
    return found


def failed(occurrence_id: str, token: str = TOKEN, **error: Any) -> dict[str, Any]:
    return held(occurrence_id, token, error={"class": "RETRYABLE", **error})


def one(
    api: Api, method: str, occurrence_id: str, verb: str = "", body: object = None
) -> Answer:
    """Call a route about one occurrence."""
    path = f"{OCCURRENCES}/{occurrence_id}{verb}"
    return api.call(method, path, body)
