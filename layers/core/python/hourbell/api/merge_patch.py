"""Apply a JSON merge patch (RFC 7396) to a schedule."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from hourbell.api.json_text import read_json
from hourbell.api.misfire_models import misfire_members
from hourbell.api.parameters import allowed_fields
from hourbell.api.problems import request_findings
from hourbell.api.requests import ScheduleFields
from hourbell.api.retry_models import RetryFields, retry_members
from hourbell.domain.definition import Schedule
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.retry import USUAL_RETRY


def merge_patch(target: object, patch: object) -> Any:  # noqa: ANN401 - any JSON
    """Return the target with the patch applied: null removes, objects merge."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def patched(schedule: Schedule, patch: Mapping[str, Any]) -> ScheduleFields:
    """Return the fields of a schedule with a patch applied.

    Raises:
        InvalidInput: with every field that is wrong in the result, or that cannot be
            changed (`immutable_field`).
    """
    patch, document = dict(patch), _document(schedule)
    findings: tuple[Finding, ...] = ()
    if "name" in patch and patch.pop("name") != schedule.name:
        message = "A schedule keeps its name; cancel it and create another."
        findings = (Finding("name", "immutable_field", message),)
    try:
        merged = merge_patch(document, patch)
        fields = ScheduleFields.model_validate(_with_nulls(merged, patch))
    except ValidationError as error:
        errors = [each | {"loc": ("body", *each["loc"])} for each in _errors(error)]
        findings += request_findings(errors, allowed_fields(ScheduleFields))
        raise InvalidInput(findings=findings) from error
    if findings:
        raise InvalidInput(findings=findings)
    return fields


def _with_nulls(merged: dict[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was merged, with the nulls that say something.

    A deadline of null is none; what is taken out would be the usual one. And a field
    that there is not cannot be taken out: most likely another one is meant.
    """
    allowed = allowed_fields(ScheduleFields)
    whole = {**merged, **_kept_nulls(patch, allowed[""])}
    for name in patch.keys() & allowed.keys():
        if isinstance(patch[name], Mapping):
            known = set(allowed[name]) - RetryFields.null_says
            whole[name] = {**whole[name], **_kept_nulls(patch[name], known)}
    return whole


def _kept_nulls(patch: Mapping[str, Any], known: Collection[str]) -> dict[str, None]:
    return {
        name: None
        for name, value in patch.items()
        if value is None and name not in known
    }


def _errors(error: ValidationError) -> list[dict[str, Any]]:
    return [dict(each) for each in error.errors(include_url=False)]


def _document(schedule: Schedule) -> dict[str, Any]:
    """Return a schedule as the body that would create it, without its name."""
    definition = schedule.definition
    timing = definition.timing.to_dict()
    timing.pop("anchor", None)
    usual = definition.retry == USUAL_RETRY
    return {
        **timing,
        "handler": definition.handler,
        "payload": read_json(definition.payload_json),
        "tracking": definition.tracking.value,
        "flexible_window_seconds": definition.flexible_window_seconds,
        "misfire": misfire_members(definition.misfire),
        "overlap": definition.overlap.value,
        # Left out, it is in the way of nothing.
        **({} if usual else {"retry": retry_members(definition.retry)}),
        "description": schedule.description,
        "tags": dict(schedule.tags),
    }
