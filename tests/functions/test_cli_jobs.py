"""`hourbell schedules batch` and `hourbell jobs`, against the API's handler."""

import io
import json
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from hourbell.adapters.messages import encode_job
from hourbell.cli import jobs, schedules
from typer.testing import CliRunner, Result

from functions.jobs.handler import handler
from tests.functions.cli import answer_commands
from tests.functions.conftest import Api
from tests.functions.events import Context, sqs_event
from tests.functions.schedules import create

Run = Callable[..., Result]
MISSING = f"sch{'0' * 26}"
BELLS = [
    {"name": f"bell-{n}", "handler": "ring", "expression": "0 9 * * *"}
    for n in range(3)
]


def work(api: Api) -> None:
    bodies = [encode_job(each) for each in api.world.job_queue.take()]
    if bodies:
        with redirect_stdout(io.StringIO()):
            handler(sqs_event(bodies), Context())


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `hourbell schedules` or `jobs`; the worker works while people wait."""
    monkeypatch.setattr("hourbell.cli.jobs.sleep", lambda _: work(api))
    answer_commands(api, monkeypatch)

    def invoke(group: str, *words: str, text: str | None = None) -> Result:
        app = {"jobs": jobs.app, "schedules": schedules.app}[group]
        return CliRunner().invoke(app, words, input=text)

    return invoke


def document(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_schedules_of_a_file_are_created(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "bells.json"
    file.write_text(json.dumps(BELLS), encoding="utf-8")
    words = ("batch", "create", "--file", str(file))
    job = document(run("schedules", *words, "--json"))
    assert (job["state"], job["progress"]["changed"]) == ("SUCCEEDED", 3)
    again = run("schedules", *words)
    assert again.exit_code == 1
    assert "hourbell jobs results job" in again.stderr
    assert "SUCCEEDED" in again.stdout


def test_a_file_may_come_from_standard_input(run: Run) -> None:
    words = ("batch", "create", "--file", "-", "--json")
    job = document(run("schedules", *words, text=json.dumps(BELLS)))
    assert job["progress"]["total"] == 3
    wrong = run("schedules", *words, text="[")
    assert (wrong.exit_code, "not JSON" in wrong.stderr) == (2, True)


def test_by_tag_dry_and_then_really(api: Api, run: Run) -> None:
    made = create(api, name="a", tags={"team": "ops"})
    create(api, name="b")
    words = ("batch", "pause", "--tag", "team=ops", "--reason", "night", "--json")
    dry = document(run("schedules", *words, "--dry-run"))
    assert (dry["dry_run"], dry["progress"]["changed"]) == (True, 1)
    job = document(run("schedules", *words))
    results = document(run("jobs", "results", job["job_id"], "--json"))["results"]
    assert [each["schedule_id"] for each in results] == [made["schedule_id"]]
    assert results[0]["outcome"] == "CHANGED"
    resumed = run("schedules", "batch", "resume", "--ids", made["schedule_id"])
    assert resumed.exit_code == 0
    assert "1 of 1" in resumed.stdout


def test_ids_may_be_joined_and_repeated(run: Run) -> None:
    first, second, third = (f"sch{n:026}" for n in range(3))
    words = ("--ids", f"{first},{second}", "--ids", third, "--no-wait", "--json")
    job = document(run("schedules", "batch", "cancel", *words))
    assert (job["state"], job["progress"]["total"]) == ("PENDING", 3)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--tag", "a=b", "--ids", MISSING),
        ("--tag", "team"),
        ("--tag", "a=b", "--tag", "a=c"),
    ],
)
def test_what_says_nothing_clear_is_refused(run: Run, words: tuple[str, ...]) -> None:
    assert run("schedules", "batch", "pause", *words).exit_code == 2


def test_a_refusal_of_the_request_is_shown(run: Run) -> None:
    refused = run("schedules", "batch", "pause", "--ids", "x")
    assert refused.exit_code == 1
    assert "schedule_ids.0" in refused.stderr


def test_a_key_makes_one_job(run: Run) -> None:
    words = ("batch", "pause", "--tag", "a=b", "--idempotency-key", "k", "--json")
    first, second = (document(run("schedules", *words)) for _ in range(2))
    assert first["job_id"] == second["job_id"]


def test_a_job_is_listed_shown_canceled_and_resumed(run: Run) -> None:
    words = ("batch", "pause", "--ids", MISSING, "--no-wait", "--json")
    job_id = document(run("schedules", *words))["job_id"]
    listed = document(run("jobs", "list", "--json"))["jobs"]
    assert [each["job_id"] for each in listed] == [job_id]
    assert "PENDING" in run("jobs", "list").stdout
    assert document(run("jobs", "cancel", job_id, "--json"))["state"] == "CANCELED"
    assert "CANCELED" in run("jobs", "get", job_id).stdout
    resumed = run("jobs", "resume", job_id)
    # Its only schedule is missing.
    assert resumed.exit_code == 1
    assert "SUCCEEDED" in resumed.stdout
    shown = run("jobs", "results", job_id, "--outcome", "REFUSED").stdout
    assert "not_found" in shown.replace("\n", "")
    ended = run("jobs", "cancel", job_id)
    assert (ended.exit_code, "job_ended" in ended.stderr) == (1, True)
