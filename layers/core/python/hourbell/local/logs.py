"""Logs of the stack: files of its processes, and what functions wrote."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    import boto3

PROCESSES = ("engine", "pump", "synth")
FOLLOW_SECONDS = 0.5
OVERLAP_MS = 5_000  # a call's lines carry the time of its end, but may come late


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line a function wrote.

    Attributes:
        at_ms: milliseconds since the epoch.
        stream: the log stream; the engine makes one for each call.
    """

    at_ms: int
    text: str
    stream: str


def read_log(path: Path) -> str:
    """Return a log file's text; empty when it is missing."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def follow_file(path: Path) -> Iterator[str]:
    """Yield the lines of a file for ever, from its beginning."""
    position = 0
    rest = ""
    while True:
        if path.is_file():
            with path.open(encoding="utf-8", errors="replace") as stream:
                stream.seek(position)
                rest += stream.read()
                position = stream.tell()
            *lines, rest = rest.split("\n")
            yield from lines
        time.sleep(FOLLOW_SECONDS)


def function_log(
    session: "boto3.Session", log_group: str, since_ms: int = 0
) -> list[LogLine]:
    """Return a function's lines, oldest first; none when it never ran."""
    client = session.client("logs")
    pages = client.get_paginator("filter_log_events").paginate(
        logGroupName=log_group, startTime=since_ms
    )
    try:
        lines = [
            LogLine(event["timestamp"], event["message"], event["logStreamName"])
            for page in pages
            for event in page["events"]
        ]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ResourceNotFoundException":
            return []
        raise
    return sorted(lines, key=lambda line: line.at_ms)


def follow_function(session: "boto3.Session", log_group: str) -> Iterator[str]:
    """Yield a function's lines for ever, from the first."""
    shown: set[str] = set()
    since_ms = 0
    while True:
        lines = function_log(session, log_group, since_ms)
        yield from (line.text for line in lines if line.stream not in shown)
        shown.update(line.stream for line in lines)
        since_ms = max([since_ms, *(line.at_ms - OVERLAP_MS for line in lines)])
        time.sleep(FOLLOW_SECONDS)
