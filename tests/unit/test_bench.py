"""What the benches print: a table for people, one JSON object for programs."""

import json
import sys

import pytest

from loadtest.bench import cron, outage


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


def test_a_small_outage_is_drained_and_the_new_hour_is_on_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(outage, "STRICT", 3)
    words = ["bench outage", "--json", "--schedules", "4", "--minutes", "30"]
    monkeypatch.setattr(sys, "argv", words)
    # The memory is that of the whole test run, so the exit code tells nothing.
    outage.main()

    told = json.loads(capsys.readouterr().out)
    # Until 00:03 they were materialized by their creates; back at 00:58:20, what is
    # of 00:04 to 00:57 is over a minute late, for four schedules.
    assert told["caught_up"] == 4 * 54
    assert (told["undecided"], told["unfinished_passes"]) == (0, 0)
    assert told["strict"] == 3
    assert told["least_strict_lead_seconds"] > 90
