"""The HTTPS API: who calls, what is asked, and the answer or the problem."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any, cast

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestValidationError,
)
from aws_lambda_powertools.event_handler.openapi.params import Body, Header, Path
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext
from hourbell import bootstrap
from hourbell.api.answers import created_answer, preview_answer, view_answer
from hourbell.api.json_body import parse_body
from hourbell.api.problems import (
    CONTENT_TYPE,
    Problem,
    internal_problem,
    invalid_request,
    problem_of,
)
from hourbell.api.requests import CreateSchedule, PreviewTimes, allowed_fields
from hourbell.domain.errors import HourbellError, InvalidInput, NotFound
from hourbell.domain.schedule import validate
from hourbell.usecases.create_schedule import create_schedule
from hourbell.usecases.get_schedule import get_schedule
from hourbell.usecases.identify import Caller, identify
from hourbell.usecases.preview import preview

JSON = "application/json"

logger = Logger()
metrics = Metrics()
app = APIGatewayRestResolver(enable_validation=True, json_body_deserializer=parse_body)

IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=128,
        pattern="^[!-~]+$",
        description="Names the request: repeating it creates once.",
    ),
]


@dataclass(frozen=True, slots=True)
class Call:
    """The request being answered.

    Attributes:
        now: when it came; the one clock reading that all of it goes by.
    """

    request_id: str
    caller: Caller
    now: datetime


@app.post("/v1/schedules")
def create(
    body: Annotated[CreateSchedule, Body()],
    idempotency_key: IdempotencyKey = None,
) -> Response[str]:
    """Create a schedule."""
    call = _call()
    registry = bootstrap.api_ports().registry
    request = body.to_domain(idempotency_key)
    created = create_schedule(registry, call.caller, request, call.now)
    schedule = created.schedule
    replayed = created.replayed and idempotency_key is not None
    name = "CreatesReplayed" if replayed else "SchedulesCreated"
    metrics.add_metric(name, MetricUnit.Count, 1)
    if not created.materialized:
        logger.warning("left to the next pass", schedule_id=schedule.schedule_id)
    headers = {
        # Relative to the request's own URL: right under any stage or domain.
        "Location": f"schedules/{schedule.schedule_id}",
        "ETag": f'"{schedule.revision}"',
    }
    if replayed:
        headers["Idempotency-Replayed"] = "true"
    return _answer(HTTPStatus.CREATED, created_answer(created).text, headers)


@app.get("/v1/schedules/<schedule_id>")
def get(schedule_id: Annotated[str, Path()]) -> Response[str]:
    """Return a schedule."""
    call = _call()
    library = bootstrap.api_ports().library
    tenant_id = call.caller.tenant.tenant_id
    view = get_schedule(library, tenant_id, schedule_id, call.now)
    headers = {"ETag": f'"{view.schedule.revision}"'}
    return _answer(HTTPStatus.OK, view_answer(view).text, headers)


@app.post("/v1/schedules/preview")
def preview_times(body: Annotated[PreviewTimes, Body()]) -> Response[str]:
    """Show the times that a timing gives; nothing is stored."""
    timing, after = body.timing(), body.after(_call().now)
    validate(timing, after)
    times = preview(timing, after, body.count)
    return _answer(HTTPStatus.OK, preview_answer(times, wanted=body.count).text, {})


def refused(error: HourbellError) -> Response[str]:
    """Answer an error that is raised on purpose."""
    return _refuse(problem_of(error, _call().request_id), error)


def malformed(error: RequestValidationError) -> Response[str]:
    """Answer a request that breaks the route's schema."""
    fields = allowed_fields(app.current_event.path)
    return refused(invalid_request(error.errors(), fields))


def no_route(error: NotFoundError) -> Response[str]:
    """Answer a path that is none of ours."""
    del error
    return refused(NotFound("There is no such route.", code="unknown_route"))


def broken(error: Exception) -> Response[str]:
    """Answer what should not happen; the log has it, the caller its request id."""
    return _refuse(internal_problem(_call().request_id), error)


app.exception_handler(HourbellError)(refused)
app.exception_handler(RequestValidationError)(malformed)
app.exception_handler(NotFoundError)(no_route)
app.exception_handler(Exception)(broken)


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Answer one request of API Gateway.

    The caller is identified before anything else is looked at; an unknown one learns
    nothing, not even whether the route exists.
    """
    request_id = _request_id(event, context)
    logger.set_correlation_id(request_id)
    try:
        ports = bootstrap.api_ports()
        identity = _identity(event)
        caller = identify(ports.directory, identity.get("userArn"), _source(identity))
        logger.append_keys(tenant=caller.tenant.tenant_id)
        request = _readable(event)
        app.context["call"] = Call(request_id, caller, ports.clock.now())
        answer = app.resolve(request, context)
    except HourbellError as error:
        answer = _raw(_refuse(problem_of(error, request_id), error))
    except Exception as error:  # noqa: BLE001 - the edge: an answer leaves it, always
        answer = _raw(_refuse(internal_problem(request_id), error))
    metrics.add_metric("Requests", MetricUnit.Count, 1)
    answer.setdefault("multiValueHeaders", {})["X-Request-Id"] = [request_id]
    logger.info(
        "answered",
        method=event.get("httpMethod"),
        resource=event.get("resource"),
        status=answer["statusCode"],
    )
    return answer


def _call() -> Call:
    return cast("Call", app.context["call"])


def _request_id(event: Mapping[str, Any], context: LambdaContext) -> str:
    gateway = event.get("requestContext") or {}
    return str(gateway.get("requestId") or context.aws_request_id)


def _identity(event: Mapping[str, Any]) -> Mapping[str, Any]:
    gateway = event.get("requestContext") or {}
    return gateway.get("identity") or {}


def _source(identity: Mapping[str, Any]) -> str:
    return f"api {identity.get('sourceIp') or 'unknown'}"


def _readable(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with its body as text.

    Raises:
        InvalidInput: the body is not JSON by its type or not UTF-8, or there is a
            query parameter, of which no route has any.
    """
    for name in event.get("queryStringParameters") or {}:
        message = "This route has no query parameters."
        raise InvalidInput.of("query", "unknown_parameter", message, found=name)
    body = event.get("body")
    if not body:
        return event
    headers = {
        name.lower(): text for name, text in (event.get("headers") or {}).items()
    }
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type != JSON:
        message = f"Allowed is {JSON}."
        raise InvalidInput.of(
            "content-type", "unsupported_media_type", message, found=media_type
        )
    if event.get("isBase64Encoded"):
        try:
            body = base64.b64decode(body, validate=True).decode()
        except (binascii.Error, ValueError) as error:
            message = "The body is not UTF-8 text."
            raise InvalidInput.of("body", "invalid_json", message) from error
    # Whatever its parameters say, JSON is UTF-8.
    headers["content-type"] = JSON
    return {
        **event,
        "headers": headers,
        "multiValueHeaders": None,
        "body": body,
        "isBase64Encoded": False,
    }


def _answer(status: int, text: str, headers: Mapping[str, str]) -> Response[str]:
    return Response(int(status), JSON, text, dict(headers))


def _refuse(problem: Problem, error: Exception) -> Response[str]:
    """Log an error as loudly as it deserves, and return its problem."""
    if problem.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        metrics.add_metric("ServerErrors", MetricUnit.Count, 1)
        logger.error("the request failed", exc_info=error)
    else:
        logger.info("the request is refused", code=problem.document["code"])
    return Response(problem.status, CONTENT_TYPE, problem.body, dict(problem.headers))


def _raw(response: Response[str]) -> dict[str, Any]:
    """Write a response that no route made, as API Gateway takes it."""
    headers = {**response.headers, "Content-Type": response.content_type}
    return {
        "statusCode": response.status_code,
        "multiValueHeaders": {name: [str(text)] for name, text in headers.items()},
        "body": response.body,
        "isBase64Encoded": False,
    }
