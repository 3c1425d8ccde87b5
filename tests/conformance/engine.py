"""An embedded engine of a test session's own: private directories, a free port."""

import http.client
import os
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from boto3.session import Session

HOST = "127.0.0.1"
REGION = "us-east-1"
ROOT = "AKIAROOTCONFORMANCE1"
PROJECT = Path(__file__).parents[2]
READY_PROBES = 300


def engine_python() -> Path:
    """Return the interpreter that has the engine.

    Raises:
        FileNotFoundError: it has not been built.
    """
    named = os.environ.get("HOURBELL_ENGINE_PYTHON")
    python = Path(named) if named else PROJECT / ".local/engine-venv/bin/python"
    if not python.is_file():
        msg = f"the engine is not installed ({python} is missing): python3 dev.py setup"
        raise FileNotFoundError(msg)
    return python


@contextmanager
def running_engine(directory: Path) -> Iterator[str]:
    """Run an engine, and yield its endpoint."""
    port = _free_port()
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "STATE_DIR": str(directory / "state"),
        "S3_DATA_DIR": str(directory / "s3"),
        "AUTH": "true",
        "AWS_ACCESS_KEY_ID": ROOT,
        "AWS_SECRET_ACCESS_KEY": ROOT,
        "BIND_HOST": HOST,
        "GATEWAY_PORT": str(port),
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "PERSIST_STATE": "0",
        "DOCKER_HOST": f"unix://{directory}/no-docker.sock",
        "LOG_LEVEL": "WARNING",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    log = directory / "engine.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [engine_python(), "-m", "ministack"],
            env=environment,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _await_ready(process, port, log)
        yield f"http://{HOST}:{port}"
    finally:
        process.kill()
        process.wait()


def engine_session() -> Session:
    """Return a session that signs with the engine's root key."""
    return Session(
        aws_access_key_id=ROOT, aws_secret_access_key=ROOT, region_name=REGION
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _await_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(READY_PROBES):
        connection = http.client.HTTPConnection(HOST, port, timeout=5)
        try:
            connection.request("GET", "/_ministack/ready")
            if connection.getresponse().status == http.client.OK:
                return
        except OSError:
            pass
        finally:
            connection.close()
        try:
            process.wait(timeout=0.05)
        except subprocess.TimeoutExpired:
            continue
        break
    msg = f"the engine did not start:\n{log.read_text(errors='replace')}"
    raise RuntimeError(msg)
