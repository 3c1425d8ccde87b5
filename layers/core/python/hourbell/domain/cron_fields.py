"""The fields of a cron expression: from text to bit sets, and what to say if it fails.

One grammar serves both syntaxes; a `Field` says which values, names and signs it takes.
"""

import re
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from hourbell.domain.errors import InvalidInput

MONTHS: Final = (
    *("JAN", "FEB", "MAR", "APR", "MAY", "JUN"),
    *("JUL", "AUG", "SEP", "OCT", "NOV", "DEC"),
)
WEEKDAYS: Final = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")

_MAX_DIGITS: Final = 4
_NUMBER: Final = re.compile(r"[0-9]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Field:
    """What one field of a cron expression takes.

    Attributes:
        key: its name in findings (`minute` in `expression.minute`).
        label: its name in sentences.
        low: smallest value.
        high: largest value that a step runs to.
        names: three-letter names, the first one standing for `names_from`.
        names_from: value of the first name.
        alias: a further value above `high` (7 for Sunday), or `high`.
        steps: whether `/` is allowed.
    """

    key: str
    label: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    names_from: int = 0
    alias: int = -1
    steps: bool = True

    @property
    def top(self) -> int:
        """Largest value that may be written."""
        return max(self.high, self.alias)

    @property
    def allowed(self) -> str:
        """The values in words."""
        values = f"{self.low} to {self.top}"
        if self.names:
            values += f" or {self.names[0]} to {self.names[-1]}"
        return values


MINUTE: Final = Field("minute", "minute", 0, 59)
HOUR: Final = Field("hour", "hour", 0, 23)
DAY_OF_MONTH: Final = Field("day_of_month", "day-of-month", 1, 31)
MONTH: Final = Field("month", "month", 1, 12, MONTHS, 1)
UNIX_WEEKDAY: Final = Field("day_of_week", "day-of-week", 0, 6, WEEKDAYS, 0, alias=7)
AWS_WEEKDAY: Final = Field("day_of_week", "day-of-week", 1, 7, WEEKDAYS, 1, steps=False)
YEAR: Final = Field("year", "year", 1970, 2199)

Place = str
"""Dotted path of the expression in the input, the prefix of a field's own path."""


def parse_field(spec: Field, text: str, place: Place) -> int:
    """Turn a field of lists, ranges and steps into a bit set.

    Raises:
        InvalidInput: code `invalid_expression`, about `<place>.<field>`.
    """
    bits = 0
    for item in split_list(spec, text, place):
        bits |= parse_item(spec, item, place)
    return bits


def split_list(spec: Field, text: str, place: Place) -> list[str]:
    """Split a field at its commas; no part may be empty."""
    items = text.split(",")
    if "" in items:
        kept = ",".join(item for item in items if item)
        raise refuse(spec, place, text, "has an empty part in its list", kept or None)
    return items


def parse_item(spec: Field, item: str, place: Place) -> int:
    """Turn `*`, `n`, `a-b` with an optional `/step` into a bit set."""
    body, slash, step_text = item.partition("/")
    step = _step(spec, item, step_text, place) if slash else 1
    if body == "*":
        return _bits(spec.low, spec.high, step)
    first, dash, last = body.partition("-")
    low = parse_value(spec, first, item, place)
    if not dash:
        # `n/step` runs to the end of the field, like in Vixie cron's successors.
        return _bits(low, max(spec.high, low) if slash else low, step)
    high = parse_value(spec, last, item, place)
    if high < low:
        raise _reversed(spec, item, (low, high), place)
    return _bits(low, high, step)


def parse_value(spec: Field, text: str, item: str, place: Place) -> int:
    """Read one number or name of a field."""
    if text.upper() in spec.names:
        return spec.names.index(text.upper()) + spec.names_from
    if not _NUMBER.fullmatch(text):
        raise _no_value(spec, text, item, place)
    if len(text) > _MAX_DIGITS or not spec.low <= int(text) <= spec.top:
        nearest = _nearest_value(spec, text, item)
        raise refuse(spec, place, item, "is out of range", nearest)
    return int(text)


def refuse(
    spec: Field, place: Place, found: str, reason: str, suggestion: str | None = None
) -> InvalidInput:
    """Make the error about one field: what was found and what is allowed."""
    shown = found if len(found) <= 40 else found[:37] + "..."
    return InvalidInput.of(
        f"{place}.{spec.key}",
        "invalid_expression",
        f"{spec.label} {shown!r} {reason}; allowed: {spec.allowed}, "
        f"and {_signs(spec)}.",
        found=found,
        suggestion=suggestion,
    )


def write_values(spec: Field, bits: int) -> str:
    """Write a bit set as a list of plain values."""
    return ",".join(str(value) for value in range(spec.top + 1) if bits >> value & 1)


def _signs(spec: Field) -> str:
    return "* , - /" if spec.steps else "* , -"


def _bits(low: int, high: int, step: int) -> int:
    bits = 0
    for value in range(low, high + 1, step):
        bits |= 1 << value
    return bits


def _step(spec: Field, item: str, text: str, place: Place) -> int:
    if not spec.steps:
        raise _no_steps(spec, item, place)
    if not _NUMBER.fullmatch(text) or len(text) > _MAX_DIGITS or int(text) == 0:
        reason = f"needs a step from 1 to {spec.high} after its /"
        raise refuse(spec, place, item, reason)
    return int(text)


def _no_steps(spec: Field, item: str, place: Place) -> InvalidInput:
    with_steps = Field(
        spec.key, spec.label, spec.low, spec.high, spec.names, spec.names_from
    )
    values = write_values(spec, parse_item(with_steps, item, place))
    return refuse(spec, place, item, "has a step, which this field lacks", values)


def _reversed(
    spec: Field, item: str, ends: tuple[int, int], place: Place
) -> InvalidInput:
    body, slash, _ = item.partition("/")
    first, _, last = body.partition("-")
    named = first.upper() in spec.names

    def write(value: int) -> str:
        return spec.names[value - spec.names_from] if named else str(value)

    def span(low: int, high: int) -> str:
        return write(low) if low == high else f"{write(low)}-{write(high)}"

    low, high = ends
    parts = [span(low, spec.high)] if low <= spec.high else []
    suggestion = ",".join([*parts, span(spec.low, high)])
    # With a step the two halves would not count on from each other.
    reason = f"runs backwards from {first} to {last}"
    return refuse(spec, place, item, reason, None if slash else suggestion)


def _no_value(spec: Field, text: str, item: str, place: Place) -> InvalidInput:
    if text.isalpha():
        reason, suggestion = "has no value", _nearest_name(spec, text)
        return refuse(spec, place, item, f"{reason} {text[:20]!r}", suggestion)
    what = repr(text[:20]) if text else "nothing"
    return refuse(spec, place, item, f"has {what} where a value belongs")


def _nearest_value(spec: Field, text: str, item: str) -> str | None:
    """Guess what a number just outside the field means: 24 o'clock, AWS's Sunday 0."""
    if spec is AWS_WEEKDAY and text == item == "0":
        return "1"
    if spec not in (MINUTE, HOUR) or text != str(spec.high + 1):
        return None
    first, dash, last = item.partition("-")
    if not dash:
        # Midnight is hour 0; what minute 60 was to be is anybody's guess.
        return "0" if item == text and spec is HOUR else None
    return f"{first}-{spec.high}" if last == text else None


def _nearest_name(spec: Field, text: str) -> str | None:
    if text[:3].upper() in spec.names:
        return text[:3].upper()
    close = get_close_matches(text[:20].upper(), spec.names, n=1, cutoff=0.5)
    return close[0] if close else None
