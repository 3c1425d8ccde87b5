"""Take in what workers say of their attempts: done, or failed."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias

from hourbell.domain.definition import Overlap, Version
from hourbell.domain.dispatch import DispatchState
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.policies import expires_at
from hourbell.domain.states import CLAIMABLE
from hourbell.usecases.attempts import (
    Ended,
    failing,
    let_go,
    succeeding,
    version_of,
    watch_of,
)
from hourbell.usecases.ports import Write
from hourbell.usecases.work_values import Failed, Finished, Held, Outcome
from hourbell.usecases.workplace import MAX_ROUNDS, Workplace

_End: TypeAlias = Callable[[Occurrence, Version, datetime], Ended]


def complete_work(
    place: Workplace, tenant_id: str, held: Sequence[Held]
) -> list[Finished]:
    """Take occurrences for done; answer for each, in order.

    Said again with the same token, it is answered again.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: nothing could be read; nothing is written.
    """
    rows = place.find(tenant_id, [each.occurrence_id for each in held])

    def end(row: Occurrence, version: Version, now: datetime) -> Ended:
        return succeeding(place, row, version, now)

    done = frozenset({State.SUCCEEDED})
    return [
        _finish(place, tenant_id, each, rows.get(each.occurrence_id), end, done)
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
    rows = place.find(tenant_id, [each.occurrence_id for each in failed])
    after = frozenset({State.DEAD, State.CANCELED, State.RETRY_WAIT}) | CLAIMABLE
    found = []
    for each in failed:

        def end(
            row: Occurrence, version: Version, now: datetime, said: Failed = each
        ) -> Ended:
            return failing(place, row, version, said.failure, now)

        held = Held(each.occurrence_id, each.lease_token)
        row = rows.get(each.occurrence_id)
        found.append(_finish(place, tenant_id, held, row, end, after))
    return found


def _finish(
    place: Workplace,
    tenant_id: str,
    held: Held,
    row: Occurrence | None,
    end: _End,
    after: frozenset[State],
) -> Finished:
    """End one attempt; who lost a race looks again.

    Args:
        place: the ports.
        tenant_id: whose it is.
        held: which attempt.
        row: as it was read.
        end: says how it ends.
        after: in which states it may be if it ended so before.
    """
    name = held.occurrence_id
    try:
        for number in range(MAX_ROUNDS):
            if number:
                row = place.find(tenant_id, [name]).get(name)
            if row is None:
                return Finished(name, Outcome.NOT_FOUND)
            if row.lease_token != held.lease_token:
                return Finished(name, Outcome.LEASE_LOST)
            if row.state is not State.RUNNING:
                return _said_before(row, after)
            now = place.clock.now()
            version = version_of(place, row)
            ended = end(row, version, now)
            if place.ledger.do(ended.deed) is Write.APPLIED:
                return _done(place, row, ended, version, now)
    except Transient:
        pass
    return Finished(name, Outcome.UNAVAILABLE)


def _said_before(row: Occurrence, after: frozenset[State]) -> Finished:
    if row.state not in after:
        return Finished(row.occurrence_id, Outcome.LEASE_LOST)
    # What was let go already is waiting for its retry all the same.
    state = State.RETRY_WAIT if row.state in CLAIMABLE else row.state
    return _told(row, state)


def _done(
    place: Workplace, row: Occurrence, ended: Ended, version: Version, now: datetime
) -> Finished:
    """Answer, and do at once what its dispatch rows would see to later."""
    if ended.row.state is State.RETRY_WAIT:
        let_go(place, ended.row, now)
    settled = replace(
        watch_of(place, row, row.started_at or now),
        state=DispatchState.DONE,
        expires_at=expires_at(now),
    )
    if version.definition.overlap is Overlap.ALLOW:
        # Its pass does it otherwise.
        with suppress(Transient):
            place.timeline.settle([settled])
    return _told(ended.row, ended.row.state)


def _told(row: Occurrence, state: State) -> Finished:
    waits = state is State.RETRY_WAIT
    return Finished(
        row.occurrence_id,
        Outcome.OK,
        state,
        row.available_at if waits else None,
        None if waits else row.reason,
    )
