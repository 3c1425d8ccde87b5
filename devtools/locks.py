"""Pin every dependency by hash, and tell without a network whether pins are fresh.

A lock starts with the hash of what it was resolved from. Freshness compares that hash
with the inputs of today; to resolve again would make the answer depend on the day.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from devtools import shell

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "# Made by `python3 dev.py lock` for every platform and Python >= 3.11.\n"
MARK = "# inputs-sha256: "

RESOLVE = (
    *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11"),
    *(
        "--generate-hashes",
        "--no-emit-index-url",
        "--no-emit-find-links",
        "--no-header",
    ),
)


@dataclass(frozen=True)
class Lock:
    """One hashed lock and what it is resolved from, as paths in the project."""

    name: str
    sources: tuple[str, ...]
    extras: tuple[str, ...] = ()
    constraint: str | None = None

    @property
    def path(self) -> str:
        """Return the lock's path in the project."""
        return f"requirements/{self.name}.txt"


LAYER = Lock("layer", ("pyproject.toml",))
DEV = Lock("dev", ("pyproject.toml", "requirements/dev.in"), ("cli",), LAYER.path)
ENGINE = Lock("engine", ("requirements/engine.in",))
# Where npm's packages are pinned: the CDK command line, the example in Node.js.
NPM_FOLDERS = (".", "examples/nodejs")
# In the order in which they are resolved: the layer's pins bind the developer's.
LOCKS = (LAYER, DEV, ENGINE)


def digest(*parts: str) -> str:
    """Return the SHA-256 of the parts, in hexadecimal."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def packaging(root: Path) -> dict[str, Any]:
    """Return the tables of pyproject.toml that decide what is installed, and how."""
    tables = tomllib.loads((root / "pyproject.toml").read_text())
    hatch = tables.get("tool", {}).get("hatch", {})
    return {
        "build": tables["build-system"],
        "project": tables["project"],
        "hatch": hatch,
    }


def requirements(root: Path, lock: Lock, source: str) -> str:
    """Return one source of a lock without what does not matter to it."""
    if source == "pyproject.toml":
        project = packaging(root)["project"]
        extras = project.get("optional-dependencies", {})
        wanted = {
            "python": project["requires-python"],
            "dependencies": project["dependencies"],
            "extras": {name: extras[name] for name in lock.extras},
        }
        return json.dumps(wanted, sort_keys=True)
    lines = (line.partition("#")[0].strip() for line in (root / source).open())
    return "\n".join(line for line in lines if line)


def pins(text: str) -> str:
    """Return a lock's text without its comments: what is installed only."""
    lines = text.splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("#"))


def fingerprint(root: Path, lock: Lock) -> str:
    """Return the hash of everything that a lock is resolved from."""
    parts = [requirements(root, lock, source) for source in lock.sources]
    if lock.constraint:
        parts.append(pins((root / lock.constraint).read_text()))
    return digest(*parts)


def problems(root: Path = shell.ROOT) -> list[str]:
    """Return what is wrong with the locks, one sentence each; empty when fresh."""
    found = [problem for lock in LOCKS for problem in _lock_problems(root, lock)]
    return found + _npm_problems(root)


def _lock_problems(root: Path, lock: Lock) -> list[str]:
    path = root / lock.path
    if not path.exists():
        return [f"{lock.path} is missing."]
    text = path.read_text()
    found = []
    if f"{MARK}{fingerprint(root, lock)}\n" not in text:
        found.append(f"{lock.path} is older than {' or '.join(lock.sources)}.")
    if re.search(r"\w://|@ |^-|^ *(/|\.\.)", pins(text), re.MULTILINE):
        found.append(f"{lock.path} names a host or a path.")
    unhashed = [
        line
        for line in pins(text).splitlines()
        if "==" in line and not line.endswith("\\")
    ]
    return found + [f"{lock.path} has no hash for {line}." for line in unhashed]


def _npm_problems(root: Path) -> list[str]:
    found = []
    for folder in NPM_FOLDERS:
        wanted = json.loads((root / folder / "package.json").read_text())
        lock = json.loads((root / folder / "package-lock.json").read_text())
        locked = lock["packages"]
        name = f"{folder}/package-lock.json".removeprefix("./")
        kinds = ("dependencies", "devDependencies")
        if any(locked[""].get(kind) != wanted.get(kind) for kind in kinds):
            found.append(f"{name} is older than package.json.")
        # Pages of packages that ask for money are no hosts to install from.
        if any("resolved" in package for package in locked.values()):
            found.append(f"{name} names a host.")
    return found


def renew(root: Path, arguments: list[str]) -> None:
    """Resolve every lock again; pins stay where they may, unless `--upgrade` is given.

    Raises:
        StepFailedError: A set of requirements has no solution, or no registry answered.
    """
    for lock in LOCKS:
        extras = [word for extra in lock.extras for word in ("--extra", extra)]
        bounds = ["--constraints", lock.constraint] if lock.constraint else []
        shell.run(
            f"resolve {lock.path}",
            [
                *(*RESOLVE, "--output-file", lock.path, *extras, *bounds),
                *(*arguments, *lock.sources),
            ],
        )
        path = root / lock.path
        mark = f"{MARK}{fingerprint(root, lock)}\n"
        path.write_text(HEADER + mark + path.read_text())
    for folder in NPM_FOLDERS:
        shell.run(
            f"resolve {folder}/package-lock.json".replace(" ./", " "),
            [
                *("npm", "install", "--prefix", folder, "--package-lock-only"),
                *("--ignore-scripts", "--omit-lockfile-registry-resolved"),
                *("--no-audit", "--no-fund"),
            ],
        )
