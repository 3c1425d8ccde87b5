"""What of a page still has to be done, since when, and what is wrong with it."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from hourbell.domain.dispatch import HANDOVER_GRACE, Dispatch, DispatchKind
from hourbell.domain.occurrence import Occurrence, RowKey, State, minute_of
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.shards import MINUTE
from hourbell.usecases.parking import unsent_since
from hourbell.usecases.ports import Page


def is_due(dispatch: Dispatch, now: datetime) -> bool:
    """Whether it is the pass's turn: of a handover, when its call had time for it."""
    is_handover = dispatch.kind is DispatchKind.HANDOVER
    return now >= dispatch.due + (HANDOVER_GRACE if is_handover else timedelta(0))


def open_keys(page: Page) -> set[RowKey]:
    """Return the keys of the rows that hold the watermark back unless parked."""
    rows = {row.key for row in page.rows if row.is_open}
    dispatches = {dispatch.key for dispatch in page.dispatches if dispatch.is_open}
    return rows | dispatches | set(page.unreadable)


def due_times(page: Page) -> Iterator[tuple[RowKey, datetime]]:
    """Yield the key of each open row, and when it was or is due."""
    for row in page.rows:
        if row.is_open:
            yield row.key, row.available_at or row.scheduled_for
    for dispatch in page.dispatches:
        if dispatch.is_open:
            yield dispatch.key, dispatch.due
    for key in page.unreadable:
        yield key, minute_of(key.bucket) + MINUTE


def is_unsent(row: Occurrence) -> bool:
    """Whether a row is an outbox record that is not acknowledged."""
    return row.state is State.SCHEDULED


def unsent_trouble(row: Occurrence) -> Trouble:
    """Return what is wrong with a record that stays unsent."""
    return Trouble(row.key, ParkReason.UNSENT, unsent_since(row), row.tenant_id)


def unreadable_trouble(key: RowKey) -> Trouble:
    """Return what is wrong with a row that cannot be read."""
    return Trouble(key, ParkReason.ROW_UNREADABLE, minute_of(key.bucket) + MINUTE)
