"""Parking: open rows that nothing can be done about are kept aside, and tried again.

A row that can never leave its state would hold its shard's watermark for ever, so that
every pass had more to read than the one before. When it is long overdue, its *key* is
parked with the reason, and the watermark may pass it; the row stays as it is.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from hourbell.domain.occurrence import RowKey

# How long after it should have been done a row is parked.
PARK_AFTER: Final = timedelta(minutes=15)

# The same where nothing is wrong with the row itself: what it waits for may be slow.
PARK_PATIENT_AFTER: Final = timedelta(hours=1)

# How long a parked row is left alone: at first, and at most.
FIRST_RETRY: Final = timedelta(minutes=15)
LAST_RETRY: Final = timedelta(hours=6)
# A queue that takes messages again gets them soon, since they are late already.
LAST_RETRY_UNSENT: Final = timedelta(hours=1)


class ParkReason(StrEnum):
    """Why a row could not be taken."""

    TENANT_GONE = "TENANT_GONE"
    HANDLER_GONE = "HANDLER_GONE"
    VERSION_UNREADABLE = "VERSION_UNREADABLE"
    # It makes no sense to this release; its zone may be gone.
    VERSION_INVALID = "VERSION_INVALID"
    ROW_UNREADABLE = "ROW_UNREADABLE"
    # What stands in the place of the next time cannot be read.
    NEXT_UNREADABLE = "NEXT_UNREADABLE"
    # Of a dispatch row: its occurrence cannot be read, or is not there.
    TARGET_UNREADABLE = "TARGET_UNREADABLE"
    DISPATCH_FAULTY = "DISPATCH_FAULTY"
    # Something else has to be decided first, such as a handover under way.
    HELD = "HELD"
    # An outbox record that the relay does not get rid of.
    UNSENT = "UNSENT"
    # Its writes get no clear answer.
    UNCLEAR = "UNCLEAR"

    @property
    def patience(self) -> timedelta:
        """How long after it should have been done a row is parked for it."""
        return PARK_PATIENT_AFTER if self in _PASSING else PARK_AFTER


_PASSING: Final = frozenset({ParkReason.UNSENT, ParkReason.UNCLEAR})


@dataclass(frozen=True, slots=True)
class Trouble:
    """An open row that a pass could not take.

    Attributes:
        due: when it should have been done.
        tenant_id: None when it is not known.
    """

    key: RowKey
    reason: ParkReason
    due: datetime
    tenant_id: str | None = None

    def had_lasted(self, tried_at: datetime | None) -> bool:
        """Whether it had lasted long enough when a pass before this one tried the row.

        The time alone is not enough: after an outage every row is late, and yet nobody
        has tried it.

        Args:
            tried_at: when that pass began; None when there was none.
        """
        return tried_at is not None and tried_at >= self.due + self.reason.patience


@dataclass(frozen=True, slots=True)
class ParkedRow:
    """A row that the watermark may pass although it is open.

    Attributes:
        group: the shard group whose passes try it again.
        reason: why it could not be taken the last time.
        since: when it was parked.
        tries: how often it was tried again in vain.
        next_try_at: when it is tried again.
        tenant_id: None when it is not known.
        asked_at: when somebody last asked for it to be tried at once; None if nobody
            did. A pass that saw an earlier one does not put it off or forget it.
    """

    group: int
    key: RowKey
    reason: ParkReason
    since: datetime
    next_try_at: datetime
    tries: int = 0
    tenant_id: str | None = None
    asked_at: datetime | None = None

    @property
    def place(self) -> str:
        """The key as one text, in whose order the rows of a group lie."""
        return f"{self.key.partition}#{self.key.sort}"

    def asked_for(self, now: datetime) -> "ParkedRow":
        """Return it to be tried by the next pass."""
        return replace(self, asked_at=now, next_try_at=min(self.next_try_at, now))

    def put_off(self, trouble: Trouble | None, now: datetime) -> "ParkedRow":
        """Return it after one more try in vain, to be tried again later.

        Args:
            trouble: what was wrong this time; None when nothing new is known.
            now: the current instant.
        """
        reason = self.reason if trouble is None else trouble.reason
        tenant_id = self.tenant_id if trouble is None else trouble.tenant_id
        tries = self.tries + 1
        return replace(
            self,
            reason=reason,
            tries=tries,
            next_try_at=now + _pause(reason, tries),
            tenant_id=tenant_id or self.tenant_id,
        )


def park(trouble: Trouble, group: int, now: datetime) -> ParkedRow:
    """Return what is kept of a row that could not be taken."""
    return ParkedRow(
        group,
        trouble.key,
        trouble.reason,
        now,
        now + FIRST_RETRY,
        tenant_id=trouble.tenant_id,
    )


def _pause(reason: ParkReason, tries: int) -> timedelta:
    """Return how long a row is left alone: doubling up to the reason's limit."""
    limit = LAST_RETRY_UNSENT if reason is ParkReason.UNSENT else LAST_RETRY
    # 15 minutes doubled five times are more than any limit.
    return min(limit, FIRST_RETRY * (1 << min(tries, 5)))
