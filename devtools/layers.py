"""Build the layer of third-party code: once for Lambda, once for this interpreter.

Both hold the same pins. Their content depends on the lock and nothing else, so that an
unchanged lock gives an unchanged asset.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from devtools import environments, locks, shell

if TYPE_CHECKING:
    from pathlib import Path

BUILD = shell.ROOT / "layers" / "dependencies" / "build"
# AWS counts all layers and the function together; we want to stay far below.
LIMIT_MEGABYTES = 100

# Wheels for CPython 3.13 on arm64 with the C library of Amazon Linux 2023.
LAMBDA = (
    *("--implementation", "cp", "--python-version", "3.13"),
    *("--platform", "manylinux_2_28_aarch64"),
    *("--platform", "manylinux_2_17_aarch64"),
    *("--platform", "manylinux2014_aarch64"),
)
TARGETS: dict[str, tuple[str, ...]] = {"lambda": LAMBDA, "local": ()}

# botocore describes 400 services in 20 MB; functions use these.
SERVICES = {"dynamodb", "events", "lambda", "s3", "sqs", "ssm", "sts"}
CHAFF = ("__pycache__", "tests", "bin")
# Written by the installer, with paths and times of this machine.
CHAFF_FILES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
RECIPE = "1"  # raise it when the shape of a build changes


def ensure(target: str) -> Path:
    """Build one target unless it is fresh; return the folder that is the asset.

    Raises:
        StepFailedError: A wheel is missing, or the layer grew past its limit.
    """
    folder = BUILD / target
    lock = locks.pins((shell.ROOT / locks.LAYER.path).read_text())
    parts = [RECIPE, lock, *TARGETS[target], *sorted(SERVICES)]
    if target == "local":
        parts.append(environments.interpreter())
    environments.ensure(
        folder,
        locks.digest(*parts),
        lambda: build(target, folder),
        stamp=BUILD / f"{target}.stamp",  # beside the asset's content, not in it
    )
    return folder


def build(target: str, folder: Path) -> None:
    """Install the layer's lock aside, strip it, and put it where the asset belongs.

    Raises:
        StepFailedError: A wheel is missing, or the layer grew past its limit.
    """
    aside = folder.with_name(f".{target}.new")
    shutil.rmtree(aside, ignore_errors=True)
    python = aside / "python"
    python.mkdir(parents=True)
    shell.run(
        f"build the dependency layer ({target})",
        [
            *(environments.PYTHON, *environments.PIP, "install", "--no-compile"),
            *("--no-deps", "--require-hashes", "--only-binary", ":all:"),
            *TARGETS[target],
            *("--target", python, "--requirement", locks.LAYER.path),
        ],
    )
    strip(python)
    size = megabytes(aside)
    shell.say(f"dependency layer ({target}): {size:.1f} MB unzipped")
    if size > LIMIT_MEGABYTES:
        hint = f"{size:.0f} MB unzipped, at most {LIMIT_MEGABYTES} allowed"
        raise shell.StepFailedError(f"build the dependency layer ({target})", 1, hint)
    shutil.rmtree(folder, ignore_errors=True)
    aside.rename(folder)


def strip(python: Path) -> None:
    """Take away what no function needs, and what differs from machine to machine."""
    for path in sorted(python.rglob("*")):
        if not path.exists():
            continue  # went with its folder
        if path.is_dir() and path.name in CHAFF:
            shutil.rmtree(path)
        elif path.name in CHAFF_FILES and path.parent.suffix == ".dist-info":
            path.unlink()
    for kind in ("botocore/data", "boto3/data"):
        for path in sorted((python / kind).glob("*/")):
            if path.name not in SERVICES:
                shutil.rmtree(path)


def megabytes(folder: Path) -> float:
    """Return the size of all files under the folder, in megabytes (10^6 bytes)."""
    return (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
    )
