"""`hourbell local`, as far as it needs no engine: what it says when nothing runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hourbell.cli.local import app
from hourbell.local.directory import StackDirectory
from hourbell.local.stack import StackInfo
from hourbell.local.state import READY, Credentials, StackState, save_state
from typer.testing import CliRunner, Result


def call(place: Path, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--dir", str(place)])


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StackDirectory]:
    """A directory as a healthy stack leaves it that had nothing to synthesize."""
    place = StackDirectory.of(tmp_path)
    place.wipe()
    place.log("engine").write_text("engine 1\nengine 2\n", encoding="utf-8")
    place.log("pump").write_text("pump 1\n", encoding="utf-8")
    state = StackState(
        stack_id="s",
        supervisor_pid=0,
        status=READY,
        started_at=0.0,
        region="eu-west-1",
        endpoint_url="http://127.0.0.1:1",
        root=Credentials("", "", ""),
        engine_pid=0,
        functions={"hourbell-relay": "group-relay", "hourbell-api": "group-api"},
    )
    save_state(place, state)
    written = {"hourbell-relay": ["relay 1"], "hourbell-api": []}
    monkeypatch.setattr(StackInfo, "function_log", lambda _, name: written[name])
    with place.locked():
        yield place


def test_down_says_in_one_line_that_nothing_runs(tmp_path: Path) -> None:
    result = call(tmp_path, "down")

    assert result.exit_code == 0
    assert result.output == "No local stack runs.\n"


def test_logs_of_all_are_those_that_exist(stack: StackDirectory) -> None:
    result = call(stack.root, "logs", "-n", "1")

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "== engine",
        "engine 2",
        "== pump",
        "pump 1",
        "== hourbell-relay",
        "relay 1",
    ]


def test_logs_lists_names(stack: StackDirectory) -> None:
    result = call(stack.root, "logs", "--names")

    names = ["engine", "pump", "hourbell-api", "hourbell-relay"]
    assert result.stdout.splitlines() == names


def test_log_of_a_synthesis_that_was_not_needed_is_no_error(
    stack: StackDirectory,
) -> None:
    result = call(stack.root, "logs", "synth")

    assert result.exit_code == 0
    assert result.output == "Nothing was synthesized: the templates were fresh.\n"


def test_unknown_log_names_the_known(stack: StackDirectory) -> None:
    result = call(stack.root, "logs", "realy")

    assert result.exit_code == 3
    assert "No log is named 'realy'." in result.output
    assert "engine, pump, hourbell-api, hourbell-relay" in result.output


def test_log_of_a_stack_that_failed_to_start_can_be_read(tmp_path: Path) -> None:
    place = StackDirectory.of(tmp_path)
    place.wipe()
    place.log("engine").write_text("why it failed\n", encoding="utf-8")

    assert call(tmp_path, "logs", "engine").stdout == "why it failed\n"
    assert call(tmp_path, "logs", "pump").exit_code == 3
