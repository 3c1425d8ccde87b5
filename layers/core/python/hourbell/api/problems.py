"""Errors as RFC 9457 problems: the one mapping from what went wrong to HTTP."""

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hourbell.api.json_text import write_json
from hourbell.domain.errors import Finding, HourbellError, InvalidInput

CONTENT_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:hourbell:problem:"

RETRY_AFTER_SECONDS = 1

# Most findings in one answer, which a body of nothing but faults would make huge.
MAX_ERRORS = 100

TITLES = {
    400: "The request is not valid",
    403: "Not allowed",
    404: "Not found",
    409: "Conflict",
    412: "The resource has changed",
    413: "The request is too large",
    415: "Unsupported media type",
    428: "A precondition is required",
    429: "Quota used up",
    500: "Internal error",
    503: "Temporarily unavailable",
}

# Codes whose status is not that of their error's class.
_STATUS_OF_CODE = {
    "body_too_large": 413,
    "precondition_required": 428,
    "unsupported_media_type": 415,
}

# What happened inside is for the log; the caller gets these sentences.
_OPAQUE = {
    500: "Something went wrong on our side; the request id finds it in our logs.",
    503: "A dependency did not answer in time; repeat the request.",
}

# What a client is told of one pydantic error: our code, and the sentence, in which
# `{...}` names members of the error's context.
_SENTENCES = {
    "missing": ("missing", "This field is required."),
    "string_type": ("wrong_type", "Found {type}; allowed is a string."),
    "int_type": ("wrong_type", "Found {type}; allowed is a whole number."),
    "int_parsing": ("wrong_type", "Found {type}; allowed is a whole number."),
    "int_parsing_size": ("out_of_range", "The number has too many digits."),
    "int_from_float": ("wrong_type", "Found a fraction; allowed is a whole number."),
    "bool_type": ("wrong_type", "Found {type}; allowed is true or false."),
    "list_type": ("wrong_type", "Found {type}; allowed is an array."),
    "dict_type": ("wrong_type", "Found {type}; allowed is an object."),
    "model_type": ("wrong_type", "Found {type}; allowed is an object."),
    "model_attributes_type": ("wrong_type", "Found {type}; allowed is an object."),
    "string_too_short": ("too_short", "Allowed are at least {min_length} characters."),
    "string_too_long": ("too_long", "Allowed are at most {max_length} characters."),
    "too_long": ("too_long", "Found {actual_length}; allowed are {max_length}."),
    "too_short": ("too_short", "Found {actual_length}; needed are {min_length}."),
    "greater_than_equal": ("out_of_range", "Allowed is {ge} or more."),
    "less_than_equal": ("out_of_range", "Allowed is {le} or less."),
    "literal_error": ("unsupported_value", "Allowed is {expected}."),
    "string_pattern_mismatch": (
        "invalid_characters",
        "Allowed are printable ASCII characters without blanks.",
    ),
}

_JSON_TYPES = {
    str: "a string",
    # Before int, of which it is one.
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "an array",
    dict: "an object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem and the headers that go with it.

    Attributes:
        document: the members of RFC 9457, and `code`, `request_id`, `errors`.
    """

    status: int
    document: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> str:
        """The document as JSON text; ASCII, whatever the caller sent."""
        return json.dumps(self.document, separators=(",", ":"))


def problem_of(error: HourbellError, request_id: str) -> Problem:
    """Describe an error to the caller.

    A single finding's code is the problem's own; several are an `invalid_input`.
    What only concerns us (500, 503) is told by its code alone.
    """
    findings = error.findings if isinstance(error, InvalidInput) else ()
    code = InvalidInput.default_code if len(findings) > 1 else error.code
    status = _STATUS_OF_CODE.get(code, error.status)
    if status == 500:
        code = HourbellError.default_code
    document: dict[str, Any] = {
        "type": TYPE_PREFIX + code,
        "title": TITLES[status],
        "status": status,
        "detail": _OPAQUE.get(status) or _detail(error, findings),
        "code": code,
        "request_id": request_id,
    }
    if status < 500:
        document |= error.members
    if findings:
        document["errors"] = [each.as_dict() for each in findings[:MAX_ERRORS]]
        document["errors_total"] = len(findings)
    headers = {"Retry-After": str(RETRY_AFTER_SECONDS)} if status == 503 else {}
    return Problem(status, document, headers)


def _detail(error: HourbellError, findings: Sequence[Finding]) -> str:
    if len(findings) > MAX_ERRORS:
        return (
            f"{len(findings):,} fields are not valid; `errors` lists the first "
            f"{MAX_ERRORS}."
        )
    if len(findings) > 1:
        return f"{len(findings)} fields are not valid; `errors` lists them."
    return error.message


def internal_problem(request_id: str) -> Problem:
    """Describe what should not happen, which is nobody's business but ours."""
    return problem_of(HourbellError(), request_id)


def request_findings(
    errors: Sequence[Mapping[str, Any]], fields: Mapping[str, Sequence[str]]
) -> tuple[Finding, ...]:
    """Translate pydantic's errors.

    Args:
        errors: as `ValidationError.errors()` lists them, each `loc` beginning with
            the part of the request (`body`, `header`).
        fields: per place (`""` for the body itself, `dst`), the fields allowed there;
            unknown ones are compared with them.
    """
    # What is not told needs no suggestion, which takes its time to find.
    unhelped = dict.fromkeys(fields, ())
    return tuple(
        finding
        for place, error in enumerate(errors)
        for finding in _findings(error, fields if place < MAX_ERRORS else unhelped)
    )


def _findings(
    error: Mapping[str, Any], fields: Mapping[str, Sequence[str]]
) -> tuple[Finding, ...]:
    context: Mapping[str, Any] = error.get("ctx") or {}
    path = [str(part) for part in error["loc"][1:]]
    place = ".".join(path) or "body"
    found = shown(error.get("input"))
    if "findings" in context:
        # One of our own validators, which says it better.
        return tuple(
            replace(each, field=_placed(path, each.field), found=each.found or found)
            for each in context["findings"]
        )
    kind = error["type"]
    if kind == "extra_forbidden":
        return (_unknown_field(path, fields),)
    if kind == "missing":
        found = ""
    if context.get("actual_length", 0) is None:
        # Of an object that is too long, how long it is is not told.
        context = {**context, "actual_length": "more"}
    code, sentence = _SENTENCES.get(kind, ("invalid_value", "Not a valid value."))
    message = sentence.format(**{**context, "type": _json_type(error.get("input"))})
    return (Finding(place, code, message, found),)


def _placed(path: Sequence[str], field: str) -> str:
    """Return where a finding is whose validator sees one member of a list only."""
    if not field:
        return ".".join(path) or "body"
    numbers = [place for place, part in enumerate(path) if part.isdecimal()]
    return ".".join([*(path[: numbers[-1] + 1] if numbers else ()), field])


def _unknown_field(path: list[str], fields: Mapping[str, Sequence[str]]) -> Finding:
    place = ".".join(part for part in path[:-1] if not part.isdecimal())
    allowed = fields.get(place, ())
    close = difflib.get_close_matches(path[-1][:80], allowed, n=1)
    return Finding(
        shown(".".join(path)),
        "unknown_field",
        f"There is no such field; allowed are {', '.join(allowed)}.",
        shown(path[-1]),
        close[0] if close else None,
    )


def shown(found: object) -> str:
    """Return what was found, as text cut to 80 characters."""
    text = found if isinstance(found, str) else write_json(found)
    return text if len(text) <= 80 else text[:77] + "..."


def _json_type(found: object) -> str:
    for kind, name in _JSON_TYPES.items():
        if isinstance(found, kind):
            return name
    return "something else"
