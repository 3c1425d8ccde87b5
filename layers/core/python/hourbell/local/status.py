"""What a running stack looks like to people."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hourbell.local.engine import is_ready
from hourbell.local.processes import is_alive

if TYPE_CHECKING:
    from hourbell.local.stack import StackInfo

MINUTE = 60


@dataclass(frozen=True, slots=True)
class Report:
    """The state of a stack's parts at one moment.

    Attributes:
        up_seconds: since the start.
        workers: function -> living worker processes.
    """

    status: str
    up_seconds: int
    endpoint_url: str
    api_url: str
    engine_pid: int
    engine_answers: bool
    pump_pid: int | None
    pump_restarts: int
    supervisor_pid: int
    workers: dict[str, int]
    environment_file: str
    log_folder: str

    def rows(self) -> list[tuple[str, str]]:
        """Return name and text for a table."""
        minutes, seconds = divmod(self.up_seconds, MINUTE)
        engine = "answers" if self.engine_answers else "does not answer"
        pump = f"process {self.pump_pid}" if self.pump_pid else "not running"
        workers = ", ".join(
            f"{name} {count}" for name, count in sorted(self.workers.items())
        )
        return [
            ("status", f"{self.status}, up {minutes} min {seconds} s"),
            ("API", self.api_url),
            ("engine", f"{self.endpoint_url} {engine}, process {self.engine_pid}"),
            ("stream pump", f"{pump}, restarted {self.pump_restarts} times"),
            ("workers", workers or "none yet"),
            ("environment", self.environment_file),
            ("logs", self.log_folder),
        ]


def report(stack: "StackInfo", now: float) -> Report:
    """Look at a stack's parts; `now` is in seconds since the epoch."""
    state = stack.state
    workers: dict[str, int] = {}
    for function in stack.worker_pids().values():
        workers[function] = workers.get(function, 0) + 1
    port = int(state.endpoint_url.rpartition(":")[2])
    return Report(
        status=state.status,
        up_seconds=int(now - state.started_at),
        endpoint_url=state.endpoint_url,
        api_url=state.api_url,
        engine_pid=state.engine_pid,
        engine_answers=is_alive(state.engine_pid) and is_ready(port),
        pump_pid=stack.pump_pid,
        pump_restarts=state.pump_restarts,
        supervisor_pid=state.supervisor_pid,
        workers=workers,
        environment_file=str(stack.directory.env_file),
        log_folder=str(stack.logs),
    )
