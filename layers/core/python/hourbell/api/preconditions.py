"""`If-Match` and `If-None-Match`: which revision a change is meant for (RFC 9110)."""

import re
from typing import Annotated, Final

from aws_lambda_powertools.event_handler.openapi.params import Header

from hourbell.domain.errors import InvalidInput
from hourbell.usecases.expected import ANY, Expected

MAX_HEADER: Final = 1_024

# An element of a list, which may be empty (RFC 9110, 5.6.1.2), with what ends it.
_ELEMENT = re.compile(r'\s*(?:(W/)?"([\x21\x23-\x7e\x80-\uffff]*)"\s*)?(?:,|\Z)')
_REVISION = re.compile(r"([1-9][0-9]{0,17})(?:\.(sch[0-9a-z]{26}))?", re.ASCII)

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        max_length=MAX_HEADER,
        description="The revision that the change is meant for, as ETag gave it.",
    ),
]
IfNoneMatch = Annotated[
    str | None,
    Header(
        alias="If-None-Match",
        max_length=MAX_HEADER,
        description="`*`: only if there is none.",
    ),
]


def read_if_match(text: str | None) -> Expected | None:
    """Return what a change expects to be stored; None without the header.

    `*` stands for any revision. A weak tag never matches, as the standard has it, and
    elements of the list that are empty do not count.

    Raises:
        InvalidInput: the header is neither `*` nor a list of entity tags.
    """
    if text is None:
        return None
    if text.strip() == "*":
        return ANY
    tags = _strong_tags(text)
    if tags is None:
        message = 'Allowed are entity tags like "3", or *.'
        raise InvalidInput.of("if-match", "invalid_value", message, found=text)
    named = [match for match in map(_REVISION.fullmatch, tags) if match is not None]
    return Expected(
        frozenset(int(each[1]) for each in named if each[2] is None),
        frozenset((int(each[1]), each[2]) for each in named if each[2] is not None),
    )


def _strong_tags(text: str) -> list[str] | None:
    """Return the strong tags of a list; None when it is no list of tags."""
    tags: list[tuple[str | None, str]] = []
    place = 0
    while place < len(text):
        element = _ELEMENT.match(text, place)
        if element is None:
            return None
        if element[2] is not None:
            tags.append((element[1], element[2]))
        place = element.end()
    return [tag for weak, tag in tags if weak is None] if tags else None


def need_if_match(text: str | None) -> Expected:
    """Return what a change that must name its revision expects.

    Raises:
        InvalidInput: the header is missing (`precondition_required`) or not valid.
    """
    expected = read_if_match(text)
    if expected is None:
        raise InvalidInput.of(
            "if-match",
            "precondition_required",
            "The change needs If-Match with the ETag of what it was made for.",
        )
    return expected


def read_if_none_match(text: str | None) -> bool:
    """Tell whether there must be none yet.

    Raises:
        InvalidInput: the header is something else than `*`.
    """
    if text is None:
        return False
    if text.strip() != "*":
        message = "Allowed is *."
        raise InvalidInput.of(
            "if-none-match", "unsupported_value", message, found=text, suggestion="*"
        )
    return True
