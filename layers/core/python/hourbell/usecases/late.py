"""Find what a late writer left in a bucket that the watermark has passed."""

from hourbell.domain.occurrence import RowKey
from hourbell.usecases.materialize import Plane, release_at
from hourbell.usecases.open_rows import is_unsent, open_keys
from hourbell.usecases.parking import ParkingLot
from hourbell.usecases.ports import Page


def late_keys(plane: Plane, page: Page, parked: ParkingLot) -> set[RowKey]:
    """Return the open rows of a passed bucket that nobody would come to.

    An occurrence that waited and was released is not among them: while it is unsent,
    its dispatch row speaks for it.
    """
    keys = {key for key in open_keys(page) if key not in parked}
    unsent = [row for row in page.rows if row.key in keys and is_unsent(row)]
    spoken_for = {
        row.key for row in unsent if row.backfilled_at is not None or row.waits
    }
    releases = {release_at(plane, row, row.planned_at).key: row.key for row in unsent}
    if releases:
        found = plane.timeline.look_up(releases).dispatches
        spoken_for |= {releases[each.key] for each in found if each.is_open}
    return keys - spoken_for
