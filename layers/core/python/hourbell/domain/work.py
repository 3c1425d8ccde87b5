"""What is kept of work on occurrences besides their rows."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.domain.retry import Failure


class AttemptResult(StrEnum):
    """How an attempt ended."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    LEASE_EXPIRED = "LEASE_EXPIRED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that ended without success: an item under the occurrence's key.

    The current or last attempt stands on the row itself, so that the usual occurrence,
    which succeeds at once, needs no item.

    Attributes:
        number: over all replays, from 1.
        worker: what the worker calls itself.
        finished_at: when that became known.
        expires_at: when the store may delete it.
    """

    key: RowKey
    number: int
    lease_token: str
    worker: str
    started_at: datetime
    finished_at: datetime
    result: AttemptResult
    failure: Failure | None
    expires_at: datetime

    @property
    def sort(self) -> str:
        """Its sort key: the occurrence's, followed by `#A<n>`."""
        return f"{self.key.sort}#A{self.number}"


@dataclass(frozen=True, slots=True)
class OverlapLane:
    """Who of a schedule runs, and who waits; nobody of either kind is None.

    Attributes:
        holder: occurrence_id of the one that runs, or may.
        waiting: occurrence_id of the one that waits for it.
        revision: grows with every change; 0 for a lane that is not stored.
    """

    schedule_id: str
    holder: str | None = None
    waiting: str | None = None
    revision: int = 0

    def held_by(self, occurrence_id: str | None) -> "OverlapLane":
        """Return it with another holder, who does not wait any more."""
        waiting = None if self.waiting == occurrence_id else self.waiting
        return replace(
            self, holder=occurrence_id, waiting=waiting, revision=self.revision + 1
        )

    def awaited_by(self, occurrence_id: str | None) -> "OverlapLane":
        """Return it with another one waiting."""
        return replace(self, waiting=occurrence_id, revision=self.revision + 1)


@dataclass(frozen=True, slots=True)
class Slot:
    """One of the places of a tenant that may run so many occurrences at a time.

    Attributes:
        number: from 0.
        holder: occurrence_id of the one that runs there.
    """

    tenant_id: str
    number: int
    holder: str


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """That an occurrence is DEAD: kept by tenant, so that all can be found.

    Attributes:
        died_at: its `finished_at`.
        attempt: its last attempt; tells apart how often it died.
    """

    tenant_id: str
    occurrence_id: str
    died_at: datetime
    attempt: int
    reason: str
    expires_at: datetime

    @property
    def schedule_id(self) -> str:
        """Whose occurrence it is."""
        return self.occurrence_id.partition(".")[0]

    @classmethod
    def of(cls, row: Occurrence) -> "DeadLetter":
        """Return what is kept of a DEAD row."""
        if row.finished_at is None or row.expires_at is None:
            raise ValueError(f"{row.occurrence_id} is not over")
        return cls(
            row.tenant_id,
            row.occurrence_id,
            row.finished_at,
            row.attempt,
            row.reason or "",
            row.expires_at,
        )
