"""The order in which dead letters are told, and the place where a page ends."""

import re
from datetime import UTC, datetime
from typing import Final

from hourbell.domain.work import DeadLetter

LETTER_KEY: Final = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    r"#sch[0-9a-z]{26}\.v[1-9][0-9]*\.\d{8}T\d{6}Z(\.r[0-9a-f]{16})?#A\d+",
    re.ASCII,
)
"""What `letter_key` returns."""

_LAST: Final = "~"


def sortable_instant(instant: datetime) -> str:
    """Return an instant as text of fixed width: `2026-03-09T06:30:00.000000Z`."""
    text = instant.astimezone(UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def letter_key(letter: DeadLetter) -> str:
    """Return `<died_at>#<occurrence_id>#A<attempt>`: in order of time."""
    died_at = sortable_instant(letter.died_at)
    return f"{died_at}#{letter.occurrence_id}#A{letter.attempt}"


def schedule_of(letter: DeadLetter) -> str:
    """Return whose dead letter it is: what its occurrence's id begins with."""
    return letter.occurrence_id.partition(".")[0]


def letter_range(
    after: str | None, since: datetime | None, until: datetime | None
) -> tuple[str, str]:
    """Return the first and the last key that a page may have, both included.

    Args:
        after: the last key of the page before.
        since: the first instant.
        until: the instant behind the last one.
    """
    first = "" if since is None else sortable_instant(since)
    # No key begins with another key and `!`, and none lies between the two.
    beyond = "" if after is None else f"{after}!"
    # An instant alone is before all keys that begin with it.
    last = _LAST if until is None else sortable_instant(until)
    return max(first, beyond, "0"), last
