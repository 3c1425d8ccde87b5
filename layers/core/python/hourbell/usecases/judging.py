"""Judge planned rows: does a row run, and what must stand before it leaves PLANNED?"""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from hourbell.domain.definition import Version
from hourbell.domain.errors import InvalidInput
from hourbell.domain.misfire import (
    Decision,
    Misfire,
    MisfirePolicy,
    MissReason,
    Overdue,
    decide,
)
from hourbell.domain.occurrence import (
    CancelReason,
    Lane,
    Occurrence,
    RowKey,
    State,
    jitter_seconds,
)
from hourbell.domain.policies import (
    MISFIRE_THRESHOLD,
    expires_at,
    is_deferred,
    is_misfire,
)
from hourbell.domain.retention import REMEMBERED
from hourbell.domain.schedule import matches, next_planned
from hourbell.domain.shards import ShardMap
from hourbell.domain.zones import TICK, release_at_hand
from hourbell.usecases.ports import Schedules
from hourbell.usecases.unsent import canceling, ending
from hourbell.usecases.version_reads import stopped_version

# Verdicts after which a version has no further time.
_ENDED = frozenset(
    {CancelReason.SUPERSEDED, CancelReason.PAUSED, CancelReason.CANCELED}
)


_NOTHING_RUNS = Misfire(MisfirePolicy.SKIP)


@dataclass(frozen=True, slots=True)
class Bench:
    """What judging needs besides the row and its version.

    Attributes:
        queue_of: says for a lane the queue of the version's messages.
        catch_up_per_minute: the tenant's catch-up rate.
    """

    schedules: Schedules
    shard_map: ShardMap
    queue_of: Callable[[Lane], str]
    catch_up_per_minute: int
    now: datetime


@dataclass(frozen=True, slots=True)
class Case:
    """A planned row, and what was found about it.

    Attributes:
        version: the version that it names; None when there is none.
        verdict: why it is canceled; None when it is not.
        cursor: the row that must stand under the key of the time that follows.
        runs: of a gap row, the occurrences that it lets run besides itself.
        decision: of an overdue row, what is decided about it unless another decision
            stands; of a gap row, its own.
        place: of an overdue row that runs, how many of its decision run before it.
        ends: True when its version has no time after it.
    """

    row: Occurrence
    version: Version | None
    verdict: CancelReason | None = None
    cursor: Occurrence | None = None
    runs: tuple[Occurrence, ...] = ()
    decision: Decision | None = None
    place: int = 0
    ends: bool = False

    @property
    def ahead(self) -> tuple[Occurrence, ...]:
        """The rows that must stand before this one leaves PLANNED."""
        return self.runs if self.cursor is None else (self.cursor, *self.runs)

    @property
    def all_rows(self) -> tuple[Occurrence, ...]:
        """The row itself, and those that must stand before it leaves PLANNED."""
        return (self.row, *self.ahead)

    @property
    def last(self) -> datetime:
        """The last time that it speaks of."""
        if self.row.decision is None:
            return self.row.scheduled_for
        return self.row.decision.last

    def with_cursor_in(self, standing: AbstractSet[RowKey]) -> "Case":
        """Return the case without its cursor, if that is known to stand."""
        stands = self.cursor is not None and self.cursor.key in standing
        return replace(self, cursor=None) if stands else self

    def obeying(self, standing: Occurrence) -> "Case":
        """Return the case under a row that stands where its cursor was to be put."""
        decision = standing.decision
        if decision is None or self.row.decision is not None:
            return self
        return replace(self, decision=decision)


def objection(row: Occurrence, version: Version) -> CancelReason | None:
    """Return why a version does not stand behind a planned row; None when it does.

    It is judged by the version's own release of the zone database. A row that was
    planned by other rules, where those are not at hand, is not judged by these.
    """
    if version.is_stopped or not version.owns(row.scheduled_for):
        return ending(version)
    same_rules = row.tzdb == release_at_hand(version.tzdb)
    if same_rules and not matches(version.timing, row.scheduled_for):
        return CancelReason.REPLANNED
    return None


def judge(bench: Bench, row: Occurrence, version: Version) -> Case:
    """Decide whether a row runs, and what follows it.

    A row that its rule no longer produces is still the cursor of its version, so it
    too is followed by the next time that the version owns. Of a version that has ended
    before the row's time, or was stopped, nothing follows.

    Raises:
        InvalidInput: the version makes no sense to this release.
        Transient: the version log did not answer.
    """
    verdict = objection(row, version)
    if verdict is None and version.effective_to is not None:
        stopped = stopped_version(bench.schedules, version)
        verdict = None if stopped is None else ending(stopped)
    if verdict is not None and verdict in _ENDED:
        return Case(row, version, verdict, _canceled_gap(bench, row, version, verdict))
    if row.decision is not None:
        return _gap_case(bench, row, version, row.decision, verdict)
    return _row_case(bench, row, version, verdict)


def _canceled_gap(
    bench: Bench, row: Occurrence, version: Version, verdict: CancelReason
) -> Occurrence | None:
    """Return the gap row of what a stop leaves undecided behind an overdue row.

    Nothing of it runs, and yet no time may go without a row that accounts for it. A
    gap row accounts for what it covers, and what it is followed by is left. None when
    there is nothing.
    """
    until = version.effective_to
    if verdict is CancelReason.SUPERSEDED or until is None:
        return None
    last = row.scheduled_for, row.sequence
    if row.decision is not None:
        last = row.decision.last, row.decision.sequence
    timing = version.timing
    try:
        overdue = Overdue(*last, bench.now, until, until)
        decision = decide(timing, _NOTHING_RUNS, overdue, bench.catch_up_per_minute)
        first = next_planned(timing, *last)
    except InvalidInput:
        # Rules that make no sense to this release tell no times; a stop holds anyway.
        return None
    if not decision.count or first is None:
        return None
    gap = replace(_planned(bench, version, *first), decision=decision)
    return canceling(gap, verdict, bench.now)


def _row_case(
    bench: Bench, row: Occurrence, version: Version, verdict: CancelReason | None
) -> Case:
    """Judge a row that carries no decision."""
    window = version.definition.flexible_window_seconds
    decision = None
    if is_misfire(row.scheduled_for, bench.now, window):
        decision = _decide(bench, row, version)
    ahead = next_planned(version.timing, row.scheduled_for, row.sequence)
    cursor = None
    if ahead is not None and version.owns(ahead[0]):
        cursor = _planned(bench, version, *ahead)
        if decision is not None and decision.count:
            cursor = replace(cursor, decision=decision)
    return Case(row, version, verdict, cursor, (), decision, ends=ahead is None)


def _decide(bench: Bench, row: Occurrence, version: Version) -> Decision:
    """Decide about an overdue row by this clock."""
    window = timedelta(seconds=version.definition.flexible_window_seconds)
    owned_until = version.effective_to
    if owned_until is None and version.ends_at is not None:
        # A handover under way: what comes after the change is not ours to decide.
        owned_until = version.ends_at + TICK
    overdue = Overdue(
        row.scheduled_for,
        row.sequence,
        bench.now,
        bench.now - MISFIRE_THRESHOLD - window,
        owned_until,
        is_certain=row.planned_at <= row.scheduled_for + REMEMBERED,
    )
    definition = version.definition
    return decide(
        version.timing, definition.misfire, overdue, bench.catch_up_per_minute
    )


def _gap_case(
    bench: Bench,
    row: Occurrence,
    version: Version,
    decision: Decision,
    verdict: CancelReason | None,
) -> Case:
    """Judge a gap row: the time after the gap, and what of the gap runs."""
    following, cursor = decision.following, None
    if following is not None and version.owns(following):
        cursor = _planned(bench, version, following, decision.sequence + 1)
    # Whether the time before the gap runs too.
    place = int(
        decision.runs_from is not None and decision.runs_from < row.scheduled_for
    )
    itself = int(decision.lets_run(row.scheduled_for))
    times = decision.run_times(version.timing, row.scheduled_for)
    # Those that run are the last ones covered, so their count is known from the end.
    before = decision.sequence - decision.runs + itself
    runs = tuple(
        _running(
            bench,
            _planned(bench, version, instant, before + number),
            version,
            decision,
            place + itself + number - 1,
        )
        for number, instant in enumerate(times, start=1)
    )
    ends = following is None
    return Case(row, version, verdict, cursor, runs, decision, place, ends)


def row_beyond(bench: Bench, gap: Occurrence, version: Version) -> Occurrence | None:
    """Return the row of the time that follows a gap; None when there is none.

    None, too, of a version that has ended: what follows then, judging the gap tells.
    """
    decision = gap.decision
    if decision is None or decision.following is None or version.ends_at is not None:
        return None
    if not (version.owns(gap.scheduled_for) and version.owns(decision.following)):
        return None
    return _planned(bench, version, decision.following, decision.sequence + 1)


def _planned(
    bench: Bench, version: Version, instant: datetime, sequence: int
) -> Occurrence:
    """Return a planned row of a version."""
    return Occurrence(
        schedule_id=version.schedule_id,
        version=version.version,
        scheduled_for=instant,
        shard=bench.shard_map.shard_of(version.schedule_id, instant),
        tenant_id=version.tenant_id,
        sequence=sequence,
        tzdb=release_at_hand(version.tzdb),
        planned_at=bench.now,
    )


def _running(
    bench: Bench, row: Occurrence, version: Version, decision: Decision, place: int
) -> Occurrence:
    """Return the row of a time within a gap that runs.

    Where that was decided so long ago that it may have run, expired and been deleted,
    it is missed.
    """
    if row.scheduled_for < bench.now - REMEMBERED:
        return _missed(row, MissReason.TOO_LATE, bench.now)
    return leaving(bench, Case(row, version, decision=decision, place=place))


def leaving(bench: Bench, case: Case) -> Occurrence:
    """Return a row as it is when it leaves PLANNED by its case, uncanceled.

    On time, it goes to its own lane at its own time; overdue, it is missed, or goes to
    the catch-up lane at the decision's pace. What is due beyond the queue's longest
    delay is deferred.
    """
    row, version, now = case.row, case.version, bench.now
    if version is None:
        raise ValueError("a row without a version is canceled")
    definition = version.definition
    if case.decision is None:
        jitter = jitter_seconds(row.occurrence_id, definition.flexible_window_seconds)
        available_at = row.scheduled_for + timedelta(seconds=jitter)
        routed = replace(row, lane=definition.lane)
    elif case.decision.lets_run(row.scheduled_for):
        available_at = case.decision.available_at(case.place)
        routed = replace(row, lane=Lane.CATCHUP, misfire=True)
    else:
        reason = definition.misfire.reason(row.scheduled_for, case.decision.as_of)
        return _missed(row, reason, now)
    routed = replace(routed, queue=bench.queue_of(routed.lane or definition.lane))
    return going(routed, available_at, now)


def going(row: Occurrence, available_at: datetime, now: datetime) -> Occurrence:
    """Return a row that runs, to be received at an instant.

    It is an outbox record, or DEFERRED when that is beyond the queue's longest delay.
    """
    if is_deferred(available_at, now):
        state, scheduled_at = State.DEFERRED, None
    else:
        state, scheduled_at = State.SCHEDULED, now
    return replace(
        row, available_at=available_at, state=state, scheduled_at=scheduled_at
    )


def _missed(row: Occurrence, reason: MissReason, now: datetime) -> Occurrence:
    return replace(
        row,
        state=State.MISSED,
        misfire=True,
        reason=reason,
        finished_at=now,
        expires_at=expires_at(now),
    )
