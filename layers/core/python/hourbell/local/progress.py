"""Tell people what happens: one line per step, with its seconds."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Reporter(Protocol):
    """Whoever shows the steps of a start."""

    def step(self, title: str) -> AbstractContextManager[None]:
        """Show a step while it runs, and its seconds afterwards."""
        ...

    def note(self, text: str) -> None:
        """Show a line that belongs to the current step."""
        ...


class Silent:
    """Shows nothing: for tests and programs."""

    @contextmanager
    def step(self, title: str) -> Iterator[None]:  # noqa: ARG002 - Reporter's
        """Run the step."""
        yield

    def note(self, text: str) -> None:
        """Drop the line."""


class Plain:
    """Plain lines on standard error: for logs and pipes."""

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Print the step when it has ended."""
        started = time.monotonic()
        try:
            yield
        except BaseException:
            self.note(f"{title}: failed after {time.monotonic() - started:.1f} s")
            raise
        self.note(f"{title}: {time.monotonic() - started:.1f} s")

    def note(self, text: str) -> None:
        """Print the line."""
        print(text, file=sys.stderr, flush=True)


class Pretty:
    """A spinner while a step runs and a tick afterwards: for terminals."""

    def __init__(self) -> None:
        from rich.console import Console  # not needed by programs  # noqa: PLC0415

        self._console = Console(stderr=True, highlight=False)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show a spinner, then one line."""
        started = time.monotonic()
        mark = "[red]x[/red]"
        try:
            with self._console.status(f"{title} ..."):
                yield
            mark = "[green]+[/green]"
        finally:
            seconds = time.monotonic() - started
            self._console.print(f"{mark} {title} [dim]{seconds:.1f} s[/dim]")

    def note(self, text: str) -> None:
        """Print the line, indented."""
        self._console.print(f"  [dim]{text}[/dim]")


def reporter_for_terminal() -> Reporter:
    """Return what fits standard error: pretty on a terminal, else plain."""
    return Pretty() if sys.stderr.isatty() else Plain()
