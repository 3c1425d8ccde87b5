"""What a function that answers HTTPS requests does around its routes.

Who calls, what is asked, and the answer or the problem. A function makes one `Front`
of its routers when it starts.
"""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Protocol, cast
from urllib.parse import quote, unquote

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.event_handler import APIGatewayRestResolver, Response
from aws_lambda_powertools.event_handler.api_gateway import Router
from aws_lambda_powertools.event_handler.exceptions import NotFoundError
from aws_lambda_powertools.event_handler.middlewares import NextMiddleware
from aws_lambda_powertools.event_handler.openapi.exceptions import (
    RequestValidationError,
)
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.typing import LambdaContext

from hourbell import bootstrap
from hourbell.api.edge import JSON, Call, admit
from hourbell.api.json_body import parse_body
from hourbell.api.parameters import MERGE_PATCH, body_fields, parameter_findings
from hourbell.api.problems import (
    CONTENT_TYPE,
    Problem,
    internal_problem,
    problem_of,
    request_findings,
)
from hourbell.domain.errors import HourbellError, InvalidInput, NotFound
from hourbell.usecases.identify import Caller, Identity, identify
from hourbell.usecases.ports import Clock, Directory

_ROUTABLE: Final = "/%-._~()'!*:@,;=+&$<> []{}|^"

logger = Logger()
metrics = Metrics()


class FrontPorts(Protocol):
    """What answering needs before a route is known."""

    @property
    def directory(self) -> Directory:
        """Where callers are registered."""
        ...

    @property
    def operators(self) -> frozenset[str]:
        """Normalized principals of the platform role."""
        ...

    @property
    def clock(self) -> Clock:
        """Whose reading a whole request goes by."""
        ...


class Front:
    """The edge of a function: requests of API Gateway in, answers out.

    Attributes:
        app: the routes.
    """

    def __init__(
        self, routers: Sequence[Router], ports: Callable[[], FrontPorts]
    ) -> None:
        """Take in the routes.

        Args:
            routers: all that the function answers.
            ports: made when the first request comes, not before.
        """
        self._ports = ports
        self.app = resolver(routers)
        self.app.exception_handler(HourbellError)(self._refused)
        self.app.exception_handler(RequestValidationError)(self._malformed)
        self.app.exception_handler(NotFoundError)(self._no_route)
        self.app.exception_handler(Exception)(self._broken)

    def answer(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Answer one request of API Gateway.

        The caller is identified before anything else is looked at; an unknown one
        learns nothing, not even whether the route exists.
        """
        bootstrap.request_allowance().begin()
        request_id = _request_id(event, context)
        logger.set_correlation_id(request_id)
        try:
            ports = self._ports()
            identity = _identify(event, ports)
            request = _readable(event)
            self.app.context["call"] = Call(request_id, identity, ports.clock.now())
            answer = self.app.resolve(request, context)
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

    def _refused(self, error: HourbellError) -> Response[str]:
        """Answer an error that is raised on purpose."""
        return _refuse(problem_of(error, self._call.request_id), error)

    def _malformed(self, error: RequestValidationError) -> Response[str]:
        """Answer a request that breaks the route's schema."""
        route = self.app.context["_route"]
        parameters = parameter_findings(route, self.app.current_event)
        named = {finding.field for finding in parameters}
        findings = request_findings(error.errors(), body_fields(route))
        others = tuple(finding for finding in findings if finding.field not in named)
        return self._refused(InvalidInput(findings=others + parameters))

    def _no_route(self, error: NotFoundError) -> Response[str]:
        """Answer a path that is none of ours."""
        del error
        return self._refused(NotFound("There is no such route.", code="unknown_route"))

    def _broken(self, error: Exception) -> Response[str]:
        """Answer what should not happen: the log has it, the caller its request id."""
        return _refuse(internal_problem(self._call.request_id), error)

    @property
    def _call(self) -> Call:
        return cast("Call", self.app.context["call"])


def resolver(routers: Sequence[Router]) -> APIGatewayRestResolver:
    """Return an app of routes whose parameters and bodies are judged."""
    app = APIGatewayRestResolver(
        enable_validation=True, json_body_deserializer=parse_body
    )
    app.use([_refuse_parameters])
    for each in routers:
        app.include_router(each)
    return app


def _refuse_parameters(
    app: APIGatewayRestResolver, next_middleware: NextMiddleware
) -> Response[str]:
    """Refuse query parameters that the route does not declare."""
    findings = parameter_findings(app.context["_route"], app.current_event)
    if findings:
        raise InvalidInput(findings=findings)
    return next_middleware(app)


def _request_id(event: Mapping[str, Any], context: LambdaContext) -> str:
    gateway = event.get("requestContext") or {}
    return str(gateway.get("requestId") or context.aws_request_id)


def _identify(event: Mapping[str, Any], ports: FrontPorts) -> Identity:
    """Return who is calling.

    Raises:
        Forbidden: nobody that is known, or nobody that may call this path.
    """
    gateway = event.get("requestContext") or {}
    found = gateway.get("identity") or {}
    identity = identify(
        ports.directory, found.get("userArn"), _source(found), ports.operators
    )
    if isinstance(identity, Caller):
        logger.append_keys(tenant=identity.tenant.tenant_id)
    else:
        logger.append_keys(operator=identity.arn)
    admit(identity, str(event.get("path")))
    return identity


def _source(identity: Mapping[str, Any]) -> str:
    return f"api {identity.get('sourceIp') or 'unknown'}"


def _readable(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event with its body as text.

    Raises:
        InvalidInput: the body is not JSON by its type or not UTF-8.
    """
    headers = _headers(event)
    event = {**event, "path": _path(event), "multiValueHeaders": None}
    body = event.get("body")
    if not body:
        # Without a body its type says nothing.
        return {**event, "headers": headers | {"content-type": JSON}}
    media_type = headers.get("content-type", JSON).partition(";")[0].strip().lower()
    allowed = (JSON, MERGE_PATCH) if event.get("httpMethod") == "PATCH" else (JSON,)
    if media_type not in allowed:
        message = f"Allowed is {' or '.join(allowed)}."
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
    return {**event, "headers": headers, "body": body, "isBase64Encoded": False}


def _headers(event: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers by lower-case name; those sent more than once are joined."""
    single = {name.lower(): text for name, text in (event.get("headers") or {}).items()}
    multiple = {
        name.lower(): ", ".join(texts)
        for name, texts in (event.get("multiValueHeaders") or {}).items()
    }
    return single | multiple


def _path(event: Mapping[str, Any]) -> str:
    """Return the path as routes match it: a slash inside a parameter stays encoded."""
    path = str(event.get("resource") or "")
    parameters = event.get("pathParameters") or {}
    for name, value in parameters.items():
        path = path.replace(f"{{{name}}}", quote(unquote(value), safe=""))
    if parameters and "{" not in path:
        return path
    # What routes do not take for a parameter's character, such as a control character,
    # is none that an id or a name has; it must not hide the route.
    return quote(str(event["path"]), safe=_ROUTABLE, errors="replace")


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
