"""dev.py: layers, the gate, and what its tests are called with."""

import json
from pathlib import Path

import pytest

from devtools import commands, environments, gate, layers, locks, shell
from tests.unit.test_dev import ROOT


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shell, "LOCAL", tmp_path / ".local")
    made = tmp_path / "made"
    made.mkdir()
    return made


@pytest.mark.parametrize(("exists", "installs"), [(True, 0), (False, 1)])
def test_down_installs_nothing_where_an_environment_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch, exists: bool, installs: int
) -> None:
    done: list[object] = []
    program = folder / "bin/hourbell"
    if exists:
        program.parent.mkdir()
        program.touch()
    monkeypatch.setattr(environments, "VENV", folder)
    monkeypatch.setattr(environments, "ensure_venv", lambda: done.append("install"))
    monkeypatch.setattr(shell, "become", lambda _, words: done.append(words))

    commands.down(["--dir", "x"])

    assert done[-1] == [program, "local", "down", "--dir", "x"]
    assert done[:-1] == ["install"] * installs


def test_missing_node_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    with pytest.raises(shell.StepFailedError, match="install Node"):
        environments.ensure_node()


# --- layers ---------------------------------------------------------------------


def test_strip_takes_installers_traces_tests_and_unused_services(
    tmp_path: Path,
) -> None:
    kept = [
        "boto3/data/sqs/resources-1.json",
        "botocore/data/dynamodb/service-2.json.gz",
        "botocore/data/endpoints.json",
        "six-1.17.0.dist-info/METADATA",
        "six.py",
    ]
    stripped = [
        "bin/jp.py",
        "botocore/data/ec2/service-2.json.gz",
        "six-1.17.0.dist-info/RECORD",
        "six/__pycache__/six.pyc",
        "six/tests/test_six.py",
    ]
    for name in kept + stripped:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    layers.strip(tmp_path)

    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(str(path.relative_to(tmp_path)) for path in left) == kept


def test_layer_holds_no_unhashed_or_conditional_pin() -> None:
    # pip judges a marker by the machine that builds, not by the one that runs.
    pins = locks.pins((ROOT / locks.LAYER.path).read_text())

    assert "==" in pins
    assert ";" not in pins


def test_unknown_layer_target_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "ensure_venv", lambda: None)

    with pytest.raises(shell.StepFailedError, match="no target 'x86'"):
        commands.layers(["x86"])


# --- gate -----------------------------------------------------------------------


def report(covered: int, branches: int) -> dict[str, dict[str, int]]:
    return {"summary": {"covered_branches": covered, "num_branches": branches}}


def test_branch_percent_sums_one_packages_files() -> None:
    files = {
        "layers/core/python/hourbell/domain/cron.py": report(90, 100),
        "layers/core/python/hourbell/domain/zones.py": report(100, 100),
        "layers/core/python/hourbell/domain_other.py": report(0, 100),
        "layers/core/python/hourbell/usecases/relay.py": report(1, 4),
    }

    assert gate.branch_percent(files, "hourbell/domain") == pytest.approx(95.0)
    assert gate.branch_percent(files, "hourbell/usecases") == pytest.approx(25.0)


def test_unmeasured_package_counts_as_uncovered() -> None:
    assert gate.branch_percent({}, "hourbell/domain") == pytest.approx(0.0)


@pytest.mark.parametrize(("covered", "passes"), [(94, False), (95, True)])
def test_coverage_gate_stands_at_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, covered: int, passes: bool
) -> None:
    files = {f"{package}/a.py": report(covered, 100) for package in gate.COVERED}
    monkeypatch.setattr(gate, "COVERAGE", tmp_path / "coverage.json")
    gate.COVERAGE.write_text(json.dumps({"files": files}))

    failure = gate.attempt(gate.check_coverage)

    assert (failure is None) is passes


def test_coverage_gate_fails_without_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "COVERAGE", tmp_path / "coverage.json")

    with pytest.raises(shell.StepFailedError, match="no report"):
        gate.check_coverage()


def test_coverage_exemption_is_found_wherever_code_is(tmp_path: Path) -> None:
    planted = tmp_path / "functions" / "api" / "handler.py"
    planted.parent.mkdir(parents=True)
    planted.write_text(f"x = 1  # {gate.PRAGMA}\n")
    (tmp_path / "clean.py").write_text("x = 1\n")
    installed = tmp_path / ".venv" / "other.py"
    installed.parent.mkdir()
    installed.write_text(planted.read_text())

    assert gate.files_with(gate.PRAGMA, tmp_path) == [planted]


def test_long_functions_and_files_are_findings() -> None:
    short = "def short():\n" + "    pass\n" * (gate.FUNCTION_LINES - 1)
    long = "async def long():\n" + "    pass\n" * gate.FUNCTION_LINES

    assert gate.too_long(short) == []
    assert gate.too_long(short + long) == [":61: long: 61 lines, at most 60"]
    assert gate.too_long("\n" * 450) == []
    assert gate.too_long("\n" * 451) == [": 451 lines, at most 450"]


def test_gate_runs_every_step_and_names_all_that_failed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def fake_run(step: str, command: object, **more: object) -> None:
        ran.append(step)
        if step in {"types", "synth"}:
            raise shell.StepFailedError(step, 3)

    monkeypatch.setattr(shell, "run", fake_run)
    for own in ("locks", "pragmas", "sizes", "coverage"):
        monkeypatch.setattr(gate, f"check_{own}", lambda: None)

    with pytest.raises(shell.StepFailedError, match="types, synth") as caught:
        gate.check(lambda: None)

    assert caught.value.code == 3
    assert ran[-2:] == ["tests", "timed tests"]
    assert "synth failed (exit code 3)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "passed_on"),
    [
        ([], ["-m", commands.FAST]),
        (["-x"], ["-m", commands.FAST, "-x"]),
        (["tests/e2e"], ["tests/e2e"]),
        (["-m", "slow"], ["-m", "slow"]),
        (["--all", "-k", "cron"], ["-k", "cron"]),
    ],
)
def test_fast_set_is_the_default_and_a_choice_replaces_it(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], passed_on: list[str]
) -> None:
    assert pytest_runs(monkeypatch, arguments) == [passed_on]


def test_all_runs_timed_tests_last_and_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pytest_runs(monkeypatch, ["--all", "-x"]) == [
        ["-m", "not timed and not long", "-x"],
        ["-m", "timed and not long", "-x"],
    ]


def pytest_runs(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> list[list[str]]:
    """Return the arguments of each run of pytest that `dev.py test` would start."""
    runs: list[list[str]] = []
    monkeypatch.setattr(commands, "prepare", lambda: None)
    monkeypatch.setattr(
        gate, "pytest", lambda _, words, workers="": runs.append(list(words))
    )
    commands.test(arguments)
    return runs


def test_what_the_gate_leaves_out_is_run_by_a_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pytest_runs(monkeypatch, ["--long"]) == [
        ["-m", "long and not e2e"],
        ["-m", "long and e2e"],
    ]
