"""A tenant's handlers."""

from http import HTTPStatus
from typing import Annotated

from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.openapi.params import Body, Path

from hourbell import bootstrap
from hourbell.api.edge import answer, current_call, entity_tag
from hourbell.api.handler_models import (
    ChangeHandler,
    RegisterHandler,
    handler_answer,
    handler_list_answer,
)
from hourbell.api.paging import Cursor, Limit
from hourbell.api.preconditions import IfMatch, need_if_match, read_if_match
from hourbell.domain.definition import Handler
from hourbell.usecases import handlers
from hourbell.usecases.expected import ANY

logger = Logger()
router = Router()


@router.post("/v1/handlers")
def register(body: Annotated[RegisterHandler, Body()]) -> Response[str]:
    """Register a handler; an external one's queue gets a test message."""
    call, board = current_call(router), bootstrap.api_ports().switchboard
    wanted = body.to_domain(call.tenant_id)
    stored = handlers.register_handler(board, call.caller.tenant, wanted, call.now)
    logger.info("handler registered", handler=stored.name, routing=stored.routing)
    return _answer(stored, HTTPStatus.CREATED, f"handlers/{stored.name}")


@router.get("/v1/handlers")
def list_page(limit: Limit = 50, cursor: Cursor = None) -> Response[str]:
    """List the tenant's handlers."""
    tenant = current_call(router).caller.tenant
    directory = bootstrap.api_ports().directory
    page = handlers.list_handlers(directory, tenant, after=cursor, limit=limit)
    return answer(HTTPStatus.OK, handler_list_answer(page).text)


@router.get("/v1/handlers/<name>")
def get(name: Annotated[str, Path()]) -> Response[str]:
    """Return a handler."""
    tenant = current_call(router).caller.tenant
    return _answer(handlers.get_handler(bootstrap.api_ports().directory, tenant, name))


@router.patch("/v1/handlers/<name>")
def change(
    name: Annotated[str, Path()],
    body: Annotated[ChangeHandler, Body()],
    if_match: IfMatch = None,
) -> Response[str]:
    """Change a handler; another external queue gets a test message."""
    call, board = current_call(router), bootstrap.api_ports().switchboard
    changed = handlers.change_handler(
        board,
        call.caller.tenant,
        name,
        body.to_domain(),
        call.now,
        expected=need_if_match(if_match),
    )
    logger.info("handler changed", handler=name, revision=changed.revision)
    return _answer(changed)


@router.delete("/v1/handlers/<name>")
def retire(name: Annotated[str, Path()], if_match: IfMatch = None) -> Response[str]:
    """Retire a handler: no new schedule may name it."""
    call, board = current_call(router), bootstrap.api_ports().switchboard
    retired = handlers.retire_handler(
        board,
        call.caller.tenant,
        name,
        call.now,
        expected=read_if_match(if_match) or ANY,
    )
    logger.info("handler retired", handler=name, revision=retired.revision)
    return _answer(retired)


def _answer(
    handler: Handler, status: HTTPStatus = HTTPStatus.OK, location: str | None = None
) -> Response[str]:
    headers = entity_tag(handler.revision)
    if location is not None:
        headers["Location"] = location
    return answer(status, handler_answer(handler).text, headers)
