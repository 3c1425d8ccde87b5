"""Tenants, their quotas and principals: the platform role's routes."""

from http import HTTPStatus
from typing import Annotated
from urllib.parse import unquote

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call, entity_tag
from hourbell.api.paging import Cursor, Limit
from hourbell.api.preconditions import IfMatch, need_if_match
from hourbell.api.tenant_models import (
    ChangeTenant,
    CreateTenant,
    PrincipalAnswer,
    PrincipalsAnswer,
    tenant_answer,
    tenant_list_answer,
)
from hourbell.domain.definition import Tenant
from hourbell.usecases import tenants
from hourbell.usecases.identify import admit_operator
from hourbell.usecases.tenants import Registrar

logger = Logger()
router = Router()


@router.post("/v1/admin/tenants")
def create(body: Annotated[CreateTenant, Body()]) -> Response[str]:
    """Create a tenant."""
    registrar, tenant = _registrar(), body.to_domain()
    principals = tenants.create_tenant(registrar, tenant, body.principals)
    logger.info(
        "tenant created", tenant_id=tenant.tenant_id, principals=list(principals)
    )
    return _answer(tenant, HTTPStatus.CREATED, f"tenants/{tenant.tenant_id}")


@router.get("/v1/admin/tenants")
def list_page(limit: Limit = 50, cursor: Cursor = None) -> Response[str]:
    """List all tenants."""
    page = tenants.list_tenants(_registrar(), after=cursor, limit=limit)
    return answer(HTTPStatus.OK, tenant_list_answer(page).text)


@router.get("/v1/admin/tenants/<tenant_id>")
def get(tenant_id: Annotated[str, Path()]) -> Response[str]:
    """Return a tenant."""
    return _answer(tenants.get_tenant(_registrar(), tenant_id))


@router.patch("/v1/admin/tenants/<tenant_id>")
def change(
    tenant_id: Annotated[str, Path()],
    body: Annotated[ChangeTenant, Body()],
    if_match: IfMatch = None,
) -> Response[str]:
    """Change a tenant's tier, quotas, weight or state."""
    registrar, expected = _registrar(), need_if_match(if_match)
    changed = tenants.change_tenant(
        registrar, tenant_id, body.to_domain(), expected=expected
    )
    logger.info(
        "tenant changed",
        tenant_id=tenant_id,
        change=body.model_dump(exclude_unset=True),
        revision=changed.revision,
    )
    return _answer(changed)


@router.get("/v1/admin/tenants/<tenant_id>/principals")
def list_principals(tenant_id: Annotated[str, Path()]) -> Response[str]:
    """List who may call for a tenant."""
    found = tenants.list_principals(_registrar(), tenant_id)
    listed = PrincipalsAnswer(tenant_id=tenant_id, principals=list(found))
    return answer(HTTPStatus.OK, listed.text)


@router.put("/v1/admin/tenants/<tenant_id>/principals/<principal>")
def add_principal(
    tenant_id: Annotated[str, Path()], principal: Annotated[str, Path()]
) -> Response[str]:
    """Let one more role or user call for a tenant."""
    added = tenants.add_principal(_registrar(), tenant_id, unquote(principal))
    logger.info("principal added", tenant_id=tenant_id, principal=added)
    registered = PrincipalAnswer(tenant_id=tenant_id, principal=added)
    return answer(HTTPStatus.OK, registered.text)


@router.delete("/v1/admin/tenants/<tenant_id>/principals/<principal>")
def remove_principal(
    tenant_id: Annotated[str, Path()], principal: Annotated[str, Path()]
) -> Response[str]:
    """Let a role or user no longer call for a tenant."""
    removed = tenants.remove_principal(_registrar(), tenant_id, unquote(principal))
    logger.info("principal removed", tenant_id=tenant_id, principal=removed)
    registered = PrincipalAnswer(tenant_id=tenant_id, principal=removed)
    return answer(HTTPStatus.OK, registered.text)


def _registrar() -> Registrar:
    """Return the ports, to the platform role only.

    Raises:
        Forbidden: a tenant is calling.
    """
    registrar = bootstrap.api_ports().registrar
    # The edge has admitted the caller already; asked again, it costs nothing.
    admit_operator(current_call(router).identity)
    return registrar


def _answer(
    tenant: Tenant, status: HTTPStatus = HTTPStatus.OK, location: str | None = None
) -> Response[str]:
    headers = entity_tag(tenant.revision)
    if location is not None:
        headers["Location"] = location
    return answer(status, tenant_answer(tenant).text, headers)
