"""What a tenant may use and does use."""

from http import HTTPStatus

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call
from hourbell.api.tenant_models import usage_answer
from hourbell.usecases.usage import usage

router = Router()


@router.get("/v1/usage")
def get() -> Response[str]:
    """Return every quota of the tenant, and what of it is used."""
    tenant = current_call(router).caller.tenant
    used = usage(bootstrap.api_ports().library.schedules, tenant)
    return answer(HTTPStatus.OK, usage_answer(tenant, used).text)
