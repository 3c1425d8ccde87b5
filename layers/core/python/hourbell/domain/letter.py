"""The dead letter of an occurrence: its message as it was, and why it is dead."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import Version
from hourbell.domain.instants import format_instant
from hourbell.domain.message import encode
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.retry import Failure

LETTER_TYPE: Final = "com.hourbell.occurrence.dead.v1"

NEVER_RECEIVED: Final = "NEVER_RECEIVED"
"""Why an UNTRACKED occurrence has a letter whose message no consumer deleted.

Nobody reports of it, so whether it was worked on is not known, and it is not DEAD.
"""


def encode_letter(row: Occurrence, version: Version) -> str:
    """Return the dead letter of a DEAD occurrence.

    Args:
        row: the occurrence, DEAD.
        version: the version that it belongs to; the payload comes from it.

    Returns:
        its message as `encode` writes it, of another type; `data` holds reason,
        failure, attempts and died_at besides, and `send` is the number of the last
        acknowledged send, 0 when there was none.
    """
    reason, died_at = row.reason or "", row.finished_at or row.scheduled_for
    return _encode(row, version, reason, row.failure, died_at)


def encode_unreceived(row: Occurrence, version: Version, now: datetime) -> str:
    """Return the letter of an UNTRACKED occurrence that its queue gave up."""
    return _encode(row, version, NEVER_RECEIVED, None, now)


def _encode(
    row: Occurrence,
    version: Version,
    reason: str,
    failure: Failure | None,
    died_at: datetime,
) -> str:
    members = {
        "reason": reason,
        "failure": failure
        and {
            "class": failure.error_class.value,
            "type": failure.kind,
            "message": failure.message,
        },
        "attempts": row.attempts,
        "died_at": format_instant(died_at),
    }
    return encode(_as_sent(row), version, row.sends, LETTER_TYPE, members)


def _as_sent(row: Occurrence) -> Occurrence:
    """Return a row as it was when its last message was sent, as far as that tells it.

    Whoever claimed that message has counted its attempt since.
    """
    begun, sent = row.started_at, row.enqueued_at
    if not row.attempts or begun is None or (sent is not None and sent > begun):
        return row
    return replace(row, attempt=row.attempt - 1)
