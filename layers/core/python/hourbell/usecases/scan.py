"""One scan of a shard group: materialize, sweep, and move the watermarks."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hourbell.usecases.last_look import LastLooks, look_last
from hourbell.usecases.loads import count_pass
from hourbell.usecases.parking import ParkingLot
from hourbell.usecases.ports import GroupWork, Lease, Write
from hourbell.usecases.scanning import Scan, Scanner
from hourbell.usecases.tally import NOTHING, Tally

__all__ = ["LEASE_DURATION", "PassReport", "Scanner", "run_pass"]

# Longer than the materializer may run (50 s), so that a lease outlives its holder's
# work and need not be renewed, also where the next one's clock is some seconds ahead;
# and shorter than a tick, so that a dead holder costs one pass. A holder that was
# stopped for longer than that still does no harm: its writes are conditional, and its
# watermarks are refused.
LEASE_DURATION = timedelta(seconds=55)


@dataclass(frozen=True, slots=True)
class PassReport:
    """What one pass did.

    Attributes:
        leased: False when another holder has the group, or nothing was ever
            written to it; then all else is zero.
        tally: what materializing did.
        rows: rows read.
        swept: outbox records handed to the relay.
        released: deferred occurrences that became outbox records.
        vain: dispatch rows that were settled since no occurrence comes any more.
        handovers: interrupted handovers that were finished.
        completed: completion records that were worked off.
        unreadable: rows that this release cannot read.
        unclaimed: occurrences that are DEAD since nobody can receive their message.
        faulty: dispatch rows that could not be worked off for a lasting reason, and
            occurrences that may be unclaimed and could not be seen to.
        late: open rows that were found behind a watermark.
        parked: rows that were parked.
        unparked: parked rows that were found done.
        parked_rows: rows that are parked after the pass.
        finished: False when the deadline ended the pass early.
        continued: whether the order was put back on the work queue, for the rest.
        kept: False when the lease was lost before the watermarks were stored.
        counted: False when the statistic of loads could not be added to.
        oldest: the group's lowest watermark after the pass.
        pending_since: since when the open row that is due longest has been due, parked
            ones aside; None when none was found. Of a pass that its deadline ended, it
            is the lowest watermark if that is earlier, as what it did not read may be
            that old.
        drain: how long passes would take for what the deadline left, at this one's
            speed; None when that cannot be told.
    """

    leased: bool
    tally: Tally = NOTHING
    rows: int = 0
    swept: int = 0
    released: int = 0
    vain: int = 0
    handovers: int = 0
    completed: int = 0
    unclaimed: int = 0
    unreadable: int = 0
    faulty: int = 0
    late: int = 0
    parked: int = 0
    unparked: int = 0
    parked_rows: int = 0
    finished: bool = True
    continued: bool = False
    kept: bool = True
    counted: bool = True
    oldest: datetime | None = None
    pending_since: datetime | None = None
    drain: timedelta | None = None


def run_pass(
    scanner: Scanner,
    work: GroupWork,
    *,
    holder: str,
    deadline: datetime | None = None,
) -> PassReport:
    """Scan a group's buckets from its watermarks to the horizon, under its lease.

    A pass that its deadline ended and that got something done puts its order back on
    the work queue, so that a backlog does not wait for ticks. A pass without the lease
    does not, so that orders do not become more.

    Args:
        scanner: the ports.
        work: which group.
        holder: who asks; unique to this attempt.
        deadline: when to stop and save what was reached.

    Raises:
        Transient: a store or queue did not answer; the lease is given back and
            watermarks already reached are stored.
    """
    groups, clock = scanner.groups, scanner.clock
    lease = groups.acquire(work.group, holder, now=clock.now(), duration=LEASE_DURATION)
    if lease is None:
        return PassReport(leased=False)
    started = clock.now()
    watermarks = dict(lease.watermarks)
    try:
        lot = ParkingLot(scanner.parking, work.group)
        scan = Scan(scanner, lease, watermarks, lot, deadline)
        finished = scan.run(started)
        looks = _last_looks(scanner, lease, scan.oldest, deadline, is_time=finished)
    except Exception:
        # Whatever it is, the group must not stay leased to a pass that is over.
        groups.release(lease, watermarks)
        raise
    passed_at = started if finished else None
    kept = groups.release(lease, watermarks, passed_at, scan.looked_at, looks.until)
    continued = False
    if kept is Write.APPLIED:
        lot.forget()
        # Only now, when the lease is free. A pass that got nothing done would get
        # nothing done again at once: it waits for the next tick.
        continued = not finished and scan.has_progressed
    if continued:
        scanner.work_queue.put([work])
    counted = count_pass(scanner.plane.loads, scan.tally.minutes)
    report = _reported(scan, lot, started, clock.now(), finished=finished)
    return replace(
        report,
        unclaimed=report.unclaimed + looks.unclaimed,
        faulty=report.faulty + looks.faulty,
        continued=continued,
        kept=kept is Write.APPLIED,
        counted=counted,
    )


def _last_looks(
    scanner: Scanner,
    lease: Lease,
    oldest: datetime,
    deadline: datetime | None,
    *,
    is_time: bool,
) -> LastLooks:
    """Look at what is days old, if all that is due is done in time."""

    def is_over() -> bool:
        return deadline is not None and scanner.clock.now() >= deadline

    if not is_time:
        return LastLooks()
    return look_last(scanner.workplace, lease, oldest, is_over)


def _reported(
    scan: Scan, lot: ParkingLot, started: datetime, now: datetime, *, finished: bool
) -> PassReport:
    """Return what a scan did, without what came of giving the lease back."""
    return PassReport(
        leased=True,
        tally=scan.tally,
        rows=scan.rows,
        swept=scan.swept,
        released=scan.released,
        vain=scan.vain,
        handovers=scan.handovers,
        completed=scan.completed,
        unclaimed=scan.unclaimed,
        unreadable=scan.unreadable,
        faulty=scan.faulty,
        late=scan.late,
        parked=lot.parked,
        unparked=lot.unparked,
        parked_rows=len(lot),
        finished=finished,
        oldest=min(scan.oldest, now),
        pending_since=scan.pending_since(finished=finished),
        drain=timedelta(0) if finished else scan.drain(started),
    )
