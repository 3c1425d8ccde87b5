"""The consumers of examples/, as programs: how each is started, and its books read."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from devtools import environments
from tests.consumers.required import lacking

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
STOP_SECONDS = 40


@dataclass(frozen=True)
class Example:
    """An example: its command, and how to look into its books.

    Attributes:
        command: returns it; skips the test when the machine cannot run it.
        books: place of the books -> how often each occurrence is in them.
    """

    name: str
    command: Callable[[], list[str]]
    books: Callable[[Path], Counter[str]]


def _sqlite_books(place: Path) -> Counter[str]:
    with closing(sqlite3.connect(place, timeout=30)) as connection:
        rows = connection.execute("SELECT occurrence_id FROM books").fetchall()
    return Counter(name for (name,) in rows)


def _file_books(place: Path) -> Counter[str]:
    documents = [json.loads(each.read_text()) for each in place.glob("*.json")]
    return Counter(each["occurrence_id"] for each in documents)


def _process() -> list[str]:
    return [sys.executable, str(EXAMPLES / "python_process/consumer.py")]


def _lambda() -> list[str]:
    event_source = ROOT / "tests/consumers/event_source.py"
    return [
        sys.executable,
        str(event_source),
        str(EXAMPLES / "python_lambda/handler.py"),
    ]


def in_nodejs(program: Path) -> list[str]:
    """Return the command of a program that has the packages of the example."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        lacking("Node.js with npm")
    environments.ensure_example()
    return [node, str(program)]


def _nodejs() -> list[str]:
    return in_nodejs(EXAMPLES / "nodejs/main.js")


def in_ruby(program: Path) -> list[str]:
    """Return the command of a program that has the gems of the example."""
    ruby = shutil.which("ruby")
    if ruby is None:
        lacking("Ruby")
    needs = [ruby, "-e", "require 'aws-sigv4'; require 'sqlite3'"]
    if subprocess.run(needs, check=False, capture_output=True).returncode:
        lacking("Ruby with aws-sigv4 and sqlite3")
    return [ruby, str(program)]


def _ruby() -> list[str]:
    return in_ruby(EXAMPLES / "ruby/main.rb")


ALL = (
    Example("python_process", _process, _sqlite_books),
    Example("python_lambda", _lambda, _sqlite_books),
    Example("nodejs", _nodejs, _file_books),
    Example("ruby", _ruby, _sqlite_books),
)


@dataclass
class Program:
    """A running consumer, and what it has printed."""

    process: "subprocess.Popen[str]"
    lines: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def has_printed(self, word: str) -> bool:
        return any(line.startswith(word) for line in list(self.lines))

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        """Ask it to end; return its exit code."""
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)


def _read(stream: Iterable[str], into: list[str]) -> None:
    # Each line is there as soon as it comes.
    into.extend(line.strip() for line in stream)


@contextmanager
def started(
    example: Example, books: Path, environment: Mapping[str, str]
) -> Iterator[Program]:
    """Run an example for as long as the block lasts, if not ended before."""
    process = subprocess.Popen(
        example.command(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONUNBUFFERED": "1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "EFFECTS": str(books),
            **environment,
        },
    )
    program = Program(process)
    threads = [
        threading.Thread(target=_read, args=(stream, into))
        for stream, into in (
            (process.stdout, program.lines),
            (process.stderr, program.errors),
        )
        if stream is not None
    ]
    for thread in threads:
        thread.start()
    try:
        yield program
    finally:
        if process.poll() is None:
            program.kill()
        for thread in threads:
            thread.join(10)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
