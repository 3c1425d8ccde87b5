"""Event patterns of a mapping's filter criteria, as Lambda evaluates them.

A pattern is an object whose leaves are lists of alternatives; all members must
match, one alternative of each list is enough. Supported are exact values, null,
`prefix`, `suffix`, `equals-ignore-case`, `anything-but` (values, `prefix`,
`suffix`), `numeric`, `exists` and `$or`. Anything else is refused, as on AWS.
"""

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hourbell.domain.errors import InvalidInput

_MISSING = object()
_NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def parse_filters(criteria: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], ...]:
    """Return the patterns of a `FilterCriteria` property.

    Raises:
        InvalidInput: a pattern is not valid; the message quotes it.
    """
    patterns = []
    for entry in (criteria or {}).get("Filters", ()):
        text = entry.get("Pattern", "")
        try:
            pattern = json.loads(text)
        except ValueError as error:
            raise _invalid(text, "not JSON") from error
        _check(pattern, text)
        patterns.append(pattern)
    return tuple(patterns)


def passes(patterns: Sequence[Mapping[str, Any]], record: Mapping[str, Any]) -> bool:
    """Return whether any pattern matches; without patterns everything passes."""
    return not patterns or any(matches(pattern, record) for pattern in patterns)


def matches(pattern: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value has everything that the pattern asks for."""
    for name, wanted in pattern.items():
        if name == "$or":
            if not any(matches(alternative, value) for alternative in wanted):
                return False
            continue
        found = value.get(name, _MISSING) if isinstance(value, Mapping) else _MISSING
        if isinstance(wanted, Mapping):
            if not matches(wanted, found):
                return False
        elif not any(_leaf(alternative, found) for alternative in wanted):
            return False
    return True


def _leaf(alternative: Any, found: Any) -> bool:
    if isinstance(alternative, Mapping):
        ((name, argument),) = alternative.items()
        return _RULES[name](argument, found)
    if isinstance(found, list):
        return any(_same(alternative, member) for member in found)
    return _same(alternative, found)


def _same(left: Any, right: Any) -> bool:
    # True == 1 in Python, not in JSON.
    return type(left) is type(right) and bool(left == right)


def _exists(argument: Any, found: Any) -> bool:
    # Only leaves count: an object in that place is not a value.
    is_value = found is not _MISSING and not isinstance(found, Mapping)
    return is_value is bool(argument)


def _prefix(argument: Any, found: Any) -> bool:
    return isinstance(found, str) and found.startswith(str(argument))


def _suffix(argument: Any, found: Any) -> bool:
    return isinstance(found, str) and found.endswith(str(argument))


def _ignore_case(argument: Any, found: Any) -> bool:
    return isinstance(found, str) and found.casefold() == str(argument).casefold()


def _anything_but(argument: Any, found: Any) -> bool:
    if found is _MISSING or isinstance(found, Mapping):
        return False
    banned = argument if isinstance(argument, list) else [argument]
    return not any(_leaf(entry, found) for entry in banned)


def _numeric(argument: Sequence[Any], found: Any) -> bool:
    if isinstance(found, bool) or not isinstance(found, int | float):
        return False
    pairs = zip(argument[::2], argument[1::2], strict=True)
    return all(_NUMERIC[sign](found, limit) for sign, limit in pairs)


_RULES: dict[str, Callable[[Any, Any], bool]] = {
    "exists": _exists,
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignore_case,
    "anything-but": _anything_but,
    "numeric": _numeric,
}


def _check(pattern: Any, text: str) -> None:
    if not isinstance(pattern, Mapping) or not pattern:
        raise _invalid(text, "a pattern is an object with at least one member")
    for name, wanted in pattern.items():
        if name == "$or":
            for alternative in wanted:
                _check(alternative, text)
        elif isinstance(wanted, Mapping):
            _check(wanted, text)
        elif isinstance(wanted, list) and wanted:
            for alternative in wanted:
                _check_leaf(alternative, text)
        else:
            raise _invalid(text, f"{name} is neither an object nor a list of values")


def _check_leaf(alternative: Any, text: str) -> None:
    if isinstance(alternative, list):
        raise _invalid(text, "a list inside a list of values")
    if not isinstance(alternative, Mapping):
        return
    if len(alternative) != 1 or next(iter(alternative)) not in _RULES:
        raise _invalid(text, f"{json.dumps(alternative)} is not a known rule")
    argument = alternative.get("numeric")
    if argument is not None and not _is_comparison(argument):
        raise _invalid(text, "numeric needs pairs of comparison and number")


def _is_comparison(argument: Any) -> bool:
    return (
        isinstance(argument, list)
        and len(argument) in (2, 4)
        and all(sign in _NUMERIC for sign in argument[::2])
        and all(isinstance(limit, int | float) for limit in argument[1::2])
    )


def _invalid(text: str, why: str) -> InvalidInput:
    return InvalidInput.of(
        "FilterCriteria", "bad_pattern", f"Filter pattern {text}: {why}.", found=text
    )
