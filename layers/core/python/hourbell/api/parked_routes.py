"""Parked rows: the platform role sees them, and has them tried again."""

from http import HTTPStatus
from typing import Annotated, Literal

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Path, Query

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.paging import Cursor, Limit
from hourbell.api.parked_models import parked_answer, parked_list_answer
from hourbell.domain.parking import ParkReason
from hourbell.usecases.parked import Wanted, Yard, ask_for_try, list_parked

MAX_TENANT_ID = 64

logger = Logger()
router = Router()

Group = Annotated[int | None, Query(ge=0, description="Of this shard group only.")]
TenantId = Annotated[
    str | None,
    Query(max_length=MAX_TENANT_ID, description="Of this tenant only."),
]
Reason = Annotated[
    Literal[
        "TENANT_GONE",
        "HANDLER_GONE",
        "VERSION_UNREADABLE",
        "VERSION_INVALID",
        "ROW_UNREADABLE",
        "NEXT_UNREADABLE",
        "TARGET_UNREADABLE",
        "DISPATCH_FAULTY",
        "HELD",
        "UNSENT",
        "UNCLEAR",
    ]
    | None,
    Query(description="Parked for this reason only."),
]


@router.get("/v1/admin/parked")
def list_page(
    group: Group = None,
    tenant_id: TenantId = None,
    reason: Reason = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response[str]:
    """List parked rows."""
    wanted = Wanted(group, tenant_id, None if reason is None else ParkReason(reason))
    page = list_parked(_yard(), wanted, after=cursor, limit=limit)
    return answer(HTTPStatus.OK, parked_list_answer(page).text)


@router.post("/v1/admin/parked/<parked_id>/retry")
def retry(parked_id: Annotated[str, Path()]) -> Response[str]:
    """Let the next pass try a parked row again."""
    yard, now = _yard(), current_call(router).now
    row = ask_for_try(yard, parked_id, now)
    logger.info("parked row asked for", parked_id=parked_id, reason=row.reason)
    return answer(HTTPStatus.ACCEPTED, parked_answer(row).text)


def _yard() -> Yard:
    """Return the ports, to the platform role only.

    Raises:
        Forbidden: a tenant is calling.
    """
    # The edge has admitted the caller already; asked again, it costs nothing.
    _ = current_call(router).operator
    return bootstrap.api_ports().yard
