"""dev.py's own behaviour: what it says, which code it ends with, what it installs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dev
from devtools import commands, environments, gate, layers, locks, shell

ROOT = Path(__file__).resolve().parents[2]


def run_dev(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "dev.py", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("arguments", [(), ("--help",), ("help",)])
def test_help_names_each_command_on_one_line(arguments: tuple[str, ...]) -> None:
    result = run_dev(*arguments)

    listed = [line.split()[0] for line in result.stdout.splitlines()[2:]]
    assert result.returncode == 0
    assert listed == list(dev.COMMANDS)
    assert all(len(line) <= 80 for line in result.stdout.splitlines())


def test_unknown_command_ends_with_two_and_lists_the_known() -> None:
    result = run_dev("chekc")

    assert result.returncode == 2
    assert "no command 'chekc'" in result.stderr
    assert "check" in result.stderr
    assert "Traceback" not in result.stderr


def test_failed_step_is_named_and_gives_its_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(arguments: list[str]) -> None:
        shell.run("the step", [sys.executable, "-c", "import sys; sys.exit(7)"])

    monkeypatch.setitem(dev.COMMANDS, "check", (failing, ""))

    assert dev.main(["check"]) == 7
    assert "the step failed (exit code 7)" in capsys.readouterr().err


def test_step_killed_by_a_signal_gives_the_shells_code() -> None:
    command = [sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"]

    with pytest.raises(shell.StepFailedError) as caught:
        shell.run("the step", command)

    assert caught.value.code == 128 + 9


def test_missing_program_is_named() -> None:
    with pytest.raises(shell.StepFailedError, match="no-such-program was not found"):
        shell.run("the step", ["no-such-program"])


def test_no_color_where_nobody_looks() -> None:
    result = run_dev("chekc")

    assert "\033[" not in result.stdout + result.stderr


# --- locks ----------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the files that locks are made of."""
    for name in ("pyproject.toml", "package.json", "package-lock.json"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    return tmp_path


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_the_projects_locks_are_fresh() -> None:
    assert locks.problems(ROOT) == []


def test_changed_dependency_makes_every_lock_below_stale(project: Path) -> None:
    edit(project / "pyproject.toml", '"orjson==', '"orjson>=')

    stale = [problem.split()[0] for problem in locks.problems(project)]

    assert stale == ["requirements/layer.txt", "requirements/dev.txt"]


def test_changed_tool_makes_only_its_lock_stale(project: Path) -> None:
    edit(project / "requirements/dev.in", "cronsim==2.8", "cronsim")

    assert locks.problems(project) == [
        "requirements/dev.txt is older than pyproject.toml or requirements/dev.in."
    ]


def test_comments_and_tool_settings_leave_locks_fresh(project: Path) -> None:
    edit(project / "requirements/dev.in", "# Tests.", "# What tests need.")
    edit(project / "pyproject.toml", "line-length = 88", "line-length = 100")

    assert locks.problems(project) == []


def test_layer_pin_changed_by_hand_makes_the_developers_lock_stale(
    project: Path,
) -> None:
    edit(project / "requirements/layer.txt", "six==", "six===")

    assert any("dev.txt is older" in problem for problem in locks.problems(project))


@pytest.mark.parametrize(
    "line",
    ["--index-url https://example.org/simple", "six @ file:///home/six", "../six"],
)
def test_host_or_path_in_a_lock_is_a_problem(project: Path, line: str) -> None:
    with (project / "requirements/engine.txt").open("a") as lock:
        lock.write(f"{line}\n")

    assert locks.problems(project) == [
        "requirements/engine.txt names a host or a path."
    ]


def test_pin_without_a_hash_is_a_problem(project: Path) -> None:
    with (project / "requirements/engine.txt").open("a") as lock:
        lock.write("attrs==26.1.0\n")

    assert locks.problems(project) == [
        "requirements/engine.txt has no hash for attrs==26.1.0."
    ]


def test_missing_lock_is_a_problem(project: Path) -> None:
    (project / "requirements/engine.txt").unlink()

    assert locks.problems(project) == ["requirements/engine.txt is missing."]


def test_changed_npm_pin_makes_its_lock_stale(project: Path) -> None:
    wanted = json.loads((project / "package.json").read_text())
    wanted["devDependencies"]["aws-cdk"] = "2.0.0"
    (project / "package.json").write_text(json.dumps(wanted))

    assert locks.problems(project) == ["package-lock.json is older than package.json."]


# --- environments ---------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(shell, "LOCAL", tmp_path / ".local")
    made = tmp_path / "made"
    made.mkdir()
    return made


def test_folder_is_made_once_for_a_fingerprint(folder: Path) -> None:
    made: list[str] = []

    answers = [
        environments.ensure(folder, fingerprint, lambda: made.append("x"))
        for fingerprint in ("one", "one", "two")
    ]

    assert answers == [True, False, True]
    assert len(made) == 2


def test_interrupted_making_leaves_no_stamp(folder: Path) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    environments.ensure(folder, "one", lambda: None)
    with pytest.raises(KeyboardInterrupt):
        environments.ensure(folder, "two", interrupted)

    assert environments.ensure(folder, "one", lambda: None) is True


def test_folder_that_went_away_is_made_again(folder: Path) -> None:
    stamp = folder.with_suffix(".stamp")
    environments.ensure(folder, "one", lambda: None, stamp=stamp)
    folder.rmdir()

    assert environments.ensure(folder, "one", lambda: None, stamp=stamp) is True


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

    def fake_run(step: str, command: object, extra: object = None) -> None:
        ran.append(step)
        if step in {"types", "synth"}:
            raise shell.StepFailedError(step, 3)

    monkeypatch.setattr(shell, "run", fake_run)
    for own in ("locks", "pragmas", "sizes", "coverage"):
        monkeypatch.setattr(gate, f"check_{own}", lambda: None)

    with pytest.raises(shell.StepFailedError, match="types, synth") as caught:
        gate.check(lambda: None)

    assert caught.value.code == 3
    assert ran[-2:] == ["tests", "end-to-end tests"]
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


def test_all_runs_end_to_end_tests_last_and_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert pytest_runs(monkeypatch, ["--all", "-x"]) == [
        ["-m", "not e2e", "-x"],
        ["-m", "e2e", "-x"],
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
