"""Turn planned rows into outbox records, each after its next time is planned."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.dispatch import (
    Dispatch,
    completion_of,
    release_due,
    release_of,
)
from hourbell.domain.errors import InvalidInput
from hourbell.domain.occurrence import (
    CancelReason,
    Occurrence,
    RowKey,
    State,
    Transition,
)
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.shards import ShardMap
from hourbell.usecases.counting import RUNNING, count_change, count_left
from hourbell.usecases.following import post_follows
from hourbell.usecases.judging import (
    Bench,
    Case,
    judge,
    leaving,
    objection,
    row_beyond,
)
from hourbell.usecases.load_ports import Loads
from hourbell.usecases.pacing import Paced, pace_cases
from hourbell.usecases.ports import Change, Directory, Schedules, Timeline, Write
from hourbell.usecases.rate_port import Rates
from hourbell.usecases.routes import Routes
from hourbell.usecases.shard_ports import ShardMaps
from hourbell.usecases.tally import Tally, trouble_of, troubled
from hourbell.usecases.turns import Turns
from hourbell.usecases.unsent import canceling
from hourbell.usecases.version_reads import read_versions
from hourbell.usecases.walk import Steps, walk_through


@dataclass(frozen=True, slots=True)
class Plane:
    """What materializing needs.

    Attributes:
        shards: tells where rows lie; asked anew for each, as it may change.
        horizon: how far ahead of now occurrences are materialized.
        loads: the statistic that passes add to and dry runs read.
    """

    schedules: Schedules
    timeline: Timeline
    directory: Directory
    shards: ShardMaps
    horizon: timedelta
    loads: Loads
    rates: Rates

    @property
    def shard_map(self) -> ShardMap:
        """The shard count of every bucket, as it is known now."""
        return self.shards.current()


def advance(
    plane: Plane,
    rows: Sequence[Occurrence],
    now: datetime,
    *,
    is_over: Callable[[], bool] = bool,
    turns: Turns | None = None,
    is_behind: bool = False,
) -> Tally:
    """Materialize the rows that are due within the horizon, and what follows them.

    The earliest minute comes first, and within it all tenants in turns. What is on
    time comes before the gaps of an outage are expanded, all their futures included.

    For each row, first the next time is planned by an insert; only when that row
    stands does the row itself leave PLANNED, in a separate call. The next rows that
    were inserted here are followed while they are due within the horizon too.

    Args:
        plane: the ports.
        rows: rows of any state; only PLANNED ones due within the horizon are taken.
        now: the current instant.
        is_over: asked before each step after the first: whether to stop here, since
            the time is up. What is left is found by the next pass.
        turns: of the pass: rows beyond their tenants' caps are left to its end. None:
            there are no caps.
        is_behind: whether what follows the rows may lie behind the scan
            (`ShardMap.is_crossed`).

    Returns:
        what was done. A row that could not be taken all the way is left PLANNED, and
        the tally's troubles tell why.

    Raises:
        Transient: versions or tenants could not be read; nothing is half done.
    """
    return walk_through(
        rows,
        turns or Turns(plane.directory, cap=None),
        until=now + plane.horizon,
        steps=Steps(
            lambda taken, beyond: _step(plane, taken, now, beyond, is_behind=is_behind),
            lambda gaps: _plan_beyond(plane, gaps, now, is_behind=is_behind),
            is_over,
        ),
    )


def _plan_beyond(
    plane: Plane, gaps: Sequence[Occurrence], now: datetime, *, is_behind: bool
) -> tuple[list[Occurrence], Tally]:
    """Insert the rows of the times that follow gaps, where they do not stand yet.

    What cannot be judged now, or has no clear answer, is left to the step of its gap.
    """
    versions, faulty = _versions_of(plane, gaps)
    routes = Routes.find(plane.directory, versions.values())
    wanted: dict[RowKey, Occurrence] = {}
    for gap in gaps:
        version, unread = versions.get(_ref(gap)), _ref(gap) in faulty
        if version and not routes.hindrance(gap, version, is_unreadable=unread):
            row = row_beyond(_bench(plane, routes, version, now), gap, version)
            wanted |= {} if row is None else {row.key: row}
    shards = plane.shard_map
    unclear = (
        post_follows(plane.timeline, shards, wanted.values(), now)
        if is_behind
        else set()
    )
    rows = [row for key, row in wanted.items() if key not in unclear]
    answers = zip(rows, plane.timeline.plan(rows), strict=True)
    inserted = [row for row, answer in answers if answer is Write.APPLIED]
    return inserted, Tally(planned=len(inserted))


def _step(
    plane: Plane,
    rows: Sequence[Occurrence],
    now: datetime,
    beyond: AbstractSet[RowKey],
    *,
    is_behind: bool,
) -> tuple[list[Occurrence], Tally]:
    """Take rows through both writes; return the next rows inserted, and the tally.

    Args:
        plane: the ports.
        rows: planned ones.
        now: the current instant.
        beyond: keys of rows after gaps, which stand already.
        is_behind: as of `advance`.
    """
    versions, faulty = _versions_of(plane, rows)
    routes = Routes.find(plane.directory, versions.values())
    cases: list[Case] = []
    troubles: list[Trouble] = []
    for row in rows:
        version = versions.get(_ref(row))
        unread = _ref(row) in faulty
        reason = routes.hindrance(row, version, is_unreadable=unread)
        if reason is None:
            try:
                case = _case(plane, row, version, routes, now)
                cases.append(case.with_cursor_in(beyond))
            except InvalidInput:
                reason = ParkReason.VERSION_INVALID
        if reason is not None:
            troubles.append(trouble_of(row, reason))
    paced, runs = _pace_gaps(plane, cases, routes, now)
    if is_behind:
        lacking = [row for row in runs.values() if row is not None]
        ahead = [case.cursor for case in cases if case.cursor is not None]
        unclear = post_follows(plane.timeline, plane.shard_map, ahead + lacking, now)
        paced |= Paced(waiting=frozenset(unclear))
    followers, standing, planned = _plan_next(plane, cases, runs, paced, now)
    left = _leave_planned(plane, standing, routes, paced, now)
    return followers, troubled(troubles) + planned + left


def _case(
    plane: Plane,
    row: Occurrence,
    version: Version | None,
    routes: Routes,
    now: datetime,
) -> Case:
    if version is None:
        return Case(row, None, CancelReason.ORPHANED)
    return judge(_bench(plane, routes, version, now), row, version)


def _bench(plane: Plane, routes: Routes, version: Version, now: datetime) -> Bench:
    return routes.bench(plane.schedules, plane.shard_map, version, now)


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


def _pace_gaps(
    plane: Plane, cases: Sequence[Case], routes: Routes, now: datetime
) -> tuple[Paced, Mapping[RowKey, Occurrence | None]]:
    """Give gap rows that run, and the rows that they let run, their places at once.

    So the oldest come first. What an earlier, interrupted pass inserted keeps the
    instant that it got.

    Returns:
        the places, and the rows to be inserted by their keys; None for those there.
    """
    gaps = [case for case in cases if case.row.decision is not None]
    runs = {run.key: (run, case) for case in gaps for run in case.runs}
    there = plane.timeline.read(runs) if runs else {}
    own = [(_change(plane, case, routes, now), case) for case in gaps]
    going = [(move.row, case) for move, case in own if move.transition in RUNNING]
    lacking = [
        each
        for key, each in runs.items()
        if key not in there and each[0].state is not State.MISSED
    ]
    paced = pace_cases(plane.rates, routes, [*going, *lacking], now)
    return paced, {
        key: None if key in there else paced.rows.get(key, run)
        for key, (run, _) in runs.items()
    }


def _plan_next(
    plane: Plane,
    cases: Sequence[Case],
    runs: Mapping[RowKey, Occurrence | None],
    paced: Paced,
    now: datetime,
) -> tuple[list[Occurrence], list[Case], Tally]:
    """Insert what must stand before rows leave PLANNED.

    Returns:
        the planned rows that are new, and the cases that may go on: where another row
        stood in the place of a case's cursor, as that one decides.
    """
    wanted = {case.cursor.key: case.cursor for case in cases if case.cursor}
    wanted |= {key: run for key, run in runs.items() if run is not None}
    unclear = set(paced.waiting)
    unclear |= _post_releases(
        plane, [row for key, row in wanted.items() if key not in unclear], now
    )
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
    caught_up = sum(row.misfire for row in inserted)
    tally = Tally(
        planned=len(planned),
        existed=len(existing) + sum(run is None for run in runs.values()),
        misfires=caught_up,
        paced=sum(row.key in paced.moved for row in inserted),
    )
    return planned, standing, tally + count_left(cases, ready, standing, paced)


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
    plane: Plane, cases: Sequence[Case], routes: Routes, paced: Paced, now: datetime
) -> Tally:
    """Move the rows whose next time stands out of PLANNED."""
    changes = [_change(plane, case, routes, now) for case in cases]
    running = [
        (change.row, case)
        for change, case in zip(changes, cases, strict=True)
        if change.transition in RUNNING and change.row.key not in paced.rows
    ]
    now_paced = pace_cases(plane.rates, routes, running, now)
    paced |= now_paced
    wanted = [
        _leaving(paced.rows.get(change.row.key, change.row), change)
        for change in changes
        if change.row.key not in now_paced.waiting
    ]
    unclear = _post_releases(plane, [change.row for change in wanted], now)
    tally = Tally(unknown=len(changes) - len(wanted)) + troubled(
        [trouble_of(c.row, ParkReason.UNCLEAR) for c in wanted if c.row.key in unclear]
    )
    sent = [change for change in wanted if change.row.key not in unclear]
    for change, answer in zip(sent, plane.timeline.move(sent), strict=True):
        tally += count_change(change, answer, is_paced=change.row.key in paced.moved)
    return tally


def _leaving(row: Occurrence, change: Change) -> Change:
    """Return a change with its row as it got its place."""
    return change if row is change.row else Change(row, _MOVES[row.state])


def _change(plane: Plane, case: Case, routes: Routes, now: datetime) -> Change:
    """Return the change by which a row leaves PLANNED."""
    if case.version is None or case.verdict is not None:
        # Whatever it is by now: only as a row that has not left for the relay.
        gone = canceling(case.row, case.verdict or CancelReason.ORPHANED, now)
        return Change(gone, Transition.WITHDRAW)
    row = leaving(_bench(plane, routes, case.version, now), case)
    return Change(row, _MOVES[row.state])
