"""`hourbell occurrences`, `hourbell work`, and schedules that are tracked."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hourbell.cli import occurrences, schedules, work
from typer.testing import CliRunner, Result

from tests.functions.cli import answer_commands
from tests.functions.conftest import Api
from tests.functions.working import NOBODYS, due, state
from tests.unit.usecases.world import SECOND

Run = Callable[..., Result]
BELL = ("--name", "bell", "--expression", "0 9 * * MON", "--handler", "ring")


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    answer_commands(api, monkeypatch)
    apps = {
        "occurrences": occurrences.app,
        "schedules": schedules.app,
        "work": work.app,
    }

    def invoke(group: str, *words: str) -> Result:
        return CliRunner().invoke(apps[group], words)

    return invoke


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def claimed(run: Run, name: str) -> str:
    words = ("claim", name, "--lease", "600", "--worker", "me", "--json")
    (answer,) = document(run("work", *words))["results"]
    assert answer["answer"] == "RUN"
    return str(answer["lease_token"])


def test_work_is_claimed_extended_and_completed(run: Run, api: Api) -> None:
    name = due(api)
    token = claimed(run, name)
    beat = run("work", "heartbeat", name, token, "--lease", "900")
    assert "2026-03-09T12:16:00Z" in beat.stdout
    assert "BUSY" in run("work", "claim", name).stdout
    assert "SUCCEEDED" in run("work", "complete", name, token).stdout
    assert state(api, name) == "SUCCEEDED"
    assert "ALREADY_DONE" in run("work", "claim", name, NOBODYS).stdout
    assert "lease_lost" in run("work", "complete", name, "x" * 16).stdout


def test_a_failure_is_told_shown_and_replayed(run: Run, api: Api) -> None:
    name = due(api)
    token = claimed(run, name)
    words = ("--class", "PERMANENT", "--type", "Boom", "--message", "it broke")
    assert "PERMANENT_ERROR" in run("work", "fail", name, token, *words).stdout
    shown = run("occurrences", "show", name).stdout
    for text in ("DEAD", "PERMANENT_ERROR", "PERMANENT: Boom: it broke", "me"):
        assert text in shown
    told = document(run("occurrences", "show", name, "--json"))
    assert [each["worker"] for each in told["attempts"]] == ["me"]
    api.world.clock.advance(SECOND)
    assert document(run("occurrences", "replay", name, "--json"))["reason"] is None
    again = run("occurrences", "replay", name)
    assert again.exit_code == 1
    assert "not_dead" in again.stderr


def test_patience_is_asked_for(run: Run, api: Api) -> None:
    name = due(api)
    words = ("fail", name, claimed(run, name), "--class", "THROTTLED")
    said = run("work", *words, "--retry-after", "600")
    assert "2026-03-09T12:11:00Z" in said.stdout


def test_an_occurrence_is_canceled_or_its_worker_asked_to_stop(
    run: Run, api: Api
) -> None:
    name = due(api)
    claimed(run, name)
    said = run("occurrences", "cancel", name, "--reason", "stocktaking")
    assert "asked to stop" in said.stdout
    assert run("occurrences", "show", NOBODYS).exit_code == 1


def test_a_batch_that_is_refused_ends_with_its_reason(run: Run) -> None:
    refused = run("work", "claim", "nonsense")
    assert refused.exit_code == 1
    assert "items.0.occurrence_id" in refused.stderr


def test_policies_of_tracked_work_are_given_and_shown(run: Run) -> None:
    words = (
        *("--tracking", "TRACKED", "--overlap", "QUEUE_ONE", "--retry-attempts", "3"),
        *("--retry-base", "5", "--retry-cap", "60", "--retry-deadline", "none"),
        *("--retry-on", "THROTTLED", "--retry-on", "RETRYABLE"),
    )
    made = document(run("schedules", "create", *BELL, *words, "--json"))
    assert (made["tracking"], made["overlap"]) == ("TRACKED", "QUEUE_ONE")
    policy = {
        "max_attempts": 3,
        "base_seconds": 5,
        "cap_seconds": 60,
        "deadline_seconds": None,
        "retryable": ["RETRYABLE", "THROTTLED"],
    }
    assert made["retry"] == policy
    shown = run("schedules", "get", made["schedule_id"]).stdout
    assert "QUEUE_ONE" in shown
    assert "3 attempts, waits of 5 to 60 s" in shown
    update = ("update", made["schedule_id"], "--json")
    later = document(run("schedules", *update, "--retry-deadline", "3600"))
    assert later["retry"] == policy | {"deadline_seconds": 3_600}
    never = document(run("schedules", *update, "--retry-deadline", "none"))
    assert never["retry"] == policy
    usual = document(run("schedules", *update, "--unset", "retry"))
    assert usual["retry"]["max_attempts"] == 5
    bad = run("schedules", *update, "--retry-deadline", "soon")
    assert bad.exit_code == 2


def test_untracked_ones_show_no_policy(run: Run) -> None:
    made = document(run("schedules", "create", *BELL, "--json"))
    shown = run("schedules", "get", made["schedule_id"]).stdout
    assert "retry" not in shown
    refused = run("schedules", "update", made["schedule_id"], "--retry-attempts", "3")
    assert "retry_needs_tracking" in refused.stderr
