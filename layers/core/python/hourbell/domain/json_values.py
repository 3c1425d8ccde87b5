"""What JSON texts stand for, whichever way they are written."""

import json


def is_same_json(one: str, other: str) -> bool:
    """Whether two JSON texts differ by nothing but the order of objects' members.

    Numbers count as they are written: 1.0 is another one than 1.
    """
    return one == other or _read(one) == _read(other)


def _read(text: str) -> object:
    return json.loads(text, parse_int=_as_written, parse_float=_as_written)


def _as_written(number: str) -> tuple[str]:
    # No JSON value is read as a tuple, so that a number equals no text.
    return (number,)
