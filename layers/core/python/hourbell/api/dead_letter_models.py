"""Bodies and answers of the routes of dead letters."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

from pydantic import Field

from hourbell.api.documents import Answer, Instant, WholeBody, one_of
from hourbell.api.job_models import ScheduleId
from hourbell.api.requests import Timestamp
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.retry import DeadReason
from hourbell.domain.work import DeadLetter
from hourbell.usecases.start_replay import WantedLetters

MAX_PER_MINUTE: Final = 100_000


class ReplayDeadLetters(WholeBody):
    """The body of POST /v1/dead-letters/replay; without it all are replayed."""

    schedule_id: Annotated[
        ScheduleId | None, Field(description="Of this schedule only.")
    ] = None
    since: Annotated[
        Timestamp | None, Field(description="What died then, or later.")
    ] = None
    until: Annotated[
        Timestamp | None, Field(description="What died before; now if null.")
    ] = None
    per_minute: Annotated[
        int | None,
        Field(
            ge=1,
            le=MAX_PER_MINUTE,
            description="How many are let go in a minute; the catch-up rate if null.",
        ),
    ] = None

    @property
    def wanted(self) -> WantedLetters:
        """Which dead letters it asks for."""
        return wanted_letters(self.schedule_id, self.since, self.until)


class DeadLetterAnswer(Answer):
    """That an occurrence is DEAD.

    `attempt` is the number of its last one, over all replays: 0 when there was none.
    """

    occurrence_id: str
    schedule_id: str
    died_at: Instant
    reason: Annotated[str, one_of(DeadReason)]
    attempt: int


class DeadLetterListAnswer(Answer):
    """A page of dead letters."""

    dead_letters: list[DeadLetterAnswer]
    cursor: str | None


def wanted_letters(
    schedule_id: str | None, since: str | None, until: str | None
) -> WantedLetters:
    """Return what the use cases take; the texts are valid in their form."""
    return WantedLetters(schedule_id, _read(since, "since"), _read(until, "until"))


def _read(text: str | None, field: str) -> datetime | None:
    return None if text is None else parse_instant(text, field=field)


def dead_letter_list_answer(
    letters: Sequence[DeadLetter], cursor: str | None
) -> DeadLetterListAnswer:
    """Return a page of dead letters."""
    return DeadLetterListAnswer(
        dead_letters=[
            DeadLetterAnswer(
                occurrence_id=each.occurrence_id,
                schedule_id=each.schedule_id,
                died_at=format_instant(each.died_at),
                reason=each.reason,
                attempt=each.attempt,
            )
            for each in letters
        ],
        cursor=cursor,
    )
