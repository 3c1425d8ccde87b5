"""Instants: UTC datetimes and the two texts Hourbell writes them in."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final

from hourbell.domain.errors import InvalidInput

MAX_TEXT: Final = 40
"""Longest text read as an instant, in characters."""

_INSTANT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?:([Zz])|([+-])(\d\d):(\d\d))?",
    re.ASCII,
)
_COMPACT: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)
_LAST_SECOND: Final = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
_EXAMPLE: Final = "2026-03-09T06:30:00Z"


def parse_instant(text: str, *, field: str) -> datetime:
    """Read an ISO 8601 (RFC 3339) date and time with its offset.

    The offset (`Z` or `+hh:mm`) is mandatory: without it the text names no instant.
    `T` or one space separates date and time; seconds may be left out; a fraction is
    cut to microseconds.

    Args:
        text: what the caller wrote, at most 40 characters.
        field: dotted path of the input, for the finding.

    Returns:
        The instant as an aware UTC datetime.

    Raises:
        InvalidInput: code `invalid_timestamp`.
    """
    parts = _INSTANT.fullmatch(text) if len(text) <= MAX_TEXT else None
    if parts is None:
        raise _invalid(field, text, "is not an ISO 8601 date and time")
    if parts[8] is None and parts[9] is None:
        raise _invalid(field, text, "has no offset, so it names no instant", f"{text}Z")
    fraction = int((parts[7] or "0").ljust(6, "0")[:6])
    year, month, day, hour, minute, second = (
        int(part or "0") for part in parts.group(1, 2, 3, 4, 5, 6)
    )
    try:
        moment = datetime(
            year, month, day, hour, minute, second, fraction, _offset_zone(parts)
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as problem:
        reason = f"is not a possible date and time ({problem})"
        raise _invalid(field, text, reason) from problem


def to_utc(instant: datetime) -> datetime:
    """Return an aware datetime as the same instant labelled UTC.

    Raises:
        ValueError: for a datetime without zone, a fault of the program.
    """
    if instant.tzinfo is UTC:
        return instant
    if instant.tzinfo is None:
        raise ValueError(f"{instant.isoformat()} has no zone: not an instant")
    return instant.astimezone(UTC)


def format_instant(instant: datetime) -> str:
    """Write an instant as `2026-03-09T06:30:00Z`.

    A fraction is written (six digits) only when it is not zero.

    Raises:
        ValueError: for a datetime without zone, a fault of the program.
    """
    return to_utc(instant).isoformat()[:-6] + "Z"


@lru_cache(maxsize=4096)
def compact_instant(instant: datetime) -> str:
    """Write an instant of a whole second as `20260309T063000Z`, for keys and ids.

    Raises:
        ValueError: for a datetime without zone or with a fraction of a second, which
            two keys could share; a fault of the program.
    """
    utc = to_utc(instant)
    if utc.microsecond:
        raise ValueError(f"{instant.isoformat()} is not a whole second")
    date, time = utc.isoformat()[:-6].split("T")
    return f"{date.replace('-', '')}T{time.replace(':', '')}Z"


def parse_compact(text: str, *, field: str = "instant") -> datetime:
    """Read what `compact_instant` wrote.

    Raises:
        InvalidInput: code `invalid_timestamp`.
    """
    parts = _COMPACT.fullmatch(text)
    if parts is None:
        raise _invalid(field, text, "is not a compact instant like 20260309T063000Z")
    year, month, day, hour, minute, second = (int(part) for part in parts.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError as problem:
        reason = f"is not a possible date and time ({problem})"
        raise _invalid(field, text, reason) from problem


def floor_minute(instant: datetime) -> datetime:
    """Return the start of the UTC minute that contains the instant."""
    return to_utc(instant).replace(second=0, microsecond=0)


def ceil_second(instant: datetime) -> datetime:
    """Return the instant, or the next whole second if it has a fraction.

    The very last second that a datetime can hold has no next one: it is cut instead.
    """
    utc = to_utc(instant)
    whole = utc.replace(microsecond=0)
    if whole in {utc, _LAST_SECOND}:
        return whole
    return whole + timedelta(seconds=1)


def _offset_zone(parts: re.Match[str]) -> timezone:
    if parts[8] is not None:
        return UTC
    hours, minutes = int(parts[10]), int(parts[11])
    if hours > 23 or minutes > 59:
        raise ValueError("the offset must lie between -23:59 and +23:59")
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if parts[9] == "-" else offset)


def _invalid(
    field: str, text: str, reason: str, suggestion: str | None = None
) -> InvalidInput:
    shown = text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 3] + "..."
    return InvalidInput.of(
        field,
        "invalid_timestamp",
        f"{shown!r} {reason}; write it like {_EXAMPLE}.",
        found=text,
        suggestion=suggestion,
    )
