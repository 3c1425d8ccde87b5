"""End an attempt: what follows, and all that must be written together with it."""

from dataclasses import dataclass, replace
from datetime import datetime

from hourbell.domain.definition import Version, VersionRef
from hourbell.domain.dispatch import (
    Dispatch,
    DispatchKind,
    letter_of,
    pointing_at,
    release_of,
)
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import CancelReason, Occurrence, State, Transition
from hourbell.domain.overlap import Overlap
from hourbell.domain.policies import expires_at, is_deferred
from hourbell.domain.rates import retry_rate
from hourbell.domain.retry import (
    DeadReason,
    ErrorClass,
    Failure,
    Tried,
    Verdict,
    verdict,
)
from hourbell.domain.work import Attempt, AttemptResult, DeadLetter, Slot
from hourbell.usecases.lanes import Exit, leave, policy_of
from hourbell.usecases.port_values import same_wait
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.version_reads import canceled_version, read_versions
from hourbell.usecases.work_ports import Deed
from hourbell.usecases.workplace import Workplace


@dataclass(frozen=True, slots=True)
class Ended:
    """How an attempt ends, if the deed is done.

    Attributes:
        row: as it is then.
        deed: what must be written for it.
    """

    row: Occurrence
    deed: Deed


def version_of(place: Workplace, row: Occurrence) -> Version:
    """Return a row's version by a consistent read.

    Raises:
        Transient: it did not come, cannot be read, or is not there.
    """
    ref = VersionRef(row.schedule_id, row.version)
    found, _ = read_versions(place.schedules, [ref], consistent=True)
    if ref not in found:
        raise Transient(f"{ref} cannot be read")
    return found[ref]


def is_asked_to_stop(place: Workplace, row: Occurrence, version: Version) -> bool:
    """Whether a RUNNING occurrence, or its whole schedule, was canceled."""
    if row.cancel_requested_at is not None:
        return True
    return canceled_version(place.schedules, version, since=row.asked_at) is not None


def succeeding(
    place: Workplace, row: Occurrence, version: Version, now: datetime
) -> Ended:
    """Return how an attempt ends that a worker completes."""
    done = replace(
        row,
        state=State.SUCCEEDED,
        reason=None,
        finished_at=now,
        expires_at=expires_at(now),
    )
    return _over(place, row, done, Transition.SUCCEED, version, now)


def failing(
    place: Workplace,
    row: Occurrence,
    version: Version,
    failure: Failure,
    now: datetime,
) -> Ended:
    """Return how an attempt ends that failed, or whose worker is not heard of.

    Raises:
        Transient: the store did not answer.
    """
    if is_asked_to_stop(place, row, version):
        stopped = _ending(row, State.CANCELED, CancelReason.CANCELED, failure, now)
        return _over(place, row, stopped, Transition.STOP, version, now)
    found = _verdict(place, row, version, failure, now)
    if found.retry_at is None:
        dead = _ending(row, State.DEAD, found.reason or "", failure, now)
        return _over(place, row, dead, Transition.BURY, version, now)
    waiting = replace(
        row,
        state=State.RETRY_WAIT,
        available_at=found.retry_at,
        waits=row.waits + 1,
        failure=failure,
    )
    shard = _release_shard(place, waiting, now)
    deed = Deed(
        (Change(waiting, Transition.RETRY, _expected(row, waiting)),),
        dispatches=(release_of(waiting, shard, now),),
        attempts=(attempt_of(row, failure, now),),
        frees=slot_of(row),
    )
    return Ended(waiting, deed)


def giving_up(
    place: Workplace,
    row: Occurrence,
    version: Version | None,
    transition: Transition,
    reason: DeadReason,
    now: datetime,
) -> Ended:
    """Return how an occurrence ends that nobody works on: claimed late, or never.

    Args:
        place: the ports.
        row: as it was read; it must still be at this attempt and this send.
        version: its version; None when that is gone.
        transition: GIVE_UP or REDRIVE.
        reason: why.
        now: the current instant.
    """
    dead = replace(
        row,
        state=State.DEAD,
        reason=reason,
        finished_at=now,
        expires_at=expires_at(now),
    )
    return _over(place, row, dead, transition, version, now)


def attempt_of(row: Occurrence, failure: Failure, now: datetime) -> Attempt:
    """Return what is kept of an attempt that is followed by another one."""
    expired = failure.error_class is ErrorClass.LEASE_EXPIRED
    return Attempt(
        row.key,
        row.attempt,
        row.lease_token or "",
        row.worker or "",
        row.started_at or now,
        now,
        AttemptResult.LEASE_EXPIRED if expired else AttemptResult.FAILED,
        failure,
        expires_at(now),
    )


def last_attempt(place: Workplace, row: Occurrence) -> tuple[Attempt, ...]:
    """Return what is to be kept of the attempt with which a DEAD row ended.

    Nothing when there was none, or when it is kept: the row waited for another attempt
    when it died.

    Raises:
        Transient: the store did not answer.
    """
    if not row.attempt or row.failure is None or row.finished_at is None:
        return ()
    if any(each.number == row.attempt for each in place.attempts(row)):
        return ()
    return (attempt_of(row, row.failure, row.finished_at),)


def slot_of(row: Occurrence) -> Slot | None:
    """Return the place that a RUNNING occurrence takes."""
    if row.slot is None:
        return None
    return Slot(row.tenant_id, row.slot, row.occurrence_id)


def watch_of(place: Workplace, row: Occurrence, now: datetime) -> Dispatch:
    """Return the dispatch row that looks after a lease when it ends."""
    due = row.lease_expires_at or now
    kind = DispatchKind.WATCH
    return pointing_at(row, kind, due, row.attempt, place.shard_map, now)


def let_go(place: Workplace, row: Occurrence, now: datetime) -> Occurrence:
    """Make an outbox record of a row that waits, if its time is near.

    Its dispatch row sees to it otherwise, so no answer is no fault.
    """
    if is_deferred(row.available_at or now, now):
        return row
    going = replace(row, state=State.SCHEDULED, scheduled_at=now)
    change = Change(going, Transition.RELEASE, same_wait(row))
    try:
        (answer,) = place.timeline.move([change])
    except Transient:
        return row
    return going if answer is Write.APPLIED else row


def _verdict(
    place: Workplace,
    row: Occurrence,
    version: Version,
    failure: Failure,
    now: datetime,
) -> Verdict:
    """Decide whether there is another attempt, and take a place in the budget."""
    policy = version.definition.retry
    tried = Tried(row.occurrence_id, row.attempt, row.attempts, row.begun_at)
    found = verdict(policy, tried, failure, now)
    tenant = place.directory.tenants([row.tenant_id]).get(row.tenant_id)
    rate = None if tenant is None else retry_rate(tenant)
    if found.retry_at is None or rate is None:
        return found
    (at,) = place.rates.reserve(rate, [found.retry_at])
    deadline = policy.deadline(row.begun_at)
    if at is None or (deadline is not None and at > deadline):
        return Verdict(None, DeadReason.RETRY_BUDGET_USED_UP)
    return Verdict(at)


def _ending(
    row: Occurrence, state: State, reason: str, failure: Failure, now: datetime
) -> Occurrence:
    return replace(
        row,
        state=state,
        reason=reason,
        failure=failure,
        finished_at=now,
        expires_at=expires_at(now),
    )


def _over(
    place: Workplace,
    row: Occurrence,
    after: Occurrence,
    transition: Transition,
    version: Version | None,
    now: datetime,
) -> Ended:
    """Return what is written when an occurrence is over."""
    exit_ = Exit()
    # Of what holds no lane none is left.
    if version is None or policy_of(row, version) is not Overlap.ALLOW:
        exit_ = leave(place, row, now)
    letters: tuple[DeadLetter, ...] = ()
    dispatches = exit_.dispatches
    if after.state is State.DEAD:
        letters = (DeadLetter.of(after),)
        dispatches = (*dispatches, letter_of(after, place.shard_map, now))
    deed = Deed(
        (Change(after, transition, _expected(row, after)), *exit_.changes),
        dispatches=dispatches,
        lane=exit_.lane,
        frees=slot_of(row) if row.state is State.RUNNING else None,
        letters=letters,
    )
    return Ended(after, deed)


def still_its_workers(row: Occurrence) -> tuple[tuple[str, object], ...]:
    """Return what must still be so of a RUNNING row when its attempt ends.

    Who asks its worker to stop meanwhile must not be passed over.
    """
    return (
        ("lease_token", row.lease_token),
        ("cancel_requested_at", row.cancel_requested_at),
    )


def _expected(row: Occurrence, after: Occurrence) -> tuple[tuple[str, object], ...]:
    """Return what must still be so: whose it is, or how often it was sent.

    Who ends an attempt since its worker is not heard of must not pass over a heartbeat
    of the same moment.
    """
    if row.state is not State.RUNNING:
        return (("attempt", row.attempt), ("sends", row.sends))
    failure = None if after.state is State.SUCCEEDED else after.failure
    if failure is not None and failure.error_class is ErrorClass.LEASE_EXPIRED:
        lease = ("lease_expires_at", row.lease_expires_at)
        return (*still_its_workers(row), lease)
    return still_its_workers(row)


def _release_shard(place: Workplace, row: Occurrence, now: datetime) -> int:
    due = max(row.available_at or now, now)
    return place.shard_map.shard_of(row.schedule_id, due)
