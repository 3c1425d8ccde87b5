"""`hourbell preview`: the next times of an expression, for people and for programs.

`--jsonl` reads one request a line, `{"expression", "zone", "start", "count"}` and
optionally `"dst": {"gap", "fold"}`, and writes one answer a line: `{"times": [...]}`
or `{"error": {"code", "message"}}`. Other members are ignored. It ends with exit code
0 whatever the lines say.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from textwrap import fill
from typing import Annotated, BinaryIO, Final, NoReturn

import typer

from hourbell.adapters.clock import SystemClock
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.schedule import Timing, never_fires
from hourbell.domain.timing_json import (
    Reader,
    read_choice,
    read_dst,
    read_instant,
    read_integer,
    read_text,
)
from hourbell.domain.zones import Fold, Gap
from hourbell.usecases.preview import (
    MAX_COUNT,
    PreviewTime,
    preview,
    preview_times,
)

MAX_LINE_BYTES: Final = 65_536
"""Longest line read by `--jsonl`."""

_INVALID: Final = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def show(
    expression: Annotated[
        str | None,
        typer.Argument(help="cron (five fields or cron(...)), at(...) or rate(...)."),
    ] = None,
    *,
    zone: Annotated[str, typer.Option(help="IANA zone of the local times.")] = "UTC",
    start: Annotated[
        str | None,
        typer.Option("--from", help="Instant with offset; now if left out."),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", help="How many times.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    gap: Annotated[
        str, typer.Option("--dst-gap", help="SKIP or NEXT_VALID.")
    ] = Gap.SKIP,
    fold: Annotated[
        str, typer.Option("--dst-fold", help="FIRST, SECOND or BOTH.")
    ] = Fold.FIRST,
    jsonl: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Answer each line of a file, or of -."),
    ] = None,
) -> None:
    """Show the next times of an expression, with notes on the zone's transitions."""
    if (expression is None) == (jsonl is None):
        raise typer.BadParameter("give either an expression or --jsonl FILE")
    if jsonl is not None:
        _answer_file(jsonl)
        return
    try:
        after = _instant(start)
        timing = Timing(
            expression or "",
            zone,
            read_choice(Gap, gap.upper(), "dst.gap"),
            read_choice(Fold, fold.upper(), "dst.fold"),
            # A rate counts from the start of the preview.
            start_at=None,
        )
        times = preview(timing, after, count)
        reason = None if times else never_fires(timing, after)
    except InvalidInput as error:
        _fail(error, as_json=as_json)
    if as_json:
        print(json.dumps(_document(timing, after, times, reason), indent=2))
    else:
        _print_table(timing, times, reason)


def answer_line(line: bytes) -> str:
    """Answer one line of `--jsonl` with one line, without its line end.

    Never raises for anything that a line can hold.
    """
    try:
        times = preview_times(*_read_request(line))
    except InvalidInput as error:
        answer: object = {
            "error": {"code": error.code, "message": describe(error.findings)}
        }
    else:
        answer = {"times": [format_instant(time) for time in times]}
    return json.dumps(answer)


def describe(findings: tuple[Finding, ...]) -> str:
    """Write findings as one line: where, what, and what was probably meant."""
    parts = []
    for finding in findings:
        meant = finding.suggestion
        hint = f" Did you mean {meant!r}?" if meant else ""
        parts.append(f"{finding.field}: {finding.message}{hint}")
    return " ".join(parts)


def _answer_file(name: str) -> None:
    if name == "-":
        _answer(sys.stdin.buffer)
        return
    with ExitStack() as opened:
        try:
            lines = opened.enter_context(Path(name).open("rb"))
        except OSError as problem:
            message = f"cannot read {name}: {problem.strerror}"
            raise typer.BadParameter(message) from problem
        _answer(lines)


def _answer(lines: BinaryIO) -> None:
    for line in _bounded(lines):
        sys.stdout.write(answer_line(line) + "\n")
        # Whoever writes the requests may wait for the answer to each.
        sys.stdout.flush()


def _bounded(lines: BinaryIO) -> Iterator[bytes]:
    """Yield the lines; of one that is too long only as much as shows that."""
    while line := lines.readline(MAX_LINE_BYTES + 1):
        rest = line
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = lines.readline(MAX_LINE_BYTES + 1)
        yield line


def _read_request(line: bytes) -> tuple[Timing, datetime, int]:
    reader = Reader(_members(line), "")
    expression = reader.need("expression", read_text)
    zone = reader.need("zone", read_text)
    start = reader.need("start", read_instant)
    count = reader.need("count", _read_count)
    gap, fold = reader.get("dst", read_dst) or (Gap.SKIP, Fold.FIRST)
    reader.finish()
    return Timing(expression, zone, gap, fold), start, count


def _read_count(value: object, field: str) -> int:
    return read_integer(value, field, 1, MAX_COUNT)


def _members(line: bytes) -> Mapping[str, object]:
    if len(line) > MAX_LINE_BYTES:
        message = f"The line is longer than {MAX_LINE_BYTES:,} bytes."
        raise InvalidInput.of("line", "line_too_long", message)
    try:
        members = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as problem:
        # Bytes that are no UTF-8 and numbers of too many digits are ValueErrors too.
        message = f"The line is not JSON ({str(problem)[:80]})."
        raise InvalidInput.of("line", "invalid_json", message) from problem
    if not isinstance(members, dict):
        message = "The line must be a JSON object."
        raise InvalidInput.of("line", "wrong_type", message)
    return members


def _instant(text: str | None) -> datetime:
    if text is None:
        return SystemClock().now()
    return parse_instant(text, field="from")


def _document(
    timing: Timing, after: datetime, times: list[PreviewTime], reason: Finding | None
) -> dict[str, object]:
    document: dict[str, object] = {
        "expression": timing.expression,
        "zone": timing.zone,
        "dst": {"gap": timing.gap, "fold": timing.fold},
        "from": format_instant(after),
        "times": [time.as_dict() for time in times],
    }
    if reason is not None:
        document["reason"] = reason.message
    return document


def _print_table(
    timing: Timing, times: list[PreviewTime], reason: Finding | None
) -> None:
    # Imported where people look: the other forms start without it.
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    if reason is not None:
        console.print(Text(reason.message, style="yellow"))
        return
    table = Table(title=Text(f"{timing.expression}  ({timing.zone})"))
    for heading in ("local time", "weekday", "UTC", "offset"):
        table.add_column(heading, no_wrap=True)
    table.add_column("notes")
    # Below the table a note has room; most times have none.
    notes: dict[str, int] = {}
    for time in times:
        marks = [notes.setdefault(note, len(notes) + 1) for note in time.notes]
        table.add_row(
            time.local.isoformat(sep=" "),
            time.weekday,
            format_instant(time.utc),
            time.offset,
            ", ".join(str(mark) for mark in marks),
        )
    console.print(table)
    for note, mark in notes.items():
        # Its further lines begin below the first one's text.
        first, further = f"{mark:>3}  ", " " * 5
        lines = fill(
            note, console.width, initial_indent=first, subsequent_indent=further
        )
        console.print(Text(lines, style="yellow"))


def _fail(error: InvalidInput, *, as_json: bool) -> NoReturn:
    message = describe(error.findings)
    if as_json:
        print(json.dumps({"error": {"code": error.code, "message": message}}))
    else:
        print(f"error: {message}", file=sys.stderr)
    raise typer.Exit(_INVALID)
