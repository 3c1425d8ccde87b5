"""`hourbell replan`, against the API's handler."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hourbell.cli import replan
from hourbell.domain.schedule import Timing
from typer.testing import CliRunner, Result

from tests.functions.cli import answer_commands
from tests.functions.conftest import Api
from tests.functions.test_api_replan import DAILY
from tests.functions.test_api_tenants import PLATFORM
from tests.functions.test_cli_jobs import work

Run = Callable[..., Result]


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command as the platform role; the worker works while it waits."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("hourbell.cli.jobs.sleep", lambda _: work(api))
    answer_commands(api, monkeypatch, lambda: PLATFORM)
    return lambda *words: CliRunner().invoke(replan.app, words)


def told(result: Result) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_all_tenants_are_replanned_and_the_moved_times_shown(
    api: Api, run: Run
) -> None:
    api.world.add(DAILY, tzdb="2024b")
    api.world.add(Timing("0 9 * * *", "Europe/Berlin"), tzdb="2024b")
    dry = run("--dry-run")
    assert dry.exit_code == 0, dry.output
    moved = "2026-03-22 09:00:00 │ 2026-03-22T13:00:00Z │ 2026-03-22T12:00:00Z"
    assert moved in dry.stdout
    assert "1 of 2 active schedules would get a new version." in dry.stdout
    done = run()
    assert moved in done.stdout
    assert "1 of 2 active schedules got a new version." in done.stdout
    again = run()
    assert again.stdout == "0 of 2 active schedules got a new version.\n"


def test_a_program_reads_the_jobs_and_what_changed(api: Api, run: Run) -> None:
    row = api.world.add(DAILY, tzdb="2024b")
    document = told(run("--tenant", "zenith", "--tenant", "acme", "--json"))
    assert not document["dry_run"]
    zenith, acme = document["tenants"]
    assert (zenith["tenant_id"], zenith["results"]) == ("zenith", [])
    assert acme["job"]["state"] == "SUCCEEDED"
    (result,) = acme["results"]
    assert (result["schedule_id"], len(result["shifts"])) == (row.schedule_id, 5)


def test_a_refusal_is_told_and_ends_the_command(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    unknown = run("--tenant", "nobody")
    assert (unknown.exit_code, "not_found" in unknown.stderr) == (1, True)
    api.world.add(DAILY, tzdb="2024b")
    broken = "hourbell.usecases.job_items.replan_schedule"
    monkeypatch.setattr(broken, lambda *_: 1 // 0)
    refused = run("--tenant", "acme")
    assert refused.exit_code == 1
    assert "Something went wrong on our side" in refused.stdout


def test_a_job_that_failed_is_told(
    api: Api, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove_and_work(_: float) -> None:
        api.world.store.tenants.pop("acme", None)
        work(api)

    monkeypatch.setattr("hourbell.cli.jobs.sleep", remove_and_work)
    failed = run("--tenant", "acme")
    assert failed.exit_code == 1
    assert "acme: the job is FAILED: tenant_removed" in failed.stderr
