"""The loads that `hourbell schedules ... --dry-run` shows."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from hourbell.cli import schedules
from typer.testing import CliRunner

from tests.functions.cli import answer_commands
from tests.functions.conftest import Api
from tests.functions.schedules import create
from tests.unit.usecases.world import START

Run = Callable[..., str]

BELL = ("create", "--name", "bell", "--expression", "0 9 * * *", "--handler", "ring")
NINE = START - timedelta(hours=3)
YESTERDAY = START - timedelta(days=1)


@pytest.fixture
def run(api: Api, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command, its requests answered by the handler; return what it shows."""
    monkeypatch.setenv("COLUMNS", "120")
    answer_commands(api, monkeypatch)

    def invoke(*words: str) -> str:
        result = CliRunner().invoke(schedules.app, [*words, "--dry-run"])
        assert result.exit_code == 0, result.output
        return result.stdout

    return invoke


@pytest.mark.parametrize(
    ("at_nine", "shown", "busy"),
    [(3, "3.00, busy minute", 10), (2, "2.00", 0), (0, "0.00", 0)],
)
def test_a_busy_minute_is_pointed_out(
    api: Api, run: Run, at_nine: int, shown: str, busy: int
) -> None:
    api.world.loads.add({NINE: at_nine, YESTERDAY: 1_440 - at_nine})
    text = run(*BELL)
    assert " load " in text
    assert text.count(shown) == 10
    assert text.count("busy minute") == busy


def test_an_update_shows_loads_too(api: Api, run: Run) -> None:
    made = create(api, {"expression": "0 9 * * *"})
    api.world.loads.add({NINE: 4, YESTERDAY: 1_436})
    text = run("update", made["schedule_id"], "--payload", "1")
    assert text.count("4.00, busy minute") == 10


def test_an_unknown_load_leaves_its_place_empty(run: Run) -> None:
    text = run(*BELL)
    assert " load " in text
    assert "None" not in text
    assert "busy" not in text
