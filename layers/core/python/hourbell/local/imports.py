"""Find functions that cannot be imported before anything waits for them.

The engine imports a handler at the first call and then only says in its own log
that it could not. Each combination of code and layers is tried once, when it is new.
"""

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from hourbell.local.errors import DeployFailed
from hourbell.local.processes import clean_environment

IMPORT_SECONDS = 60.0
AT_ONCE = 2
# What the engine's workers do: layers in front of the code, the later the further.
PROGRAM = """
import importlib, sys
module, name, *folders = sys.argv[1:]
sys.path[:0] = folders
getattr(importlib.import_module(module), name)
"""


@dataclass(frozen=True, slots=True)
class FunctionParts:
    """What a function is made of, on this machine.

    Attributes:
        handler: as in the template, `module.function`.
        layers: unpacked layers in the template's order.
        environment: the function's own variables.
    """

    name: str
    handler: str
    code: Path
    layers: tuple[Path, ...]
    environment: Mapping[str, str]

    @property
    def folders(self) -> tuple[str, ...]:
        """Return what the engine puts on Python's path, in order."""
        layers = (str(layer / "python") for layer in reversed(self.layers))
        return (*layers, str(self.code))

    @property
    def fingerprint(self) -> str:
        """Return a name for this combination of code, layers and handler."""
        return hashlib.sha256(repr((self.handler, self.folders)).encode()).hexdigest()


def check_imports(
    functions: Sequence[FunctionParts], python: Path, cache: Path
) -> None:
    """Import every function's handler that was not imported before.

    Raises:
        DeployFailed: names the function and quotes Python's last words.
    """
    new = [function for function in functions if not _marker(function, cache).exists()]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failures = list(pool.map(lambda function: _try(function, python), new))
    for function, failure in zip(new, failures, strict=True):
        if failure:
            raise DeployFailed(
                f"Function {function.name} cannot be imported: {failure}",
                hint=f"see {function.code}",
            )
        _marker(function, cache).touch()


def _marker(function: FunctionParts, cache: Path) -> Path:
    return cache / f"{function.fingerprint}.imported"


def _try(function: FunctionParts, python: Path) -> str:
    """Import one handler; return the last line of the traceback, or nothing."""
    module, _, name = function.handler.replace("/", ".").rpartition(".")
    environment = clean_environment(
        AWS_DEFAULT_REGION="us-east-1",
        AWS_REGION="us-east-1",
        AWS_LAMBDA_FUNCTION_NAME=function.name,
        PYTHONDONTWRITEBYTECODE="1",
        **function.environment,
    )
    done = subprocess.run(
        [str(python), "-c", PROGRAM, module, name, *function.folders],
        capture_output=True,
        text=True,
        env=environment,
        cwd=function.code,
        timeout=IMPORT_SECONDS,
        check=False,
    )
    if not done.returncode:
        return ""
    lines = done.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
