"""Pages of listings whose cursor is the place that a page ended at."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hourbell.domain.errors import InvalidInput

T = TypeVar("T")


def page_after(
    after: str | None,
    limit: int,
    find: Callable[[int], Sequence[T]],
    *,
    place_of: Callable[[T], str],
    is_place: Callable[[str], bool],
) -> tuple[tuple[T, ...], str | None]:
    """Return up to so many of what is found, and the cursor if there is more.

    Args:
        after: where an earlier page ended; None for the first.
        limit: the most that a page holds.
        find: returns up to so many of what follows `after`.
        place_of: returns the place of one of them.
        is_place: whether a text can be a place.

    Raises:
        InvalidInput: no page ended there (`invalid_cursor`).
    """
    if after is not None and not is_place(after):
        raise no_cursor(after)
    found = find(limit + 1)
    page = tuple(found[:limit])
    return page, place_of(page[-1]) if len(found) > limit else None


def no_cursor(found: str) -> InvalidInput:
    """Return the refusal of a text that no page ended with."""
    message = "This is not a cursor that a page ended with."
    return InvalidInput.of("cursor", "invalid_cursor", message, found=found)
