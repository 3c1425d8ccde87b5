"""Which days of a month an expression means, by the month's calendar sheet.

A month has one of 28 shapes (weekday of its 1st, length). All day rules, `L`, `nW`
and `n#k` included, depend on the shape alone, so they are worked out once, at parse.
"""

import re
from collections.abc import Callable
from typing import Final

from hourbell.domain.cron_fields import (
    AWS_WEEKDAY,
    DAY_OF_MONTH,
    UNIX_WEEKDAY,
    Place,
    parse_field,
    parse_item,
    parse_value,
    refuse,
    split_list,
)
from hourbell.domain.errors import InvalidInput
from hourbell.domain.expressions import MONTH_SHAPES, CronExpression
from hourbell.domain.zones import FIRST_YEAR, LAST_YEAR

DayRule = Callable[[int, int], int]
"""(weekday of the 1st with Sunday 0, length of the month) -> bits of its days."""

_NEAREST: Final = re.compile(r"([0-9]{1,2})W", re.ASCII)
_NTH: Final = re.compile(r"([0-9A-Z]+)#([0-9]+)", re.ASCII)
_LAST: Final = re.compile(r"([0-9A-Z]+)L", re.ASCII)
_AWS_SIGN: Final = re.compile(r"[?#]|(?:^|[0-9,])(?:L|W|LW)(?:$|,)", re.ASCII)


def unix_days(day: str, weekday: str, place: Place) -> tuple[tuple[int, ...], bool]:
    """Combine the two day fields of a Unix expression.

    Either one matches (OR) unless one of the fields begins with `*`; then both must
    (Vixie cron's rule, which looks at the first character only).

    Returns:
        Days for each month shape, and whether OR is in force.
    """
    _no_aws_signs(day, weekday, place)
    dates = parse_field(DAY_OF_MONTH, day, place)
    weekdays = parse_field(UNIX_WEEKDAY, weekday, place)
    weekdays = (weekdays | weekdays >> 7) & 0b1111111
    either = not (day.startswith("*") or weekday.startswith("*"))

    def rule(first: int, length: int) -> int:
        by_date, by_weekday = dates & _all_days(length), _days(weekdays, first, length)
        return by_date | by_weekday if either else by_date & by_weekday

    return _each_shape(rule), either


def aws_days(parts: list[str], place: Place) -> tuple[int, ...]:
    """Read the day fields of `cron(...)`: one of them must be `?`.

    Args:
        parts: the six fields, for the suggestion.
        place: dotted path of the expression.

    Returns:
        Days for each month shape.
    """
    day, weekday = parts[2].upper(), parts[4].upper()
    if (day == "?") == (weekday == "?"):
        raise _which_day(parts, place)
    if weekday == "?":
        items = split_list(DAY_OF_MONTH, day, place)
        rules = [_date_rule(item, place) for item in items]
    else:
        items = split_list(AWS_WEEKDAY, weekday, place)
        rules = [_weekday_rule(item, len(items), place) for item in items]

    def rule(first: int, length: int) -> int:
        bits = 0
        for each in rules:
            bits |= each(first, length)
        return bits

    return _each_shape(rule)


def never_occurs(expression: CronExpression) -> bool:
    """Tell whether no day from 1970 to 2199 matches."""
    # Every sheet that a month can have turns up within 40 years (with 2100 between).
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        index = year - FIRST_YEAR
        if not expression.years >> index & 1:
            continue
        for month in range(1, 13):
            shape = MONTH_SHAPES[index * 12 + month - 1]
            if expression.months >> month & 1 and expression.days[shape]:
                return False
    return True


def _each_shape(rule: DayRule) -> tuple[int, ...]:
    return tuple(
        rule((monday_first + 1) % 7, length)
        for monday_first in range(7)
        for length in range(28, 32)
    )


def _all_days(length: int) -> int:
    return (2 << length) - 2


def _days(weekdays: int, first: int, length: int) -> int:
    """Return the days of a month that fall on some of the weekdays (Sunday bit 0)."""
    bits = 0
    for day in range(1, length + 1):
        bits |= (weekdays >> (first + day - 1) % 7 & 1) << day
    return bits


def _date_rule(item: str, place: Place) -> DayRule:
    if item == "L":
        return lambda _, length: 1 << length
    if item == "LW":
        return lambda first, length: _nearest_weekday(length, first, length)
    if near := _NEAREST.fullmatch(item):
        day = parse_value(DAY_OF_MONTH, near[1], item, place)
        return lambda first, length: _nearest_weekday(day, first, length)
    if item.endswith("W"):
        reason = "has W after something other than one day"
        raise refuse(DAY_OF_MONTH, place, item, reason)
    dates = parse_item(DAY_OF_MONTH, item, place)
    return lambda _, length: dates & _all_days(length)


def _nearest_weekday(day: int, first: int, length: int) -> int:
    """Return the Monday to Friday nearest to a day, inside its month; else nothing."""
    if day > length:
        return 0
    weekday = (first + day - 1) % 7
    if weekday == 6:
        return 1 << (day - 1 if day > 1 else 3)
    if weekday == 0:
        return 1 << (day + 1 if day < length else day - 2)
    return 1 << day


def _weekday_rule(item: str, items: int, place: Place) -> DayRule:
    if item == "L":
        return lambda first, length: _days(1 << 6, first, length)
    if "#" in item:
        return _nth_rule(item, items, place)
    if last := _LAST.fullmatch(item):
        weekday = parse_value(AWS_WEEKDAY, last[1], item, place) - 1
        return lambda first, length: _top(_days(1 << weekday, first, length))
    weekdays = parse_item(AWS_WEEKDAY, item, place) >> 1
    return lambda first, length: _days(weekdays, first, length)


def _nth_rule(item: str, items: int, place: Place) -> DayRule:
    if items > 1:
        reason = "stands in a list, but # must stand alone"
        raise refuse(AWS_WEEKDAY, place, item, reason)
    nth = _NTH.fullmatch(item)
    if nth is None or nth[2] not in {"1", "2", "3", "4", "5"}:
        reason = "is not of the form weekday#n with n from 1 to 5"
        raise refuse(AWS_WEEKDAY, place, item, reason)
    weekday, number = parse_value(AWS_WEEKDAY, nth[1], item, place) - 1, int(nth[2])

    def rule(first: int, length: int) -> int:
        day = (weekday - first) % 7 + 7 * number - 6
        return 1 << day if day <= length else 0

    return rule


def _top(bits: int) -> int:
    return 1 << bits.bit_length() - 1


def _which_day(parts: list[str], place: Place) -> InvalidInput:
    minute, hour, day, month, weekday, year = parts
    reason = "one of day-of-month and day-of-week must be ?, the other one says the day"
    suggestion = None
    if day == "?" or weekday == "*":
        day, weekday = "*" if day == "?" else day, "?"
        suggestion = f"cron({minute} {hour} {day} {month} {weekday} {year})"
    elif day == "*":
        suggestion = f"cron({minute} {hour} ? {month} {weekday} {year})"
    return InvalidInput.of(
        f"{place}.day_of_week",
        "invalid_expression",
        f"In cron(...) {reason}; found {parts[2]!r} and {parts[4]!r}.",
        found=f"{parts[2]} {parts[4]}",
        suggestion=suggestion,
    )


def _no_aws_signs(day: str, weekday: str, place: Place) -> None:
    for spec, text in ((DAY_OF_MONTH, day), (UNIX_WEEKDAY, weekday)):
        if _AWS_SIGN.search(text.upper()):
            reason = "uses a sign of AWS's form, which is written cron(...) with a year"
            raise refuse(spec, place, text, reason)
