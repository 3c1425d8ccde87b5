"""The schema of problems (RFC 9457)."""

from __future__ import annotations

from typing import Any, Final

_TEXT: Final = {"type": "string"}

FINDING: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["field", "code", "message"],
    "properties": {
        "field": {"type": "string", "description": "Where, as a dotted path."},
        "code": {"type": "string", "description": "What is wrong, for programs."},
        "message": {"type": "string", "description": "The same for people."},
        "found": {"type": "string", "description": "Cut to 80 characters."},
        "suggestion": {"type": "string", "description": "What was probably meant."},
    },
}

PROBLEM: Final[dict[str, Any]] = {
    "type": "object",
    "title": "Problem",
    "description": "A refusal, whether the function's or API Gateway's own.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {
            "type": "string",
            "pattern": "^urn:hourbell:problem:[a-z_]+$",
        },
        "title": _TEXT,
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "For people; it may change."},
        "code": {"type": "string", "description": "Stable, for programs."},
        "request_id": _TEXT,
        "errors": {
            "type": "array",
            "description": "The fields that are wrong.",
            "items": FINDING,
        },
        "errors_total": {
            "type": "integer",
            "minimum": 1,
            "description": "How many findings there are; `errors` may be cut.",
        },
        "revision": {"type": "integer", "description": "With precondition_failed."},
        "schedule_id": {"type": "string", "description": "With name_taken."},
        "quota": {"type": "string", "description": "With quota_exceeded."},
        "used": {"type": "integer", "description": "With quota_exceeded."},
        "allowed": {"type": "integer", "description": "With quota_exceeded."},
    },
}
