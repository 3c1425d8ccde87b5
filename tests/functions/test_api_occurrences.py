"""Single occurrences: where they stand, canceling, replaying."""

from typing import Any

import pytest

from tests.functions.conftest import Answer, Api, Log
from tests.functions.events import BOB
from tests.functions.schedules import MINUTELY, create
from tests.functions.working import (
    NOBODYS,
    OCCURRENCES,
    TOKEN,
    claim,
    due,
    failed,
    held,
    items,
    one,
    result,
    say,
    state,
)
from tests.unit.usecases.world import SECOND

BOOM = {
    "class": "RETRYABLE",
    "type": "Boom",
    "message": "it broke",
    "retry_after_seconds": None,
}
SAID = {"type": "Boom", "message": "it broke"}


def show(api: Api, occurrence_id: str) -> dict[str, Any]:
    answer = one(api, "GET", occurrence_id)
    assert answer.status == 200, answer.text
    document = answer.body
    assert isinstance(document, dict)
    return document


def dead(api: Api) -> str:
    """Let an occurrence die of its only attempt; return its id."""
    name = due(api, retry={"max_attempts": 1})
    claim(api, name, token=TOKEN)
    assert result(say(api, "fail", items(failed(name, **SAID))))["state"] == "DEAD"
    return name


class TestShow:
    def test_one_that_waits_in_its_queue(self, api: Api) -> None:
        name = due(api)
        schedule_id = name.partition(".")[0]
        shown = show(api, name)
        assert shown | {"enqueued_at": None, "visible_at": None} == {
            "occurrence_id": name,
            "schedule_id": schedule_id,
            "version": 1,
            "scheduled_for": "2026-03-09T12:01:00Z",
            "state": "ENQUEUED",
            "lane": "strict",
            "queue": "standard-strict",
            "available_at": "2026-03-09T12:01:00Z",
            "scheduled_at": "2026-03-09T12:00:00Z",
            "enqueued_at": None,
            "visible_at": None,
            "begun_at": None,
            "finished_at": None,
            "expires_at": None,
            "misfire": False,
            "sends": 1,
            "attempt": 0,
            "failure": None,
            "reason": None,
            "cancel_requested": False,
            "cancel_requested_at": None,
            "replayed_at": None,
            "attempts": [],
        }

    def test_attempts_are_told_with_how_they_ended(self, api: Api) -> None:
        name = due(api, retry={"base_seconds": 1, "cap_seconds": 1})
        claim(api, name, token=TOKEN)
        api.world.clock.advance(3 * SECOND)
        say(api, "fail", items(failed(name, **SAID)))
        waits = show(api, name)
        assert (waits["attempt"], waits["failure"]) == (1, BOOM)
        (first,) = waits["attempts"]
        assert (first["number"], first["result"], first["failure"]) == (
            1,
            "FAILED",
            BOOM,
        )
        api.world.relay_stream()
        api.world.clock.advance(SECOND)
        assert result(claim(api, name, token="u" * 16))["attempt"] == 2
        runs = show(api, name)
        assert (runs["state"], runs["attempt"]) == ("RUNNING", 2)
        assert runs["begun_at"] == "2026-03-09T12:01:00Z"
        assert runs["attempts"] == [
            {
                "number": 1,
                "worker": "w1",
                "started_at": "2026-03-09T12:01:00Z",
                "finished_at": "2026-03-09T12:01:03Z",
                "lease_expires_at": None,
                "result": "FAILED",
                "failure": BOOM,
            },
            {
                "number": 2,
                "worker": "w1",
                "started_at": "2026-03-09T12:01:04Z",
                "finished_at": None,
                "lease_expires_at": "2026-03-09T12:02:04Z",
                "result": "RUNNING",
                "failure": None,
            },
        ]
        api.world.clock.advance(SECOND)
        say(api, "complete", items(held(name, "u" * 16)))
        done = show(api, name)
        assert (done["state"], done["finished_at"]) == (
            "SUCCEEDED",
            "2026-03-09T12:01:05Z",
        )
        assert done["attempts"] == [
            runs["attempts"][0],
            runs["attempts"][1]
            | {
                "finished_at": "2026-03-09T12:01:05Z",
                "lease_expires_at": None,
                "result": "SUCCEEDED",
            },
        ]

    def test_one_that_is_dead_says_why(self, api: Api) -> None:
        shown = show(api, dead(api))
        assert (shown["state"], shown["reason"]) == ("DEAD", "ATTEMPTS_USED_UP")
        assert shown["failure"] == BOOM
        (only,) = shown["attempts"]
        assert only["result"] == "FAILED"
        assert only["finished_at"] == shown["finished_at"] == "2026-03-09T12:01:00Z"

    def test_a_worker_that_was_not_heard_of(self, api: Api) -> None:
        name = due(api)
        claim(api, name, token=TOKEN)
        api.world.clock.advance(63 * SECOND)
        assert result(claim(api, name))["answer"] == "RUN"
        first, second = show(api, name)["attempts"]
        assert (first["result"], second["result"]) == ("LEASE_EXPIRED", "RUNNING")


def cancel(api: Api, occurrence_id: str, body: object = None) -> Answer:
    return one(api, "POST", occurrence_id, "/cancel", body)


class TestCancel:
    @pytest.mark.parametrize("body", [None, {}, {"reason": None}, {"reason": "x"}])
    def test_one_in_its_queue_is_refused_at_its_claim(
        self, api: Api, body: object
    ) -> None:
        name = due(api)
        answer = cancel(api, name, body)
        assert (answer.status, answer.body["state"]) == (200, "CANCELED")
        assert answer.body["reason"] == "CANCELED"
        assert result(claim(api, name))["reason"] == "CANCELED"
        # Again is no error.
        assert cancel(api, name).body["state"] == "CANCELED"

    def test_one_that_runs_is_asked_to_stop_and_is_canceled_then(
        self, api: Api
    ) -> None:
        name = due(api)
        claim(api, name, token=TOKEN)
        asked = cancel(api, name).body
        assert (asked["state"], asked["cancel_requested"]) == ("RUNNING", True)
        beat = result(say(api, "heartbeat", items(held(name))))
        assert (beat["status"], beat["cancel_requested"]) == (200, True)
        stopped = result(say(api, "fail", items(failed(name))))
        assert (stopped["state"], stopped["reason"]) == ("CANCELED", "CANCELED")
        (only,) = show(api, name)["attempts"]
        assert only["result"] == "STOPPED"

    def test_what_is_over_stays(self, api: Api) -> None:
        name = due(api)
        claim(api, name, token=TOKEN)
        say(api, "complete", items(held(name)))
        answer = cancel(api, name)
        assert (answer.status, answer.code) == (409, "already_over")
        assert state(api, name) == "SUCCEEDED"

    def test_untracked_work_that_may_have_gone_runs(self, api: Api) -> None:
        schedule_id = create(api, MINUTELY)["schedule_id"]
        name = f"{schedule_id}.v1.20260309T120100Z"
        answer = cancel(api, name)
        assert (answer.status, answer.code) == (409, "already_dispatched")

    def test_one_to_come_is_canceled_and_the_next_one_planned(self, api: Api) -> None:
        schedule_id = create(api, expression="0 15 * * *")["schedule_id"]
        name = f"{schedule_id}.v1.20260309T150000Z"
        assert cancel(api, name).body["state"] == "CANCELED"
        assert state(api, name.replace("0309T", "0310T")) == "PLANNED"

    def test_the_reason_and_the_caller_are_in_the_log(self, api: Api, log: Log) -> None:
        cancel(api, due(api), {"reason": "stocktaking"})
        (line,) = (each for each in log.lines if "reason" in each)
        assert line["reason"] == "stocktaking"
        assert line["caller"] == "arn:aws:iam::123456789012:user/ann"

    @pytest.mark.parametrize(
        ("body", "place", "code"),
        [
            ({"reason": "x" * 513}, "reason", "too_long"),
            ({"reason": 1}, "reason", "wrong_type"),
            ({"why": "x"}, "why", "unknown_field"),
        ],
    )
    def test_a_body_that_is_wrong_cancels_nothing(
        self, api: Api, body: object, place: str, code: str
    ) -> None:
        name = due(api)
        answer = cancel(api, name, body)
        assert answer.findings[place]["code"] == code
        assert state(api, name) == "ENQUEUED"


class TestReplay:
    def test_a_dead_one_runs_anew_under_its_id(self, api: Api) -> None:
        name = dead(api)
        api.world.clock.advance(60 * SECOND)
        again = one(api, "POST", name, "/replay")
        assert again.status == 200
        assert again.body["state"] in {"DEFERRED", "SCHEDULED"}
        assert (again.body["attempt"], again.body["reason"]) == (0, None)
        assert again.body["replayed_at"] == "2026-03-09T12:02:00Z"
        api.world.relay_stream()
        assert result(claim(api, name))["attempt"] == 1
        numbers = [each["number"] for each in show(api, name)["attempts"]]
        assert numbers[-1] == 2

    def test_only_what_is_dead_is_replayed(self, api: Api) -> None:
        answer = one(api, "POST", due(api), "/replay")
        assert (answer.status, answer.code) == (409, "not_dead")


ROUTES = [("GET", ""), ("POST", "/cancel"), ("POST", "/replay")]


@pytest.mark.parametrize(("method", "verb"), ROUTES)
def test_another_tenants_is_as_if_it_were_not_there(
    api: Api, method: str, verb: str
) -> None:
    name = dead(api)
    answers = [
        api.call(method, f"{OCCURRENCES}/{each}{verb}", arn=BOB)
        for each in (name, NOBODYS)
    ]
    theirs, nobodys = answers
    assert (theirs.status, theirs.code) == (404, "not_found")
    assert theirs.text.replace(name, NOBODYS) == nobodys.text
    assert state(api, name) == "DEAD"


@pytest.mark.parametrize(("method", "verb"), ROUTES)
@pytest.mark.parametrize(
    "text",
    [
        "x",
        f"{NOBODYS}Z",
        NOBODYS.replace(".v1", ".v0"),
        # A month and a year that no calendar has.
        NOBODYS.replace("20260309", "20261309"),
        NOBODYS.replace("20260309", "00000309"),
    ],
)
def test_what_is_no_id_is_refused(api: Api, method: str, verb: str, text: str) -> None:
    answer = one(api, method, text, verb)
    assert (answer.status, answer.code) == (400, "invalid_occurrence_id")
    assert set(answer.findings) == {"occurrence_id"}
