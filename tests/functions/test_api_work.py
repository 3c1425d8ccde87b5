"""Workers claim, are heard of, complete and fail: batches with a result for each."""

from collections.abc import Callable
from typing import Any

import pytest
from hourbell.domain.errors import Transient
from hourbell.usecases.work_values import Finished, Outcome

from tests.functions.conftest import Api, measured
from tests.functions.events import BOB
from tests.functions.schedules import MINUTELY, create
from tests.functions.working import (
    NOBODYS,
    TOKEN,
    claim,
    due,
    failed,
    held,
    items,
    result,
    say,
    state,
)
from tests.unit.usecases.world import MINUTE

PLATFORM = "arn:aws:iam::123456789012:role/platform"
NOTHING = {
    "reason": None,
    "lease_token": None,
    "lease_expires_at": None,
    "attempt": None,
    "state": None,
}


def test_a_claim_gives_a_lease_and_keeps_others_out(api: Api) -> None:
    name = due(api)
    mine = result(claim(api, name, token=TOKEN))
    assert mine == NOTHING | {
        "occurrence_id": name,
        "answer": "RUN",
        "lease_token": TOKEN,
        # A minute by default, from 12:01.
        "lease_expires_at": "2026-03-09T12:02:00Z",
        "attempt": 1,
    }
    assert result(claim(api, name, token=TOKEN)) == mine
    other = result(claim(api, name))
    assert other == NOTHING | {
        "occurrence_id": name,
        "answer": "BUSY",
        "state": "RUNNING",
    }


def test_a_token_is_drawn_for_whoever_brings_none(api: Api) -> None:
    token = result(claim(api, due(api), lease_seconds=600))["lease_token"]
    assert len(token) == 32


def test_each_item_has_its_own_answer_in_its_place(api: Api) -> None:
    drum = create(api, MINUTELY, name="drum")["schedule_id"]
    name, untracked = due(api), f"{drum}.v1.20260309T120100Z"
    later = name.replace("120100Z", "120300Z")
    answers = claim(api, NOBODYS, later, name, untracked).body["results"]
    told = [
        (each["occurrence_id"], each["answer"], each["reason"], each["state"])
        for each in answers
    ]
    assert told == [
        (NOBODYS, "SKIP", "EXPIRED", None),
        (later, "WAIT", "TOO_EARLY", "DEFERRED"),
        (name, "RUN", None, None),
        (untracked, "ERROR", "not_tracked", None),
    ]


def test_the_work_of_another_tenant_is_not_there(api: Api) -> None:
    name = due(api)
    theirs = result(claim(api, name, token=TOKEN, arn=BOB))
    nobodys = result(claim(api, NOBODYS, token=TOKEN, arn=BOB))
    assert theirs | {"occurrence_id": NOBODYS} == nobodys
    assert state(api, name) == "ENQUEUED"
    assert result(claim(api, name, token=TOKEN))["answer"] == "RUN"
    for verb, item in (
        ("heartbeat", held),
        ("complete", held),
        ("fail", failed),
    ):
        mine = result(say(api, verb, items(item(name)), arn=BOB))
        no = result(say(api, verb, items(item(NOBODYS)), arn=BOB))
        assert mine | {"occurrence_id": NOBODYS} == no
        assert (mine["status"], mine["code"]) == (404, "not_found")
    assert state(api, name) == "RUNNING"


def test_a_heartbeat_extends_a_lease(api: Api) -> None:
    name = due(api)
    claim(api, name, token=TOKEN)
    api.world.clock.advance(MINUTE / 2)
    # Ninety seconds after 12:01:30.
    beat = result(say(api, "heartbeat", items(held(name), lease_seconds=90)))
    assert beat == {
        "occurrence_id": name,
        "status": 200,
        "code": None,
        "lease_expires_at": "2026-03-09T12:03:00Z",
        "cancel_requested": False,
    }
    lost = result(say(api, "heartbeat", items(held(name, "x" * 16))))
    assert lost == {
        "occurrence_id": name,
        "status": 409,
        "code": "lease_lost",
        "lease_expires_at": None,
        "cancel_requested": False,
    }


def test_what_is_complete_is_so_again_and_for_nobody_else(api: Api) -> None:
    name = due(api)
    claim(api, name, token=TOKEN)
    done = {"occurrence_id": name, "status": 200, "code": None, "state": "SUCCEEDED"}
    for _ in range(2):
        assert result(say(api, "complete", items(held(name)))) == done
    other = result(say(api, "complete", items(held(name, "x" * 16))))
    assert other == done | {"status": 409, "code": "lease_lost", "state": None}
    late = result(say(api, "fail", items(failed(name))))
    assert (late["status"], late["code"]) == (409, "lease_lost")
    assert result(claim(api, name))["reason"] == "ALREADY_DONE"


def test_what_failed_waits_for_another_attempt(api: Api) -> None:
    name = due(api, retry={"base_seconds": 1, "cap_seconds": 1})
    claim(api, name, token=TOKEN)
    for _ in range(2):
        answer = result(say(api, "fail", items(failed(name, type="Boom"))))
        assert answer == {
            "occurrence_id": name,
            "status": 200,
            "code": None,
            "state": "RETRY_WAIT",
            "available_at": "2026-03-09T12:01:01Z",
            "reason": None,
        }


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"class": "PERMANENT"}, "PERMANENT_ERROR"),
        ({"class": "THROTTLED", "retry_after_seconds": 3}, "NOT_RETRYABLE"),
        ({"class": "RETRYABLE"}, "ATTEMPTS_USED_UP"),
    ],
)
def test_what_nobody_tries_again_is_dead_and_says_why(
    api: Api, error: dict[str, Any], reason: str
) -> None:
    name = due(api, retry={"max_attempts": 1, "retryable": ["RETRYABLE"]})
    claim(api, name, token=TOKEN)
    answer = result(say(api, "fail", items(failed(name, **error))))
    assert (answer["state"], answer["reason"]) == ("DEAD", reason)
    assert answer["available_at"] is None


LONG = "m" * 1_025
ANY = NOBODYS.replace("120100Z", "120200Z")
SOON: dict[str, Any] = {"retry_after_seconds": 3}
FAULTS: dict[str, tuple[str, Callable[[], object], str, str]] = {
    "no items": ("claim", lambda: items(worker="w"), "items", "too_short"),
    "many items": (
        "claim",
        lambda: items(*[{"occurrence_id": NOBODYS}] * 11, worker="w"),
        "items",
        "too_long",
    ),
    "no worker": (
        "claim",
        lambda: items({"occurrence_id": NOBODYS}),
        "worker",
        "missing",
    ),
    "an empty worker": (
        "claim",
        lambda: items({"occurrence_id": NOBODYS}, worker=""),
        "worker",
        "too_short",
    ),
    "a long worker": (
        "claim",
        lambda: items({"occurrence_id": NOBODYS}, worker="w" * 129),
        "worker",
        "too_long",
    ),
    "a short lease": (
        "claim",
        lambda: items({"occurrence_id": NOBODYS}, worker="w", lease_seconds=9),
        "lease_seconds",
        "out_of_range",
    ),
    "a long lease": (
        "heartbeat",
        lambda: items(held(NOBODYS), lease_seconds=43_201),
        "lease_seconds",
        "out_of_range",
    ),
    "no id": (
        "complete",
        lambda: items(held(f"{NOBODYS}x")),
        "items.0.occurrence_id",
        "invalid_occurrence_id",
    ),
    "an id of no time": (
        "complete",
        lambda: items(held(NOBODYS.replace("20260309", "20260230"))),
        "items.0.occurrence_id",
        "invalid_occurrence_id",
    ),
    "one twice": (
        "complete",
        lambda: items(held(NOBODYS), held(NOBODYS)),
        "items.1.occurrence_id",
        "repeated_value",
    ),
    "no token": (
        "heartbeat",
        lambda: items({"occurrence_id": NOBODYS}),
        "items.0.lease_token",
        "missing",
    ),
    "a short token": (
        "claim",
        lambda: items(held(NOBODYS, "t" * 15), worker="w"),
        "items.0.lease_token",
        "too_short",
    ),
    "a long token": (
        "complete",
        lambda: items(held(NOBODYS, "t" * 65)),
        "items.0.lease_token",
        "too_long",
    ),
    "a token of other characters": (
        "complete",
        lambda: items(held(NOBODYS, "t" * 15 + "\u00fc")),
        "items.0.lease_token",
        "invalid_characters",
    ),
    "a token with a line's end": (
        "complete",
        lambda: items(held(NOBODYS, "t" * 16 + "\n")),
        "items.0.lease_token",
        "invalid_characters",
    ),
    "no error": ("fail", lambda: items(held(NOBODYS)), "items.0.error", "missing"),
    "no class": (
        "fail",
        lambda: items(held(NOBODYS, error={})),
        "items.0.error.class",
        "missing",
    ),
    "a class that no worker says": (
        "fail",
        lambda: items(failed(NOBODYS, **{"class": "LEASE_EXPIRED"})),
        "items.0.error.class",
        "unsupported_value",
    ),
    "a long type": (
        "fail",
        lambda: items(failed(NOBODYS, type="t" * 129)),
        "items.0.error.type",
        "too_long",
    ),
    "a long message": (
        "fail",
        lambda: items(failed(NOBODYS, message=LONG)),
        "items.0.error.message",
        "too_long",
    ),
    "patience for what is not throttled": (
        "fail",
        lambda: items(held(NOBODYS, error={"class": "THROTTLED"}), failed(ANY, **SOON)),
        "items.1.error.retry_after_seconds",
        "unexpected",
    ),
    "patience for ever": (
        "fail",
        lambda: items(
            held(NOBODYS, error={"class": "THROTTLED", "retry_after_seconds": 86_401})
        ),
        "items.0.error.retry_after_seconds",
        "out_of_range",
    ),
    "an unknown member": (
        "claim",
        lambda: items({"occurrence_id": NOBODYS, "lease": 1}, worker="w"),
        "items.0.lease",
        "unknown_field",
    ),
}


@pytest.mark.parametrize(("verb", "body", "place", "code"), FAULTS.values(), ids=FAULTS)
def test_one_fault_refuses_the_batch_and_is_named(
    api: Api, verb: str, body: Callable[[], object], place: str, code: str
) -> None:
    answer = say(api, verb, body())
    assert (answer.status, answer.code) == (400, code)
    assert set(answer.findings) == {place}


def test_the_widest_bounds_are_kept(api: Api) -> None:
    names = [NOBODYS.replace("1201", f"12{minute:02}") for minute in range(10)]
    answer = claim(api, *names, worker="w" * 128, lease_seconds=43_200)
    assert len(answer.body["results"]) == 10
    for error in (
        {"class": "THROTTLED", "retry_after_seconds": 86_400},
        {"class": "PERMANENT", "type": "t" * 128, "message": LONG[1:]},
    ):
        body = items(held(NOBODYS, "t" * 64, error=error))
        assert result(say(api, "fail", body))["status"] == 404


@pytest.mark.parametrize("verb", ["claim", "heartbeat", "complete", "fail"])
@pytest.mark.parametrize("arn", ["arn:aws:iam::123456789012:user/eve", PLATFORM])
def test_who_is_no_tenant_is_refused_before_the_body_is_looked_at(
    api: Api, verb: str, arn: str
) -> None:
    answer = say(api, verb, "{not json", arn=arn)
    assert (answer.status, answer.code) == (403, "forbidden")


def test_a_store_that_does_not_answer_is_told_for_all_or_for_one(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = due(api)
    claim(api, name, token=TOKEN)

    def silent(*_: object, **__: object) -> list[Finished]:
        return [Finished(name, Outcome.UNAVAILABLE)]

    monkeypatch.setattr("hourbell.api.work_routes.complete_work", silent)
    answer = result(say(api, "complete", items(held(name))))
    assert (answer["status"], answer["code"]) == (503, "unavailable")

    def dumb(*_: object, **__: object) -> list[Finished]:
        raise Transient

    monkeypatch.setattr("hourbell.api.work_routes.complete_work", dumb)
    refused = say(api, "complete", items(held(name)))
    assert (refused.status, refused.code) == (503, "unavailable")
    assert refused.headers["Retry-After"] == "1"


def test_results_are_counted_by_their_kind(
    api: Api, capsys: pytest.CaptureFixture[str]
) -> None:
    name = due(api)
    capsys.readouterr()
    claim(api, name, NOBODYS)
    say(api, "complete", items(held(name, "x" * 16), held(NOBODYS)))
    lines = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line.startswith('{"_aws')
    ]
    first, second = (measured(line)[()] for line in lines)
    assert (first["ClaimsRun"], first["ClaimsSkip"]) == ([1.0], [1.0])
    assert second["LeasesLost"] == [1.0]
