"""What a route lets callers say: its query parameters and the fields of its body."""

import difflib
from typing import Any, Final, Literal, get_args, get_origin

from aws_lambda_powertools.event_handler.api_gateway import Route
from aws_lambda_powertools.utilities.data_classes.common import BaseProxyEvent
from pydantic import BaseModel

from hourbell.api.problems import shown
from hourbell.domain.errors import Finding

MERGE_PATCH: Final = "application/merge-patch+json"


def parameter_findings(route: Route, event: BaseProxyEvent) -> tuple[Finding, ...]:
    """Return the query parameters that a route does not have, or has only once."""
    fields = {field.alias: field for field in route.dependant.query_params}
    given: dict[str, list[str]] = {
        **(event.get("multiValueQueryStringParameters") or {})
    }
    for name in event.get("queryStringParameters") or {}:
        given.setdefault(name, [""])
    findings = []
    for name, values in given.items():
        if name not in fields:
            findings.append(_unknown(name, sorted(fields)))
        elif len(values) > 1 and not _is_list(fields[name].type_):
            message = "This parameter may be given only once."
            findings.append(Finding(name, "repeated_parameter", message, values[1]))
    return tuple(findings)


def body_fields(route: Route) -> dict[str, tuple[str, ...]]:
    """Return the fields that the body of a route may have, per place of the body."""
    for field in route.dependant.body_params:
        for model in _models(field.type_):
            return allowed_fields(model)
    return {}


def allowed_fields(model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Return the names of a model's fields under `""`, of nested ones under theirs.

    The members of a list have the list's name, without a number.
    """
    names: dict[str, str] = {
        info.alias or name: name for name, info in model.model_fields.items()
    }
    allowed = {"": tuple(sorted(names))}
    for alias, name in names.items():
        for inner in _models(model.model_fields[name].annotation):
            for place, fields in allowed_fields(inner).items():
                allowed[f"{alias}.{place}".rstrip(".")] = fields
    return allowed


def _is_list(annotation: Any) -> bool:  # noqa: ANN401 - any type
    return any(get_origin(each) is list for each in (annotation, *get_args(annotation)))


def _models(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - any type
    """Return the models that an annotation like `list[Dst] | None` names."""
    kinds = [annotation]
    for kind in kinds:
        # What is appended is looked at as well.
        kinds.extend(get_args(kind) if get_origin(kind) is not Literal else ())
    return [
        each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)
    ]


def _unknown(name: str, allowed: list[str]) -> Finding:
    close = difflib.get_close_matches(name[:80], allowed, n=1)
    if allowed:
        message = f"There is no such parameter; allowed are {', '.join(allowed)}."
    else:
        message = "This route has no query parameters."
    suggestion = close[0] if close else None
    return Finding("query", "unknown_parameter", message, shown(name), suggestion)
