"""Make the OpenAPI 3.1 document of the API from its routes."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import hourbell
from hourbell.api.parameters import MERGE_PATCH
from hourbell.api.problems import CONTENT_TYPE, TITLES
from pydantic.json_schema import models_json_schema

from devtools.openapi.operations import OPERATIONS, STATUSES, Operation
from devtools.openapi.problem import PROBLEM
from functions.api import handler as api
from functions.workers import handler as workers

if TYPE_CHECKING:
    from aws_lambda_powertools.event_handler import APIGatewayRestResolver
    from aws_lambda_powertools.event_handler.api_gateway import Route
    from pydantic import BaseModel

JSON: Final = "application/json"
REFERENCE: Final = "#/components/schemas/"
DESCRIPTION: Final = (
    "Schedules in any time zone, whose due times arrive as messages on queues. "
    "Every request is signed with SigV4; the tenant follows from who signed it."
)
# Powertools' own, which no answer has.
FOREIGN: Final = {"HTTPValidationError", "ValidationError", "ResponseValidationError"}
UPDATE: Final = "UpdateSchedule"

HEADERS: Final[dict[str, dict[str, Any]]] = {
    "X-Request-Id": {
        "description": "Finds the request in the logs. API Gateway's own refusals have "
        "`x-amzn-RequestId` only.",
        "schema": {"type": "string"},
    },
    "ETag": {
        "description": "For `If-Match`: the revision, of a schedule with its id.",
        "schema": {
            "type": "string",
            "pattern": r'^"[1-9][0-9]*(\.sch[0-9a-z]{26})?"$',
        },
    },
    "Location": {
        "description": "Of what was created, relative to the request's URL.",
        "schema": {"type": "string"},
    },
    "Idempotency-Replayed": {
        "description": "An earlier request with this key had done it.",
        "schema": {"type": "string", "const": "true"},
    },
    "Retry-After": {
        "description": "Seconds to wait before repeating the request.",
        "schema": {"type": "string", "pattern": "^[0-9]+$"},
    },
}
SERVER: Final = {
    "url": "https://{api_id}.execute-api.{region}.amazonaws.com/{stage}",
    "description": "The output `ApiUrl` of the API's stack.",
    "variables": {
        "api_id": {"default": "api-id", "description": "Of the REST API."},
        "region": {"default": "us-east-1", "description": "Where it is deployed."},
        "stage": {"default": "prod", "description": "Of the deployment."},
    },
}
SIGNED: Final = {
    "type": "apiKey",
    "name": "Authorization",
    "in": "header",
    "description": "AWS Signature Version 4, service `execute-api`; at a function's "
    "URL `lambda`.",
    "x-amazon-apigateway-authtype": "awsSigv4",
}


def document() -> dict[str, Any]:
    """Return the OpenAPI document, its members in a stable order.

    Raises:
        KeyError: a route is not described, or a described one does not exist.
    """
    # Made of the functions' own apps: a router belongs to one app at a time.
    apps = [each.front.app for each in (api, workers)]
    drawn_paths: dict[str, Any] = {}
    bodies: dict[str, Any] = {}
    for app in apps:
        drawn = _drawn(app)
        drawn_paths |= drawn["paths"]
        bodies |= drawn["components"]["schemas"]
    routes = {_key(route): route for app in apps for route in _routes(app)}
    if missing := routes.keys() ^ OPERATIONS.keys():
        raise KeyError(f"routes and operations differ: {sorted(missing)}")
    paths: dict[str, Any] = {}
    for method, path in sorted(OPERATIONS, key=lambda key: (key[1], key[0])):
        item = drawn_paths[path][method.lower()]
        route = routes[method, path]
        paths.setdefault(path, {})[method.lower()] = _operation(
            OPERATIONS[method, path], route, item
        )
    schemas = {
        **_requests(bodies),
        **_answers(),
        "Problem": PROBLEM,
    }
    whole = {
        "openapi": "3.1.0",
        "info": {
            "title": "Hourbell",
            "version": hourbell.__version__,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [SERVER],
        "security": [{"sigv4": []}],
        "paths": paths,
        "components": {
            "schemas": dict(sorted(schemas.items())),
            "responses": {
                f"Problem{status}": _refusal(status, codes)
                for status, codes in _shared().items()
            },
            "headers": HEADERS,
            "securitySchemes": {"sigv4": SIGNED},
        },
    }
    return {name: _whole_numbers(part) for name, part in whole.items()}


def _drawn(app: APIGatewayRestResolver) -> dict[str, Any]:
    """Return what Powertools draws of an app."""
    schema = app.get_openapi_schema(title="Hourbell", version=hourbell.__version__)
    text = schema.model_dump_json(by_alias=True, exclude_none=True)
    drawn: dict[str, Any] = json.loads(text)
    return drawn


def _routes(app: APIGatewayRestResolver) -> list[Route]:
    return [*app._static_routes, *app._dynamic_routes]  # noqa: SLF001 - has no other


def _key(route: Route) -> tuple[str, str]:
    return route.method, route.openapi_path


def _operation(
    operation: Operation, route: Route, drawn: dict[str, Any]
) -> dict[str, Any]:
    """Return an operation: what Powertools has drawn of its request, and answers."""
    summary = (route.func.__doc__ or "").splitlines()[0]
    parameters = [_parameter(each, route) for each in drawn.get("parameters", ())]
    made: dict[str, Any] = {
        "operationId": operation.name,
        "tags": [operation.name.partition(".")[0]],
        "summary": summary,
    }
    if parameters:
        made["parameters"] = sorted(
            parameters, key=lambda each: (each["in"], each["name"])
        )
    if "requestBody" in drawn:
        made["requestBody"] = _body(operation, route, drawn["requestBody"])
    made["responses"] = {
        str(status): response
        for status, response in sorted(
            {**_successes(operation), **_refusals(operation)}.items()
        )
    }
    return made


def _parameter(drawn: dict[str, Any], route: Route) -> dict[str, Any]:
    """Return a parameter: a header by its usual name, and none of them null."""
    names = {
        field.alias.lower(): field.field_info.alias or field.alias
        for field in route.dependant.header_params
    }
    schema = _without_null(drawn["schema"])
    described = drawn.get("description")
    schema.pop("description", None)
    schema.pop("title", None)
    name = drawn["name"]
    spelled = "-".join(word.capitalize() for word in name.split("-"))
    made = {
        "name": spelled if name in names else name,
        "in": drawn["in"],
        "required": drawn["required"],
    }
    if described:
        made["description"] = described
    return {**made, "schema": schema}


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    rest = {name: part for name, part in schema.items() if name != "anyOf"}
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        return {**rest, **kinds[0]}
    return {**rest, "anyOf": kinds} if kinds else rest


def _body(operation: Operation, route: Route, drawn: dict[str, Any]) -> dict[str, Any]:
    schema = drawn["content"][JSON]["schema"]
    if operation.name == "schedules.update":
        schema = {"$ref": REFERENCE + UPDATE}
    schema = _without_null({name: schema[name] for name in schema if name != "title"})
    types = (JSON, MERGE_PATCH) if route.method == "PATCH" else (JSON,)
    return {
        "required": drawn.get("required", False),
        "content": {each: {"schema": schema} for each in types},
    }


def _successes(operation: Operation) -> dict[int, Any]:
    headers = ("X-Request-Id", *operation.headers)
    return {
        status: {
            "description": HTTPStatus(status).phrase,
            "headers": _headers(headers),
            "content": {JSON: {"schema": _any_of(models)}},
        }
        for status, models in operation.answers.items()
    }


def _any_of(models: tuple[type[BaseModel], ...]) -> dict[str, Any]:
    schemas = [{"$ref": REFERENCE + model.__name__} for model in models]
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _codes(operation: Operation) -> dict[int, tuple[str, ...]]:
    """Return the codes of an operation by their status."""
    codes: dict[int, tuple[str, ...]] = {}
    for code in sorted(operation.codes):
        status = STATUSES.get(code, 400)
        codes[status] = (*codes.get(status, ()), code)
    return codes


def _shared() -> dict[int, tuple[str, ...]]:
    """Return the statuses whose codes are the same wherever they may come."""
    variants: dict[int, set[tuple[str, ...]]] = {}
    for operation in OPERATIONS.values():
        for status, codes in _codes(operation).items():
            variants.setdefault(status, set()).add(codes)
    return {
        status: min(kinds)
        for status, kinds in sorted(variants.items())
        if len(kinds) == 1
    }


def _refusals(operation: Operation) -> dict[int, Any]:
    shared = _shared()
    return {
        status: {"$ref": f"#/components/responses/Problem{status}"}
        if status in shared
        else _refusal(status, codes)
        for status, codes in _codes(operation).items()
    }


def _refusal(status: int, codes: tuple[str, ...]) -> dict[str, Any]:
    names = ("X-Request-Id", *(("Retry-After",) if status == 503 else ()))
    told = {"properties": {"status": {"const": status}, "code": {"enum": list(codes)}}}
    schema = {"allOf": [{"$ref": REFERENCE + "Problem"}, told]}
    return {
        "description": TITLES[status],
        "headers": _headers(names),
        "content": {CONTENT_TYPE: {"schema": schema}},
    }


def _headers(names: tuple[str, ...]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _requests(drawn: dict[str, Any]) -> dict[str, Any]:
    """Return the schemas of bodies, with that of the merge patch."""
    bodies = {name: each for name, each in drawn.items() if name not in FOREIGN}
    put = bodies["PutSchedule"]
    properties = {
        name: part if name in put["required"] else _or_null(part)
        for name, part in put["properties"].items()
    }
    properties["name"] = bodies["CreateSchedule"]["properties"]["name"]
    properties["dst"] = _or_null(_patch_of(bodies["Dst"]))
    tags = properties["tags"]["anyOf"][0]
    value = _or_null(tags["additionalProperties"])
    properties["tags"] = _or_null({**tags, "additionalProperties": value})
    bodies[UPDATE] = {
        **{name: put[name] for name in ("type", "additionalProperties")},
        "title": UPDATE,
        "description": "A JSON merge patch (RFC 7396) of a schedule: null takes a "
        "field back to its default; `name` may only be what it is.",
        "properties": properties,
    }
    return bodies


def _patch_of(model: dict[str, Any]) -> dict[str, Any]:
    properties = {name: _or_null(part) for name, part in model["properties"].items()}
    return {**model, "properties": properties}


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {name: part for name, part in schema.items() if name != "default"}
    is_open = "anyOf" in kept or "type" not in kept
    return kept if is_open else {"anyOf": [kept, {"type": "null"}]}


def _answers() -> dict[str, Any]:
    models = {
        model
        for operation in OPERATIONS.values()
        for group in operation.answers.values()
        for model in group
    }
    ordered = sorted(models, key=lambda model: model.__name__)
    _, drawn = models_json_schema(
        [(model, "serialization") for model in ordered],
        ref_template=REFERENCE + "{model}",
    )
    definitions: dict[str, Any] = drawn["$defs"]
    return definitions


def _whole_numbers(part: Any) -> Any:  # noqa: ANN401 - any JSON
    """Write bounds of integers as such; Powertools makes fractions of them."""
    if isinstance(part, dict):
        return {name: _whole_numbers(each) for name, each in part.items()}
    if isinstance(part, list):
        return [_whole_numbers(each) for each in part]
    return int(part) if isinstance(part, float) and part.is_integer() else part
