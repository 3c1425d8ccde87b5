"""The ports of a shard group: its lease and watermarks, and its parked rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from hourbell.domain.occurrence import RowKey
from hourbell.domain.parking import ParkedRow
from hourbell.usecases.port_values import Lease, Write


class ShardGroups(Protocol):
    """Leases and watermarks of the shard groups."""

    def ensure(self, group: int, floor: datetime) -> None:
        """Create the group's record with this floor unless it exists.

        Called before the first row of a group is written, so that no scan can ever
        start later than a row.
        """
        ...

    def acquire(
        self, group: int, holder: str, *, now: datetime, duration: timedelta
    ) -> Lease | None:
        """Take the lease if it is free, expired, or the holder's own.

        Returns:
            the lease, or None while another holder's is alive, or no record exists.
        """
        ...

    def release(
        self,
        lease: Lease,
        watermarks: Mapping[int, datetime],
        passed_at: datetime | None = None,
        looked_at: datetime | None = None,
        looked_until: datetime | None = None,
    ) -> Write:
        """Store watermarks and give the lease back, if it is still this lease.

        A finished pass stores when it began, and so does a pass that was through with
        its second looks; one that got on with its last looks stores up to where. With
        None what is stored stays.

        Returns:
            APPLIED, or LOST when another holder took over.
        """
        ...


@dataclass(frozen=True, slots=True)
class ParkedPage:
    """Some parked rows of a group, in order of their places.

    Attributes:
        after: the place from which to read on; None at the end.
    """

    rows: tuple[ParkedRow, ...]
    after: str | None


class Parking(Protocol):
    """The parked rows of the shard groups.

    Passes of the group write them under its lease. Nothing goes wrong when a holder
    writes that lost its lease meanwhile: a row that was parked needlessly is found
    done and let go, and a row that was found done stays done. Whoever asks for a try
    needs no lease: what a pass makes of a row that it saw before is then refused.
    """

    def parked(self, group: int) -> tuple[ParkedRow, ...]:
        """Return all parked rows of a group in key order, by consistent reads.

        What cannot be read is left out, and told in the log.
        """
        ...

    def page(self, group: int, *, after: str | None, limit: int) -> ParkedPage:
        """Return parked rows of a group beyond a place, by a consistent read.

        What cannot be read is left out, so that a page may hold less than `limit`, or
        nothing, and not be the last.
        """
        ...

    def find(self, group: int, key: RowKey) -> ParkedRow | None:
        """Return a parked row, by a consistent read; None when it is not parked.

        Raises:
            Unreadable: what is parked cannot be read.
        """
        ...

    def ask(self, row: ParkedRow) -> Write:
        """Store `asked_at` and `next_try_at` of a parked row.

        Returns:
            APPLIED, or LOST unless it is parked with as many tries.
        """
        ...

    def park(self, row: ParkedRow) -> Write:
        """Park a row unless it is parked: APPLIED or EXISTS."""
        ...

    def put_off(self, row: ParkedRow) -> Write:
        """Store a parked row after one more try.

        Returns:
            APPLIED, or LOST unless it is parked with one try less and the same
            `asked_at`.
        """
        ...

    def unpark(self, row: ParkedRow) -> Write:
        """Forget a parked row.

        Returns:
            APPLIED, or LOST unless it is parked with as many tries and the same
            `asked_at`.
        """
        ...
