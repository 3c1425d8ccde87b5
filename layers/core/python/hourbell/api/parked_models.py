"""Answers of the platform role's routes about parked rows."""

from typing import Annotated

from hourbell.api.documents import Answer, Instant, one_of
from hourbell.domain.instants import format_instant
from hourbell.domain.parking import ParkedRow, ParkReason
from hourbell.usecases.parked import ParkedList, parked_id


class ParkedAnswer(Answer):
    """A parked row.

    `partition` and `sort` are its key in the timeline. `tenant_id` is null when it is
    not known, `asked_at` when nobody asked for a try.
    """

    parked_id: str
    group: int
    partition: str
    sort: str
    reason: Annotated[str, one_of(ParkReason)]
    tenant_id: str | None
    since: Instant
    tries: int
    next_try_at: Instant
    asked_at: Instant | None


class ParkedListAnswer(Answer):
    """A page of parked rows, by group and key."""

    parked: list[ParkedAnswer]
    cursor: str | None


def parked_answer(row: ParkedRow) -> ParkedAnswer:
    """Return a parked row."""
    return ParkedAnswer(
        parked_id=parked_id(row),
        group=row.group,
        partition=row.key.partition,
        sort=row.key.sort,
        reason=row.reason,
        tenant_id=row.tenant_id,
        since=format_instant(row.since),
        tries=row.tries,
        next_try_at=format_instant(row.next_try_at),
        asked_at=row.asked_at and format_instant(row.asked_at),
    )


def parked_list_answer(page: ParkedList) -> ParkedListAnswer:
    """Return a page of parked rows."""
    return ParkedListAnswer(
        parked=[parked_answer(each) for each in page.rows], cursor=page.after
    )
