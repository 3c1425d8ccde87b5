"""`hourbell preview`, for people and for programs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hourbell.adapters.clock import SystemClock
from hourbell.cli.main import ENTRIES, app
from hourbell.cli.preview import MAX_LINE_BYTES, answer_line
from typer.testing import CliRunner

VECTORS = Path(__file__).parents[2] / "vectors"
VALID = json.loads((VECTORS / "cron.json").read_text("utf-8"))
INVALID = json.loads((VECTORS / "invalid.json").read_text("utf-8"))
MEMBER = {"expression": "expression", "zone": "zone", "timestamp": "start"}
REQUEST: dict[str, Any] = {
    "expression": "0 0 * * *",
    "zone": "UTC",
    "start": "2026-01-01T00:00:00Z",
    "count": 2,
}


def run(*words: str, text: str | bytes = "") -> Any:
    return CliRunner().invoke(app, ["preview", *words], input=text)


def lines(requests: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(request) + "\n" for request in requests)


def error_of(line: str | bytes) -> dict[str, str]:
    raw = line if isinstance(line, bytes) else line.encode()
    answer = json.loads(answer_line(raw))
    assert list(answer) == ["error"]
    error: dict[str, str] = answer["error"]
    assert list(error) == ["code", "message"]
    return error


# --- for programs -------------------------------------------------------------------


def test_every_reference_vector_is_answered_with_its_times(tmp_path: Path) -> None:
    requests = [
        {name: vector[name] for name in ("expression", "zone", "start")} | {"count": 6}
        for vector in VALID
    ]
    file = tmp_path / "requests.jsonl"
    file.write_text(lines(requests), "utf-8")

    result = run("--jsonl", str(file))

    assert result.exit_code == 0
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert answers == [{"times": vector["expected"]} for vector in VALID]


def test_every_invalid_vector_is_answered_with_an_error_line_at_once() -> None:
    requests = [
        REQUEST | {MEMBER[vector["kind"]]: vector["value"]} for vector in INVALID
    ]
    result = run("--jsonl", "-", text=lines(requests))

    assert result.exit_code == 0
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == len(INVALID)
    for vector, answer in zip(INVALID, answers, strict=True):
        assert set(answer["error"]) == {"code", "message"}, vector
        assert MEMBER[vector["kind"]] in answer["error"]["message"]


def test_no_invalid_vector_takes_fifty_milliseconds() -> None:
    for vector in INVALID:
        line = json.dumps(REQUEST | {MEMBER[vector["kind"]]: vector["value"]})
        # Processor time, and the best of three: other work must not count.
        spent = []
        for _ in range(3):
            start = time.process_time()
            answer_line(line.encode())
            spent.append(time.process_time() - start)
        assert min(spent) < 0.05, vector


def test_dst_rules_can_be_given_in_a_line() -> None:
    request = REQUEST | {
        "expression": "30 1 * * *",
        "zone": "America/New_York",
        "start": "2026-11-01T00:00:00-04:00",
        "dst": {"fold": "BOTH"},
    }

    assert json.loads(answer_line(json.dumps(request).encode())) == {
        "times": ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]
    }


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"count": 0}, "out_of_range"),
        ({"count": 1001}, "out_of_range"),
        ({"count": 10**30}, "out_of_range"),
        ({"count": True}, "wrong_type"),
        ({"count": 6.0}, "wrong_type"),
        ({"count": "6"}, "wrong_type"),
        ({"count": None}, "missing"),
        ({"start": 1_767_225_600}, "wrong_type"),
        ({"start": "2026-01-01"}, "invalid_timestamp"),
        ({"zone": None}, "missing"),
        ({"zone": {}}, "wrong_type"),
        ({"zone": "\ud800"}, "unknown_zone"),
        ({"expression": ["* * * * *"]}, "wrong_type"),
        ({"expression": "\ud800 * * * *"}, "invalid_expression"),
        ({"expression": "0 0 31 4 *"}, "never_fires"),
        ({"dst": []}, "wrong_type"),
        ({"dst": {"gap": "skip"}}, "unknown_choice"),
        ({"dst": {"gab": "SKIP"}}, "unknown_field"),
    ],
)
def test_a_wrong_member_gives_an_error_line(change: dict[str, Any], code: str) -> None:
    assert error_of(json.dumps(REQUEST | change))["code"] == code


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("\n", "invalid_json"),
        ("{", "invalid_json"),
        (b"\xff\xfe\n", "invalid_json"),
        (b'{"zone": "\xe9"}', "invalid_json"),
        ("[" * 60_000, "invalid_json"),
        ('{"count": ' + "9" * 5_000 + "}", "invalid_json"),
        ("[]", "wrong_type"),
        ("null", "wrong_type"),
        ('"* * * * *"', "wrong_type"),
        ("{}", "missing"),
        (" " * (MAX_LINE_BYTES + 1), "line_too_long"),
    ],
)
def test_a_line_that_is_no_request_gives_an_error_line(
    line: str | bytes, code: str
) -> None:
    assert error_of(line)["code"] == code


def test_each_line_has_its_own_answer_whatever_its_neighbours_are() -> None:
    good = lines([REQUEST])
    text = good + "\n" + "x" * (3 * MAX_LINE_BYTES) + "\n" + "not JSON\n" + good.strip()

    result = run("--jsonl", "-", text=text)

    kinds = [next(iter(json.loads(line))) for line in result.stdout.splitlines()]
    assert kinds == ["times", "error", "error", "error", "times"]
    assert result.exit_code == 0


def test_answers_are_exhausted_with_the_times() -> None:
    request = REQUEST | {"expression": "at(2026-01-02T00:00:00)", "count": 6}

    assert json.loads(answer_line(json.dumps(request).encode())) == {
        "times": ["2026-01-02T00:00:00Z"]
    }


def test_what_was_probably_meant_stands_in_the_message() -> None:
    error = error_of(json.dumps(REQUEST | {"expression": "0 22-2 * * *"}))

    assert error["code"] == "invalid_expression"
    assert "expression.hour" in error["message"]
    assert "'22-23,0-2'" in error["message"]


# --- for people ---------------------------------------------------------------------

BERLIN = ("--zone", "Europe/Berlin", "--from", "2026-03-27T00:00:00Z")


def test_a_table_shows_both_clocks_and_the_notes_below() -> None:
    result = run("30 2 * * *", *BERLIN, "-n", "3")

    assert result.exit_code == 0
    assert "2026-03-28 02:30:00" in result.stdout
    assert "Saturday" in result.stdout
    assert "2026-03-28T01:30:00Z" in result.stdout
    assert "+01:00" in result.stdout
    assert "clocks go forward from 2026-03-29 02:00 to 03:00" in result.stdout


def test_a_note_that_needs_several_lines_hangs_below_its_number() -> None:
    command = "preview '30 2 * * *' --zone America/New_York -n 1"

    result = CliRunner().invoke(
        app, f"{command} --from 2026-03-07T12:00:00Z", env={"COLUMNS": "70"}
    )

    first, further = result.stdout.splitlines()[-2:]
    assert first.startswith("  1  clocks go forward")
    assert further.startswith("     ")
    assert further.strip()


def test_json_holds_the_same() -> None:
    result = run("30 2 * * *", *BERLIN, "-n", "3", "--json", "--dst-gap", "next_valid")

    document = json.loads(result.stdout)
    assert document["dst"] == {"gap": "NEXT_VALID", "fold": "FIRST"}
    assert document["from"] == "2026-03-27T00:00:00Z"
    assert [each["utc"] for each in document["times"]] == [
        "2026-03-27T01:30:00Z",
        "2026-03-28T01:30:00Z",
        "2026-03-29T01:00:00Z",
    ]
    assert "runs at 03:00 instead" in document["times"][2]["notes"][0]


def test_without_times_the_reason_is_told() -> None:
    words = ("at(2026-03-29T02:30:00)", *BERLIN)

    assert "does not exist in" in run(*words).stdout
    document = json.loads(run(*words, "--json").stdout)
    assert document["times"] == []
    assert "does not exist in Europe/Berlin" in document["reason"]


def test_a_wrong_expression_is_explained_on_standard_error() -> None:
    result = run("0 0 * * FRI-MON")

    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Did you mean 'FRI-SAT,SUN-MON'?" in result.stderr


def test_with_json_the_explanation_is_json() -> None:
    result = run("0 0 * * *", "--from", "now", "--json")

    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["code"] == "invalid_timestamp"


@pytest.mark.parametrize(
    "words",
    [(), ("* * * * *", "--jsonl", "-"), ("--jsonl", "/no/such/file"), ("--jsonl", "/")],
)
def test_what_cannot_be_done_is_a_usage_error(words: tuple[str, ...]) -> None:
    result = run(*words)

    assert result.exit_code == 2
    assert "Traceback" not in result.output


def test_the_machines_clock_is_asked_when_no_start_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = datetime(2030, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    monkeypatch.setattr(SystemClock, "now", lambda self: now)

    result = run("rate(1 hour)", "-n", "1", "--json")

    assert json.loads(result.stdout)["times"][0]["utc"] == "2030-01-01T13:00:01Z"


# --- the command itself -------------------------------------------------------------


def test_help_lists_the_commands_and_a_typo_is_suggested() -> None:
    shown = CliRunner().invoke(app, ["--help"])
    wrong = CliRunner().invoke(app, ["prevew"])

    assert shown.exit_code == 0
    assert "preview" in shown.output
    assert ENTRIES["preview"].summary in shown.output
    assert wrong.exit_code == 2
    assert "'preview'" in wrong.output


def test_the_version_is_told() -> None:
    result = CliRunner().invoke(app, ["--version"])

    assert result.exit_code == 0
    assert re.fullmatch(r"hourbell \d+\.\d+\.\d+\n", result.stdout)


@pytest.mark.parametrize("name", ["", *ENTRIES])
def test_no_command_offers_to_install_completion(name: str) -> None:
    result = CliRunner().invoke(app, [*filter(None, [name]), "--help"])

    assert result.exit_code == 0
    assert "completion" not in result.stdout


def test_a_command_loads_nothing_that_it_does_not_need() -> None:
    program = (
        "import sys\n"
        "from hourbell.cli.main import app\n"
        "try:\n"
        "    app(sys.argv[1:])\n"
        "except SystemExit as end:\n"
        "    assert not end.code\n"
        "print(*sorted(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "preview", "--jsonl", "-"],
        input=lines([REQUEST]),
        capture_output=True,
        text=True,
        check=True,
    )

    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert json.loads(done.stdout)["times"][0] == "2026-01-02T00:00:00Z"
    assert "hourbell" in loaded
    assert not loaded & {"boto3", "botocore", "pynamodb", "rich"}
