"""Let occurrences go that wait when their time is near, and see them enqueued.

One that is deferred, or waits for a retry or for another one, lies behind the scan, so
its dispatch row speaks for it: the row stays PENDING until the occurrence was sent or
has ended, whatever is lost in between.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.occurrence import Occurrence, RowKey, State, Transition, row_key
from hourbell.domain.parking import ParkReason, Trouble
from hourbell.domain.policies import is_stuck
from hourbell.domain.shards import ShardMap
from hourbell.domain.states import WAITING
from hourbell.usecases.materialize import Plane
from hourbell.usecases.parking import unsent_since
from hourbell.usecases.port_values import same_wait
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.unsent import canceling, objection_to_sending
from hourbell.usecases.vain import waiting_in_vain
from hourbell.usecases.version_reads import read_versions

_UNSENT = WAITING | {State.PLANNED, State.SCHEDULED}


@dataclass(frozen=True, slots=True)
class ReleaseReport:
    """What became of the dispatch rows.

    Attributes:
        released: occurrences that are outbox records now.
        canceled: occurrences that their version no longer stands behind.
        held: occurrences that a handover under way has yet to decide.
        settled: dispatch rows that are done.
        vain: dispatch rows that are done since their occurrence will never come.
        unclear: writes without a clear answer; they come up again.
        faulty: occurrences that, or whose version, cannot be read or are not there;
            they are left alone.
        stuck: outbox records that the stream did not get through.
        troubles: of the dispatch rows that stay PENDING, why; no part of what makes
            two reports equal.
    """

    released: int = 0
    canceled: int = 0
    held: int = 0
    settled: int = 0
    vain: int = 0
    unclear: int = 0
    faulty: int = 0
    stuck: tuple[RowKey, ...] = ()
    troubles: tuple[Trouble, ...] = field(default=(), compare=False)


def release(
    plane: Plane,
    dispatches: Iterable[Dispatch],
    now: datetime,
    *,
    previous: datetime | None = None,
) -> ReleaseReport:
    """Work off the dispatch rows of deferred occurrences that are due soon.

    Args:
        plane: the ports.
        dispatches: of any kind and state; only pending releases due within the
            horizon are taken.
        now: the current instant.
        previous: when the last finished pass began; for the sweep's backoff.

    Raises:
        Transient: occurrences or versions could not be read.
    """
    due = now + plane.horizon
    taken = {
        target_of(plane, dispatch): dispatch
        # Of several for the same occurrence, that of its latest wait.
        for dispatch in sorted(dispatches, key=lambda each: each.number or 0)
        if dispatch.kind is DispatchKind.RELEASE
        and dispatch.is_open
        and dispatch.due <= due
    }
    if not taken:
        return ReleaseReport()
    rows = plane.timeline.read(taken)
    over = [key for key, row in rows.items() if _is_over(taken[key], row)]
    waiting = {
        key: row
        for key, row in rows.items()
        if row.state in WAITING and key not in over
    }
    report, ended, hindered = _let_go(plane, waiting, now)
    stuck = tuple(row.key for row in rows.values() if is_stuck(row, now, previous))
    settled, unclear = _settle(plane, [taken[key] for key in [*over, *ended]], now)
    # What is not read may be there: a row of another release.
    missing = {key: each for key, each in taken.items() if key not in rows}
    twin_of = plane.shard_map.twin
    in_vain = waiting_in_vain(plane.schedules, plane.timeline, missing, now, twin_of)
    vain, unclear_too = _settle(plane, [taken[key] for key in sorted(in_vain)], now)
    unclear += unclear_too
    hindered |= dict.fromkeys(unclear, ParkReason.UNCLEAR)
    left = {k: each for k, each in taken.items() if k not in in_vain or k in unclear}
    return replace(
        report,
        stuck=stuck,
        settled=settled,
        vain=vain,
        unclear=report.unclear + len(unclear),
        faulty=report.faulty + len(missing) - len(in_vain),
        troubles=_troubles(left, rows, hindered),
    )


def _is_over(dispatch: Dispatch, row: Occurrence) -> bool:
    """Whether nothing is left to do for a dispatch row.

    One of an earlier wait than the row's has been worked off.
    """
    return row.waits > (dispatch.number or 0) or row.state not in _UNSENT


def target_of(plane: Plane, dispatch: Dispatch) -> RowKey:
    """Return the key of the occurrence that a dispatch row speaks for."""
    return target_at(plane.shard_map, dispatch)


def target_at(shards: ShardMap, dispatch: Dispatch) -> RowKey:
    """Return the key of the occurrence that a dispatch row points at."""
    instant = dispatch.scheduled_for or dispatch.due
    shard = shards.shard_of(dispatch.schedule_id, instant)
    return row_key(dispatch.schedule_id, dispatch.version, instant, shard, dispatch.run)


def _troubles(
    taken: Mapping[RowKey, Dispatch],
    rows: Mapping[RowKey, Occurrence],
    hindered: Mapping[RowKey, ParkReason],
) -> tuple[Trouble, ...]:
    """Tell why dispatch rows stay PENDING, as far as something may be wrong.

    Args:
        taken: the dispatch rows by the keys of their occurrences.
        rows: the occurrences that were read.
        hindered: what kept an occurrence, or its dispatch row, from its next state.
    """
    found = []
    for key, dispatch in taken.items():
        row, due, reason = rows.get(key), dispatch.due, hindered.get(key)
        if reason is None:
            reason = _usual_reason(row)
            if row is not None and reason is ParkReason.UNSENT:
                due = unsent_since(row)
        if reason is not None:
            found.append(Trouble(dispatch.key, reason, due, dispatch.tenant_id))
    return tuple(found)


def _usual_reason(row: Occurrence | None) -> ParkReason | None:
    """Return why the dispatch row of an occurrence stays PENDING, by its state."""
    if row is None:
        return ParkReason.TARGET_UNREADABLE
    if row.state is State.SCHEDULED:
        return ParkReason.UNSENT
    # Its own decision comes first.
    return ParkReason.HELD if row.state is State.PLANNED else None


def _let_go(
    plane: Plane, found: Mapping[RowKey, Occurrence], now: datetime
) -> tuple[ReleaseReport, list[RowKey], dict[RowKey, ParkReason]]:
    """Make outbox records of deferred rows.

    Args:
        plane: the ports.
        found: by the keys that they were asked for by; while the shard count changes,
            a row's own key may be another.
        now: the current instant.

    Returns:
        what was done, the keys of those that ended, and what kept others.
    """
    rows, asked = found.values(), {row.key: key for key, row in found.items()}
    refs = [_ref(row) for row in rows]
    versions, faulty = read_versions(plane.schedules, refs, consistent=True)
    hindered = {
        row.key: ParkReason.VERSION_UNREADABLE for row in rows if _ref(row) in faulty
    }
    readable = [row for row in rows if row.key not in hindered]
    free = [row for row in readable if not _is_held(row, versions)]
    held = [row for row in readable if _is_held(row, versions)]
    hindered |= {row.key: ParkReason.HELD for row in held}
    free.sort(key=lambda row: row.available_at or row.scheduled_for)
    changes = [_change(plane, row, versions.get(_ref(row)), now) for row in free]
    counts = dict.fromkeys(Transition, 0)
    ended: list[RowKey] = []
    unclear = 0
    for change, answer in zip(changes, plane.timeline.move(changes), strict=True):
        if answer is Write.UNKNOWN:
            unclear += 1
            hindered[change.row.key] = ParkReason.UNCLEAR
        if answer is Write.APPLIED:
            counts[change.transition] += 1
            if change.transition is Transition.WITHDRAW:
                ended.append(change.row.key)
    report = ReleaseReport(
        released=counts[Transition.RELEASE],
        canceled=counts[Transition.WITHDRAW],
        held=len(held),
        faulty=len(rows) - len(readable),
        unclear=unclear,
    )
    return (
        report,
        [asked[key] for key in ended],
        {asked[key]: reason for key, reason in hindered.items()},
    )


def _ref(row: Occurrence) -> VersionRef:
    return VersionRef(row.schedule_id, row.version)


def _is_held(row: Occurrence, versions: Mapping[VersionRef, Version]) -> bool:
    version = versions.get(_ref(row))
    return version is not None and version.holds(row.scheduled_for)


def _change(
    plane: Plane, row: Occurrence, version: Version | None, now: datetime
) -> Change:
    reason = objection_to_sending(plane.schedules, row, version)
    if reason is not None:
        return Change(canceling(row, reason, now), Transition.WITHDRAW, same_wait(row))
    scheduled = replace(row, state=State.SCHEDULED, scheduled_at=now)
    return Change(scheduled, Transition.RELEASE, same_wait(row))


def _settle(
    plane: Plane, dispatches: Sequence[Dispatch], now: datetime
) -> tuple[int, list[RowKey]]:
    """Set dispatch rows DONE.

    Returns:
        how many are, and of those that are not clear the keys of the occurrences.
    """
    answers = plane.timeline.settle([each.done(now) for each in dispatches])
    unclear = [
        target_of(plane, dispatch)
        for dispatch, answer in zip(dispatches, answers, strict=True)
        if answer is Write.UNKNOWN
    ]
    return len(answers) - len(unclear), unclear
