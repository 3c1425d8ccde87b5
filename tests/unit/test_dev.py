"""dev.py's own behaviour: what it says, which code it ends with, what it installs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dev
from devtools import environments, gate, locks, shell

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


def test_lines_of_a_program_can_be_retold(capfd: pytest.CaptureFixture[str]) -> None:
    program = "import sys; sys.stderr.write('one\\ntwo\\nthree')"

    shell.run(
        "the step",
        [sys.executable, "-c", program],
        retell=lambda line: None if line == "two" else line.upper(),
    )

    assert capfd.readouterr().err.splitlines()[1:] == ["ONE", "THREE"]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Supply a stack id (HourbellData) to display its template.", None),
        (
            f"Successfully synthesized to {ROOT}/cdk.out",
            "Templates are in cdk.out; cdk-nag found nothing unacknowledged.",
        ),
        ("error: no such setting", "error: no such setting"),
        ("", ""),
    ],
)
def test_synth_says_what_it_means(line: str, told: str | None) -> None:
    assert gate.synth_line(line) == told


def test_no_color_where_nobody_looks() -> None:
    result = run_dev("chekc")

    assert "\033[" not in result.stdout + result.stderr


# --- locks ----------------------------------------------------------------------


NPM_FILES = ("package.json", "package-lock.json")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the files that locks are made of."""
    folders = (".", "examples/nodejs")
    npm = [f"{each}/{name}" for each in folders for name in NPM_FILES]
    (tmp_path / "examples/nodejs").mkdir(parents=True)
    for name in ("pyproject.toml", *npm):
        shutil.copy(ROOT / name, tmp_path / name)
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


@pytest.mark.parametrize(
    ("folder", "kind", "package"),
    [
        ("", "devDependencies", "aws-cdk"),
        ("examples/nodejs/", "dependencies", "@aws-sdk/client-sqs"),
    ],
)
def test_changed_npm_pin_makes_its_lock_stale(
    project: Path, folder: str, kind: str, package: str
) -> None:
    wanted = json.loads((project / folder / "package.json").read_text())
    wanted[kind][package] = "2.0.0"
    (project / folder / "package.json").write_text(json.dumps(wanted))

    problem = f"{folder}package-lock.json is older than package.json."
    assert locks.problems(project) == [problem]


def test_npm_lock_that_names_a_host_is_a_problem(project: Path) -> None:
    path = project / "package-lock.json"
    lock = json.loads(path.read_text())
    lock["packages"]["node_modules/aws-cdk"]["resolved"] = "https://host.test/a.tgz"
    path.write_text(json.dumps(lock))

    assert locks.problems(project) == ["package-lock.json names a host."]


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


def test_environments_are_the_same_from_inside_a_virtual_environment(
    tmp_path: Path,
) -> None:
    program = "from devtools import environments; print(environments.interpreter())"
    base = environments.base_python()
    subprocess.run([base, "-m", "venv", "--without-pip", tmp_path / "v"], check=True)

    inside, outside = (
        subprocess.run(
            [python, "-c", program],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for python in (tmp_path / "v/bin/python", base)
    )

    assert inside == outside
    assert str(base) in inside
