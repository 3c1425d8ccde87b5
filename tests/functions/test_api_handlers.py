"""A tenant's handlers."""

import json
from typing import Any

import pytest
from hourbell.adapters.memory.probe import MemoryQueueProbe
from hourbell.domain.definition import Handler
from hourbell.usecases.ports import Probe

from tests.functions.conftest import QUEUES, Answer, Api
from tests.functions.events import BOB

HANDLERS = "/v1/handlers"
INBOX = f"{QUEUES}:inbox"


def external(**members: Any) -> dict[str, Any]:
    return {"name": "bill", "routing": "external", "queue_arn": INBOX, **members}


def change(api: Api, name: str, revision: int, body: object) -> Answer:
    headers = {"If-Match": f'"{revision}"'}
    return api.call("PATCH", f"{HANDLERS}/{name}", body, headers=headers)


def test_a_handler_is_registered_for_the_shared_queues(api: Api) -> None:
    body = {"name": "a.Report_1-x", "dispatch_rate": 20, "description": "nightly"}
    answer = api.call("POST", HANDLERS, body)
    assert (answer.status, answer.headers["ETag"]) == (201, '"1"')
    assert answer.headers["Location"] == "handlers/a.Report_1-x"
    assert answer.body == {
        "name": "a.Report_1-x",
        "routing": "shared",
        "state": "ACTIVE",
        "queue_arn": None,
        "dead_letter_queue_arn": None,
        "queues": {},
        "dispatch_rate": 20,
        "description": "nightly",
        "revision": 1,
    }
    assert api.call("GET", f"{HANDLERS}/a.Report_1-x").text == answer.text


@pytest.mark.parametrize(
    ("body", "place", "code"),
    [
        ({"name": "a/b"}, "name", "invalid_characters"),
        ({"name": ""}, "name", "invalid_characters"),
        ({"name": "."}, "name", "reserved"),
        ({"name": ".."}, "name", "reserved"),
        ({"name": "x" * 65}, "name", "invalid_characters"),
        ({}, "name", "missing"),
        ({"name": "x", "routing": "own"}, "routing", "unsupported_value"),
        ({"name": "x", "dispatch_rate": 0}, "dispatch_rate", "out_of_range"),
        ({"name": "x", "dispatch_rate": 100_001}, "dispatch_rate", "out_of_range"),
        ({"name": "x", "queue_arn": INBOX}, "queue_arn", "unexpected"),
        ({"name": "x", "routing": "external"}, "queue_arn", "missing"),
        (external(queue_arn="inbox"), "queue_arn", "invalid_queue_arn"),
        (external(queue_arn=f"{INBOX}.fifo"), "queue_arn", "invalid_queue_arn"),
        (external(queue_arn=INBOX), "queue_arn", "queue_not_writable"),
        (
            {"name": "x", "dead_letter_queue_arn": INBOX},
            "dead_letter_queue_arn",
            "unexpected",
        ),
        (
            external(dead_letter_queue_arn="letters"),
            "dead_letter_queue_arn",
            "invalid_queue_arn",
        ),
    ],
)
def test_what_is_wrong_is_named(api: Api, body: object, place: str, code: str) -> None:
    answer = api.call("POST", HANDLERS, body)
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}


def test_an_external_queue_gets_a_test_message_first(
    api: Api, probe: MemoryQueueProbe
) -> None:
    probe.answers[INBOX] = Probe.ACCEPTED
    answer = api.call("POST", HANDLERS, external())
    assert (answer.status, answer.body["queue_arn"]) == (201, INBOX)
    ((arn, text),) = probe.sent
    event = json.loads(text)
    assert arn == INBOX
    assert event["type"] == "com.hourbell.handler.test.v1"
    assert event["specversion"] == "1.0"
    assert event["data"] == {"handler": "bill", "tenant": "acme"}
    assert event["id"]


def test_an_external_dead_letter_queue_is_tried_out_as_well(
    api: Api, probe: MemoryQueueProbe
) -> None:
    letters = f"{QUEUES}:letters"
    probe.answers[INBOX] = Probe.ACCEPTED
    both = external(dead_letter_queue_arn=letters)
    refused = api.call("POST", HANDLERS, both)
    assert (refused.status, refused.code) == (400, "queue_not_writable")
    assert set(refused.findings) == {"dead_letter_queue_arn"}
    assert api.call("GET", f"{HANDLERS}/bill").status == 404

    probe.answers[letters] = Probe.ACCEPTED
    stored = api.call("POST", HANDLERS, both).body
    assert stored["dead_letter_queue_arn"] == letters
    assert probe.sent[-1][0] == letters

    for member, expected in (({"description": "x"}, letters), ({}, letters)):
        revision = api.call("GET", f"{HANDLERS}/bill").body["revision"]
        changed = change(api, "bill", revision, member or {"dispatch_rate": 1}).body
        assert changed["dead_letter_queue_arn"] == expected
    gone = change(api, "bill", 3, {"dead_letter_queue_arn": None}).body
    assert (gone["dead_letter_queue_arn"], gone["queue_arn"]) == (None, INBOX)


def test_nobody_elses_queue_gets_letters(api: Api, probe: MemoryQueueProbe) -> None:
    arn = f"{QUEUES}:hourbell-tenant-zenith-dead"
    probe.answers |= {INBOX: Probe.ACCEPTED, arn: Probe.ACCEPTED}
    answer = api.call("POST", HANDLERS, external(dead_letter_queue_arn=arn))
    assert (answer.status, answer.code) == (400, "foreign_queue")
    assert set(answer.findings) == {"dead_letter_queue_arn"}
    # The queue that it may name had its test message before.
    assert [sent for sent, _ in probe.sent] == [INBOX]


@pytest.mark.parametrize(
    ("said", "word"),
    [
        (Probe.NOT_FOUND, "no such queue"),
        (Probe.ACCESS_DENIED, "denies us access"),
        (Probe.REFUSED, "refused"),
    ],
)
def test_a_queue_that_takes_no_message_is_not_stored(
    api: Api, probe: MemoryQueueProbe, said: Probe, word: str
) -> None:
    probe.answers[INBOX] = said
    answer = api.call("POST", HANDLERS, external())
    assert (answer.status, answer.code) == (400, "queue_not_writable")
    assert word in answer.body["detail"]
    assert api.call("GET", f"{HANDLERS}/bill").status == 404


@pytest.mark.parametrize(
    "arn",
    [
        f"{QUEUES}:hourbell-work",
        f"{QUEUES}:hourbell-tenant-zenith-strict",
        "arn:aws:sqs:eu-central-1:999999999999:inbox",
    ],
)
def test_nobody_elses_queue_is_written_to(
    api: Api, probe: MemoryQueueProbe, arn: str
) -> None:
    probe.answers[arn] = Probe.ACCEPTED
    answer = api.call("POST", HANDLERS, external(queue_arn=arn))
    assert (answer.status, answer.code) == (400, "foreign_queue")
    assert probe.sent == []


def test_a_queue_beyond_the_deployments_reach_is_refused(
    api: Api, probe: MemoryQueueProbe
) -> None:
    arn = INBOX.replace("eu-central-1", "us-east-1")
    probe.answers[arn] = Probe.ACCEPTED
    answer = api.call("POST", HANDLERS, external(queue_arn=arn))
    assert (answer.status, answer.code) == (409, "not_provisioned")
    assert probe.sent == []


def test_queues_of_its_own_are_for_tenants_that_have_them(api: Api) -> None:
    body = {"name": "mine", "routing": "dedicated"}
    refused = api.call("POST", HANDLERS, body)
    assert (refused.status, refused.code) == (409, "not_provisioned")
    stored = api.call("POST", HANDLERS, body, arn=BOB)
    assert stored.body["queue_arn"] is None
    own = f"{QUEUES}:hourbell-tenant-zenith-dead"
    assert stored.body["dead_letter_queue_arn"] == own
    assert stored.body["queues"] == {
        lane: f"{QUEUES}:hourbell-tenant-zenith-{lane}"
        for lane in ("strict", "flexible", "catchup")
    }
    handler = api.world.store.handlers["zenith", "mine"]
    assert handler.queue_arn == f"{QUEUES}:hourbell-tenant-zenith"


def test_a_name_is_taken_once(api: Api) -> None:
    answer = api.call("POST", HANDLERS, {"name": "ring"})
    assert (answer.status, answer.code) == (409, "handler_exists")


def test_handlers_are_listed_page_by_page_to_their_tenant(api: Api) -> None:
    api.world.directory.register_handler(Handler("acme", "alpha"))
    first = api.call("GET", HANDLERS, query={"limit": ["1"]}).body
    second = api.call("GET", HANDLERS, query={"cursor": [first["cursor"]]}).body
    names = [each["name"] for page in (first, second) for each in page["handlers"]]
    assert (names, second["cursor"]) == (["alpha", "ring"], None)
    bad = api.call("GET", HANDLERS, query={"cursor": ["/"]})
    assert (bad.status, bad.code) == (400, "invalid_cursor")


def test_a_change_changes_what_it_names(api: Api, probe: MemoryQueueProbe) -> None:
    missing = api.call("PATCH", f"{HANDLERS}/ring", {"dispatch_rate": 5})
    assert (missing.status, missing.code) == (428, "precondition_required")
    done = change(api, "ring", 1, {"dispatch_rate": 5, "description": "bells"})
    assert (done.status, done.headers["ETag"]) == (200, '"2"')
    stale = change(api, "ring", 1, {"dispatch_rate": 6})
    assert (stale.status, stale.code) == (412, "precondition_failed")
    cleared = change(api, "ring", 2, {"dispatch_rate": None}).body
    assert (cleared["dispatch_rate"], cleared["description"]) == (None, "bells")
    same = change(api, "ring", 3, {"description": "bells"})
    assert (same.status, same.body["revision"]) == (200, 3)
    assert probe.sent == []


def test_a_change_of_the_queue_is_tried_out_first(
    api: Api, probe: MemoryQueueProbe
) -> None:
    routed = {"routing": "external", "queue_arn": INBOX}
    refused = change(api, "ring", 1, routed)
    assert (refused.status, refused.code) == (400, "queue_not_writable")
    probe.answers[INBOX] = Probe.ACCEPTED
    assert change(api, "ring", 1, routed).body["queue_arn"] == INBOX
    assert len(probe.sent) == 1
    change(api, "ring", 2, {"description": "same queue"})
    assert len(probe.sent) == 1
    back = change(api, "ring", 3, {"routing": "shared"}).body
    assert (back["routing"], back["queue_arn"]) == ("shared", None)


def test_a_retired_handler_takes_no_new_schedule_until_it_is_taken_back(
    api: Api,
) -> None:
    schedule = {"name": "bell", "expression": "0 9 * * *", "handler": "ring"}
    for _ in range(2):
        retired = api.call("DELETE", f"{HANDLERS}/ring")
        assert (retired.status, retired.body["state"]) == (200, "RETIRED")
        assert retired.body["revision"] == 2
    assert api.call("POST", "/v1/schedules", schedule).status in {400, 409}
    assert change(api, "ring", 2, {"state": "ACTIVE"}).body["state"] == "ACTIVE"
    assert api.call("POST", "/v1/schedules", schedule).status == 201


def test_a_retirement_may_name_its_revision(api: Api) -> None:
    headers = {"If-Match": '"7"'}
    answer = api.call("DELETE", f"{HANDLERS}/ring", headers=headers)
    assert (answer.status, answer.code) == (412, "precondition_failed")


@pytest.mark.parametrize("name", ["invoice", "nothing", "a%2Fb", "x" * 200])
def test_another_tenants_handler_is_like_one_that_is_not_there(
    api: Api, name: str
) -> None:
    headers = {"If-Match": "*"}
    before = api.world.store.handlers["zenith", "invoice"]
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        path = f"{HANDLERS}/{name}"
        answer = api.call(method, path, body, headers=headers)
        assert (answer.status, answer.code) == (404, "not_found")
        assert answer.body["detail"] == "There is no handler of this name."
    assert api.world.store.handlers["zenith", "invoice"] == before
