"""Take in what workers say of their attempts: done, or failed."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.errors import Transient, Unreadable
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import ErrorClass
from hourbell.domain.states import CLAIMABLE, WAITING
from hourbell.usecases.attempts import (
    Ended,
    failing,
    let_go,
    succeeding,
    version_of,
    watch_of,
)
from hourbell.usecases.lanes import policy_of
from hourbell.usecases.ports import Write
from hourbell.usecases.version_reads import read_versions
from hourbell.usecases.work_values import Failed, Finished, Held, Outcome
from hourbell.usecases.workplace import MAX_ROUNDS, Look, Workplace

_End: TypeAlias = Callable[[Occurrence, Version, datetime], Ended]

_COMPLETED = frozenset({State.SUCCEEDED})
# What was let go is SCHEDULED or ENQUEUED again, and may wait for something else.
_COMES_AGAIN = CLAIMABLE | WAITING
_FAILED = frozenset({State.DEAD, State.CANCELED}) | _COMES_AGAIN


@dataclass(frozen=True, slots=True)
class _Said:
    """What a worker says of an attempt.

    Attributes:
        end: says how it ends.
        after: in which states it may be if it ended so before.
    """

    held: Held
    end: _End
    after: frozenset[State]


def complete_work(
    place: Workplace, tenant_id: str, held: Sequence[Held]
) -> list[Finished]:
    """Take occurrences for done; answer for each, in order.

    What neither a lane nor a place depends on is written in one pack. Said again with
    the same token, it is answered again.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: nothing could be read; nothing is written.
    """
    looked = place.look(tenant_id, [each.occurrence_id for each in held])
    rows = looked.rows
    running = [
        row
        for each in held
        if (row := rows.get(each.occurrence_id)) is not None and _has(row, each)
    ]
    done = _packed(place, running)

    def end(row: Occurrence, version: Version, now: datetime) -> Ended:
        return succeeding(place, row, version, now)

    return [
        done.get(each.occurrence_id)
        or _finish(place, tenant_id, _Said(each, end, _COMPLETED), looked)
        for each in held
    ]


def fail_work(
    place: Workplace, tenant_id: str, failed: Sequence[Failed]
) -> list[Finished]:
    """Take attempts for failed; answer for each what follows, in order.

    Said again with the same token, it is answered again.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: nothing could be read; nothing is written.
    """
    looked = place.look(tenant_id, [each.occurrence_id for each in failed])

    def finished(said: Failed) -> Finished:
        def end(row: Occurrence, version: Version, now: datetime) -> Ended:
            return failing(place, row, version, said.failure, now)

        held = Held(said.occurrence_id, said.lease_token)
        return _finish(place, tenant_id, _Said(held, end, _FAILED), looked)

    return [finished(each) for each in failed]


def _has(row: Occurrence, held: Held) -> bool:
    return row.state is State.RUNNING and row.lease_token == held.lease_token


def _packed(place: Workplace, rows: Collection[Occurrence]) -> dict[str, Finished]:
    """Complete those that stand for themselves; leave out what is not certain."""
    refs = {VersionRef(row.schedule_id, row.version) for row in rows}
    versions, _ = read_versions(place.schedules, refs, consistent=True)
    now = place.clock.now()
    ends = [
        (row, succeeding(place, row, version, now))
        for row in rows
        if (version := versions.get(VersionRef(row.schedule_id, row.version)))
        is not None
        and policy_of(row, version) is Overlap.ALLOW
        and row.slot is None
    ]
    changes = [change for _, ended in ends for change in ended.deed.changes]
    moved = place.timeline.move(changes) if changes else []
    done = [
        (row, ended)
        for (row, ended), answer in zip(ends, moved, strict=True)
        if answer is Write.APPLIED
    ]
    _settle(place, [row for row, _ in done], now)
    return {row.occurrence_id: _told(ended.row, ended.row.state) for row, ended in done}


def _finish(place: Workplace, tenant_id: str, said: _Said, looked: Look) -> Finished:
    """End one attempt; who lost a race looks again."""
    name = said.held.occurrence_id
    try:
        for number in range(MAX_ROUNDS):
            again = number > 0
            row = (place.look(tenant_id, [name]) if again else looked).row(name)
            if row is None:
                return Finished(name, Outcome.NOT_FOUND)
            if row.lease_token != said.held.lease_token:
                return Finished(name, Outcome.LEASE_LOST)
            if row.state is not State.RUNNING:
                return _said_before(row, said.after)
            now = place.clock.now()
            ended = said.end(row, version_of(place, row), now)
            if place.ledger.do(ended.deed) is Write.APPLIED:
                return _done(place, row, ended, now)
    except (Transient, Unreadable):
        # Whether it is done, a repeated call tells; and what cannot be read of this
        # one, such as its lane, is nothing to others.
        return Finished(name, Outcome.UNAVAILABLE)
    return Finished(name, Outcome.UNAVAILABLE)


def _said_before(row: Occurrence, after: frozenset[State]) -> Finished:
    """Answer who says again how the last attempt ended, or says it too late."""
    failure = row.failure if row.state in _FAILED else None
    expired = failure is not None and failure.error_class is ErrorClass.LEASE_EXPIRED
    if row.state not in after or expired:
        return Finished(row.occurrence_id, Outcome.LEASE_LOST)
    if row.state not in _COMES_AGAIN:
        return _told(row, row.state)
    if row.attempts:
        return _told(row, State.RETRY_WAIT)
    # It was the last one, before a replay.
    return Finished(row.occurrence_id, Outcome.OK, State.DEAD)


def _done(place: Workplace, row: Occurrence, ended: Ended, now: datetime) -> Finished:
    """Answer, and do at once what dispatch rows would see to later."""
    if ended.row.state is State.RETRY_WAIT:
        let_go(place, ended.row, now)
    _settle(place, [row], now)
    return _told(ended.row, ended.row.state)


def _settle(place: Workplace, rows: Sequence[Occurrence], now: datetime) -> None:
    """Settle the watches of attempts that are over, where they are as at the claim.

    What is not settled here, a pass settles when it is due.
    """
    watches = [watch_of(place, row, row.started_at or now).done(now) for row in rows]
    with suppress(Transient):
        if watches:
            place.timeline.settle(watches)


def _told(row: Occurrence, state: State) -> Finished:
    waits = state is State.RETRY_WAIT
    return Finished(
        row.occurrence_id,
        Outcome.OK,
        state,
        row.available_at if waits else None,
        None if waits else row.reason,
    )
