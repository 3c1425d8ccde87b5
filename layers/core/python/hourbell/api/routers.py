"""All routers of the function `api`, one for each noun.

Those of workers are not among them: `work_routes` belongs to the function `workers`.
"""

from typing import Final

from aws_lambda_powertools.event_handler.api_gateway import Router

from hourbell.api import (
    dead_letter_routes,
    handler_routes,
    job_routes,
    occurrence_routes,
    parked_routes,
    replan_routes,
    schedule_change_routes,
    schedule_routes,
    shard_routes,
    tenant_routes,
    usage_routes,
)

ROUTERS: Final[tuple[Router, ...]] = (
    schedule_routes.router,
    schedule_change_routes.router,
    job_routes.router,
    occurrence_routes.router,
    dead_letter_routes.router,
    handler_routes.router,
    usage_routes.router,
    tenant_routes.router,
    shard_routes.router,
    parked_routes.router,
    replan_routes.router,
)
