"""The ports of a shard group: its lease and watermarks, and its parked rows."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Protocol

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
    ) -> Write:
        """Store watermarks and give the lease back, if it is still this lease.

        A finished pass stores when it began, and so does a pass that was through with
        its second looks; with None what is stored stays.

        Returns:
            APPLIED, or LOST when another holder took over.
        """
        ...


class Parking(Protocol):
    """The parked rows of the shard groups.

    Passes of the group write them under its lease. Nothing goes wrong when a holder
    writes that lost its lease meanwhile: a row that was parked needlessly is found
    done and let go, and a row that was found done stays done.
    """

    def parked(self, group: int) -> tuple[ParkedRow, ...]:
        """Return all parked rows of a group in key order, by consistent reads.

        What cannot be read is left out, and told in the log.
        """
        ...

    def park(self, row: ParkedRow) -> Write:
        """Park a row unless it is parked: APPLIED or EXISTS."""
        ...

    def put_off(self, row: ParkedRow) -> Write:
        """Store a parked row after one more try.

        Returns:
            APPLIED, or LOST unless it is parked with one try less.
        """
        ...

    def unpark(self, row: ParkedRow) -> Write:
        """Forget a parked row.

        Returns:
            APPLIED, or LOST unless it is parked with as many tries.
        """
        ...
