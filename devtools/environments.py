"""Make and reuse what commands run in: `.venv`, `node_modules`, the engine's own.

Each is made from a lock and stamped when it is complete. An interrupted installation
has no stamp and is made anew; a stamp that does not fit the lock any more, likewise.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from devtools import locks, shell

if TYPE_CHECKING:
    from collections.abc import Callable

VENV = shell.ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
ENGINE_VENV = shell.LOCAL / "engine-venv"
NODE_MODULES = shell.ROOT / "node_modules"
NODE_EXAMPLE = shell.ROOT / "examples" / "nodejs"

PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "-qq")


def base_python() -> Path:
    """Return the installed interpreter, also when this one is a virtual environment's.

    An environment made from another one's interpreter would go when that is made anew.
    """
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def interpreter() -> str:
    """Return what a new environment is bound to: the interpreter and its release."""
    return f"{base_python()} {sys.version}"


def ensure(
    folder: Path,
    fingerprint: str,
    make: Callable[[], None],
    *,
    stamp: Path | None = None,
) -> bool:
    """Make the folder unless its stamp fits; return whether it was made.

    The stamp (in the folder unless said otherwise) is taken away before, and written
    after everything else: an interruption leaves none. Only one process makes a folder
    at a time.
    """
    stamp = stamp or folder / ".hourbell-stamp"
    if _fresh(folder, stamp, fingerprint):
        return False
    with shell.only_one(folder.name.lstrip(".")):
        if _fresh(folder, stamp, fingerprint):
            return False
        stamp.unlink(missing_ok=True)
        make()
        stamp.write_text(fingerprint)
    return True


def _fresh(folder: Path, stamp: Path, fingerprint: str) -> bool:
    return folder.is_dir() and stamp.exists() and stamp.read_text() == fingerprint


def ensure_venv() -> None:
    """Make `.venv` from requirements/dev.txt, with the package installed editable."""
    lock = locks.pins((shell.ROOT / locks.DEV.path).read_text())
    project = json.dumps(locks.packaging(shell.ROOT), sort_keys=True)

    def make() -> None:
        with shell.timed("install .venv"):
            _install(VENV, locks.DEV)

    def make_package() -> None:
        shell.run(
            "install hourbell, editable",
            [
                *(PYTHON, *PIP, "install", "--no-deps", "--no-build-isolation"),
                *("--editable", shell.ROOT),
            ],
        )

    ensure(VENV, locks.digest(interpreter(), str(VENV), lock), make)
    # A stamp of its own: a new entry point is no reason to install everything again.
    # It lies in the environment, so that it goes when that is made anew.
    ensure(
        VENV,
        locks.digest(project),
        make_package,
        stamp=VENV / ".hourbell-package-stamp",
    )


def ensure_engine() -> None:
    """Make the embedded engine's environment from requirements/engine.txt."""
    lock = locks.pins((shell.ROOT / locks.ENGINE.path).read_text())

    def make() -> None:
        with shell.timed("install the engine"):
            _install(ENGINE_VENV, locks.ENGINE)

    ensure(ENGINE_VENV, locks.digest(interpreter(), str(ENGINE_VENV), lock), make)


def _install(folder: Path, lock: locks.Lock) -> None:
    shell.run(
        f"make {folder.relative_to(shell.ROOT)}",
        [base_python(), "-m", "venv", "--clear", folder],
    )
    # Without --no-compile the cold start is twice as long: most modules never run.
    shell.run(
        f"install {lock.path}",
        [
            *(folder / "bin" / "python", *PIP, "install", "--no-compile", "--no-deps"),
            *("--require-hashes", "--only-binary", ":all:", "--requirement", lock.path),
        ],
    )


def ensure_node() -> None:
    """Install the pinned CDK command line into `node_modules`.

    Raises:
        StepFailedError: Node.js or npm is missing, or npm could not install.
    """
    for program in ("node", "npm"):
        if not shutil.which(program):
            hint = f"{program} was not found; install Node.js 18 or newer with npm"
            raise shell.StepFailedError("install the CDK command line", 127, hint)
    _install_packages("install the CDK command line", shell.ROOT)


def ensure_example() -> None:
    """Install what the consumer in Node.js needs into its own `node_modules`.

    Raises:
        StepFailedError: npm could not install.
    """
    _install_packages("install the example in Node.js", NODE_EXAMPLE)


def _install_packages(step: str, folder: Path) -> None:
    """Install what a folder's lock of npm pins, into its `node_modules`."""
    lock = (folder / "package-lock.json").read_text()

    def make() -> None:
        shell.run(
            step,
            [
                *("npm", "ci", "--prefix", folder, "--ignore-scripts"),
                *("--no-audit", "--no-fund", "--loglevel=error"),
            ],
        )

    ensure(folder / "node_modules", locks.digest(lock), make)
