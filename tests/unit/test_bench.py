"""What the benches print: a table for people, one JSON object for programs."""

import json
import sys

import pytest

from loadtest.bench import cron


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    rates = {"hourbell": 100_000.0, "croniter_naive": 10_000.0, "croniter_aware": 5e3}
    every = dict.fromkeys(cron.EXPRESSIONS, rates)
    monkeypatch.setattr(cron, "measure", lambda _: every)


def printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> list[str]:
    monkeypatch.setattr(sys, "argv", ["bench cron", *words])
    assert cron.main() == 0
    return capsys.readouterr().out.splitlines()


def test_cron_shows_an_expression_a_line_and_the_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(monkeypatch, capsys)

    (row,) = (line for line in lines if line.startswith("30 2 * * * "))
    assert row.split()[5:] == ["100,000", "10,000", "5,000", "10.0x"]
    assert lines[-1] == "Hourbell is 10.0 times as fast; required 4.0: kept"
    assert all(len(line) <= 80 for line in lines)


def test_json_is_all_that_cron_prints_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = printed(monkeypatch, capsys, "--json")

    assert json.loads(line)["ratio"] == 10.0
