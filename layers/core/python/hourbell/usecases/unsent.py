"""Judge an occurrence that is about to be sent: does its version stand behind it?"""

from dataclasses import replace
from datetime import datetime

from hourbell.domain.definition import ScheduleState, Tracking, Version
from hourbell.domain.occurrence import CancelReason, Occurrence, State
from hourbell.domain.policies import expires_at
from hourbell.usecases.ports import Schedules
from hourbell.usecases.version_reads import canceled_version, stopped_version


def ending(version: Version) -> CancelReason:
    """Return the reason for canceling what a version leaves behind."""
    if version.ends_as is ScheduleState.PAUSED:
        return CancelReason.PAUSED
    if version.ends_as is ScheduleState.CANCELED:
        return CancelReason.CANCELED
    return CancelReason.SUPERSEDED


def canceling(row: Occurrence, reason: CancelReason, now: datetime) -> Occurrence:
    """Return a row as it is when it is canceled."""
    return replace(
        row,
        state=State.CANCELED,
        reason=reason,
        finished_at=now,
        expires_at=expires_at(now),
    )


def objection_to_sending(
    schedules: Schedules, row: Occurrence, version: Version | None
) -> CancelReason | None:
    """Return why a row must not be sent; None when it may, or may later.

    What an UNTRACKED version has out of hand of the times after an edit stands, since
    its consumer could not tell a second id for the same time from the first. A pause
    or a cancel stops what is unsent of the times up to it, of a TRACKED version and of
    what is DEFERRED whatever is unsent, and what was asked for by hand before it.

    Args:
        schedules: the version log.
        row: an unsent occurrence.
        version: its version by a consistent read; None when there is none.

    Raises:
        Transient: the version log did not answer.
    """
    if version is None:
        return CancelReason.ORPHANED
    if version.holds(row.scheduled_for):
        return None
    asked_at = row.asked_at
    if row.is_begun:
        # An edit or a pause does not cut off what a worker has had.
        canceled = canceled_version(schedules, version, since=asked_at)
        return None if canceled is None else CancelReason.CANCELED
    if version.effective_to is not None:
        since = asked_at or _unless_certain(row, version)
        stopped = stopped_version(schedules, version, since=since)
        if stopped is not None:
            return ending(stopped)
    # What no rule made need not lie in its version's interval.
    foreign = asked_at is None and not version.owns(row.scheduled_for)
    return ending(version) if foreign else None


def objection_to_claiming(
    schedules: Schedules, row: Occurrence, version: Version
) -> CancelReason | None:
    """Return why an occurrence whose message was received must not be worked on.

    A cancel stops it, and so does a change that gave its time to another version. A
    pause does not: what was sent before it stands, unless the pause took it back.

    Args:
        schedules: the version log.
        row: the occurrence.
        version: its version by a consistent read; it does not hold the row.

    Raises:
        Transient: the version log did not answer.
    """
    if version.ends_at is None:
        return None
    if canceled_version(schedules, version, since=row.asked_at) is not None:
        return CancelReason.CANCELED
    is_bound = row.asked_at is None and not row.is_begun
    if is_bound and not version.owns(row.scheduled_for):
        return ending(version)
    return None


def _unless_certain(row: Occurrence, version: Version) -> datetime | None:
    """Return since when stops reach a row that its rule made; None for any stop.

    Of the times after a stop, what is out of hand stands; a later stop reaches it.
    """
    tracked = version.definition.tracking is Tracking.TRACKED
    # What is DEFERRED cannot have been sent, so there is no doubt about it.
    return None if tracked or row.state is State.DEFERRED else row.scheduled_for
