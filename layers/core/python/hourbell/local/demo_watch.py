"""Show how the demo's waiting goes: a live line on terminals, plain lines elsewhere."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

PLAIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Standing:
    """Where the waiting stands.

    Attributes:
        pending: (available_at, name) of what has not arrived, soonest first.
    """

    now: datetime
    delivered: int
    expected: int
    pending: tuple[tuple[datetime, str], ...]

    def describe(self) -> str:
        """Return what comes next and in how many seconds."""
        if not self.pending:
            return "all have arrived"
        instant, name = self.pending[0]
        together = sum(each == instant for each, _ in self.pending)
        what = name if together == 1 else f"{together} at once"
        ahead = (instant - self.now).total_seconds()
        if ahead < 0:
            return f"{what}: due since {-ahead:.0f} s"
        return f"next: {what} in {ahead:.0f} s"


class Watch(Protocol):
    """Whoever shows the waiting."""

    def show(self, standing: Standing) -> None:
        """Show where it stands now."""


class PlainWatch:
    """Prints a line for what has come through, and every ten seconds anyway."""

    def __init__(self) -> None:
        self._delivered = 0
        self._printed: datetime | None = None

    def show(self, standing: Standing) -> None:
        """Print the line if it tells something new."""
        if not self._is_news(standing):
            return
        self._printed, self._delivered = standing.now, standing.delivered
        print(
            f"received {standing.delivered} of {standing.expected}, "
            f"{standing.describe()}",
            file=sys.stderr,
            flush=True,
        )

    def _is_news(self, standing: Standing) -> bool:
        if self._printed is None:
            return True
        if (standing.now - self._printed).total_seconds() >= PLAIN_SECONDS:
            return True
        # A burst is one piece of news, when it is through.
        underway = bool(standing.pending) and standing.pending[0][0] <= standing.now
        return standing.delivered != self._delivered and not underway


class LiveWatch:
    """Moves a bar on a terminal."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("received", total=None, what="")

    def show(self, standing: Standing) -> None:
        """Move the bar."""
        self._progress.update(
            self._task,
            completed=standing.delivered,
            total=standing.expected,
            what=standing.describe(),
        )


@contextmanager
def watching() -> Iterator[Watch]:
    """Give what fits standard error."""
    if not sys.stderr.isatty():
        yield PlainWatch()
        return
    progress = Progress(
        TextColumn("[bold]received[/bold]"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TextColumn("[dim]{task.fields[what]}[/dim]"),
        console=Console(stderr=True),
    )
    with progress:
        yield LiveWatch(progress)
