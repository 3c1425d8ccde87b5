"""Parsing of expressions: Unix cron, and AWS's `cron()`, `at()` and `rate()`.

Sources of the rules: crontab(5) of Vixie cron for five fields, the user guide of
EventBridge Scheduler for the rest, docs/time-rules.md where both leave a choice.
"""

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hourbell.domain.cron_days import (
    aws_days,
    never_occurs,
    unix_days,
)
from hourbell.domain.cron_fields import (
    HOUR,
    MINUTE,
    MONTH,
    YEAR,
    Place,
    parse_field,
)
from hourbell.domain.errors import InvalidInput
from hourbell.domain.expressions import (
    AtExpression,
    CronExpression,
    Expression,
    RateExpression,
)
from hourbell.domain.zones import FIRST_YEAR, LAST_YEAR

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "MAX_LENGTH",
    "AtExpression",
    "CronExpression",
    "Expression",
    "RateExpression",
    "parse",
]

MAX_LENGTH: Final = 256
"""Longest expression, in characters."""

MAX_PERIOD: Final = timedelta(days=36_525)
"""Longest period of a rate: a hundred years."""

ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_BLANKS: Final = " \t"
_CALL: Final = re.compile(r"([A-Za-z]+)\((.*)\)", re.ASCII)
_OPEN_CALL: Final = re.compile(r"(cron|at|rate)\b", re.ASCII | re.IGNORECASE)
_AT: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)", re.ASCII)
_RATE: Final = re.compile(r"([0-9]+) +(minute|hour|day)s?", re.ASCII)
_HALVES: Final = re.compile(r"([0-9]{1,4})\.5 +(hour|day)s?", re.ASCII)
_EVERY: Final = re.compile(r"@every +([1-9][0-9]{0,4})([mh])", re.ASCII)
_ALL_YEARS: Final = (1 << LAST_YEAR - FIRST_YEAR + 1) - 1


def parse(expression: str, *, field: str = "expression") -> Expression:
    """Parse an expression of either syntax; results are immutable and cached.

    The form tells the syntax: `cron(...)`, `at(...)` and `rate(...)` are AWS's,
    anything else is five Unix fields or one of the aliases `@yearly`, `@monthly`,
    `@weekly`, `@daily`, `@hourly`.

    Args:
        expression: at most 256 characters; spaces and tabs around it are dropped.
        field: dotted path of the input, for findings; a finding about one field of a
            cron expression is called `<field>.minute` and so on.

    Raises:
        InvalidInput: codes `invalid_expression`, and `never_fires` for a date that
            no calendar has. A year or an `at` in the past is no error here: it
            depends on now.
    """
    if len(expression) > MAX_LENGTH:
        raise _refuse(field, expression, f"is longer than {MAX_LENGTH} characters")
    return _parse(expression, field)


@lru_cache(maxsize=8192)
def _parse(expression: str, place: Place) -> Expression:
    text = expression.strip(_BLANKS)
    if not text:
        raise _refuse(place, expression, "is empty")
    if not (text.isascii() and text.replace("\t", " ").isprintable()):
        reason = "has characters other than printable ASCII, blanks and tabs"
        raise _refuse(place, text, reason)
    if text.startswith("@"):
        return _alias(text, place)
    if call := _CALL.fullmatch(text):
        return _call(text, call[1], call[2].strip(_BLANKS), place)
    if opened := _OPEN_CALL.match(text):
        reason = "lacks its brackets"
        raise _refuse(place, text, reason, _bracketed(text, opened[1].lower()))
    return _unix(text, text, place)


def _alias(text: str, place: Place) -> Expression:
    fields = ALIASES.get(text.lower())
    if fields:
        return _unix(text, fields, place)
    allowed = "the aliases are " + ", ".join(ALIASES)
    if text.lower() == "@reboot":
        reason = f"is an event, not a time; {allowed}"
        raise _refuse(place, text, reason)
    suggestion = None
    if every := _EVERY.fullmatch(text):
        unit = {"m": "minutes", "h": "hours"}[every[2]]
        suggestion = f"rate({every[1]} {unit})"
    raise _refuse(place, text, f"is not an alias; {allowed}", suggestion)


def _unix(text: str, fields: str, place: Place) -> CronExpression:
    parts = fields.split()
    if len(parts) != 5:
        raise _count_unix(text, parts, place)
    minute, hour, day, month, weekday = parts
    days, either = unix_days(day, weekday, place)
    parsed = CronExpression(
        text=text,
        syntax="unix",
        minutes=parse_field(MINUTE, minute, place),
        hours=parse_field(HOUR, hour, place),
        months=parse_field(MONTH, month, place),
        years=_ALL_YEARS,
        days=days,
        either_day=either,
    )
    return _occurring(parsed, parts, place)


def _count_unix(text: str, parts: list[str], place: Place) -> InvalidInput:
    reason = (
        f"has {len(parts)} fields; a Unix expression has five: "
        "minute hour day-of-month month day-of-week"
    )
    suggestion = None
    if len(parts) == 6:
        reason += " (no seconds, no year; AWS's six fields are written cron(...))"
        suggestion = f"cron({' '.join(parts)})" if "?" in parts else " ".join(parts[1:])
    return _refuse(place, text, reason, suggestion)


def _call(text: str, name: str, inside: str, place: Place) -> Expression:
    parsers: dict[str, Callable[[str, str, Place], Expression]] = {
        "cron": _aws_cron,
        "at": _at,
        "rate": _rate,
    }
    if name in parsers:
        return parsers[name](text, inside, place)
    known = name.lower()
    suggestion = f"{known}({inside})" if known in parsers else None
    reason = f"calls {name}(...); known are cron(...), at(...) and rate(...)"
    raise _refuse(place, text, reason, suggestion)


def _aws_cron(text: str, inside: str, place: Place) -> CronExpression:
    parts = inside.split()
    if len(parts) != 6:
        raise _count_aws(text, parts, place)
    minute, hour, _, month, _, year = parts
    days = aws_days(parts, place)
    parsed = CronExpression(
        text=text,
        syntax="aws",
        minutes=parse_field(MINUTE, minute, place),
        hours=parse_field(HOUR, hour, place),
        months=parse_field(MONTH, month, place),
        years=parse_field(YEAR, year, place) >> FIRST_YEAR,
        days=days,
    )
    return _occurring(parsed, parts, place)


def _count_aws(text: str, parts: list[str], place: Place) -> InvalidInput:
    reason = (
        f"has {len(parts)} fields; cron(...) has six: "
        "minute hour day-of-month month day-of-week year"
    )
    fields: list[str] = []
    if len(parts) == 5:
        fields = [*parts, "*"]
    elif len(parts) == 7:
        reason += " (no seconds)"
        fields = parts[1:]
    return _refuse(place, text, reason, f"cron({' '.join(fields)})" if fields else None)


def _occurring(
    parsed: CronExpression, parts: list[str], place: Place
) -> CronExpression:
    if not never_occurs(parsed):
        return parsed
    minute, hour, day, month, weekday = parts[:5]
    year = parts[5] if len(parts) == 6 else "*"
    any_weekday = weekday in {"*", "?"}
    suggestion = None
    if day.isdecimal() and any_weekday:
        suggestion = f"cron({minute} {hour} L {month} ? {year})"
    reason = f"day-of-month {day!r} never occurs in month {month!r}"
    reason += "" if any_weekday else f" on day-of-week {weekday!r}"
    reason += "" if year == "*" else f" of year {year!r}"
    raise InvalidInput.of(
        place,
        "never_fires",
        f"{parsed.text!r} can never fire: {reason}.",
        found=parsed.text,
        suggestion=suggestion,
    )


def _at(text: str, inside: str, place: Place) -> AtExpression:
    form = "is not of the form at(yyyy-mm-ddThh:mm:ss)"
    parts = _AT.fullmatch(inside)
    if parts is None:
        if inside.endswith(("Z", "z")):
            form += "; it is a local time, the zone stands apart"
        raise _refuse(place, text, form, _nearest_at(inside))
    numbers = [int(part) for part in parts.groups()]
    try:
        wall = datetime(*numbers)  # type: ignore[arg-type]
    except ValueError as problem:
        reason = f"names no possible local time ({problem})"
        raise _refuse(place, text, reason) from problem
    if not FIRST_YEAR <= wall.year <= LAST_YEAR:
        reason = f"lies outside the years {FIRST_YEAR} to {LAST_YEAR}"
        raise _refuse(place, text, reason)
    return AtExpression(text, wall)


def _nearest_at(inside: str) -> str | None:
    guess = inside.rstrip("Zz").replace(" ", "T")
    guess += {10: "T00:00:00", 16: ":00"}.get(len(guess), "")
    return f"at({guess})" if _AT.fullmatch(guess) else None


def _rate(text: str, inside: str, place: Place) -> RateExpression:
    parts = _RATE.fullmatch(inside)
    if parts is None:
        reason = (
            "is not of the form rate(n minutes), rate(n hours) or rate(n days) "
            "with a whole n"
        )
        raise _refuse(place, text, reason, _nearest_rate(inside))
    # Nine digits of days are the most that a timedelta holds.
    number = int(parts[1]) if len(parts[1]) <= 9 else 0
    period = number * timedelta(**{f"{parts[2]}s": 1})
    if not timedelta() < period <= MAX_PERIOD:
        reason = f"must lie between 1 minute and {MAX_PERIOD.days} days"
        raise _refuse(place, text, reason)
    return RateExpression(text, period)


def _nearest_rate(inside: str) -> str | None:
    if inside.isdecimal():
        return f"rate({inside} minutes)"
    if halves := _HALVES.fullmatch(inside):
        whole = int(halves[1])
        if halves[2] == "hour":
            return f"rate({whole * 60 + 30} minutes)"
        return f"rate({whole * 24 + 12} hours)"
    return None


def _bracketed(text: str, name: str) -> str | None:
    inside = text[len(name) :].strip(_BLANKS).strip("()").strip(_BLANKS)
    return f"{name}({inside})" if inside else None


def _refuse(
    place: Place, found: str, reason: str, suggestion: str | None = None
) -> InvalidInput:
    shown = found if len(found) <= 60 else found[:57] + "..."
    return InvalidInput.of(
        place,
        "invalid_expression",
        f"{shown!r} {reason}.",
        found=found,
        suggestion=suggestion,
    )
