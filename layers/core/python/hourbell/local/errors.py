"""What can go wrong with the local stack, said so that a person can act on it."""

from pathlib import Path

from hourbell.domain.errors import HourbellError

LOG_TAIL_LINES = 15


class LocalStackError(HourbellError):
    """The local stack could not do what was asked.

    Attributes:
        log: the file that tells more, if there is one.
        hint: the command or step that helps, if one is known.
        exit_code: what the command line ends with.
    """

    default_code = "local_stack"
    exit_code = 1

    def __init__(
        self, message: str, *, log: Path | None = None, hint: str | None = None
    ) -> None:
        super().__init__(message)
        self.log = log
        self.hint = hint

    def explain(self) -> str:
        """Return message, last lines of the log, its path, and the hint."""
        parts = [self.message]
        if self.log is not None:
            parts += [f"  | {line}" for line in tail(self.log)]
            parts.append(f"Log: {self.log}")
        if self.hint:
            parts.append(f"Try: {self.hint}")
        return "\n".join(parts)


class NotRunning(LocalStackError):
    """No local stack runs in this directory."""

    default_code = "not_running"
    exit_code = 3


class AlreadyRunning(LocalStackError):
    """A local stack already runs in this directory."""

    default_code = "already_running"
    exit_code = 4


class NotPrepared(LocalStackError):
    """Something that a developer command builds is missing."""

    default_code = "not_prepared"
    exit_code = 5


class DeployFailed(LocalStackError):
    """The engine refused the synthesized template."""

    default_code = "deploy_failed"
    exit_code = 6


def tail(path: Path, lines: int = LOG_TAIL_LINES) -> list[str]:
    """Return the last lines of a text file; none when it is missing."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.splitlines()[-lines:]
