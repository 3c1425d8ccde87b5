"""JSON whose numbers stay as they were written.

A double would change some: 1.50 and 3.14159265358979323846 came to be others. What
callers send is passed on and shown digit by digit.
"""

import json
from collections.abc import Mapping
from typing import Any, NoReturn, Self


class Number(float):
    """A number that remembers how it was written.

    Attributes:
        text: as it stands in the JSON.
    """

    __slots__ = ("text",)

    text: str

    def __new__(cls, text: str) -> Self:
        """Read a JSON number."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def read_integer(text: str) -> int | Number:
    """Read a number without fraction or exponent, for `json.loads`."""
    return Number(text) if text == "-0" else int(text)


def read_json(text: str) -> Any:  # noqa: ANN401 - any JSON
    """Read JSON text of a known hand: what `write_json` wrote, or its own user's.

    Raises:
        ValueError: it is not JSON.
    """
    return json.loads(
        text, parse_int=read_integer, parse_float=Number, parse_constant=_refuse
    )


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def write_json(value: object, *, sort_keys: bool = False) -> str:
    """Write a value as compact JSON text, not escaping what need not be."""
    if isinstance(value, Number):
        return value.text
    if isinstance(value, Mapping):
        items = sorted(value.items()) if sort_keys else value.items()
        members = (
            f"{_scalar(name)}:{write_json(each, sort_keys=sort_keys)}"
            for name, each in items
        )
        return f"{{{','.join(members)}}}"
    if isinstance(value, list | tuple):
        entries = (write_json(each, sort_keys=sort_keys) for each in value)
        return f"[{','.join(entries)}]"
    return _scalar(value)


_scalar = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
