"""Work: workers claim occurrences, extend their leases, and say how it went."""

from collections import Counter
from collections.abc import Iterable
from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools import Metrics
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.metrics import MetricUnit

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.work_models import (
    ClaimWork,
    CompleteWork,
    ExtendLeases,
    FailWork,
    beat_answers,
    claim_answers,
    complete_answers,
    fail_answers,
)
from hourbell.usecases.claim import claim
from hourbell.usecases.finish import complete_work, fail_work
from hourbell.usecases.heartbeat import heartbeat
from hourbell.usecases.work_values import Outcome

metrics = Metrics()
router = Router()


@router.post("/v1/occurrences/claim")
def claim_items(body: Annotated[ClaimWork, Body()]) -> Response[str]:
    """Claim occurrences, each for one worker at a time."""
    claimed = claim(
        bootstrap.worker_ports().workplace,
        current_call(router).tenant_id,
        body.orders,
        worker=body.worker,
        lease_seconds=body.lease_seconds,
    )
    _count("Claims", (each.answer.capitalize() for each in claimed))
    return answer(HTTPStatus.OK, claim_answers(claimed).text)


@router.post("/v1/occurrences/heartbeat")
def extend_leases(body: Annotated[ExtendLeases, Body()]) -> Response[str]:
    """Extend leases, and learn who should stop."""
    beats = heartbeat(
        bootstrap.worker_ports().workplace,
        current_call(router).tenant_id,
        [each.held for each in body.items],
        lease_seconds=body.lease_seconds,
    )
    _count("Leases", _lost(each.outcome for each in beats))
    return answer(HTTPStatus.OK, beat_answers(beats).text)


@router.post("/v1/occurrences/complete")
def complete_items(body: Annotated[CompleteWork, Body()]) -> Response[str]:
    """Say that work is done."""
    finished = complete_work(
        bootstrap.worker_ports().workplace,
        current_call(router).tenant_id,
        [each.held for each in body.items],
    )
    _count("Leases", _lost(each.outcome for each in finished))
    return answer(HTTPStatus.OK, complete_answers(finished).text)


@router.post("/v1/occurrences/fail")
def fail_items(body: Annotated[FailWork, Body()]) -> Response[str]:
    """Say that attempts have failed."""
    finished = fail_work(
        bootstrap.worker_ports().workplace,
        current_call(router).tenant_id,
        body.failed,
    )
    _count("Leases", _lost(each.outcome for each in finished))
    return answer(HTTPStatus.OK, fail_answers(finished).text)


def _lost(outcomes: Iterable[Outcome]) -> list[str]:
    return ["Lost" for each in outcomes if each is Outcome.LEASE_LOST]


def _count(what: str, kinds: Iterable[str]) -> None:
    """Count results by kind, as `ClaimsRun` or `LeasesLost`."""
    for kind, count in Counter(kinds).items():
        metrics.add_metric(f"{what}{kind}", MetricUnit.Count, count)
