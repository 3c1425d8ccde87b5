"""Occurrences: look at one, cancel it, replay it."""

from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.occurrence_models import (
    GiveCancelReason,
    state_answer,
    told_answer,
)
from hourbell.usecases.occurrences import cancel_occurrence, replay_occurrence, tell

logger = Logger()
metrics = Metrics()
router = Router()


@router.get("/v1/occurrences/<occurrence_id>")
def get(occurrence_id: Annotated[str, Path()]) -> Response[str]:
    """Return an occurrence with its attempts."""
    place, tenant_id = bootstrap.api_ports().workplace, current_call(router).tenant_id
    told = tell(place, tenant_id, occurrence_id)
    return answer(HTTPStatus.OK, told_answer(told).text)


@router.post("/v1/occurrences/<occurrence_id>/cancel")
def cancel(
    occurrence_id: Annotated[str, Path()],
    body: Annotated[GiveCancelReason | None, Body()] = None,
) -> Response[str]:
    """Cancel an occurrence, or ask its worker to stop."""
    place, call = bootstrap.api_ports().workplace, current_call(router)
    row = cancel_occurrence(place, call.tenant_id, occurrence_id)
    metrics.add_metric("OccurrencesCanceled", MetricUnit.Count, 1)
    logger.info(
        "occurrence canceled",
        occurrence_id=occurrence_id,
        state=row.state,
        caller=call.caller.arn,
        reason=None if body is None else body.reason,
    )
    return answer(HTTPStatus.OK, state_answer(row).text)


@router.post("/v1/occurrences/<occurrence_id>/replay")
def replay(occurrence_id: Annotated[str, Path()]) -> Response[str]:
    """Let a dead occurrence run anew, under the same id."""
    place, call = bootstrap.api_ports().workplace, current_call(router)
    row = replay_occurrence(place, call.tenant_id, occurrence_id)
    metrics.add_metric("OccurrencesReplayed", MetricUnit.Count, 1)
    logger.info(
        "occurrence replayed", occurrence_id=occurrence_id, caller=call.caller.arn
    )
    return answer(HTTPStatus.OK, state_answer(row).text)
