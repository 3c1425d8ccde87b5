"""What a backfill takes and answers."""

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import Field

from hourbell.api.documents import Answer, Instant, WholeBody, one_of
from hourbell.api.requests import MAX_REASON, Timestamp
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.occurrence import State
from hourbell.domain.overlap import Overlap
from hourbell.usecases.backfill_values import (
    EXPIRED,
    Backfilled,
    BackfillItem,
    BackfillRequest,
    Outcome,
    SkipReason,
)

MAX_TIMES: Final = 500
MAX_PER_MINUTE: Final = 6000


class BackfillTimes(WholeBody):
    """The body of POST /v1/schedules/{schedule_id}/backfill."""

    from_: Annotated[
        Timestamp, Field(alias="from", description="The first instant, included.")
    ]
    to: Annotated[
        Timestamp | None, Field(description="Where the range ends; now if null.")
    ] = None
    limit: Annotated[
        int, Field(ge=1, le=MAX_TIMES, description="Times at most, the oldest first.")
    ] = 100
    per_minute: Annotated[
        int,
        Field(ge=1, le=MAX_PER_MINUTE, description="How many are let go in a minute."),
    ] = 60
    pace_from: Annotated[
        Timestamp | None,
        Field(description="When the first is let go at the earliest; now if null."),
    ] = None
    overlap: Annotated[
        Literal["ALLOW", "SKIP_IF_RUNNING", "QUEUE_ONE"] | None,
        Field(description="Of one claimed while another one runs; null: as it has it."),
    ] = None
    reason: Annotated[str | None, Field(max_length=MAX_REASON)] = None

    def to_domain(self, *, dry_run: bool) -> BackfillRequest:
        """Return what the use case takes."""
        return BackfillRequest(
            first=parse_instant(self.from_, field="from"),
            last=_read(self.to, "to"),
            limit=self.limit,
            per_minute=self.per_minute,
            pace_from=_read(self.pace_from, "pace_from"),
            reason=self.reason,
            overlap=None if self.overlap is None else Overlap(self.overlap),
            dry_run=dry_run,
        )


def _read(text: str | None, field: str) -> datetime | None:
    return None if text is None else parse_instant(text, field=field)


class BackfillItemAnswer(Answer):
    """What became of one time.

    `state` is that of its row: null when there is none, EXPIRED when it is deleted.
    `occurrence_id` is null only while the time is not settled.
    """

    scheduled_for: Instant
    occurrence_id: str | None
    outcome: Annotated[str, one_of(Outcome)]
    state: Annotated[str, one_of(State, (EXPIRED,))] | None
    available_at: Instant | None
    reason: Annotated[str, one_of(SkipReason)] | None


class BackfillAnswer(Answer):
    """What a backfill did, or in a dry run would do.

    `complete` tells whether the whole range is done; if not, `next_from` is where to
    go on, and `pace_from` when. Times before `skipped_before` are too old.
    """

    dry_run: bool
    to: Instant
    created: int
    would_create: int
    existed: int
    skipped: int
    complete: bool
    next_from: Instant | None
    pace_from: Instant | None
    skipped_before: Instant | None
    items: list[BackfillItemAnswer]


def backfill_answer(done: Backfilled, *, dry_run: bool) -> BackfillAnswer:
    """Return the answer to a backfill."""
    complete = done.next_from is None
    return BackfillAnswer(
        dry_run=dry_run,
        to=format_instant(done.last),
        created=done.count(Outcome.CREATED),
        would_create=done.count(Outcome.WOULD_CREATE),
        existed=done.count(Outcome.EXISTS),
        skipped=done.count(Outcome.SKIPPED),
        complete=complete,
        next_from=_utc(done.next_from),
        pace_from=None if complete else _utc(done.pace_from),
        skipped_before=_utc(done.skipped_before),
        items=[_item(each) for each in done.items],
    )


def _item(item: BackfillItem) -> BackfillItemAnswer:
    return BackfillItemAnswer(
        scheduled_for=format_instant(item.scheduled_for),
        occurrence_id=item.occurrence_id,
        outcome=item.outcome,
        state=item.state,
        available_at=_utc(item.available_at),
        reason=item.reason,
    )


def _utc(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)
