"""The embedded engine: one process that stands in for AWS on a loopback port."""

import http.client
import os
import secrets
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hourbell.local.directory import StackDirectory
from hourbell.local.errors import LocalStackError, NotPrepared
from hourbell.local.processes import (
    STACK_VARIABLE,
    Guarded,
    clean_environment,
    free_port,
    port_is_free,
    start_guarded,
)

HOST = "127.0.0.1"
REGION = "us-east-1"
ACCOUNT = "000000000000"
READY_SECONDS = 30.0
PORT_ATTEMPTS = 3
READY_PATH = "/_ministack/ready"
# Run by path: the engine's interpreter does not have this package.
ENGINE_MAIN = Path(__file__).with_name("engine_main.py")


@dataclass(frozen=True, slots=True)
class RootKeys:
    """The engine's root credentials; the engine never checks their signature."""

    access_key_id: str
    secret_access_key: str

    @classmethod
    def generate(cls) -> "RootKeys":
        """Make fresh keys for one start."""
        return cls(f"AKIAROOT{secrets.token_hex(6).upper()}", secrets.token_urlsafe(30))


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine."""

    process: Guarded
    port: int
    keys: RootKeys

    @property
    def endpoint_url(self) -> str:
        """Return the base URL of every AWS service."""
        return f"http://{HOST}:{self.port}"


def engine_python(project: Path) -> Path:
    """Return the interpreter that has the engine installed.

    Raises:
        NotPrepared: it has not been built.
    """
    named = os.environ.get("HOURBELL_ENGINE_PYTHON")
    python = Path(named) if named else project / ".local/engine-venv/bin/python"
    if not python.is_file():
        raise NotPrepared(
            f"The local engine is not installed: {python} is missing.",
            hint="python3 dev.py setup",
        )
    return python


def engine_environment(
    directory: StackDirectory, port: int, keys: RootKeys, stack_id: str
) -> dict[str, str]:
    """Return the engine's whole environment; its Lambda workers inherit it.

    Everything is disposable and private to the directory: nothing is persisted,
    temporary files (unzipped code, which workers leak) are wiped at the next start.
    """
    return clean_environment(
        AUTH="true",
        AWS_ACCESS_KEY_ID=keys.access_key_id,
        AWS_SECRET_ACCESS_KEY=keys.secret_access_key,
        BIND_HOST=HOST,
        GATEWAY_PORT=str(port),
        MINISTACK_REGION=REGION,
        MINISTACK_ACCOUNT_ID=ACCOUNT,
        PERSIST_STATE="0",
        S3_PERSIST="0",
        SFTP_ENABLED="0",
        IOT_MTLS_ENABLED="0",
        STATE_DIR=str(directory.run / "state"),
        S3_DATA_DIR=str(directory.run / "s3"),
        TMPDIR=str(directory.run / "tmp"),
        HOME=str(directory.run / "home"),
        # Never look for a container daemon: a reaper would search it at boot.
        DOCKER_HOST=f"unix://{directory.run / 'no-docker.sock'}",
        LOG_LEVEL=os.environ.get("HOURBELL_LOCAL_LOG_LEVEL", "WARNING"),
        # As in Lambda: UTC, unbuffered, and no byte code written to disk.
        TZ="UTC",
        PYTHONUNBUFFERED="1",
        PYTHONDONTWRITEBYTECODE="1",
        **{STACK_VARIABLE: stack_id},
    )


def start_engine(
    directory: StackDirectory, project: Path, stack_id: str, port: int | None = None
) -> Engine:
    """Start the engine and return when it answers.

    Args:
        directory: where its files go.
        project: where the engine's interpreter is.
        stack_id: the mark of the stack's processes.
        port: a loopback port; without it a free one is found.

    Raises:
        NotPrepared: it is not installed.
        LocalStackError: the port is taken, or the engine does not answer.
    """
    python = engine_python(project)
    if port is not None and not port_is_free(port):
        raise LocalStackError(
            f"Port {port} is in use.", hint="leave --port out to get a free one"
        )
    keys = RootKeys.generate()
    for attempt in range(1, PORT_ATTEMPTS + 1):
        chosen = port or free_port()
        process = start_guarded(
            "engine",
            [str(python), str(ENGINE_MAIN)],
            engine_environment(directory, chosen, keys, stack_id),
            directory.log("engine"),
        )
        if _answers(process, chosen):
            return Engine(process, chosen, keys)
        process.stop()
        # Somebody else may have taken the port between the probe and the start.
        if port is not None or attempt == PORT_ATTEMPTS or port_is_free(chosen):
            break
    code = process.exit_code
    what = f"ended with code {code}" if code else "does not answer"
    raise LocalStackError(
        f"The engine {what} (port {chosen}, {READY_SECONDS:.0f} s allowed).",
        log=process.log,
    )


def is_ready(port: int) -> bool:
    """Return whether an engine answers on this loopback port."""
    connection = http.client.HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", READY_PATH)
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _answers(process: Guarded, port: int) -> bool:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and not process.ended.is_set():
        if is_ready(port):
            return True
        time.sleep(0.05)
    return False


def package_python() -> str:
    """Return the interpreter that runs the pump: this one."""
    return sys.executable
