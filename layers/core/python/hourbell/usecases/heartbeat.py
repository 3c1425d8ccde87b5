"""Extend the leases of workers that are heard of."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State, Transition
from hourbell.usecases.attempts import is_asked_to_stop
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.version_reads import read_versions
from hourbell.usecases.work_values import Beat, Held, Outcome
from hourbell.usecases.workplace import Workplace


def heartbeat(
    place: Workplace, tenant_id: str, held: Sequence[Held], *, lease_seconds: int
) -> list[Beat]:
    """Extend leases; tell who should stop; answer for each, in order.

    A lease that has run out is extended too, as long as nobody else has taken over.
    The watch stays where it is: when it is due it finds the lease extended, and another
    one follows.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: nothing could be read; nothing is extended.
    """
    rows = place.find(tenant_id, [each.occurrence_id for each in held])
    expiry = place.clock.now() + timedelta(seconds=lease_seconds)
    answers = {
        each.occurrence_id: Beat(each.occurrence_id, _objection(each, rows))
        for each in held
    }
    good = [
        rows[each.occurrence_id]
        for each in held
        if answers[each.occurrence_id].outcome is Outcome.OK
    ]
    changes = [
        Change(
            replace(row, lease_expires_at=max(row.lease_expires_at or expiry, expiry)),
            Transition.EXTEND,
            (("lease_token", row.lease_token),),
        )
        for row in good
    ]
    moved = place.timeline.move(changes) if changes else []
    versions = _versions(place, good)
    for change, answer in zip(changes, moved, strict=True):
        version = versions.get(_ref(change.row))
        beat = _beat(place, change.row, version, answer)
        answers[change.row.occurrence_id] = beat
    return [answers[each.occurrence_id] for each in held]


def _objection(held: Held, rows: dict[str, Occurrence]) -> Outcome:
    row = rows.get(held.occurrence_id)
    if row is None:
        return Outcome.NOT_FOUND
    is_worker = row.state is State.RUNNING and row.lease_token == held.lease_token
    return Outcome.OK if is_worker else Outcome.LEASE_LOST


def _ref(row: Occurrence) -> VersionRef:
    return VersionRef(row.schedule_id, row.version)


def _versions(
    place: Workplace, rows: Sequence[Occurrence]
) -> Mapping[VersionRef, Version]:
    """Return the versions of some rows, as far as the store tells them now."""
    try:
        refs = {_ref(row) for row in rows}
        return read_versions(place.schedules, refs, consistent=True)[0]
    except Transient:
        return {}


def _beat(
    place: Workplace, row: Occurrence, version: Version | None, answer: Write
) -> Beat:
    name = row.occurrence_id
    if answer is Write.UNKNOWN:
        return Beat(name, Outcome.UNAVAILABLE)
    if answer is not Write.APPLIED:
        return Beat(name, Outcome.LEASE_LOST)
    stop = row.cancel_requested_at is not None
    if version is not None:
        # What is not known now, the next heartbeat tells.
        with suppress(Transient):
            stop = is_asked_to_stop(place, row, version)
    return Beat(name, Outcome.OK, row.lease_expires_at, cancel_requested=stop)
