"""End what nobody claimed, when its queue has let go of its message.

A message that was lost, or that nobody receives for as long as its queue keeps it,
comes back to nobody. Its occurrence ends as that of a message does which is received
too often: DEAD, with its letter, open to a replay.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from hourbell.domain.definition import Tracking, Version, VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind, pointing_at
from hourbell.domain.errors import HourbellError, Transient, Unreadable
from hourbell.domain.instants import ceil_second
from hourbell.domain.occurrence import Occurrence, State, Transition
from hourbell.domain.policies import LAST_LOOK, UNCLAIMED_GRACE
from hourbell.domain.retention import LONGEST_QUEUE_RETENTION, QUEUE_RETENTION
from hourbell.domain.retry import DeadReason
from hourbell.domain.routing import is_kept_by_owner
from hourbell.usecases.attempts import giving_up
from hourbell.usecases.directory_reads import read_handlers
from hourbell.usecases.ports import Write
from hourbell.usecases.version_reads import read_versions
from hourbell.usecases.workplace import Workplace

# When what is damaged, or of another release, is looked at again.
_FAULTY_AGAIN: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Seen:
    """What came of looking at an occurrence that may be unclaimed.

    Attributes:
        is_dead: whether it ended by this.
        is_faulty: whether nothing could be told for a lasting reason.
        check: the dispatch row that must be there for it; None when it is over.
    """

    is_dead: bool = False
    is_faulty: bool = False
    check: Dispatch | None = None


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions of occurrences that were sent.

    Attributes:
        found: those that exist.
        faulty: those that cannot be read.
    """

    found: Mapping[VersionRef, Version]
    faulty: frozenset[VersionRef]

    @classmethod
    def of(cls, place: Workplace, rows: Iterable[Occurrence]) -> "Versions":
        """Read the versions of those rows that may be unclaimed.

        Raises:
            Transient: the store did not answer.
        """
        refs = [_ref(row) for row in rows if _may_be_unclaimed(row)]
        return cls(*read_versions(place.schedules, refs, consistent=True))


def see_to(
    place: Workplace, row: Occurrence, versions: Versions, now: datetime
) -> Seen:
    """End an occurrence whose message is gone; else say when it is looked at again.

    Who claims it meanwhile, or sends it anew, is first: the end is written on the
    condition that it is still ENQUEUED, by the same send.

    Args:
        place: the ports.
        row: as it was read, perhaps some moments ago.
        versions: its version is among them.
        now: the current instant.

    Raises:
        Transient: the store did not answer.
    """
    if row.expires_at is not None:
        return Seen()
    if not _may_be_unclaimed(row):
        # Whatever it waits for, it may be sent after that, and its message be lost.
        return Seen(check=check_of(place, row, now + LAST_LOOK, now))
    try:
        return _see_to_sent(place, row, versions, now)
    except Transient:
        raise
    except HourbellError:
        # A lasting fault of this one; it must not stop the others.
        again = now + _FAULTY_AGAIN
        return Seen(is_faulty=True, check=check_of(place, row, again, now))


def check_of(
    place: Workplace, row: Occurrence, due: datetime, now: datetime
) -> Dispatch:
    """Return the dispatch row that has an occurrence looked at again."""
    kind, due = DispatchKind.UNCLAIMED, ceil_second(due)
    return pointing_at(row, kind, due, row.sends, place.shard_map, now)


def _may_be_unclaimed(row: Occurrence) -> bool:
    return row.state is State.ENQUEUED and row.expires_at is None


def _ref(row: Occurrence) -> VersionRef:
    return VersionRef(row.schedule_id, row.version)


def _see_to_sent(
    place: Workplace, row: Occurrence, versions: Versions, now: datetime
) -> Seen:
    """Do so with one that was sent.

    Raises:
        HourbellError: what is asked for, such as its lane, cannot be read.
    """
    if _ref(row) in versions.faulty:
        raise Unreadable(f"{_ref(row)} cannot be read")
    version = versions.found.get(_ref(row))
    # That it has no expiry says that it is TRACKED, also when its version is gone.
    if version is not None and version.definition.tracking is Tracking.UNTRACKED:
        return Seen()
    gone_at = _gone_at(place, row, version)
    if now < gone_at:
        return Seen(check=check_of(place, row, gone_at, now))
    reason = DeadReason.NEVER_CLAIMED
    ended = giving_up(place, row, version, Transition.REDRIVE, reason, now)
    if place.ledger.do(ended.deed) is Write.APPLIED:
        return Seen(is_dead=True)
    # Somebody was first: what it is now, the next look tells.
    return Seen(check=check_of(place, row, now + UNCLAIMED_GRACE, now))


def _gone_at(place: Workplace, row: Occurrence, version: Version | None) -> datetime:
    """Return from when on nobody can have the message of the last send."""
    sent_at = row.visible_at or row.enqueued_at or row.scheduled_for
    kept = QUEUE_RETENTION
    if _is_kept_by_owner(place, row, version):
        kept = LONGEST_QUEUE_RETENTION
    return ceil_second(sent_at + kept + UNCLAIMED_GRACE)


def _is_kept_by_owner(
    place: Workplace, row: Occurrence, version: Version | None
) -> bool:
    queue, handler = row.queue or "", None
    if version is not None and is_kept_by_owner(queue, row.lane, None):
        ref = (row.tenant_id, version.definition.handler)
        handlers, _ = read_handlers(place.directory, [ref])
        handler = handlers.get(ref)
    return is_kept_by_owner(queue, row.lane, handler)
