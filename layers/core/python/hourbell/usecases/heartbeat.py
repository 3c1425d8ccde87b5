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
from hourbell.usecases.workplace import MAX_ROUNDS, Look, Workplace


def heartbeat(
    place: Workplace, tenant_id: str, held: Sequence[Held], *, lease_seconds: int
) -> list[Beat]:
    """Extend leases; tell who should stop; answer for each, in order.

    Who lost a race looks again. A lease that has run out is extended too, as long as
    nobody else has taken over. The watch stays where it is: when it is due it finds
    the lease extended, and another one follows.

    Raises:
        InvalidInput: `invalid_occurrence_id`.
        Transient: nothing could be read; nothing is extended.
    """
    lease = timedelta(seconds=lease_seconds)
    answers: dict[str, Beat] = {}
    left = list(held)
    for number in range(MAX_ROUNDS):
        if not left:
            break
        try:
            answers |= _extend(place, tenant_id, left, lease)
        except Transient:
            if not number:
                raise
            break
        left = [each for each in left if each.occurrence_id not in answers]
    return [
        answers.get(each.occurrence_id) or Beat(each.occurrence_id, Outcome.UNAVAILABLE)
        for each in held
    ]


def _extend(
    place: Workplace, tenant_id: str, held: Sequence[Held], lease: timedelta
) -> dict[str, Beat]:
    """Extend leases; leave out those that somebody else changed meanwhile.

    What a heartbeat before this one is still about to write must not shorten a lease:
    so each expects the lease as it was read.

    Raises:
        Transient: nothing could be read; nothing is extended.
    """
    found = place.look(tenant_id, [each.occurrence_id for each in held])
    rows = found.rows
    expiry = place.clock.now() + lease
    objections = {each.occurrence_id: _objection(each, found) for each in held}
    good = [rows[name] for name, it in objections.items() if it is Outcome.OK]
    answers = {
        name: Beat(name, it) for name, it in objections.items() if it is not Outcome.OK
    }
    changes = [
        Change(
            replace(row, lease_expires_at=max(row.lease_expires_at or expiry, expiry)),
            Transition.EXTEND,
            (
                ("lease_token", row.lease_token),
                ("lease_expires_at", row.lease_expires_at),
            ),
        )
        for row in good
    ]
    moved = place.timeline.move(changes) if changes else []
    versions = _versions(place, good)
    for change, answer in zip(changes, moved, strict=True):
        row = change.row
        if answer is Write.UNKNOWN:
            name = row.occurrence_id
            answers[name] = Beat(name, Outcome.UNAVAILABLE)
        elif answer is Write.APPLIED:
            answers[row.occurrence_id] = _beat(place, row, versions.get(_ref(row)))
    return answers


def _objection(held: Held, found: Look) -> Outcome:
    if held.occurrence_id in found.unclear:
        return Outcome.UNAVAILABLE
    row = found.rows.get(held.occurrence_id)
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


def _beat(place: Workplace, row: Occurrence, version: Version | None) -> Beat:
    stop = row.cancel_requested_at is not None
    if version is not None:
        # What is not known now, the next heartbeat tells.
        with suppress(Transient):
            stop = is_asked_to_stop(place, row, version)
    name, expiry = row.occurrence_id, row.lease_expires_at
    return Beat(name, Outcome.OK, expiry, cancel_requested=stop)
