"""Turn planned rows into outbox records, each after its next time is planned."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Final

from hourbell.domain.definition import Handler, Tenant, Version, VersionRef
from hourbell.domain.dispatch import (
    Dispatch,
    completion_of,
    release_due,
    release_of,
)
from hourbell.domain.errors import InvalidInput
from hourbell.domain.load import NO_COUNTS, Counts
from hourbell.domain.occurrence import (
    CancelReason,
    Occurrence,
    RowKey,
    State,
    Transition,
)
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.policies import expires_at
from hourbell.domain.routing import queue_key
from hourbell.domain.shards import ShardMap
from hourbell.usecases.judging import Bench, Case, judge, leaving, objection
from hourbell.usecases.load_ports import Loads
from hourbell.usecases.ports import Change, Directory, Schedules, Timeline, Write
from hourbell.usecases.tally import NOTHING, Tally
from hourbell.usecases.version_reads import read_versions

# The most rows that one call takes through the steps. What is left stays PLANNED
# and is found by the next pass.
MAX_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Plane:
    """What materializing needs.

    Attributes:
        horizon: how far ahead of now occurrences are materialized.
        loads: the statistic that passes add to and dry runs read.
    """

    schedules: Schedules
    timeline: Timeline
    directory: Directory
    shard_map: ShardMap
    horizon: timedelta
    loads: Loads


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
        what was done. A row that could not be taken all the way is left PLANNED, and
        the tally's troubles tell why.

    Raises:
        Transient: versions or tenants could not be read; nothing is half done.
    """
    due = now + plane.horizon
    tally = NOTHING
    budget = MAX_ROWS
    frontier = _due(rows, due)
    while frontier:
        taken = _affordable(frontier, budget)
        budget -= sum(map(_weight, taken))
        followers, done = _step(plane, taken, now)
        tally += done
        frontier = _due(followers, due)
        if budget <= 0 or is_over():
            break
    return tally


def _due(rows: Iterable[Occurrence], until: datetime) -> list[Occurrence]:
    """Return the planned rows up to an instant, soonest first."""
    taken = [r for r in rows if r.state is State.PLANNED and r.scheduled_for <= until]
    return sorted(taken, key=lambda row: row.scheduled_for)


def _weight(row: Occurrence) -> int:
    """Return how many rows a row stands for: of a gap row, what it lets run too."""
    return 1 if row.decision is None else 1 + row.decision.runs


def _affordable(rows: Sequence[Occurrence], budget: int) -> list[Occurrence]:
    """Return the first rows that a budget allows, and at least one."""
    weights = accumulate(map(_weight, rows))
    return [
        row
        for place, (row, weight) in enumerate(zip(rows, weights, strict=True))
        if place == 0 or weight <= budget
    ]


def _step(
    plane: Plane, rows: Sequence[Occurrence], now: datetime
) -> tuple[list[Occurrence], Tally]:
    """Take rows through both writes; return the next rows inserted, and the tally."""
    versions, faulty = _versions_of(plane, rows)
    routes = _routes_of(plane, versions.values())
    cases: list[Case] = []
    troubles: list[Trouble] = []
    for row in rows:
        version = versions.get(_ref(row))
        reason = _hindrance(row, version, faulty, routes)
        if reason is None:
            try:
                cases.append(_case(plane, row, version, routes, now))
            except InvalidInput:
                reason = ParkReason.VERSION_INVALID
        if reason is not None:
            troubles.append(_trouble(row, reason))
    followers, standing, planned = _plan_next(plane, cases, now)
    return followers, (
        _troubled(troubles) + planned + _leave_planned(plane, standing, routes, now)
    )


def _hindrance(
    row: Occurrence,
    version: Version | None,
    faulty: frozenset[VersionRef],
    routes: "_Routes",
) -> ParkReason | None:
    """Return why a row cannot be judged now; None when it can."""
    if _ref(row) in faulty:
        return ParkReason.VERSION_UNREADABLE
    if version is None:
        return None
    if version.holds(row.scheduled_for):
        return ParkReason.HELD
    return routes.lack(version)


def _case(
    plane: Plane,
    row: Occurrence,
    version: Version | None,
    routes: "_Routes",
    now: datetime,
) -> Case:
    if version is None:
        return Case(row, None, CancelReason.ORPHANED)
    return judge(routes.bench(plane, version, now), row, version)


def _trouble(row: Occurrence, reason: ParkReason) -> Trouble:
    return Trouble(row.key, reason, row.scheduled_for, row.tenant_id)


_UNKNOWN: Final = frozenset(
    {
        ParkReason.TENANT_GONE,
        ParkReason.HANDLER_GONE,
        ParkReason.NEXT_UNREADABLE,
        ParkReason.UNCLEAR,
    }
)


def _troubled(troubles: Sequence[Trouble]) -> Tally:
    """Return the tally of rows that could not be taken."""
    reasons = [trouble.reason for trouble in troubles]
    held = reasons.count(ParkReason.HELD)
    unknown = sum(reason in _UNKNOWN for reason in reasons)
    faulty = len(reasons) - held - unknown
    return Tally(unknown=unknown, held=held, faulty=faulty, troubles=tuple(troubles))


@dataclass(frozen=True, slots=True)
class _Routes:
    """Tenants and handlers, by which the queue of a version is found."""

    tenants: dict[str, Tenant]
    handlers: dict[tuple[str, str], Handler]

    def lack(self, version: Version) -> ParkReason | None:
        """Return what of a version is not there; None when it can be routed."""
        if version.tenant_id not in self.tenants:
            return ParkReason.TENANT_GONE
        if _handler_ref(version) not in self.handlers:
            return ParkReason.HANDLER_GONE
        return None

    def bench(self, plane: Plane, version: Version, now: datetime) -> Bench:
        """Return what judging a row of a version needs."""
        tenant = self.tenants[version.tenant_id]
        handler = self.handlers[_handler_ref(version)]
        return Bench(
            plane.schedules,
            plane.shard_map,
            lambda lane: queue_key(tenant.tier, handler, lane),
            tenant.quotas.catch_up_per_minute,
            now,
        )


def _handler_ref(version: Version) -> tuple[str, str]:
    return version.tenant_id, version.definition.handler


def _routes_of(plane: Plane, versions: Iterable[Version]) -> _Routes:
    named = list(versions)
    return _Routes(
        plane.directory.tenants({version.tenant_id for version in named}),
        plane.directory.named_handlers({_handler_ref(version) for version in named}),
    )


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


def _plan_next(
    plane: Plane, cases: Sequence[Case], now: datetime
) -> tuple[list[Occurrence], list[Case], Tally]:
    """Insert what must stand before rows leave PLANNED.

    Returns:
        the planned rows that are new, and the cases that may go on: where another row
        stood in the place of a case's cursor, as that one decides.
    """
    wanted = {row.key: row for case in cases for row in case.ahead}
    unclear = _post_releases(plane, wanted.values(), now)
    unclear |= _post_completions(plane, cases, now)
    free = [row for key, row in wanted.items() if key not in unclear]
    answers = {
        row.key: answer
        for row, answer in zip(free, plane.timeline.plan(free), strict=True)
    }
    unclear |= {key for key, answer in answers.items() if answer is Write.UNKNOWN}
    inserted = [row for row in free if answers[row.key] is Write.APPLIED]
    existing = [key for key, answer in answers.items() if answer is Write.EXISTS]
    ready = [case for case in cases if not unclear & {r.key for r in case.all_rows}]
    standing = _obeying(plane, ready, answers)
    planned = [row for row in inserted if row.state is State.PLANNED]
    caught_up = len(inserted) - len(planned)
    tally = Tally(len(planned), len(existing), misfires=caught_up)
    return planned, standing, tally + _left_behind(cases, ready, standing)


def _left_behind(
    cases: Sequence[Case], ready: Sequence[Case], standing: Sequence[Case]
) -> Tally:
    """Return the tally of cases whose row must stay PLANNED."""
    clear = {case.row.key for case in ready}
    going = {case.row.key for case in standing}
    return _troubled(
        [
            _trouble(
                case.row,
                ParkReason.NEXT_UNREADABLE
                if case.row.key in clear
                else ParkReason.UNCLEAR,
            )
            for case in cases
            if case.row.key not in going
        ]
    )


def _obeying(
    plane: Plane, cases: Sequence[Case], answers: Mapping[RowKey, Write]
) -> list[Case]:
    """Let cases whose cursor's place was taken obey the decision that stands there.

    A row that cannot be read there decides nothing; its case waits.
    """
    taken = [
        case.cursor.key
        for case in cases
        if case.cursor is not None and answers[case.cursor.key] is Write.EXISTS
    ]
    found = plane.timeline.read(taken) if taken else {}
    obeying: list[Case] = []
    for case in cases:
        key = None if case.cursor is None else case.cursor.key
        if key is None or answers[key] is not Write.EXISTS:
            obeying.append(case)
        elif key in found:
            obeying.append(case.obeying(found[key]))
    return obeying


def _post_releases(
    plane: Plane, rows: Iterable[Occurrence], now: datetime
) -> set[RowKey]:
    """Put the dispatch rows of deferred rows; return the keys without clear answer.

    Without its dispatch row nobody would look at a deferred row again, so it must be
    there first.
    """
    deferred = [row for row in rows if row.state is State.DEFERRED]
    if not deferred:
        return set()
    answers = plane.timeline.post([release_at(plane, row, now) for row in deferred])
    return {
        row.key
        for row, answer in zip(deferred, answers, strict=True)
        if answer is Write.UNKNOWN
    }


def _post_completions(
    plane: Plane, cases: Iterable[Case], now: datetime
) -> set[RowKey]:
    """Put the dispatch rows of schedules that end; return the rows that must wait."""
    ending = [
        (case.row.key, completion_of(case.version, case.last, plane.shard_map, now))
        for case in cases
        if case.ends and case.version is not None and case.version.ends_at is None
    ]
    if not ending:
        return set()
    # Two rows of one version can both be its last, and one dispatch row will do.
    records = {dispatch.key: dispatch for _, dispatch in ending}
    answers = plane.timeline.post(list(records.values()))
    unclear = {
        key
        for key, answer in zip(records, answers, strict=True)
        if answer is Write.UNKNOWN
    }
    return {row for row, dispatch in ending if dispatch.key in unclear}


def release_at(plane: Plane, row: Occurrence, now: datetime) -> Dispatch:
    """Return the dispatch row that lets a deferred occurrence go."""
    shard = plane.shard_map.shard_of(row.schedule_id, release_due(row, now))
    return release_of(row, shard, now)


# How a row is moved out of PLANNED, by the state that it gets.
_MOVES: Final = {
    State.SCHEDULED: Transition.SCHEDULE,
    State.DEFERRED: Transition.DEFER,
    State.MISSED: Transition.MISS,
}


def _leave_planned(
    plane: Plane, cases: Sequence[Case], routes: _Routes, now: datetime
) -> Tally:
    """Move the rows whose next time stands out of PLANNED."""
    wanted = [_change(plane, case, routes, now) for case in cases]
    unclear = _post_releases(plane, [change.row for change in wanted], now)
    changes = [change for change in wanted if change.row.key not in unclear]
    tally = _troubled(
        [_trouble(c.row, ParkReason.UNCLEAR) for c in wanted if c.row.key in unclear]
    )
    for change, answer in zip(changes, plane.timeline.move(changes), strict=True):
        tally += _count(change, answer)
    return tally


def _change(plane: Plane, case: Case, routes: _Routes, now: datetime) -> Change:
    """Return the change by which a row leaves PLANNED."""
    if case.version is None or case.verdict is not None:
        return canceling(case.row, case.verdict or CancelReason.ORPHANED, now)
    row = leaving(routes.bench(plane, case.version, now), case)
    return Change(row, _MOVES[row.state])


_COUNTED: Final = {
    Transition.SCHEDULE: Tally(scheduled=1),
    Transition.DEFER: Tally(deferred=1),
    Transition.MISS: Tally(missed=1),
    Transition.CANCEL: Tally(canceled=1),
}


def _count(change: Change, answer: Write) -> Tally:
    """Return the tally of one change."""
    if answer is Write.UNKNOWN:
        return _troubled([_trouble(change.row, ParkReason.UNCLEAR)])
    if answer is not Write.APPLIED:
        return Tally(lost=1)
    row = change.row
    runs = change.transition in {Transition.SCHEDULE, Transition.DEFER}
    minutes = Counts.of(row.scheduled_for) if runs and not row.misfire else NO_COUNTS
    gaps, late = row.decision is not None, runs and row.misfire
    more = Tally(misfires=int(late), gaps=int(gaps), minutes=minutes)
    return _COUNTED[change.transition] + more


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
