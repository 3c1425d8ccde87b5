"""Turn planned rows into outbox records, each after its next time is planned."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from operator import add, attrgetter

from hourbell.domain.definition import (
    Handler,
    Tenant,
    Version,
    VersionRef,
)
from hourbell.domain.dispatch import Dispatch, release_due, release_of
from hourbell.domain.errors import InvalidInput
from hourbell.domain.occurrence import (
    CancelReason,
    Occurrence,
    State,
    Transition,
    jitter_seconds,
)
from hourbell.domain.policies import expires_at, is_deferred, is_misfire
from hourbell.domain.routing import queue_key
from hourbell.domain.schedule import matches, next_planned
from hourbell.domain.shards import ShardMap
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.ports import Change, Directory, Schedules, Timeline, Write
from hourbell.usecases.unsent import ending
from hourbell.usecases.version_reads import read_versions, stopped_version

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
        scheduled: rows that became outbox records.
        deferred: rows that wait for a time beyond the queue's longest delay.
        lost: rows that somebody else moved first.
        unknown: rows whose writes got no clear answer, or whose tenant or handler
            was not found; they are still PLANNED and come up again.
        canceled: rows that their version does not own or produce.
        misfires: scheduled rows that were reached after the misfire threshold.
        held: rows that a handover under way has yet to decide.
        faulty: rows whose version cannot be read or does not make sense to this
            release, such as one in a zone that is gone; they are left alone.
    """

    planned: int = 0
    existed: int = 0
    scheduled: int = 0
    deferred: int = 0
    lost: int = 0
    unknown: int = 0
    canceled: int = 0
    misfires: int = 0
    held: int = 0
    faulty: int = 0

    def __add__(self, other: "Tally") -> "Tally":
        """Add up two tallies."""
        return Tally(*map(add, _counts(self), _counts(other)))


# Verdicts after which a version has no further time.
_ENDED = frozenset(
    {CancelReason.SUPERSEDED, CancelReason.PAUSED, CancelReason.CANCELED}
)

_counts = attrgetter(*(field.name for field in fields(Tally)))

NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class _Case:
    """A planned row, the version it names, and the time that follows it."""

    row: Occurrence
    version: Version | None
    following: Occurrence | None
    verdict: CancelReason | None


def advance(
    plane: Plane,
    rows: Sequence[Occurrence],
    now: datetime,
    *,
    is_over: Callable[[], bool] = bool,
) -> Tally:
    """Materialize the rows that are due within the horizon, and what follows them.

    For each row, first the next time is planned by an insert; only when that row
    stands does the row itself leave PLANNED, in a separate call. The next rows that
    were inserted here are followed while they are due within the horizon too.

    Args:
        plane: the ports.
        rows: rows of any state; only PLANNED ones due within the horizon are taken.
        now: the current instant.
        is_over: asked before each step after the first: whether to stop here, since
            the time is up. What is left is found by the next pass.

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
        if is_over():
            break
    return tally


def _due(rows: Iterable[Occurrence], until: datetime) -> list[Occurrence]:
    """Return the planned rows up to an instant, soonest first."""
    taken = [r for r in rows if r.state is State.PLANNED and r.scheduled_for <= until]
    return sorted(taken, key=lambda row: row.scheduled_for)


def _step(
    plane: Plane, rows: Sequence[Occurrence], now: datetime
) -> tuple[list[Occurrence], Tally]:
    """Take rows through both writes; return the next rows inserted, and the tally."""
    versions, faulty = _versions_of(plane, rows)
    routes = _routes_of(plane, versions.values())
    judged = [
        _judged(plane, row, versions.get(_ref(row)), now)
        for row in rows
        if _ref(row) not in faulty
    ]
    cases = [case for case in judged if case is not None]
    routed = [case for case in cases if case.version is None or case.version in routes]
    free = [case for case in routed if not _is_held(case)]
    apart = Tally(
        unknown=len(cases) - len(routed),
        held=len(routed) - len(free),
        faulty=len(rows) - len(cases),
    )
    followers, standing, planned = _plan_next(plane, free)
    return followers, apart + planned + _leave_planned(plane, standing, routes, now)


@dataclass(frozen=True, slots=True)
class _Routes:
    """Tenants and handlers, by which the queue of a version is found."""

    tenants: dict[str, Tenant]
    handlers: dict[tuple[str, str], Handler]

    def __contains__(self, version: Version) -> bool:
        return version.tenant_id in self.tenants and _handler_ref(version) in (
            self.handlers
        )

    def queue_of(self, version: Version) -> str:
        """Return the key of the queue that a version's messages go to."""
        tier = self.tenants[version.tenant_id].tier
        handler = self.handlers[_handler_ref(version)]
        return queue_key(tier, handler, version.definition.lane)


def _handler_ref(version: Version) -> tuple[str, str]:
    return version.tenant_id, version.definition.handler


def _routes_of(plane: Plane, versions: Iterable[Version]) -> _Routes:
    named = list(versions)
    return _Routes(
        plane.directory.tenants({version.tenant_id for version in named}),
        plane.directory.named_handlers({_handler_ref(version) for version in named}),
    )


def _is_held(case: "_Case") -> bool:
    version = case.version
    return version is not None and version.holds(case.row.scheduled_for)


def _ref(row: Occurrence) -> VersionRef:
    return VersionRef(row.schedule_id, row.version)


def _versions_of(
    plane: Plane, rows: Sequence[Occurrence]
) -> tuple[dict[VersionRef, Version], frozenset[VersionRef]]:
    """Read the rows' versions; those that seem not to own their row, consistently.

    Returns:
        the versions that exist, and the refs of those that cannot be read.
    """
    found, faulty = read_versions(plane.schedules, map(_ref, rows), consistent=False)
    doubtful = {
        ref
        for row in rows
        if (ref := _ref(row)) not in faulty
        and (ref not in found or _is_doubtful(row, found[ref]))
    }
    again, faulty_again = read_versions(plane.schedules, doubtful, consistent=True)
    return found | again, faulty | faulty_again


def _is_doubtful(row: Occurrence, version: Version) -> bool:
    try:
        return version.holds(row.scheduled_for) or objection(row, version) is not None
    except InvalidInput:
        return True


def objection(row: Occurrence, version: Version) -> CancelReason | None:
    """Return why a version does not stand behind an unsent row; None when it does.

    A row planned by another release of the zone database is not judged by this one.
    """
    if version.is_stopped or not version.owns(row.scheduled_for):
        return ending(version)
    same_rules = row.tzdb == TZDB_VERSION
    if same_rules and not matches(version.definition.timing, row.scheduled_for):
        return CancelReason.REPLANNED
    return None


def _judged(
    plane: Plane, row: Occurrence, version: Version | None, now: datetime
) -> _Case | None:
    """Judge a row; None when its version or rules make no sense to this release."""
    try:
        return _stopped_later(plane, _judge(plane, row, version, now))
    except InvalidInput:
        return None


def _stopped_later(plane: Plane, case: _Case) -> _Case:
    """Cancel what an edit left to its version when a later change stopped it all."""
    version = case.version
    if version is None or case.verdict is not None or version.effective_to is None:
        return case
    stopped = stopped_version(plane.schedules, version)
    if stopped is None:
        return case
    return _Case(case.row, version, None, ending(stopped))


def _judge(
    plane: Plane, row: Occurrence, version: Version | None, now: datetime
) -> _Case:
    """Decide whether a row runs, and which row follows it.

    A row that its rule no longer produces is still the cursor of its version, so it
    too is followed by the next time that the version owns. Of a version that has ended
    before the row's time, or was stopped, nothing follows.
    """
    if version is None:
        return _Case(row, None, None, CancelReason.ORPHANED)
    verdict = objection(row, version)
    if verdict in _ENDED:
        return _Case(row, version, None, verdict)
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
    return _Case(row, version, following, verdict)


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
    routes: _Routes,
    now: datetime,
) -> Tally:
    """Move the rows whose next time stands out of PLANNED."""
    wanted = [
        _scheduling(case.row, case.version, routes.queue_of(case.version), now)
        if case.version is not None and case.verdict is None
        else canceling(case.row, case.verdict or CancelReason.ORPHANED, now)
        for case in cases
    ]
    changes = _announced(plane, wanted, now)
    tally = Tally(unknown=len(wanted) - len(changes))
    for change, answer in zip(changes, plane.timeline.move(changes), strict=True):
        tally += _count(change, answer)
    return tally


def _announced(
    plane: Plane, changes: Sequence[Change], now: datetime
) -> Sequence[Change]:
    """Put the dispatch rows of what is to be deferred; return what may be moved.

    Without its dispatch row nobody would look at a deferred row again, so it must be
    there first.
    """
    deferring = [each for each in changes if each.transition is Transition.DEFER]
    if not deferring:
        return changes
    releases = [release_at(plane, change.row, now) for change in deferring]
    answers = plane.timeline.post(releases)
    unclear = {
        change.row.key
        for change, answer in zip(deferring, answers, strict=True)
        if answer is Write.UNKNOWN
    }
    return [change for change in changes if change.row.key not in unclear]


def release_at(plane: Plane, row: Occurrence, now: datetime) -> Dispatch:
    """Return the dispatch row that lets a deferred occurrence go."""
    shard = plane.shard_map.shard_of(row.schedule_id, release_due(row, now))
    return release_of(row, shard, now)


def _count(change: Change, answer: Write) -> Tally:
    """Return the tally of one change."""
    if answer is Write.UNKNOWN:
        return Tally(unknown=1)
    if answer is not Write.APPLIED:
        return Tally(lost=1)
    if change.transition is Transition.CANCEL:
        return Tally(canceled=1)
    misfires = int(change.row.misfire)
    if change.transition is Transition.DEFER:
        return Tally(deferred=1, misfires=misfires)
    return Tally(scheduled=1, misfires=misfires)


def _scheduling(row: Occurrence, version: Version, queue: str, now: datetime) -> Change:
    """Return the change that makes a planned row an outbox record.

    One whose time is beyond the queue's longest delay is deferred instead.
    """
    definition = version.definition
    jitter = jitter_seconds(row.occurrence_id, definition.flexible_window_seconds)
    available_at = row.scheduled_for + timedelta(seconds=jitter)
    routed = replace(
        row,
        available_at=available_at,
        lane=definition.lane,
        queue=queue,
        misfire=is_misfire(row.scheduled_for, now, definition.flexible_window_seconds),
    )
    if is_deferred(available_at, now):
        return Change(replace(routed, state=State.DEFERRED), Transition.DEFER)
    scheduled = replace(routed, state=State.SCHEDULED, scheduled_at=now)
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
