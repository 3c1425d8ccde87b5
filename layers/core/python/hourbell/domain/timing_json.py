"""The JSON form of a timing.

`{"expression", "zone", "dst": {"gap", "fold"}, "start_at", "end_at",
"max_occurrences", "exclude": ["2026-12-25", {"from", "to"}], "anchor"}`: only the
expression is mandatory, a member that is null counts as left out, and a member that
is not in the list is refused.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from enum import StrEnum
from typing import Final, TypedDict, TypeVar

from hourbell.domain.dates import DateRange
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.instants import format_instant, parse_instant
from hourbell.domain.zones import Fold, Gap

MAX_EXCLUDED: Final = 366
"""Most entries in `exclude`."""

MAX_OCCURRENCES: Final = 1_000_000_000
"""Largest `max_occurrences`."""

MEMBERS: Final = (
    "expression",
    "zone",
    "dst",
    "start_at",
    "end_at",
    "max_occurrences",
    "exclude",
    "anchor",
)

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_Choice = TypeVar("_Choice", bound=StrEnum)
_Value = TypeVar("_Value")


class TimingMembers(TypedDict, total=False):
    """The arguments of a Timing."""

    expression: str
    zone: str
    gap: Gap
    fold: Fold
    start_at: datetime | None
    end_at: datetime | None
    max_occurrences: int | None
    exclude: tuple[DateRange, ...]
    anchor: datetime | None


class Reader:
    """Reads members of a JSON object and collects what is wrong with them."""

    def __init__(self, members: Mapping[str, object], field: str) -> None:
        self._members = members
        self._field = field
        self.findings: list[Finding] = []

    def path(self, name: str) -> str:
        """Return the dotted path of a member."""
        return f"{self._field}.{name}" if self._field else name

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Note every member that is not known."""
        allowed = tuple(known)
        for name in self._members:
            if name not in allowed:
                text = f"{name!r} is not known here; known: {', '.join(allowed)}."
                self.note(name, "unknown_field", text, name)

    def need(self, name: str, read: Callable[[object, str], _Value]) -> _Value:
        """Read a member that must be there.

        Raises:
            InvalidInput: at once if it is missing or wrong, with what was noted.
        """
        self.require(name)
        value = self.get(name, read)
        if value is None:
            raise InvalidInput(findings=tuple(self.findings))
        return value

    def finish(self) -> None:
        """Raise what was noted, if anything."""
        if self.findings:
            raise InvalidInput(findings=tuple(self.findings))

    def require(self, name: str) -> None:
        """Note a member that is left out or null."""
        if self._members.get(name) is None:
            self.note(name, "missing", f"{name} is missing.", "")

    def note(self, name: str, code: str, message: str, found: object) -> None:
        """Note what is wrong with a member."""
        error = InvalidInput.of(self.path(name), code, message, found=found)
        self.findings.extend(error.findings)

    def get(self, name: str, read: Callable[[object, str], _Value]) -> _Value | None:
        """Read a member, or return None if it is left out or wrong."""
        value = self._members.get(name)
        if value is None:
            return None
        try:
            return read(value, self.path(name))
        except InvalidInput as error:
            self.findings.extend(error.findings)
            return None


def read_timing(members: object, field: str) -> TimingMembers:
    """Check the form of a timing's JSON object and return its values.

    Whether expression and zone are valid is left to `schedule.validate`, so that a
    stored timing stays readable under another zone database.

    Raises:
        InvalidInput: with a finding for each member that is wrong.
    """
    if not isinstance(members, Mapping):
        raise wrong_type(field or "timing", members, "an object")
    reader = Reader(members, field)
    reader.refuse_unknown(MEMBERS)
    reader.require("expression")
    values = TimingMembers(
        expression=reader.get("expression", read_text) or "",
        zone=_or(reader.get("zone", read_text), "UTC"),
        start_at=reader.get("start_at", read_instant),
        end_at=reader.get("end_at", read_instant),
        max_occurrences=reader.get("max_occurrences", _read_count),
        exclude=reader.get("exclude", _read_exclude) or (),
        anchor=reader.get("anchor", read_instant),
    )
    values["gap"], values["fold"] = reader.get("dst", read_dst) or _NO_DST
    reader.finish()
    return values


def write_timing(values: TimingMembers) -> dict[str, object]:
    """Return the JSON object of a timing; what is left at its default is left out."""
    written: dict[str, object] = {
        "expression": values["expression"],
        "zone": values["zone"],
        "dst": {"gap": str(values["gap"]), "fold": str(values["fold"])},
    }
    instants = {
        "start_at": values["start_at"],
        "end_at": values["end_at"],
        "anchor": values["anchor"],
    }
    written |= {name: format_instant(at) for name, at in instants.items() if at}
    if values["max_occurrences"] is not None:
        written["max_occurrences"] = values["max_occurrences"]
    if values["exclude"]:
        written["exclude"] = [_write_range(each) for each in values["exclude"]]
    return written


def read_text(value: object, field: str) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise wrong_type(field, value, "a string")
    return value


def read_instant(value: object, field: str) -> datetime:
    """Read a timestamp with its offset."""
    return parse_instant(read_text(value, field), field=field)


def read_integer(value: object, field: str, low: int, high: int) -> int:
    """Read a whole number between two bounds."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise wrong_type(field, value, "a whole number")
    if not low <= value <= high:
        # A number of thousands of digits cannot even be written out.
        shown = value if value.bit_length() < 64 else "a number of over 63 bits"
        message = f"{field} must lie between {low:,} and {high:,}; found {shown}."
        raise InvalidInput.of(field, "out_of_range", message, found=shown)
    return value


def read_dst(value: object, field: str) -> tuple[Gap, Fold]:
    """Read `{"gap", "fold"}`, both optional."""
    if not isinstance(value, Mapping):
        raise wrong_type(field, value, 'an object like {"gap": "SKIP"}')
    reader = Reader(value, field)
    reader.refuse_unknown(("gap", "fold"))
    gap = reader.get("gap", lambda text, path: read_choice(Gap, text, path))
    fold = reader.get("fold", lambda text, path: read_choice(Fold, text, path))
    reader.finish()
    return gap or Gap.SKIP, fold or Fold.FIRST


def read_choice(kind: type[_Choice], value: object, field: str) -> _Choice:
    """Read one of an enum's values."""
    allowed = [str(choice) for choice in kind]
    if value not in allowed:
        text = read_text(value, field)
        raise InvalidInput.of(
            field,
            "unknown_choice",
            f"{text[:40]!r} is not one of {', '.join(allowed)}.",
            found=text,
            suggestion=text.upper() if text.upper() in allowed else None,
        )
    return kind(value)


def wrong_type(field: str, value: object, wanted: str) -> InvalidInput:
    """Make the error for a JSON value of the wrong type."""
    # A truth value is an int too.
    names = {type(None): "null", bool: "a truth value", int: "a number"}
    names |= {float: "a decimal number", str: "a string"}
    names |= {list: "a list", dict: "an object"}
    named = (name for kind, name in names.items() if isinstance(value, kind))
    found = next(named, type(value).__name__)
    message = f"{field} must be {wanted}; found {found}."
    return InvalidInput.of(field, "wrong_type", message, found=found)


def _read_count(value: object, field: str) -> int:
    return read_integer(value, field, 1, MAX_OCCURRENCES)


def _read_exclude(value: object, field: str) -> tuple[DateRange, ...]:
    if not isinstance(value, (list, tuple)):
        raise wrong_type(field, value, "a list of dates and ranges")
    if len(value) > MAX_EXCLUDED:
        message = f"{field} takes at most {MAX_EXCLUDED} entries; found {len(value)}."
        raise InvalidInput.of(field, "out_of_range", message, found=len(value))
    ranges: list[DateRange] = []
    findings: list[Finding] = []
    for index, each in enumerate(value):
        try:
            ranges.append(_read_range(each, f"{field}[{index}]"))
        except InvalidInput as error:
            findings.extend(error.findings)
    if findings:
        raise InvalidInput(findings=tuple(findings))
    return tuple(ranges)


def _read_range(value: object, field: str) -> DateRange:
    if isinstance(value, str):
        return DateRange.single(_read_date(value, field))
    if not isinstance(value, Mapping):
        raise wrong_type(field, value, 'a date or an object {"from", "to"}')
    reader = Reader(value, field)
    reader.refuse_unknown(("from", "to"))
    dates = DateRange(reader.need("from", _read_date), reader.need("to", _read_date))
    reader.finish()
    return dates


def _read_date(value: object, field: str) -> date:
    text = read_text(value, field)
    message = f"{text[:40]!r} is not a date like 2026-12-25."
    error = InvalidInput.of(field, "invalid_date", message, found=text)
    if not _DATE.fullmatch(text):
        raise error
    try:
        return date.fromisoformat(text)
    except ValueError as problem:
        raise error from problem


def _write_range(dates: DateRange) -> object:
    if dates.first == dates.last:
        return dates.first.isoformat()
    return {"from": dates.first.isoformat(), "to": dates.last.isoformat()}


def _or(value: str | None, default: str) -> str:
    return default if value is None else value


_NO_DST: Final = (Gap.SKIP, Fold.FIRST)
