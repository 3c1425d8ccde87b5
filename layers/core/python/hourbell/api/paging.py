"""The query parameters of lists, and how much of one an answer has room for."""

from collections.abc import Iterable
from typing import Annotated, Final, TypeVar

from aws_lambda_powertools.event_handler.openapi.params import Query

from hourbell.api.documents import Answer
from hourbell.api.json_text import write_json
from hourbell.domain.packing import encoded_size
from hourbell.usecases.list_schedules import MOST_BYTES

A = TypeVar("A", bound=Answer)

MAX_PAGE: Final = 100
MAX_CURSOR: Final = 1_024

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Entries at most.")]
Cursor = Annotated[
    str | None, Query(max_length=MAX_CURSOR, description="Of the page before.")
]


def fitting(entries: Iterable[A]) -> list[A]:
    """Return the first of some entries that an answer has room for, at least one."""
    fit: list[A] = []
    left = MOST_BYTES
    for each in entries:
        # As a text within Lambda's own JSON, in which its quotes are escaped.
        left -= encoded_size(write_json(each.text))
        if fit and left < 0:
            break
        fit.append(each)
    return fit
