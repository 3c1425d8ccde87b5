"""The contract that schemas/openapi.json makes, held against real answers."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry
from referencing.jsonschema import DRAFT202012

PATH = Path(__file__).parents[2] / "schemas" / "openapi.json"
DOCUMENT: dict[str, Any] = json.loads(PATH.read_text("utf-8"))
URI = "urn:hourbell:openapi"
REGISTRY: Registry[Any] = Registry().with_resource(
    URI, DRAFT202012.create_resource(DOCUMENT)
)


def check_answer(
    event: Mapping[str, Any], status: int, headers: Mapping[str, str], text: str
) -> None:
    """Hold an answer against what the document says of the route.

    Raises:
        AssertionError: status, media type, a header or the body is not as it says.
    """
    operation = operation_of(event["httpMethod"], path_of(event))
    if operation is None or json.loads(text).get("code") == "unknown_route":
        # API Gateway lets through no request that is of no route.
        return
    assert str(status) in operation["responses"], f"{status} is not documented"
    response = resolved(operation["responses"][str(status)])
    kind = headers["Content-Type"]
    assert kind in response["content"], f"{kind} is not documented"
    assert headers.keys() - {"Content-Type"} <= response["headers"].keys()
    schema = json.dumps(rooted(response["content"][kind]["schema"]))
    errors = [
        error.message for error in validator(schema).iter_errors(json.loads(text))
    ]
    assert errors == []


def path_of(event: Mapping[str, Any]) -> str:
    """Return the template of a request's path, or the path where none is told."""
    return str(
        event["resource"] if event.get("pathParameters") else event["path"]
    ).rstrip("/")


def operation_of(method: str, path: str) -> dict[str, Any] | None:
    """Return what a request means; a fixed path comes before one with parameters."""
    for template in sorted(DOCUMENT["paths"], key=lambda each: each.count("{")):
        methods: dict[str, Any] = DOCUMENT["paths"][template]
        if method.lower() in methods and path_matches(path, template):
            found: dict[str, Any] = methods[method.lower()]
            return found
    return None


def path_matches(path: str, template: str) -> bool:
    """Tell whether a path is of a template."""
    pattern = re.sub(r"\{\w+\}", "[^/]+", template)
    return re.fullmatch(pattern, path) is not None


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """Return what a part refers to, or the part itself."""
    while "$ref" in part:
        target: Any = DOCUMENT
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = target
    return part


def rooted(part: Any) -> Any:
    """Return a part that may be read on its own, its references still resolving."""
    if isinstance(part, dict):
        return {
            name: URI + each if name == "$ref" else rooted(each)
            for name, each in part.items()
        }
    return [rooted(each) for each in part] if isinstance(part, list) else part


@cache
def validator(schema: str) -> Draft202012Validator:
    """Return the validator of a schema, which is given as its text."""
    checker = Draft202012Validator.FORMAT_CHECKER
    return Draft202012Validator(
        json.loads(schema), registry=REGISTRY, format_checker=checker
    )
