"""The local stack as a program sees it: start it, use it, take it down.

    with running() as stack:
        sqs = stack.operator_session().client("sqs", endpoint_url=stack.endpoint_url)

`running` starts a stack of its own in a directory, or attaches to the one that runs
there. Stacks in different directories do not know of each other.
"""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hourbell.local import iam
from hourbell.local.directory import StackDirectory, project_root
from hourbell.local.errors import LocalStackError, NotRunning
from hourbell.local.logs import (
    PROCESSES,
    follow_file,
    follow_function,
    function_log,
    read_log,
)
from hourbell.local.processes import (
    environment_of,
    is_alive,
    kill_stack,
    signal_process,
    stack_processes,
    wait_gone,
)
from hourbell.local.progress import Reporter, Silent
from hourbell.local.state import (
    READY,
    Credentials,
    StackState,
    load_state,
    parse_environment,
)
from hourbell.local.supervisor import Options, Supervisor

if TYPE_CHECKING:
    import boto3

STOP_SECONDS = 15.0
FUNCTION_VARIABLE = "AWS_LAMBDA_FUNCTION_NAME"


def session_for(endpoint_url: str, region: str, keys: Credentials) -> "boto3.Session":
    """Return a boto3 session whose clients all go to the engine."""
    from hourbell.local.aws import engine_session  # boto3 is slow  # noqa: PLC0415

    return engine_session(
        endpoint_url, region, keys.access_key_id, keys.secret_access_key
    )


class StackInfo:
    """A running local stack: where things are, and handles to break them."""

    def __init__(self, directory: StackDirectory) -> None:
        self.directory = directory

    @property
    def state(self) -> StackState:
        """Return the state as written now (the pump's id changes with a restart)."""
        return load_state(self.directory)

    @property
    def endpoint_url(self) -> str:
        """Return the base URL of every AWS service."""
        return self.state.endpoint_url

    @property
    def api_url(self) -> str:
        """Return the base URL of the HTTP API, without a slash at its end."""
        return self.state.api_url

    @property
    def workers_url(self) -> str:
        """Return the URL of the workers' function, without a slash at its end."""
        return self.state.workers_url

    @property
    def region(self) -> str:
        """Return the region that everything is signed for."""
        return self.state.region

    @property
    def tables(self) -> dict[str, str]:
        """Return logical name (`timeline`) -> table name."""
        return self.state.tables

    @property
    def queue_urls(self) -> dict[str, str]:
        """Return queue key (`premium-strict`) -> URL of the delivery queues."""
        return self.state.queue_urls

    @property
    def queues(self) -> dict[str, str]:
        """Return name -> URL of every queue, internal ones and DLQs included."""
        return self.state.queues

    @property
    def logs(self) -> Path:
        """Return the folder of the processes' log files."""
        return self.directory.logs

    @property
    def engine_pid(self) -> int:
        """Return the id of the engine's process."""
        return self.state.engine_pid

    @property
    def pump_pid(self) -> int | None:
        """Return the id of the pump's process; None while there is none."""
        pid = self.state.pump_pid
        return pid if is_alive(pid) else None

    def worker_pids(self, function: str | None = None) -> dict[int, str]:
        """Return process id -> function of the living Lambda workers (Linux only).

        Args:
            function: only workers of the function of this name.
        """
        found = {
            pid: environment_of(pid).get(FUNCTION_VARIABLE, "")
            for pid in stack_processes(self.state.stack_id)
        }
        return {
            pid: name
            for pid, name in found.items()
            if name and function in (None, name)
        }

    def kill_pump(self) -> int:
        """Kill the pump with SIGKILL; return its process id."""
        pid = self.pump_pid
        if pid is None:
            raise NotRunning("The pump does not run.")
        signal_process(pid, signal.SIGKILL)
        return pid

    def kill_workers(self, function: str | None = None) -> list[int]:
        """Kill Lambda workers with SIGKILL; return their process ids."""
        pids = list(self.worker_pids(function))
        return [pid for pid in pids if signal_process(pid, signal.SIGKILL)]

    def admin_session(self) -> "boto3.Session":
        """Return a session of the engine's root: for arranging, not for proving."""
        state = self.state
        return session_for(state.endpoint_url, state.region, state.root)

    def operator_session(self) -> "boto3.Session":
        """Return a session of the operator, the user that `.local/env` names."""
        state = self.state
        if state.operator is None:
            raise NotRunning("The stack is not deployed yet.")
        return session_for(state.endpoint_url, state.region, state.operator)

    @property
    def platform_keys(self) -> Credentials:
        """Return the keys of the platform role's user, which administers tenants."""
        written = self.directory.platform_file.read_text(encoding="utf-8")
        found = parse_environment(written)
        return Credentials(
            found["AWS_ACCESS_KEY_ID"],
            found["AWS_SECRET_ACCESS_KEY"],
            iam.platform_arn(),
        )

    def session_of(self, keys: Credentials) -> "boto3.Session":
        """Return a session of any user of this stack."""
        state = self.state
        return session_for(state.endpoint_url, state.region, keys)

    def create_user(
        self, name: str, policy: Mapping[str, Any] | None = None
    ) -> Credentials:
        """Create an IAM user; without a policy it may call the HTTP API only."""
        return iam.create_user(
            self.admin_session(), name, policy or iam.invoke_api_policy()
        )

    def process_log(self, name: str) -> str:
        """Return the text of a process's log: `engine`, `pump`, `synth`."""
        return read_log(self.directory.log(name))

    def function_log(self, function: str) -> list[str]:
        """Return the log lines of a function, oldest first."""
        group = self.state.functions[function]
        return [line.text for line in function_log(self.admin_session(), group)]

    def log_names(self) -> list[str]:
        """Return what has a log: processes that ran, then all functions."""
        ran = [name for name in PROCESSES if self.directory.log(name).is_file()]
        return [*ran, *sorted(self.state.functions)]

    def log_lines(self, name: str) -> list[str]:
        """Return the lines of a process or a function, whichever has this name.

        Raises:
            NotRunning: neither has.
        """
        if self.directory.log(name).is_file():
            return self.process_log(name).splitlines()
        function = self._function(name)
        # What keeps a worker from starting is only in the engine's log.
        failures = [
            line
            for line in self.process_log("engine").splitlines()
            if f"error for {function}:" in line
        ]
        return [*self.function_log(function), *failures]

    def follow_log(self, name: str) -> Iterator[str]:
        """Yield the lines of a process or a function as they come, for ever."""
        if self.directory.log(name).is_file():
            return follow_file(self.directory.log(name))
        group = self.state.functions[self._function(name)]
        return follow_function(self.admin_session(), group)

    def _function(self, name: str) -> str:
        """Return the function of this name, or whose name ends with it."""
        known = self.state.functions
        matching = [each for each in known if each == name or each.endswith(f"-{name}")]
        if len(matching) != 1:
            raise NotRunning(
                f"No log is named {name!r}.",
                hint=f"one of: {', '.join(self.log_names())}",
            )
        return matching[0]

    @staticmethod
    def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
        """Wait until a condition holds.

        Raises:
            LocalStackError: it does not within the time.
        """
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise LocalStackError(f"Waited {seconds} s for {what}.")
            time.sleep(0.02)


class LocalStack:
    """Starts a stack as this process's own, and takes it down again."""

    def __init__(
        self,
        directory: StackDirectory,
        options: Options | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.directory = directory
        self._supervisor = Supervisor(
            self.directory, options or Options(), reporter or Silent()
        )

    def start(self) -> StackInfo:
        """Start engine and pump, deploy, and return when all is ready."""
        self._supervisor.start()
        return StackInfo(self.directory)

    def stop(self) -> None:
        """Take everything down; safe to call twice."""
        self._supervisor.stop()


def attach(place: StackDirectory) -> StackInfo:
    """Return the stack that runs in a directory.

    Raises:
        NotRunning: none does, or it is not ready.
    """
    if not place.is_locked() or load_state(place).status != READY:
        raise NotRunning(
            f"No local stack is ready in {place.root}.", hint="hourbell local up"
        )
    return StackInfo(place)


@contextmanager
def running(
    directory: Path | str | None = None,
    *,
    options: Options | None = None,
    reporter: Reporter | None = None,
    reuse: bool = True,
) -> Iterator[StackInfo]:
    """Give a running stack, started for the time of the block if none runs there.

    Args:
        directory: its own folder, so that stacks can run side by side; `.local` of
            the project by default.
        options: how to start one.
        reporter: who shows the steps; nobody by default.
        reuse: attach to a stack that runs there already, and leave it running.

    Raises:
        AlreadyRunning: one runs there and may not be reused.
        LocalStackError: it cannot be started; the message says what and where.
    """
    place = StackDirectory.of(directory or project_root() / ".local")
    if reuse and place.is_locked():
        yield attach(place)
        return
    stack = LocalStack(place, options, reporter)
    try:
        yield stack.start()
    finally:
        stack.stop()


def take_down(place: StackDirectory) -> int:
    """Stop the stack of a directory whoever started it; return what was killed.

    Also removes what a stack without a supervisor left behind.

    Raises:
        NotRunning: there is nothing to stop.
    """
    state = load_state(place)
    if place.is_locked():
        signal_process(state.supervisor_pid, signal.SIGTERM)
        if wait_gone([state.supervisor_pid], STOP_SECONDS):
            signal_process(state.supervisor_pid, signal.SIGKILL)
    killed = kill_stack(state.stack_id)
    place.forget()
    return killed
