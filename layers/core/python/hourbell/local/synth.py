"""Synthesize the CDK app, but only when one of its inputs changed."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from hourbell.local.directory import exclusive
from hourbell.local.engine import ACCOUNT
from hourbell.local.errors import LocalStackError, NotPrepared
from hourbell.local.iam import platform_arn
from hourbell.local.processes import start_guarded

LAYER = Path("layers/dependencies/build/local")
# The layer counts by the stamp of its build, which stands for its content.
INPUT_FILES = ("app.py", "cdk.json", "package-lock.json", f"{LAYER}.stamp")
INPUT_FOLDERS = ("stacks", "functions", "layers/core", "schemas")
# No function imports these, and the stacks leave them out of the core layer.
UNPACKAGED = (
    "layers/core/python/hourbell/cli/",
    "layers/core/python/hourbell/local/",
)
SYNTH_SECONDS = 300.0
IGNORED = ("__pycache__", ".pyc", ".egg-info", ".mypy_cache", ".ruff_cache")
CONTEXT = {
    "platform": "local",
    "platform_principals": platform_arn(),
    # Any queue of the engine that is not the stack's own.
    "external_queue_arns": f"arn:aws:sqs:*:{ACCOUNT}:*",
}
# Version notices of the CDK's JavaScript bridge; they say nothing about the app.
QUIET = {
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_DEPRECATED_NODE_VERSION": "1",
    "JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION": "1",
    "CDK_DISABLE_CLI_TELEMETRY": "true",
}


def synthesize(project: Path, log: Path) -> tuple[Path, str, bool]:
    """Return the CDK output folder, its content stamp, and whether it was reused.

    Raises:
        NotPrepared: the CDK command line or the local layer build is missing.
        LocalStackError: the app does not synthesize; its log says why.
    """
    output = project / ".local/cdk.out"
    with exclusive(project / ".local/cdk.lock"):
        stamp = content_stamp(project)
        marker = output / ".stamp"
        if marker.is_file() and marker.read_text(encoding="utf-8") == stamp:
            return output, stamp, True
        _require_layer(project)
        _run_cdk(project, output, log)
        marker.write_text(stamp, encoding="utf-8")
    return output, stamp, False


def content_stamp(project: Path) -> str:
    """Return a hash over everything the synthesized templates depend on."""
    digest = hashlib.sha256(json.dumps(CONTEXT).encode())
    for path in _inputs(project):
        name = path.relative_to(project).as_posix()
        if name.startswith(UNPACKAGED):
            continue
        digest.update(name.encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _inputs(project: Path) -> Iterator[Path]:
    for name in INPUT_FILES:
        if (project / name).is_file():
            yield project / name
    for folder in INPUT_FOLDERS:
        yield from _files(project / folder)


def _files(folder: Path) -> Iterable[Path]:
    return (
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not any(mark in str(path) for mark in IGNORED)
    )


def _require_layer(project: Path) -> None:
    if not (project / LAYER).is_dir():
        raise NotPrepared(
            f"The layer of third-party packages is not built: {LAYER} is missing.",
            hint="python3 dev.py layers",
        )


def _run_cdk(project: Path, output: Path, log: Path) -> None:
    """Run `cdk synth` into a fresh folder, then put it in place."""
    cdk = project / "node_modules/.bin/cdk"
    if not cdk.exists():
        raise NotPrepared(
            f"The CDK command line is not installed: {cdk} is missing.",
            hint="python3 dev.py setup",
        )
    draft = output.with_name("cdk.out.draft")
    shutil.rmtree(draft, ignore_errors=True)
    options = [f"--context={name}={text}" for name, text in CONTEXT.items()]
    command = [
        *(str(cdk), "synth", "--quiet", f"--output={draft}", "--no-notices"),
        *("--no-version-reporting", "--no-path-metadata", *options),
    ]
    # Guarded like everything else: the CDK does not outlive us either.
    started = start_guarded("synth", command, _synth_environment(), log, project)
    if not started.ended.wait(SYNTH_SECONDS):
        started.stop()
    if started.exit_code != 0:
        raise LocalStackError(
            f"cdk synth failed with code {started.exit_code}.",
            log=log,
            hint="npx cdk synth -c platform=local",
        )
    shutil.rmtree(output, ignore_errors=True)
    draft.replace(output)


def _synth_environment() -> dict[str, str]:
    """Return the user's environment without AWS settings, this Python first."""
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith("AWS_")
    }
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", "")))
    return {**kept, **QUIET, "PATH": path}
