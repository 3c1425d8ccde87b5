"""The gate that a change must pass, here and in CI: the same steps, the same limits."""

from __future__ import annotations

import ast
import json
import os
from typing import TYPE_CHECKING

from devtools import locks, shell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any

COVERAGE = shell.LOCAL / "coverage.json"
COVERED = ("hourbell/domain", "hourbell/usecases")
LEAST_PERCENT = 95.0
UNTIMED = "not timed and not long"
TIMED = "timed and not long"
WORKERS = os.environ.get("HOURBELL_TEST_WORKERS", "2")
FILE_LINES = 450
FUNCTION_LINES = 60
# In two parts, so that this file may be searched like every other.
PRAGMA = "pragma:" + " no cover"
SEARCHED = ("*.py", "*.toml", "*.cfg", ".coveragerc")
UNSEARCHED = {".git", ".local", ".venv", "build", "cdk.out", "node_modules"}


def check(prepare: Callable[[], None]) -> None:
    """Run every step of the gate, even after one failed, and end with a summary.

    Raises:
        StepFailedError: One or more steps failed; the code is the first one's.
    """
    check_locks()
    prepare()
    steps: list[Callable[[], None]] = [
        check_pragmas,
        check_sizes,
        lambda: shell.run("lint", ["ruff", "check", "--output-format", "concise"]),
        lambda: shell.run("format", ["ruff", "format", "--check"]),
        lambda: shell.run("types", ["mypy"]),
        lambda: shell.run("imports", ["lint-imports", "--no-logo"]),
        lambda: schemas(["--check"]),
        lambda: synth([]),
        covered_tests,
        check_coverage,
        lambda: timed_tests([]),
    ]
    failures = [failure for step in steps if (failure := attempt(step))]
    for failure in failures:
        shell.complain(str(failure))
    if failures:
        names = ", ".join(failure.step for failure in failures)
        raise shell.StepFailedError("check", failures[0].code, names)
    shell.say(f"check: all {len(steps) + 1} steps passed")


def attempt(step: Callable[[], None]) -> shell.StepFailedError | None:
    """Run a step and return its failure, if it has one."""
    try:
        step()
    except shell.StepFailedError as failure:
        return failure
    return None


def check_locks() -> None:
    """Compare each lock with its inputs, without a network.

    Raises:
        StepFailedError: A lock is stale, unhashed, or names a host or a path.
    """
    shell.say("locks")
    problems = locks.problems()
    for problem in problems:
        shell.complain(problem)
    if problems:
        raise shell.StepFailedError("locks", 1, "run: python3 dev.py lock")


def check_pragmas() -> None:
    """Refuse comments that take lines out of the coverage count.

    Raises:
        StepFailedError: A file has one.
    """
    shell.say("no coverage exemptions")
    found = [str(path) for path in files_with(PRAGMA, shell.ROOT)]
    if found:
        raise shell.StepFailedError("no coverage exemptions", 1, ", ".join(found))


def check_sizes() -> None:
    """Refuse files and functions too long to be read in one go.

    Raises:
        StepFailedError: A file or function is longer than its limit.
    """
    shell.say("sizes")
    found = [
        f"{path.relative_to(shell.ROOT)}{finding}"
        for path in sources(shell.ROOT, "*.py")
        for finding in too_long(path.read_text(encoding="utf-8"))
    ]
    for finding in found:
        shell.complain(finding)
    if found:
        raise shell.StepFailedError("sizes", 1, f"{len(found)} too long")


def too_long(text: str) -> list[str]:
    """Return what is too long in a module's text, each with its place and length."""
    found = []
    lines = text.count("\n")
    if lines > FILE_LINES:
        found.append(f": {lines} lines, at most {FILE_LINES}")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                place = f":{node.lineno}: {node.name}"
                found.append(f"{place}: {lines} lines, at most {FUNCTION_LINES}")
    return found


def sources(root: Path, pattern: str) -> list[Path]:
    """Return the project's own files with a matching name, in order."""
    return [
        path
        for path in sorted(root.rglob(pattern))
        if not UNSEARCHED.intersection(path.relative_to(root).parts)
    ]


def files_with(text: str, root: Path) -> list[Path]:
    """Return the project's source and settings files that hold a text."""
    return [
        path
        for pattern in SEARCHED
        for path in sources(root, pattern)
        if text in path.read_text(encoding="utf-8")
    ]


def synth(arguments: list[str]) -> None:
    """Synthesize the stacks with the pinned CDK, without account, network or Docker.

    Raises:
        StepFailedError: The app or one of cdk-nag's rules failed.
    """
    shell.run(
        "synth",
        [
            *("cdk", "synth", "--quiet", "--no-notices", "--no-version-reporting"),
            *("--no-lookups", "--app", "python app.py", *arguments),
        ],
        retell=synth_line,
    )


def synth_line(line: str) -> str | None:
    """Return what to say for a line of `cdk synth`, which praises paths and asks back.

    It ends well only when no rule found anything: app.py runs cdk-nag.
    """
    if line.startswith("Supply a stack id"):
        return None
    told, _, folder = line.partition("Successfully synthesized to ")
    if told or not folder:
        return line
    path = os.path.relpath(folder, shell.ROOT)
    return f"Templates are in {path}; cdk-nag found nothing unacknowledged."


def schemas(arguments: list[str]) -> None:
    """Write schemas/openapi.json from the routes, or check that it is current.

    Raises:
        StepFailedError: It is stale, or breaks clients of the last release.
    """
    shell.run("schemas", ["python", "-m", "devtools.openapi", *arguments])


def pytest(step: str, arguments: Iterable[str], workers: str = WORKERS) -> None:
    """Run pytest, on both cores unless said otherwise.

    Texts are hashed alike each time, so that seeds of the simulation are replayed.

    Raises:
        StepFailedError: A test failed, or none ran.
    """
    os.environ.setdefault("PYTHONHASHSEED", "0")
    words = ["python", "-m", "pytest", "-n", workers]
    shell.run(step, [*words, *arguments])


def covered_tests() -> None:
    """Run all but the timed tests, on the same examples each time, with coverage.

    The end-to-end tests among them stay in one process, and wait most of the time.

    Raises:
        StepFailedError: A test failed, or none ran.
    """
    COVERAGE.unlink(missing_ok=True)
    os.environ.setdefault("HYPOTHESIS_PROFILE", "gate")
    report = [f"--cov-report=json:{COVERAGE}", "--cov-report=term"]
    pytest("tests", ["-m", UNTIMED, "--cov", *report])


def timed_tests(arguments: Iterable[str]) -> None:
    """Run the tests that measure time, alone.

    Raises:
        StepFailedError: A test failed, or none ran.
    """
    pytest("timed tests", ["-m", TIMED, *arguments], workers="0")


def check_coverage() -> None:
    """Hold the domain and the use cases to the least branch coverage.

    Raises:
        StepFailedError: A package is below it, or was not measured.
    """
    shell.say(f"branch coverage >= {LEAST_PERCENT:g} %")
    if not COVERAGE.exists():
        raise shell.StepFailedError("coverage", 1, "the tests wrote no report")
    files = json.loads(COVERAGE.read_text())["files"]
    low = []
    for package in COVERED:
        percent = branch_percent(files, package)
        shell.say(f"  {package}: {percent:.1f} % of branches")
        if percent < LEAST_PERCENT:
            low.append(f"{package} has {percent:.1f} %")
    if low:
        raise shell.StepFailedError("coverage", 1, ", ".join(low))


def branch_percent(files: Mapping[str, Any], package: str) -> float:
    """Return the share of a package's branches that ran; 0 when it has none."""
    summaries = [
        report["summary"] for path, report in files.items() if f"{package}/" in path
    ]
    branches = sum(summary["num_branches"] for summary in summaries)
    covered = sum(summary["covered_branches"] for summary in summaries)
    return 100.0 * covered / branches if branches else 0.0
