"""Commands that take a schedule's id, and get something else."""

import shlex

import pytest
import typer
from hourbell.cli import client, dead, schedules
from typer.testing import CliRunner

SCHEDULES = [
    *("get", "pause", "resume", "run", "cancel", "versions"),
    "update --zone UTC",
    "backfill --from 2026-03-01T00:00:00Z",
]


@pytest.fixture(autouse=True)
def _no_api(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect_api() -> client.Api:
        message = "there is nothing to ask for"
        raise AssertionError(message)

    for module in (schedules, dead):
        monkeypatch.setattr(module, "connect_api", connect_api)


@pytest.mark.parametrize(
    ("app", "command"),
    [
        *((schedules.app, f"{words} TEXT") for words in SCHEDULES),
        *((dead.app, f"{verb} --schedule TEXT") for verb in ("list", "replay")),
    ],
)
@pytest.mark.parametrize(
    ("text", "prefix"),
    [
        ("nightly", "nightly"),
        # An id cannot leave its path.
        ("../handlers?x=1", "'../handlers?x=1'"),
        # Nor is it one with a letter that ids do not have.
        (f"sch{'0' * 25}o", f"sch{'0' * 25}o"),
    ],
)
def test_who_names_a_schedule_is_told_how_to_find_its_id(
    app: typer.Typer, command: str, text: str, prefix: str
) -> None:
    words = [text if each == "TEXT" else each for each in shlex.split(command)]
    result = CliRunner().invoke(app, words, env={"COLUMNS": "300"})
    assert result.exit_code == 2
    assert f"'{text}' is no schedule id, which begins with sch" in result.stderr
    assert f"hourbell schedules list --prefix={prefix}" in result.stderr
