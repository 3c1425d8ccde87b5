"""Change the shard count: announce an epoch, move the rows of its buckets, settle it.

Between two phases lies EPOCH_LAG, so that every process that knows the older one is
through with what it began. Each step is stored under the condition that nobody else
made one since it was read, so that orders may be lost, late or doubled.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from hourbell.domain.errors import Conflict, Finding, InvalidInput, Transient
from hourbell.domain.instants import floor_minute, format_instant
from hourbell.domain.occurrence import bucket_of, minute_of
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.shards import MAX_SHARDS, MINUTE, Epoch, Phase, ShardMap
from hourbell.usecases.ports import Clock, ShardGroups, Write
from hourbell.usecases.scanned import have_scanned
from hourbell.usecases.shard_ports import (
    EpochBook,
    Epochs,
    Misplaced,
    MoveOrder,
    MoveProgress,
    MoveQueue,
    Relocation,
)

MIN_LEAD: Final = timedelta(minutes=10)
"""An epoch begins so long after it is announced at the earliest.

Rows of its first buckets can be moved before they are materialized then, which is
not needed, but keeps them out of the relay's way.
"""

MAX_LEAD: Final = timedelta(days=30)
MAX_GROUPS: Final = 256
"""There is no way back to fewer, and each has a pass and a lease every minute."""

MAX_SEGMENTS: Final = 64
MAX_EPOCHS: Final = 100
# Rows that had to be left are looked at again after this, and twice that the next time:
# what is parked may be left for long, and each walk reads the whole timeline.
ROUND_PAUSE: Final = timedelta(minutes=1)
MAX_ROUND_PAUSE: Final = timedelta(minutes=15)
_TOGETHER: Final = 25
_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class Mover:
    """What changing the shard count needs.

    Attributes:
        initial: the map that holds until a list is stored.
    """

    book: EpochBook
    groups: ShardGroups
    relocation: Relocation
    queue: MoveQueue
    clock: Clock
    initial: ShardMap


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for.

    Attributes:
        shards: how many a bucket shall have.
        groups: how many materializers shall share them; None for as many as there are.
        since: from which minute on; None for the earliest possible.
    """

    shards: int
    groups: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class MoveReport:
    """What working at an order did.

    Attributes:
        phase: the last epoch's afterwards; None when the order concerns none.
        moved: how many rows were moved.
        left: how many were left where they are.
    """

    phase: Phase | None = None
    moved: int = 0
    left: int = 0


def describe(mover: Mover) -> Epochs:
    """Return the list of epochs; the initial one while none is stored."""
    stored = mover.book.read()
    return stored or Epochs(mover.initial, 0, mover.clock.now())


def establish(book: EpochBook, initial: ShardMap, now: datetime) -> Epochs:
    """Store the initial list if none is stored, and return what is stored.

    From then on the list rules, whatever the settings say.
    """
    stored = book.read()
    if stored is None:
        first = Epochs(initial, 1, now)
        book.store(first)
        stored = book.read() or first
    return stored


def announce(mover: Mover, plan: Plan, *, requested_by: str) -> Epochs:
    """Announce an epoch, and order the moving of its rows.

    Announcing what is announced already changes nothing, and orders the moving anew.

    Raises:
        InvalidInput: one of the numbers or the instant makes no sense.
        Conflict: another epoch is under way (`resharding_under_way`), or nothing would
            change (`shards_unchanged`).
        Transient: somebody else changed the list meanwhile.
    """
    now = mover.clock.now()
    epochs = establish(mover.book, mover.initial, now)
    last = epochs.shard_map.last
    is_under_way = epochs.shard_map.unsettled is not None
    if is_under_way and _is_asked_again(plan, last):
        _order(mover, last)
        return epochs
    epoch = _asked(plan, epochs.shard_map, now)
    if is_under_way:
        raise Conflict(
            f"an epoch of {last.shards} shards is not settled yet",
            code="resharding_under_way",
        )
    if (last.shards, last.groups) == (epoch.shards, epoch.groups):
        raise Conflict(
            f"there are {last.shards} shards in {last.groups} groups already",
            code="shards_unchanged",
        )
    # First the groups' records, so that no row is ever put where nobody scans.
    for group in range(epoch.groups):
        have_scanned(mover.groups, group, now)
    segments = min(MAX_SEGMENTS, max(1, max(last.shards, epoch.shards) // 4))
    announced = Epochs(
        ShardMap((*epochs.shard_map.epochs, epoch)),
        epochs.revision + 1,
        now,
        MoveProgress(segments=segments),
        requested_by,
    )
    if mover.book.store(announced) is not Write.APPLIED:
        raise Transient("somebody else is changing the shards")
    _order(mover, epoch)
    return announced


def resume(mover: Mover) -> Epochs:
    """Order the moving of an unsettled epoch anew, from the beginning of a round."""
    epochs = describe(mover)
    if epochs.shard_map.unsettled is not None:
        _order(mover, epochs.shard_map.last)
    return epochs


def move(mover: Mover, order: MoveOrder, *, deadline: datetime) -> MoveReport:
    """Go on with an epoch: enter its next phase, or move rows of one part.

    Args:
        mover: the ports.
        order: what to do.
        deadline: no further page is begun after it; the rest is ordered anew.

    Raises:
        Transient: a store or queue did not answer; the order must come again.
    """
    epochs = mover.book.read()
    if epochs is None or epochs.shard_map.last.since != order.since:
        return MoveReport()
    epoch, now = epochs.shard_map.last, mover.clock.now()
    if epoch.phase is Phase.SETTLED:
        return MoveReport(Phase.SETTLED)
    wait = epochs.changed_at + EPOCH_LAG - now
    if wait > timedelta(0):
        mover.queue.put([order], delay=wait)
    elif epoch.phase is Phase.ANNOUNCED:
        moving = epochs.shard_map.with_phase(Phase.MOVING)
        _store(mover, replace(epochs, shard_map=moving, changed_at=now), epochs)
        _order(mover, epoch)
        return MoveReport(Phase.MOVING)
    elif not order.round:
        _begin_round(mover, epochs)
    elif order.round == epochs.progress.round:
        return _walk(mover, epochs, order, deadline)
    return MoveReport(epoch.phase)


def may_move(row: Misplaced, now: datetime) -> bool:
    """Whether a row may be moved to another shard.

    Not while the relay may have it in hand. And what somebody has to act on must not
    come to lie behind the watermark of its new shard, which may be as high as now: it
    stays in its old one, where the scan works it off.
    """
    is_ahead = minute_of(row.key.bucket) >= floor_minute(now)
    return not row.is_leaving and (is_ahead or not row.is_open)


def _is_asked_again(plan: Plan, epoch: Epoch) -> bool:
    """Whether an epoch is what is asked for; its minute may be too near by now."""
    return (
        plan.shards == epoch.shards
        and plan.groups in {None, epoch.groups}
        and plan.since in {None, epoch.since}
    )


def _asked(plan: Plan, shard_map: ShardMap, now: datetime) -> Epoch:
    """Return the epoch that is asked for.

    Raises:
        InvalidInput: it makes no sense.
    """
    groups = shard_map.groups if plan.groups is None else plan.groups
    earliest = floor_minute(now + MIN_LEAD) + MINUTE
    since = plan.since or earliest
    if plan.since is None and shard_map.last.since is not None:
        since = max(since, shard_map.last.since + MINUTE)
    findings = [
        # No group is without a shard, and there are no fewer groups than before.
        *_number("shards", plan.shards, shard_map.groups, MAX_SHARDS),
        *_number("groups", groups, shard_map.groups, _most_groups(plan, shard_map)),
    ]
    latest = floor_minute(now + MAX_LEAD)
    if since != floor_minute(since) or not earliest <= since <= latest:
        text = (
            f"since must be a whole minute from {format_instant(earliest)} to"
            f" {format_instant(latest)}."
        )
        findings.append(Finding("since", "out_of_range", text, format_instant(since)))
    elif shard_map.last.since is not None and since <= shard_map.last.since:
        text = f"since must be after {format_instant(shard_map.last.since)}."
        findings.append(Finding("since", "out_of_range", text, format_instant(since)))
    if len(shard_map.epochs) >= MAX_EPOCHS:
        text = f"there have been {MAX_EPOCHS} shard counts; no more can be told apart."
        findings.append(Finding("shards", "too_many_epochs", text, str(plan.shards)))
    if findings:
        raise InvalidInput(findings=tuple(findings))
    return Epoch(since, plan.shards, groups, Phase.ANNOUNCED)


def _most_groups(plan: Plan, shard_map: ShardMap) -> int:
    return max(min(plan.shards, MAX_GROUPS), shard_map.groups)


def _number(name: str, value: int, low: int, high: int) -> list[Finding]:
    if low <= value <= high:
        return []
    text = f"{name} must be {low} to {high}."
    return [Finding(name, "out_of_range", text, str(value))]


def _order(mover: Mover, epoch: Epoch) -> None:
    """Order that an epoch goes on from where it stands."""
    if epoch.since is not None:
        mover.queue.put([MoveOrder(epoch.since)], delay=timedelta(0))


def _store(mover: Mover, epochs: Epochs, before: Epochs) -> bool:
    changed = replace(epochs, revision=before.revision + 1)
    return mover.book.store(changed) is Write.APPLIED


def _begin_round(mover: Mover, epochs: Epochs) -> None:
    """Order a walk through the whole timeline, part by part."""
    progress = replace(
        epochs.progress, round=epochs.progress.round + 1, done=frozenset(), left=0
    )
    if not _store(mover, replace(epochs, progress=progress), epochs):
        raise Transient("somebody else is moving rows")
    since = epochs.shard_map.last.since
    orders = [
        MoveOrder(since, progress.round, segment)
        for segment in range(progress.segments)
        if since is not None
    ]
    mover.queue.put(orders, delay=timedelta(0))


def _walk(
    mover: Mover, epochs: Epochs, order: MoveOrder, deadline: datetime
) -> MoveReport:
    """Move the rows of one part, as far as there is time."""
    progress, after, report = epochs.progress, order.after, MoveReport(Phase.MOVING)
    if order.segment in progress.done:
        return replace(report, phase=_finish_round(mover, order))
    while True:
        rows, after = mover.relocation.rows_from(
            bucket_of(order.since),
            segment=order.segment,
            segments=progress.segments,
            after=after,
        )
        moved, left = _move_page(mover, epochs.shard_map, rows)
        report = replace(report, moved=report.moved + moved, left=report.left + left)
        if after is None or mover.clock.now() >= deadline:
            break
    _note(mover, order, report, is_done=after is None)
    if after is None:
        return replace(report, phase=_finish_round(mover, order))
    mover.queue.put([replace(order, after=after)], delay=timedelta(0))
    return report


def _move_page(
    mover: Mover, shard_map: ShardMap, rows: Sequence[Misplaced]
) -> tuple[int, int]:
    """Move the rows that lie under the old count; return how many, and how many not."""
    astray = [
        (row, shard)
        for row in rows
        if (shard := _shard_of(shard_map, row)) != row.key.shard
    ]
    now = mover.clock.now()
    going = [(row, shard) for row, shard in astray if may_move(row, now)]
    moved = 0
    for first in range(0, len(going), _TOGETHER):
        part = going[first : first + _TOGETHER]
        answers = mover.relocation.relocate(
            [row for row, _ in part], [shard for _, shard in part]
        )
        moved += answers.count(Write.APPLIED)
    return moved, len(astray) - moved


def _shard_of(shard_map: ShardMap, row: Misplaced) -> int:
    return shard_map.shard_of(row.key.schedule_id, minute_of(row.key.bucket))


def _finish_round(mover: Mover, order: MoveOrder) -> Phase | None:
    """When all parts are through, settle the epoch, or begin anew for what was left."""
    epochs = mover.book.read()
    if epochs is None or epochs.shard_map.last.since != order.since:
        return None
    progress = epochs.progress
    is_through = len(progress.done) == progress.segments
    if epochs.shard_map.unsettled is None or progress.round != order.round:
        return epochs.shard_map.last.phase
    if is_through and progress.left:
        mover.queue.put([MoveOrder(order.since)], delay=_pause_after(progress.round))
    elif is_through:
        settled = replace(
            epochs,
            shard_map=epochs.shard_map.with_phase(Phase.SETTLED),
            changed_at=mover.clock.now(),
        )
        if not _store(mover, settled, epochs):
            raise Transient("somebody else is moving rows")
        return Phase.SETTLED
    return Phase.MOVING


def _pause_after(number: int) -> timedelta:
    """Return how long to wait after a walk that had to leave rows."""
    pause: timedelta = ROUND_PAUSE * 2 ** min(number - 1, 8)
    return min(pause, MAX_ROUND_PAUSE)


def _note(mover: Mover, order: MoveOrder, report: MoveReport, *, is_done: bool) -> None:
    """Add to the progress of a round, unless the next one has begun."""
    for _ in range(_ROUNDS):
        epochs = mover.book.read()
        if epochs is None or epochs.shard_map.unsettled is None:
            return
        progress = epochs.progress
        if progress.round != order.round or order.segment in progress.done:
            return
        noted = replace(
            progress,
            done=progress.done | ({order.segment} if is_done else set()),
            moved=progress.moved + report.moved,
            left=progress.left + report.left,
        )
        if _store(mover, replace(epochs, progress=noted), epochs):
            return
    raise Transient("others were always first to note their progress")
