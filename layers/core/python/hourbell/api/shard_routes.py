"""The shard count of the timeline: the platform role's routes."""

from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.shard_models import ChangeShards, shards_answer
from hourbell.usecases import reshard
from hourbell.usecases.identify import admit_operator
from hourbell.usecases.reshard import Mover

logger = Logger()
router = Router()


@router.get("/v1/admin/shards")
def get() -> Response[str]:
    """Return the shard count of every bucket, and how far a change has come."""
    return answer(HTTPStatus.OK, shards_answer(reshard.describe(_mover())).text)


@router.post("/v1/admin/shards")
def change(body: Annotated[ChangeShards, Body()]) -> Response[str]:
    """Announce another shard count for the buckets to come."""
    mover, arn = _mover(), current_call(router).identity.arn
    epochs = reshard.announce(mover, body.to_domain(), requested_by=arn)
    logger.info(
        "shards announced",
        shards=epochs.shard_map.last.shards,
        groups=epochs.shard_map.last.groups,
        since=epochs.shard_map.last.since,
    )
    return answer(HTTPStatus.ACCEPTED, shards_answer(epochs).text)


@router.post("/v1/admin/shards/resume")
def resume() -> Response[str]:
    """Order the moving of rows anew, when it has come to a stop."""
    epochs = reshard.resume(_mover())
    logger.info("moving resumed", phase=epochs.shard_map.last.phase)
    return answer(HTTPStatus.ACCEPTED, shards_answer(epochs).text)


def _mover() -> Mover:
    """Return the ports, to the platform role only.

    Raises:
        Forbidden: a tenant is calling.
    """
    mover = bootstrap.api_ports().mover
    # The edge has admitted the caller already; asked again, it costs nothing.
    admit_operator(current_call(router).identity)
    return mover
