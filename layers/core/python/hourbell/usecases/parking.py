"""The parked rows of a shard group, as one pass deals with them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.occurrence import CancelReason, Occurrence, RowKey, State
from hourbell.domain.parking import ParkedRow, ParkReason, Trouble, park
from hourbell.usecases.ports import Lease, Page, Parking, Write

# How many rows one pass parks, and how many parked ones it tries again, so that a pass
# which finds thousands has time left for all others.
MAX_PARKED: Final = 200
MAX_RETRIES: Final = 200

# Of rows that were canceled so, nothing follows.
_ENDED: Final = frozenset(
    {
        CancelReason.SUPERSEDED,
        CancelReason.PAUSED,
        CancelReason.CANCELED,
        CancelReason.ORPHANED,
    }
)


class ParkingLot:
    """The parked rows of a group during one pass.

    A row is parked before the watermark passes it, and forgotten only after the
    watermarks of the pass that found it done are stored: what it led to may lie behind
    the watermark, which is set back for that.

    Attributes:
        parked: rows that this pass parked.
        unparked: rows that it let go.
    """

    def __init__(self, parking: Parking, group: int) -> None:
        """Read what is parked.

        Raises:
            Transient: the store did not answer.
        """
        self._parking = parking
        self._group = group
        self._rows = {row.key: row for row in parking.parked(group)}
        self._leaving: dict[RowKey, ParkedRow] = {}
        self.parked = 0
        self.unparked = 0

    def __len__(self) -> int:
        """Return how many rows are parked."""
        return len(self._rows)

    def __contains__(self, key: RowKey) -> bool:
        """Whether the watermark may pass an open row."""
        return key in self._rows

    def due(self, now: datetime) -> list[ParkedRow]:
        """Return the rows to be tried again, those that wait longest first."""
        found = [row for row in self._rows.values() if row.next_try_at <= now]
        found.sort(key=lambda row: row.next_try_at)
        return found[:MAX_RETRIES]

    def admit(
        self, troubles: Iterable[Trouble], now: datetime, *, tried_at: datetime | None
    ) -> None:
        """Park the rows whose trouble has lasted, up to what one pass may.

        Args:
            troubles: of open rows.
            now: the current instant.
            tried_at: when the last pass before this one that tried them began.

        Raises:
            Transient: the store did not answer.
        """
        for trouble in troubles:
            if trouble.key in self._rows or not trouble.had_lasted(tried_at):
                continue
            if self.parked >= MAX_PARKED:
                return
            leaving = self._leaving.pop(trouble.key, None)
            if leaving is None:
                row = park(trouble, self._group, now)
                # One that is there is as good: the last pass may have put it.
                self.parked += self._parking.park(row) is Write.APPLIED
                self._rows[row.key] = row
            else:
                self.put_off(leaving, trouble, now)

    def put_off(self, row: ParkedRow, trouble: Trouble | None, now: datetime) -> None:
        """Leave a row alone for longer, since it was tried in vain."""
        later = row.put_off(trouble, now)
        self._parking.put_off(later)
        self._rows[row.key] = later

    def let_go(self, row: ParkedRow) -> None:
        """Take a row for done: it is forgotten once the watermarks are stored."""
        del self._rows[row.key]
        self._leaving[row.key] = row

    def forget(self) -> None:
        """Forget the rows that were found done.

        Raises:
            Transient: the store did not answer; the next try finds them again.
        """
        for row in self._leaving.values():
            self.unparked += self._parking.unpark(row) is Write.APPLIED


def tried_at(lease: Lease, *, is_lowest: bool) -> datetime | None:
    """Return when the last pass before a lease began that tried a bucket's rows.

    A finished pass tried all. One that its deadline ended began at the group's lowest
    watermark, so that what stands there is parked even if no pass ever finishes.

    Args:
        lease: of the pass that asks.
        is_lowest: whether the bucket was at the lowest watermark when it began.
    """
    passes = [lease.passed_at, lease.looked_at if is_lowest else None]
    return max((each for each in passes if each is not None), default=None)


def unsent_since(row: Occurrence) -> datetime:
    """Return since when the relay could have got rid of an outbox record."""
    due = row.available_at or row.scheduled_for
    return max(due, row.scheduled_at or due)


def is_waiting(row: ParkedRow, found: Page) -> bool:
    """Whether a parked row is still what it was parked as.

    An occurrence that became an outbox record since is not: it goes its usual way.

    Args:
        row: the parked row.
        found: what lies under its key now, and perhaps under others.
    """
    if row.key in found.unreadable:
        return True
    if any(each.key == row.key and each.is_open for each in found.dispatches):
        return True
    occurrence = _occurrence(row, found)
    unsent = row.reason is ParkReason.UNSENT
    waiting = State.SCHEDULED if unsent else State.PLANNED
    return occurrence is not None and occurrence.state is waiting


def leads_on(row: ParkedRow, found: Page) -> bool:
    """Whether a parked row that is done may have led to rows behind the watermark.

    The next time of an overdue occurrence, or the first one of a new version, may have
    been written there by a pass that ended before it came to it.
    """
    if row.reason is ParkReason.UNSENT:
        return False
    for dispatch in found.dispatches:
        if dispatch.key == row.key:
            return dispatch.kind is DispatchKind.HANDOVER
    occurrence = _occurrence(row, found)
    if occurrence is None or occurrence.state is not State.CANCELED:
        return True
    return occurrence.reason not in _ENDED


def _occurrence(row: ParkedRow, found: Page) -> Occurrence | None:
    return next((each for each in found.rows if each.key == row.key), None)
