"""Where a local stack keeps its files, and how two starts are kept apart."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hourbell.local.errors import AlreadyRunning, NotPrepared

PROJECT_MARKERS = ("app.py", "cdk.json")
_KEPT = "lock"


def project_root(start: Path | None = None) -> Path:
    """Return the project's root: the nearest folder above with its CDK app.

    `HOURBELL_PROJECT` wins; then the working directory and its parents, then the
    place this package was installed from (editable).

    Raises:
        NotPrepared: no folder holds the CDK app.
    """
    named = os.environ.get("HOURBELL_PROJECT")
    if named:
        return Path(named).resolve()
    for origin in (start or Path.cwd(), Path(__file__)):
        for folder in (origin, *origin.resolve().parents):
            if all((folder / name).is_file() for name in PROJECT_MARKERS):
                return folder.resolve()
    raise NotPrepared(
        "This is not a Hourbell project: no folder above holds app.py and cdk.json.",
        hint="change into the project, or set HOURBELL_PROJECT",
    )


@dataclass(frozen=True, slots=True)
class StackDirectory:
    """The files of one local stack.

    Attributes:
        root: the folder; everything of the stack lies below it.
    """

    root: Path

    @classmethod
    def of(cls, root: Path | str) -> "StackDirectory":
        """Return the directory for a path, made absolute."""
        return cls(Path(root).resolve())

    @property
    def state_file(self) -> Path:
        """Return the file that says what runs (mode 0600)."""
        return self.root / "state.json"

    @property
    def env_file(self) -> Path:
        """Return the file of shell assignments for users (mode 0600)."""
        return self.root / "env"

    @property
    def platform_file(self) -> Path:
        """Return the same for the platform role (mode 0600)."""
        return self.root / "platform.env"

    @property
    def lock_file(self) -> Path:
        """Return the file whose lock the supervisor holds while it lives."""
        return self.root / "run" / _KEPT

    @property
    def logs(self) -> Path:
        """Return the folder of log files."""
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """Return the folder of the engine's and pump's private files."""
        return self.root / "run"

    def log(self, name: str) -> Path:
        """Return the log file of a process of the stack."""
        return self.logs / f"{name}.log"

    def wipe(self) -> None:
        """Remove what an earlier start left, and make the folders.

        Only the stack's own entries go: the folder may hold other things, as the
        project's `.local` does.
        """
        self.forget()
        shutil.rmtree(self.logs, ignore_errors=True)
        if self.run.is_dir():
            for entry in self.run.iterdir():
                if entry.name != _KEPT:
                    _remove(entry)
        for folder in ("tmp", "home", "state", "s3"):
            (self.run / folder).mkdir(parents=True, exist_ok=True)
        self.logs.mkdir(parents=True, exist_ok=True)

    def forget(self) -> None:
        """Remove what is written down about a stack that is no more."""
        for file in (self.state_file, self.env_file, self.platform_file):
            file.unlink(missing_ok=True)

    def is_locked(self) -> bool:
        """Return whether a supervisor lives in this directory."""
        try:
            with self.lock_file.open("r") as handle:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory for one supervisor.

        Raises:
            AlreadyRunning: another process holds it.
        """
        self.run.mkdir(parents=True, exist_ok=True)
        with self.lock_file.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AlreadyRunning(
                    f"A local stack already runs in {self.root}.",
                    hint=f"hourbell local down --dir {self.root}",
                ) from error
            yield


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold a lock file, waiting for whoever has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def write_private(path: Path, text: str) -> None:
    """Replace a file in one step, readable by its owner only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(text)
    draft.replace(path)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
