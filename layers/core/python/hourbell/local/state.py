"""What is written down about a running stack: state.json and the shell file."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hourbell.local.directory import StackDirectory, write_private
from hourbell.local.errors import NotRunning

STATE_VERSION = 1
STARTING, READY, FAILED = "starting", "ready", "failed"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys of one IAM user of the engine, and who it is."""

    access_key_id: str
    secret_access_key: str
    arn: str


@dataclass(frozen=True, slots=True)
class StackState:
    """One running stack, as its supervisor sees it.

    Attributes:
        status: `starting`, `ready` or `failed`.
        started_at: seconds since the epoch.
        environment: what the functions were told (`HOURBELL_...`), merged.
        queues: every queue's name and URL.
        outputs: every output of every stack.
        functions: name of a function -> its log group.
        stamp: content stamp of the inputs that were deployed.
    """

    stack_id: str
    supervisor_pid: int
    status: str
    started_at: float
    region: str
    endpoint_url: str
    root: Credentials
    engine_pid: int
    pump_pid: int | None = None
    pump_restarts: int = 0
    api_url: str = ""
    workers_url: str = ""
    operator: Credentials | None = None
    environment: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    queues: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    stamp: str = ""
    failure: str = ""
    version: int = STATE_VERSION

    @property
    def queue_urls(self) -> dict[str, str]:
        """Return queue key (`<tier>-<lane>`) -> URL of the delivery queues."""
        text = self.environment.get("HOURBELL_QUEUE_URLS", "{}")
        return {str(key): str(url) for key, url in json.loads(text).items()}

    def change(self, **members: Any) -> "StackState":
        """Return a copy with some members replaced."""
        return replace(self, **members)


def save_state(directory: StackDirectory, state: StackState) -> None:
    """Write state.json in one step."""
    text = json.dumps(asdict(state), indent=2, sort_keys=True)
    write_private(directory.state_file, text + "\n")


def load_state(directory: StackDirectory) -> StackState:
    """Read state.json.

    Raises:
        NotRunning: there is none that this version understands.
    """
    try:
        members = json.loads(directory.state_file.read_text(encoding="utf-8"))
        known = members["version"] == STATE_VERSION
    except (OSError, ValueError, KeyError) as error:
        raise _not_running(directory) from error
    if not known:
        raise _not_running(directory)
    for name in ("root", "operator"):
        members[name] = Credentials(**members[name]) if members[name] else None
    return StackState(**members)


def is_known(directory: StackDirectory) -> bool:
    """Return whether a stack lives here, or left something that tells of it."""
    return directory.state_file.is_file() or directory.is_locked()


def environment_lines(state: StackState) -> dict[str, str]:
    """Return what `.local/env` assigns: endpoints, operator keys, names."""
    operator = state.operator or Credentials("", "", "")
    return {
        "HOURBELL_ENDPOINT_URL": state.endpoint_url,
        "HOURBELL_API_URL": state.api_url,
        "HOURBELL_WORKERS_URL": state.workers_url,
        "AWS_ENDPOINT_URL": state.endpoint_url,
        "AWS_REGION": state.region,
        "AWS_DEFAULT_REGION": state.region,
        "AWS_ACCESS_KEY_ID": operator.access_key_id,
        "AWS_SECRET_ACCESS_KEY": operator.secret_access_key,
        **dict(sorted(state.environment.items())),
    }


def render_environment(assignments: Mapping[str, str]) -> str:
    """Return shell text: one quoted `NAME=value` a line, for `set -a; . file`."""
    return "".join(
        f"{name}={shlex.quote(text)}\n" for name, text in assignments.items()
    )


def parse_environment(text: str) -> dict[str, str]:
    """Read what `render_environment` wrote; comments and empty lines are skipped."""
    found: dict[str, str] = {}
    for word in shlex.split(text, comments=True):
        name, separator, value = word.partition("=")
        if separator:
            found[name] = value
    return found


def save_environment(directory: StackDirectory, state: StackState) -> None:
    """Write `.local/env`, readable by its owner only."""
    write_private(directory.env_file, render_environment(environment_lines(state)))


def _not_running(directory: StackDirectory) -> NotRunning:
    return NotRunning(
        f"No local stack runs in {directory.root}.", hint="hourbell local up"
    )
