"""Turn planned rows into outbox records, each after its next time is planned."""

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from datetime import datetime, timedelta

from hourbell.domain.definition import Tenant, Version, VersionRef
from hourbell.domain.occurrence import (
    CancelReason,
    Occurrence,
    State,
    Transition,
    jitter_seconds,
)
from hourbell.domain.policies import expires_at, is_misfire
from hourbell.domain.schedule import matches, next_planned
from hourbell.domain.shards import ShardMap
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.ports import Change, Directory, Schedules, Timeline, Write

# The most rows that one call takes through the steps. What is left stays PLANNED
# and is found by the next pass.
MAX_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Plane:
    """What materializing needs.

    Attributes:
        horizon: how far ahead of now occurrences are materialized.
    """

    schedules: Schedules
    timeline: Timeline
    directory: Directory
    shard_map: ShardMap
    horizon: timedelta


@dataclass(frozen=True, slots=True)
class Tally:
    """What one or more steps did, in rows.

    Attributes:
        planned: next times inserted.
        existed: next times that stood already.
        scheduled: rows that left PLANNED.
        lost: rows that somebody else moved first.
        unknown: rows whose writes got no clear answer, or whose tenant was not
            found; they are still PLANNED and come up again.
        canceled: rows that their version does not own or produce.
        misfires: scheduled rows that were reached after the misfire threshold.
    """

    planned: int = 0
    existed: int = 0
    scheduled: int = 0
    lost: int = 0
    unknown: int = 0
    canceled: int = 0
    misfires: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """Add up two tallies."""
        return Tally(*map(sum, zip(astuple(self), astuple(other), strict=True)))


NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class _Case:
    """A planned row, the version it names, and the time that follows it."""

    row: Occurrence
    version: Version | None
    following: Occurrence | None
    verdict: CancelReason | None


def advance(plane: Plane, rows: Sequence[Occurrence], now: datetime) -> Tally:
    """Materialize the rows that are due within the horizon, and what follows them.

    For each row, first the next time is planned by an insert; only when that row
    stands does the row itself leave PLANNED, in a separate call. The next rows that
    were inserted here are followed while they are due within the horizon too.

    Args:
        plane: the ports.
        rows: rows of any state; only PLANNED ones due within the horizon are taken.
        now: the current instant.

    Returns:
        what was done. A row that could not be taken all the way is left PLANNED.

    Raises:
        Transient: versions or tenants could not be read; nothing is half done.
    """
    due = now + plane.horizon
    tally = NOTHING
    budget = MAX_ROWS
    frontier = _due(rows, due)[:budget]
    while frontier:
        budget -= len(frontier)
        followers, done = _step(plane, frontier, now)
        tally += done
        frontier = _due(followers, due)[:budget]
    return tally


def _due(rows: Iterable[Occurrence], until: datetime) -> list[Occurrence]:
    """Return the planned rows up to an instant, soonest first."""
    taken = [r for r in rows if r.state is State.PLANNED and r.scheduled_for <= until]
    return sorted(taken, key=lambda row: row.scheduled_for)


def _step(
    plane: Plane, rows: Sequence[Occurrence], now: datetime
) -> tuple[list[Occurrence], Tally]:
    """Take rows through both writes; return the next rows inserted, and the tally."""
    versions = _versions_of(plane, rows)
    tenants = plane.directory.tenants({row.tenant_id for row in rows})
    cases = [
        _judge(plane, row, versions.get(VersionRef(row.schedule_id, row.version)), now)
        for row in rows
        if row.tenant_id in tenants
    ]
    missing = Tally(unknown=len(rows) - len(cases))
    followers, standing, planned = _plan_next(plane, cases)
    return followers, missing + planned + _leave_planned(plane, standing, tenants, now)


def _versions_of(plane: Plane, rows: Sequence[Occurrence]) -> dict[VersionRef, Version]:
    """Read the rows' versions; those that seem not to own their row, consistently."""
    refs = {VersionRef(row.schedule_id, row.version) for row in rows}
    found = plane.schedules.versions(refs, consistent=False)
    doubtful = {
        ref
        for row in rows
        if (ref := VersionRef(row.schedule_id, row.version)) not in found
        or _fault(row, found[ref]) is not None
    }
    if doubtful:
        found |= plane.schedules.versions(doubtful, consistent=True)
    return found


def _fault(row: Occurrence, version: Version) -> CancelReason | None:
    """Return why a version does not stand behind a row; None when it does.

    A row planned by another release of the zone database is not judged by this one.
    """
    if not version.owns(row.scheduled_for):
        return CancelReason.SUPERSEDED
    same_rules = row.tzdb == TZDB_VERSION
    if same_rules and not matches(version.definition.timing, row.scheduled_for):
        return CancelReason.REPLANNED
    return None


def _judge(
    plane: Plane, row: Occurrence, version: Version | None, now: datetime
) -> _Case:
    """Decide whether a row runs, and which row follows it.

    A row that is canceled is still the cursor of its version, so it too is
    followed by the next time that the version owns.
    """
    if version is None:
        return _Case(row, None, None, CancelReason.ORPHANED)
    following = None
    ahead = next_planned(version.definition.timing, row.scheduled_for, row.sequence)
    if ahead is not None and version.owns(ahead[0]):
        instant, sequence = ahead
        following = Occurrence(
            schedule_id=row.schedule_id,
            version=row.version,
            scheduled_for=instant,
            shard=plane.shard_map.shard_of(row.schedule_id, instant),
            tenant_id=row.tenant_id,
            sequence=sequence,
            tzdb=TZDB_VERSION,
            planned_at=now,
        )
    return _Case(row, version, following, _fault(row, version))


def _plan_next(
    plane: Plane, cases: Sequence[_Case]
) -> tuple[list[Occurrence], list[_Case], Tally]:
    """Insert the following rows; return the new ones, the cases that may go on."""
    wanted = [case.following for case in cases if case.following is not None]
    answers = plane.timeline.plan(wanted)
    inserted, unclear, existed = [], set(), 0
    for row, answer in zip(wanted, answers, strict=True):
        if answer is Write.APPLIED:
            inserted.append(row)
        elif answer is Write.UNKNOWN:
            unclear.add(row.key)
        else:
            existed += 1
    standing = [
        case
        for case in cases
        if case.following is None or case.following.key not in unclear
    ]
    stuck = len(cases) - len(standing)
    return inserted, standing, Tally(len(inserted), existed, unknown=stuck)


def _leave_planned(
    plane: Plane,
    cases: Sequence[_Case],
    tenants: dict[str, Tenant],
    now: datetime,
) -> Tally:
    """Move the rows whose next time stands out of PLANNED."""
    changes = [
        _scheduling(case.row, case.version, tenants[case.row.tenant_id], now)
        if case.version is not None and case.verdict is None
        else canceling(case.row, case.verdict or CancelReason.ORPHANED, now)
        for case in cases
    ]
    tally = NOTHING
    for change, answer in zip(changes, plane.timeline.move(changes), strict=True):
        tally += _count(change, answer)
    return tally


def _count(change: Change, answer: Write) -> Tally:
    """Return the tally of one change."""
    if answer is Write.UNKNOWN:
        return Tally(unknown=1)
    if answer is not Write.APPLIED:
        return Tally(lost=1)
    if change.transition is Transition.CANCEL:
        return Tally(canceled=1)
    return Tally(scheduled=1, misfires=int(change.row.misfire))


def _scheduling(
    row: Occurrence, version: Version, tenant: Tenant, now: datetime
) -> Change:
    """Return the change that makes a planned row an outbox record."""
    definition = version.definition
    jitter = jitter_seconds(row.occurrence_id, definition.flexible_window_seconds)
    scheduled = replace(
        row,
        state=State.SCHEDULED,
        available_at=row.scheduled_for + timedelta(seconds=jitter),
        lane=definition.lane,
        queue=f"{tenant.tier}-{definition.lane}",
        scheduled_at=now,
        misfire=is_misfire(row.scheduled_for, now),
    )
    return Change(scheduled, Transition.SCHEDULE)


def canceling(row: Occurrence, reason: CancelReason, now: datetime) -> Change:
    """Return the change that cancels a row, with its reason."""
    canceled = replace(
        row,
        state=State.CANCELED,
        reason=reason,
        finished_at=now,
        expires_at=expires_at(now),
    )
    return Change(canceled, Transition.CANCEL)
