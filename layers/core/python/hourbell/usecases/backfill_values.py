"""What a backfill is asked for, and what it answers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from hourbell.domain.definition import Definition, Tracking
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.instants import format_instant
from hourbell.domain.overlap import Overlap
from hourbell.domain.retention import RETENTION

# State of a time that was backfilled and whose row is deleted by now.
EXPIRED = "EXPIRED"


class Outcome(StrEnum):
    """What became of one time; in a dry run, what would become of it."""

    CREATED = "created"
    WOULD_CREATE = "would_create"
    EXISTS = "exists"
    SKIPPED = "skipped"


class SkipReason(StrEnum):
    """Why a time was left alone.

    NOT_REACHED: its version has no row of it: it is yet to get there, or counts no
    further (`max_occurrences`). NOT_SETTLED: of a paused schedule, and so recent that
    a resume that is under way may come to own it.
    """

    NOT_REACHED = "not_reached"
    NOT_SETTLED = "not_settled"


@dataclass(frozen=True, slots=True)
class BackfillRequest:
    """What the caller asks for.

    Attributes:
        first: where the range begins, included.
        last: where it ends, excluded; now if None.
        limit: how many times are taken at most, the oldest first.
        per_minute: how many of the created ones may be received in a minute.
        pace_from: when the first may be received at the earliest; now if None.
        reason: kept with each time.
        overlap: what becomes of one that is claimed while another one runs; None for
            what its version says.
        dry_run: whether only to tell.
    """

    first: datetime
    last: datetime | None = None
    limit: int = 100
    per_minute: int = 60
    pace_from: datetime | None = None
    reason: str | None = None
    overlap: Overlap | None = None
    dry_run: bool = False

    def checked(self, now: datetime) -> datetime:
        """Return where the range ends.

        Raises:
            InvalidInput: it does not lie in the past, or ends before it begins; or the
                pace is to begin too late.
        """
        last = now if self.last is None else self.last
        findings = [
            *_after("from", self.first, now, "now"),
            *_after("to", last, now, "now"),
            *_after("pace_from", self.pace_from, now + RETENTION, "so far ahead"),
        ]
        if last <= self.first <= now:
            text = f"from must lie before to, {format_instant(last)}."
            shown = format_instant(self.first)
            findings.append(Finding("from", "reversed_range", text, shown))
        if findings:
            raise InvalidInput(findings=tuple(findings))
        return last

    def check_overlap(self, definitions: Iterable[Definition]) -> None:
        """Refuse a policy that some of the occurrences cannot have.

        Raises:
            InvalidInput: `overlap_needs_tracking`.
        """
        if self.overlap in {None, Overlap.ALLOW}:
            return
        if any(each.tracking is Tracking.UNTRACKED for each in definitions):
            raise InvalidInput.of(
                "overlap",
                "overlap_needs_tracking",
                f"{self.overlap} needs tracking TRACKED; some times of the range are "
                "of a version that is UNTRACKED.",
                found=str(self.overlap),
                suggestion=Overlap.ALLOW,
            )

    def overlap_of(self, definition: Definition) -> Overlap | None:
        """Return the policy that a row must carry; None where its version's holds."""
        return None if self.overlap == definition.overlap else self.overlap


def _after(
    field: str, instant: datetime | None, latest: datetime, what: str
) -> Iterator[Finding]:
    """Find fault with an instant that is too late."""
    if instant is not None and instant > latest:
        text = f"{field} must not be after {what}, {format_instant(latest)}."
        yield Finding(field, "out_of_range", text, format_instant(instant))


@dataclass(frozen=True, slots=True)
class BackfillItem:
    """What became of one time.

    Attributes:
        occurrence_id: None while it is not settled.
        state: of the row, as it was written or read; EXPIRED when it is deleted; None
            when there is none.
    """

    scheduled_for: datetime
    outcome: Outcome
    occurrence_id: str | None = None
    state: str | None = None
    available_at: datetime | None = None
    reason: SkipReason | None = None


@dataclass(frozen=True, slots=True)
class Backfilled:
    """What a call did.

    Attributes:
        items: the times that were taken, in order.
        last: where the range ends.
        next_from: the first time that was not taken; None when all were.
        pace_from: when the pace goes on after the created ones.
        skipped_before: times before it are left out, since rows of their age are
            deleted; None when the range begins later.
    """

    items: tuple[BackfillItem, ...]
    last: datetime
    next_from: datetime | None
    pace_from: datetime
    skipped_before: datetime | None = None

    def count(self, outcome: Outcome) -> int:
        """Return how many times had an outcome."""
        return sum(item.outcome is outcome for item in self.items)
