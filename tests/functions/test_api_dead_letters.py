"""A tenant sees what is DEAD of its own, and replays it by a job."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hourbell.adapters.messages import encode_job
from hourbell.cli import dead
from hourbell.domain.definition import Tracking
from hourbell.domain.occurrence import State
from hourbell.domain.retry import ErrorClass, Failure, Retry
from hourbell.domain.schedule import Timing
from hourbell.usecases.claim import claim
from hourbell.usecases.finish import fail_work
from hourbell.usecases.work_values import ClaimOrder, Failed
from typer.testing import CliRunner, Result

from functions.jobs.handler import handler
from tests.functions.cli import answer_commands
from tests.functions.conftest import Answer, Api
from tests.functions.events import BOB, Context, sqs_event
from tests.functions.test_cli_jobs import work
from tests.unit.usecases.world import MINUTE, SECOND, World

LETTERS = "/v1/dead-letters"
REPLAY = f"{LETTERS}/replay"
FATAL = Failure(ErrorClass.PERMANENT, "Bad", "never")


def die(world: World, count: int = 1, tenant: str = "acme") -> list[str]:
    """Let so many occurrences die, one each minute from 12:01:00 on."""
    names = []
    for _ in range(count):
        at = world.clock.now() + MINUTE
        row = world.add(
            Timing(f"at({at:%Y-%m-%dT%H:%M:%S})"),
            tenant=tenant,
            tracking=Tracking.TRACKED,
            retry=Retry(max_attempts=1),
        )
        world.scan()
        world.relay_stream()
        world.clock.set(at)
        name = row.occurrence_id
        (run,) = claim(
            world.workplace,
            tenant,
            [ClaimOrder(name)],
            worker="w",
            lease_seconds=60,
        )
        said = Failed(name, run.lease_token or "", FATAL)
        fail_work(world.workplace, tenant, [said])
        names.append(name)
    return names


def listed(api: Api, arn: str | None = None, **query: Any) -> Answer:
    wanted = {name: [str(value)] for name, value in query.items()}
    who = {} if arn is None else {"arn": arn}
    return api.call("GET", LETTERS, query=wanted or None, **who)


def finish(api: Api) -> None:
    bodies = [encode_job(each) for each in api.world.job_queue.take()]
    handler(sqs_event(bodies), Context())


def test_without_dead_letters_the_list_is_empty(api: Api) -> None:
    answer = listed(api)
    assert (answer.status, answer.body) == (200, {"dead_letters": [], "cursor": None})


def test_a_dead_letter_says_what_died_when_and_why(api: Api, world: World) -> None:
    (name,) = die(world)
    assert listed(api).body["dead_letters"] == [
        {
            "occurrence_id": name,
            "schedule_id": name.partition(".")[0],
            "died_at": "2026-03-09T12:01:00Z",
            "reason": "PERMANENT_ERROR",
            "attempt": 1,
        }
    ]


def test_pages_go_through_all_of_them_once(api: Api, world: World) -> None:
    names = die(world, 5)
    found, cursor = [], None
    for _ in range(9):
        page = listed(api, limit=2, **({"cursor": cursor} if cursor else {})).body
        found += [each["occurrence_id"] for each in page["dead_letters"]]
        cursor = page["cursor"]
        if cursor is None:
            break
    assert sorted(found) == sorted(names)


def test_filters_narrow_the_list(api: Api, world: World) -> None:
    names = die(world, 3)

    def ids(**query: Any) -> list[str]:
        page = listed(api, **query).body
        return [each["occurrence_id"] for each in page["dead_letters"]]

    assert ids(schedule_id=names[1].partition(".")[0]) == [names[1]]
    assert ids(schedule_id=f"sch{'0' * 26}") == []
    assert ids(since="2026-03-09T12:03:00Z") == [names[2]]
    assert ids(until="2026-03-09T12:02:00Z") == [names[0]]
    between = {"since": "2026-03-09T12:02:00Z", "until": "2026-03-09T12:03:00Z"}
    assert ids(**between) == [names[1]]


@pytest.mark.parametrize(
    ("query", "field", "code"),
    [
        ({"schedule_id": "nightly"}, "schedule_id", "invalid_value"),
        ({"since": "yesterday"}, "since", "invalid_timestamp"),
        ({"limit": 101}, "limit", "out_of_range"),
        ({"cursor": "nonsense"}, "cursor", "invalid_cursor"),
        (
            {"since": "2026-03-09T12:00:00Z", "until": "2026-03-09T12:00:00Z"},
            "until",
            "reversed_range",
        ),
        ({"state": "DEAD"}, "query", "unknown_parameter"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    api: Api, query: dict[str, Any], field: str, code: str
) -> None:
    answer = listed(api, **query)
    assert answer.status == 400
    assert answer.findings[field]["code"] == code


def test_another_tenants_letters_are_neither_seen_nor_replayed(
    api: Api, world: World
) -> None:
    (name,) = die(world)
    assert listed(api, arn=BOB).body["dead_letters"] == []
    body = {"schedule_id": name.partition(".")[0]}
    assert api.call("POST", REPLAY, body, arn=BOB).status == 202
    finish(api)
    assert [row.state for row in world.rows()] == [State.DEAD]


class TestReplay:
    @pytest.mark.parametrize("body", [None, {}, {"per_minute": None}])
    def test_all_are_replayed_by_a_job(self, api: Api, world: World, body: Any) -> None:
        (name,) = die(world)
        world.clock.advance(SECOND)
        answer = api.call("POST", REPLAY, body)
        assert answer.status == 202
        job = answer.body
        assert answer.headers["Location"] == f"../jobs/{job['job_id']}"
        assert (job["operation"], job["tag"]) == ("replay", None)
        assert job["dead_letters"] == {
            "schedule_id": None,
            "since": None,
            "until": "2026-03-09T12:01:01Z",
            "per_minute": 600,
        }
        finish(api)
        path = f"/v1/jobs/{job['job_id']}"
        assert api.call("GET", path).body["progress"]["changed"] == 1
        (result,) = api.call("GET", f"{path}/results").body["results"]
        assert result == {
            "index": 0,
            "schedule_id": name.partition(".")[0],
            "name": None,
            "outcome": "CHANGED",
            "problem": None,
            "shifts": [],
            "occurrence_id": name,
            "available_at": "2026-03-09T12:01:01Z",
        }
        assert listed(api).body["dead_letters"] == []

    def test_a_dry_run_changes_nothing(self, api: Api, world: World) -> None:
        die(world)
        world.clock.advance(SECOND)
        job = api.call("POST", REPLAY, {}, query={"dry_run": ["true"]}).body
        finish(api)
        path = f"/v1/jobs/{job['job_id']}/results"
        (result,) = api.call("GET", path).body["results"]
        assert (result["outcome"], result["available_at"]) == ("WOULD_CHANGE", None)
        assert len(listed(api).body["dead_letters"]) == 1

    def test_a_key_makes_one_job(self, api: Api) -> None:
        key = {"Idempotency-Key": "k"}
        first = api.call("POST", REPLAY, {}, headers=key)
        again = api.call("POST", REPLAY, {}, headers=key)
        assert again.body["job_id"] == first.body["job_id"]
        assert again.headers["Idempotency-Replayed"] == "true"
        other = api.call("POST", REPLAY, {"per_minute": 7}, headers=key)
        assert (other.status, other.code) == (409, "idempotency_key_reused")

    @pytest.mark.parametrize(
        ("body", "field", "code"),
        [
            ({"schedule_id": "x"}, "schedule_id", "invalid_value"),
            ({"until": "2026-13-01"}, "until", "invalid_timestamp"),
            ({"per_minute": 0}, "per_minute", "out_of_range"),
            ({"per_minute": 601}, "per_minute", "out_of_range"),
            ({"per_minute": "many"}, "per_minute", "wrong_type"),
            ({"dry_run": True}, "dry_run", "unknown_field"),
        ],
    )
    def test_what_makes_no_sense_is_refused_by_name(
        self, api: Api, body: Any, field: str, code: str
    ) -> None:
        answer = api.call("POST", REPLAY, body)
        assert answer.status == 400
        assert answer.findings[field]["code"] == code


class TestCommands:
    @pytest.fixture
    def run(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
        monkeypatch.setattr("hourbell.cli.jobs.sleep", lambda _: work(api))
        answer_commands(api, monkeypatch)
        return lambda *words: CliRunner().invoke(dead.app, words)

    def test_what_is_dead_is_shown_and_replayed(
        self, api: Api, world: World, run: Callable[..., Result]
    ) -> None:
        (name,) = die(world)
        world.clock.advance(SECOND)
        shown = run("list")
        assert shown.exit_code == 0, shown.output
        # An id is longer than a narrow window's column.
        assert name[:20] in shown.stdout
        assert "PERMANENT_ERROR" in shown.stdout
        words = ("--schedule", name.partition(".")[0], "--per-minute", "5")
        done = run("replay", *words, "--since", "2026-03-09T12:00:00Z")
        assert done.exit_code == 0, done.output
        assert "replay" in done.stdout
        assert "Nothing is dead." in run("list").stdout
        assert listed(api).body["dead_letters"] == []

    def test_a_dry_run_says_so(self, world: World, run: Callable[..., Result]) -> None:
        die(world)
        world.clock.advance(SECOND)
        done = run("replay", "--dry-run")
        assert "replay, dry run" in done.stdout
        assert "Nothing is dead." not in run("list").stdout


def test_a_lower_quota_does_not_change_the_answer_to_a_repeated_replay(
    api: Api, world: World
) -> None:
    def ask(key: str) -> Answer:
        headers = {"Idempotency-Key": key}
        return api.call("POST", REPLAY, {"per_minute": 600}, headers=headers)

    first = ask("key")
    tenant = world.store.tenants["acme"]
    lower = replace(tenant.quotas, catch_up_per_minute=60)
    world.store.tenants["acme"] = replace(tenant, quotas=lower)
    again = ask("key")
    assert (first.status, again.status) == (202, 202), again.text
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == first.body
    assert ask("another").code == "out_of_range"
