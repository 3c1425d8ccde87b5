"""Values of the worker plane that the suite writes and reads back."""

from dataclasses import replace
from datetime import timedelta

from hourbell.domain.occurrence import Occurrence, State, Transition
from hourbell.domain.retry import ErrorClass, Failure
from hourbell.domain.work import Attempt, AttemptResult, DeadLetter
from hourbell.usecases.ports import Change

from tests.conformance.samples import DUE, NOW, acknowledging, planned, scheduling

EXPIRY = DUE + timedelta(days=15)
TOKEN = "0123456789abcdef"
FAILURE = Failure(
    ErrorClass.THROTTLED, "TooManyRequests", "bitte später 👋", retry_after_seconds=90
)


def enqueued(label: object = "one") -> Occurrence:
    """Return a tracked row whose message is on the queue."""
    sent = acknowledging(scheduling(planned(label)).row).row
    return replace(sent, expires_at=None)


def claiming(row: Occurrence, token: str = TOKEN) -> Change:
    """Return the change by which a worker takes a row."""
    target = replace(
        row,
        state=State.RUNNING,
        attempt=row.attempt + 1,
        lease_token=token,
        lease_expires_at=DUE + timedelta(seconds=60, microseconds=250_000),
        worker="w-1",
        started_at=DUE,
        begun_at=row.begun_at or DUE,
    )
    expects = (("attempt", row.attempt),)
    return Change(target, Transition.CLAIM, expects)


def running(label: object = "one") -> Occurrence:
    """Return a row that a worker has."""
    return claiming(enqueued(label)).row


def burying(row: Occurrence) -> Change:
    """Return the change of a row whose last attempt failed."""
    target = replace(
        row,
        state=State.DEAD,
        failure=FAILURE,
        reason="ATTEMPTS_USED_UP",
        finished_at=NOW,
        expires_at=EXPIRY,
    )
    return Change(target, Transition.BURY, (("lease_token", row.lease_token),))


def replaying(row: Occurrence) -> Change:
    """Return the change by which a DEAD row starts anew."""
    target = replace(
        row,
        state=State.DEFERRED,
        waits=row.waits + 1,
        replayed_at=NOW,
        attempts_before=row.attempt,
        begun_at=None,
        told_at=None,
        cancel_requested_at=None,
        reason=None,
        finished_at=None,
        expires_at=None,
    )
    return Change(target, Transition.REPLAY)


def full() -> Occurrence:
    """Return a row that has every field of work on it."""
    return replace(
        burying(running()).row,
        attempts_before=1,
        waits=3,
        cancel_requested_at=NOW,
        replayed_at=NOW,
        told_at=DUE,
        slot=0,
    )


def attempt(row: Occurrence, number: int) -> Attempt:
    """Return an attempt of a row that failed."""
    return Attempt(
        key=row.key,
        number=number,
        lease_token=f"{number:016}",
        worker="w-1",
        started_at=NOW,
        finished_at=DUE,
        result=AttemptResult.FAILED,
        failure=FAILURE,
        expires_at=EXPIRY,
    )


def letter(label: object, minutes: int = 0) -> DeadLetter:
    """Return the dead letter of a row that died some minutes after NOW."""
    row = burying(running(label)).row
    return DeadLetter.of(replace(row, finished_at=NOW + timedelta(minutes=minutes)))
