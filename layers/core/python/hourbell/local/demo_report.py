"""Show people what the demo found: one table, one summary."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from hourbell.local.demo_oracle import Kind
from hourbell.local.demo_verdict import LATE_SECONDS, Lags, Outcome, Verdict

MAX_LISTED = 10
WIDE = 110
LAG_NAMES = ("enqueue", "visible", "received")


def closing_table(verdict: Verdict, zone: str, *, with_ids: bool) -> Table:
    """Return the table: a row per occurrence, a row per tenant for the burst.

    Args:
        verdict: what was found.
        zone: for the local times.
        with_ids: show occurrence ids, which are 50 characters long.
    """
    table = Table(
        title=f"What was due in {zone}, and when it came",
        caption="Lags in seconds, against available_at. Of a burst: p50, p99 and max.",
        title_justify="left",
        caption_justify="left",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="bold underline",
    )
    table.add_column("occurrence", overflow="fold")
    for heading in ("scheduled for", "received UTC"):
        table.add_column(heading, no_wrap=True)
    for name in LAG_NAMES:
        table.add_column(name, justify="right", no_wrap=True)
    for outcome in verdict.outcomes:
        if outcome.expected.order.kind is not Kind.BURST:
            table.add_row(*_single(outcome, ZoneInfo(zone), with_id=with_ids))
    for outcomes in _by_tenant(verdict.outcomes).values():
        table.add_row(*_burst(outcomes, ZoneInfo(zone)))
    return table


def print_report(verdict: Verdict, zone: str, console: Console) -> None:
    """Print table, faults and summary."""
    console.print()
    with_ids = console.width >= WIDE
    _print_trimmed(closing_table(verdict, zone, with_ids=with_ids), console)
    for title, lines in _complaints(verdict):
        console.print(Text(f"{title} ({len(lines)}):", style="bold red"))
        for line in lines[:MAX_LISTED]:
            console.print(Text(f"  {line}"), soft_wrap=True)
        if len(lines) > MAX_LISTED:
            console.print(Text(f"  ... and {len(lines) - MAX_LISTED} more"))
    console.print(_summary(verdict))


def _print_trimmed(table: Table, console: Console) -> None:
    """Print a table whose lines end with their text: it is copied into reports."""
    for line in console.render_lines(table, pad=False):
        while line and not line[-1].text.strip():
            line.pop()
        if line:
            line[-1] = Segment(line[-1].text.rstrip(), line[-1].style)
        console.print(Segments([*line, Segment.line()]))


def _single(outcome: Outcome, zone: ZoneInfo, *, with_id: bool) -> list[str | Text]:
    expected = outcome.expected
    what = Text(expected.order.name, style="bold")
    what.append(f"\n{expected.order.queue}", style="not bold dim")
    if with_id:
        what.append(f"\n{expected.occurrence_id}", style="not bold dim")
    lags = [_seconds(getattr(outcome, f"{name}_lag")) for name in LAG_NAMES]
    return [what, _due(expected.scheduled_for, zone), _received(outcome), *lags]


def _burst(outcomes: Sequence[Outcome], zone: ZoneInfo) -> list[str | Text]:
    first = outcomes[0].expected
    tenant = first.order.customer.tenant_id
    what = Text(f"{len(outcomes)} at once, of {tenant}", style="bold")
    what.append(f"\n{first.order.queue}", style="not bold dim")
    arrivals = [o.received_at for o in outcomes if o.received_at is not None]
    received: str | Text = Text("none", style="bold red")
    if arrivals:
        received = f"{_clock(min(arrivals))}\n{_clock(max(arrivals))}"
    lags = [_percentiles(outcomes, name) for name in LAG_NAMES]
    return [what, _due(first.scheduled_for, zone), received, *lags]


def _by_tenant(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        order = outcome.expected.order
        if order.kind is Kind.BURST:
            found[order.customer.tenant_id].append(outcome)
    return found


def _percentiles(outcomes: Iterable[Outcome], name: str) -> str:
    found = (getattr(outcome, f"{name}_lag") for outcome in outcomes)
    lags = Lags.of(lag for lag in found if lag is not None)
    return "\n".join(_seconds(value) for value in (lags.p50, lags.p99, lags.max))


def _received(outcome: Outcome) -> Text:
    if outcome.received_at is None:
        return Text("missing", style="bold red")
    text = Text(_clock(outcome.received_at))
    if outcome.is_early:
        text.append("\nearly", style="bold red")
    if outcome.is_late:
        text.append("\nlate", style="bold red")
    if outcome.copies > 1:
        text.append(f"\n{outcome.copies} copies", style="yellow")
    return text


def _complaints(verdict: Verdict) -> list[tuple[str, list[str]]]:
    """Return what is wrong: title and lines, only where there are any."""

    def named(outcomes: Iterable[Outcome]) -> list[str]:
        return [
            f"{o.expected.order.name}  {o.expected.occurrence_id}  "
            f"received lag {_seconds(o.received_lag)}"
            for o in outcomes
        ]

    found = [
        ("Missing", named(o for o in verdict.outcomes if o.received_at is None)),
        ("Early", named(o for o in verdict.outcomes if o.is_early)),
        ("Late", named(o for o in verdict.outcomes if o.is_late)),
        ("Unexpected", list(verdict.unexpected)),
        ("Not what was promised", list(verdict.faults)),
    ]
    return [(title, lines) for title, lines in found if lines]


def _summary(verdict: Verdict) -> Text:
    style = "bold green" if verdict.is_good else "bold red"
    text = Text("\n")
    text.append("All arrived. " if verdict.is_good else "Not as promised. ", style)
    text.append(
        f"scheduled {len(verdict.outcomes)}, delivered {verdict.delivered}, "
        f"missing {verdict.missing}, early {verdict.early}, "
        f"later than {LATE_SECONDS:.0f} s {verdict.late}, "
        f"duplicates {verdict.duplicates}\n"
    )
    for name in LAG_NAMES:
        lags = verdict.lags(name)
        text.append(
            f"{name:>8} lag   p50 {_seconds(lags.p50)} s   "
            f"p99 {_seconds(lags.p99)} s   max {_seconds(lags.max)} s\n"
        )
    return text


def _due(instant: datetime, zone: ZoneInfo) -> str:
    """Return a time in local form and in UTC, a line each."""
    here = instant.astimezone(zone)
    offset = here.isoformat()[-6:]
    return f"{here:%a %H:%M:%S} {offset}\n{instant.astimezone(UTC):%a %H:%M:%S} UTC"


def _clock(instant: datetime) -> str:
    return instant.astimezone(UTC).time().isoformat(timespec="milliseconds")


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
