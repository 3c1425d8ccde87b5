"""The query parameters of lists."""

from typing import Annotated, Final

from aws_lambda_powertools.event_handler.openapi.params import Query

MAX_PAGE: Final = 100
MAX_CURSOR: Final = 1_024

Limit = Annotated[int, Query(ge=1, le=MAX_PAGE, description="Entries at most.")]
Cursor = Annotated[
    str | None, Query(max_length=MAX_CURSOR, description="Of the page before.")
]
