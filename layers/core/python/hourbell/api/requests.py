"""What callers send: the bodies of requests, checked field by field.

The models are the API's schema too. Every field is judged on its own, so that one
answer lists all that is wrong; what only shows in combination, the use cases judge.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Self
from urllib.parse import unquote

from pydantic import (
    AfterValidator,
    Field,
    TypeAdapter,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from hourbell.api.documents import WholeBody, carried, judged
from hourbell.api.json_text import read_json, write_json
from hourbell.api.misfire_models import MisfireFields, misfire_members
from hourbell.api.problems import request_findings, shown
from hourbell.api.retry_models import RetryFields, retry_members
from hourbell.domain.cron import MAX_LENGTH, parse
from hourbell.domain.definition import Tracking
from hourbell.domain.errors import Finding, InvalidInput
from hourbell.domain.instants import parse_instant
from hourbell.domain.misfire import USUAL_MISFIRE
from hourbell.domain.names import DOTS
from hourbell.domain.overlap import Overlap
from hourbell.domain.packing import encoded_size
from hourbell.domain.retry import USUAL_RETRY
from hourbell.domain.schedule import Timing
from hourbell.domain.timing_json import MAX_OCCURRENCES
from hourbell.domain.zones import zone as find_zone
from hourbell.usecases.create_schedule import NewSchedule

MAX_NAME: Final = 128
MAX_DESCRIPTION: Final = 512
MAX_REASON: Final = 512
MAX_TAGS: Final = 50
MAX_TAG_KEY: Final = 128
MAX_TAG_VALUE: Final = 256
MAX_PAYLOAD_BYTES: Final = 64 * 1024
MAX_FLEXIBLE_SECONDS: Final = 86_400
MAX_PREVIEW: Final = 1000

NAME: Final = "^[A-Za-z0-9._/-]+$"

_NAME = re.compile(NAME)
_TAG = re.compile(r"[\w .:/=+@-]*")


def _finding(code: str, message: str, suggestion: str | None = None) -> Any:  # noqa: ANN401
    return carried(Finding("", code, message, suggestion=suggestion))


def _name(value: str) -> str:
    if value in DOTS:
        message = "A dot or two cannot be a name: they mean something else in a path."
        raise _finding("reserved", message)
    if _NAME.fullmatch(value):
        return value
    better = re.sub(r"[^A-Za-z0-9._/-]+", "-", value).strip("-")
    message = "Allowed are letters, digits and . _ - / (ASCII)."
    raise _finding("invalid_characters", message, better or None)


def judge_tags(tags: dict[str, str], field: str = "tags") -> dict[str, str]:
    """Refuse what cannot be tags, by the name of the field that holds them."""
    findings = [
        finding for item in tags.items() for finding in _tag_findings(field, *item)
    ]
    if len(tags) > MAX_TAGS:
        message = f"Allowed are at most {MAX_TAGS} tags; found {len(tags)}."
        findings.append(Finding("", "too_long", message))
    if findings:
        raise carried(*findings)
    return tags


def _tag_findings(field: str, key: str, value: str) -> list[Finding]:
    rules = [
        (bool(key), "too_short", f"A key has 1 to {MAX_TAG_KEY}"),
        (len(key) <= MAX_TAG_KEY, "too_long", f"A key has 1 to {MAX_TAG_KEY}"),
        (len(value) <= MAX_TAG_VALUE, "too_long", f"A value has up to {MAX_TAG_VALUE}"),
    ]
    place = f"{field}.{key[:80]}"
    findings = [
        Finding(place, code, f"{message} characters.", key[:80])
        for is_kept, code, message in rules
        if not is_kept
    ]
    if not (_TAG.fullmatch(key) and _TAG.fullmatch(value)):
        message = "Allowed are letters, digits, blanks and . : / = + - @ _"
        findings.append(Finding(place, "invalid_characters", message, key[:80]))
    if key.lower().startswith("aws:"):
        message = "Keys that begin with aws: are reserved."
        findings.append(Finding(place, "reserved", message, key[:80]))
    return findings


def _payload(value: Any) -> Any:  # noqa: ANN401 - any JSON
    size = encoded_size(write_json(value))
    if size > MAX_PAYLOAD_BYTES:
        message = f"Allowed are {MAX_PAYLOAD_BYTES} bytes as JSON; found {size}."
        raise _finding("payload_too_large", message)
    return value


def _instant(value: str) -> object:
    return parse_instant(value, field="")


def _exclude(value: list[Any] | None) -> object:
    return Timing.from_dict({"expression": "-", "exclude": value})


_TIMESTAMP = {
    "type": "string",
    "format": "date-time",
    "examples": ["2027-01-31T09:00:00Z"],
}
EXCLUDED = {
    "type": "array",
    "maxItems": 366,
    "items": {
        "oneOf": [
            {"type": "string", "format": "date"},
            {
                "type": "object",
                "required": ["from", "to"],
                "additionalProperties": False,
                "properties": {
                    "from": {"type": "string", "format": "date"},
                    "to": {"type": "string", "format": "date"},
                },
            },
        ]
    },
}

TAGS = {
    "type": "object",
    "maxProperties": MAX_TAGS,
    "propertyNames": {"minLength": 1, "maxLength": MAX_TAG_KEY},
    "additionalProperties": {"type": "string", "maxLength": MAX_TAG_VALUE},
}

Timestamp = Annotated[str, judged(_instant), WithJsonSchema(_TIMESTAMP)]
Name = Annotated[
    str,
    Field(min_length=1, max_length=MAX_NAME, json_schema_extra={"pattern": NAME}),
    AfterValidator(_name),
]
_NAME_ALONE: Final = TypeAdapter[str](Name)
Tags = Annotated[dict[str, str], AfterValidator(judge_tags), WithJsonSchema(TAGS)]


class Dst(WholeBody):
    """What happens when the clocks change."""

    gap: Annotated[
        Literal["SKIP", "NEXT_VALID"],
        Field(description="For local times that do not exist."),
    ] = "SKIP"
    fold: Annotated[
        Literal["FIRST", "SECOND", "BOTH"],
        Field(description="For local times that repeat."),
    ] = "FIRST"


class TimingFields(WholeBody):
    """When a schedule runs."""

    expression: Annotated[
        str,
        Field(
            max_length=MAX_LENGTH,
            description="Unix cron, or AWS's cron(), at() or rate().",
            examples=["0 9 * * MON-FRI", "at(2027-01-31T09:00:00)"],
        ),
        judged(parse),
    ]
    zone: Annotated[
        str, Field(description="IANA name of the time zone."), judged(find_zone)
    ] = "UTC"
    dst: Dst | None = None
    start_at: Annotated[
        Timestamp | None, Field(description="No time before it; itself counts.")
    ] = None
    end_at: Annotated[Timestamp | None, Field(description="No time from it on.")] = None
    max_occurrences: Annotated[int, Field(ge=1, le=MAX_OCCURRENCES)] | None = None
    exclude: Annotated[
        Annotated[list[Any], WithJsonSchema(EXCLUDED)] | None,
        Field(description="Local dates, and ranges of them, on which nothing runs."),
        judged(_exclude),
    ] = None

    def timing(self) -> Timing:
        """Return the timing, valid field by field."""
        names = set(TimingFields.model_fields)
        members = self.model_dump(include=names, exclude_none=True)
        return Timing.from_dict(members)


class ScheduleFields(TimingFields):
    """What a schedule is, but for its name."""

    handler: Name
    description: Annotated[str, Field(max_length=MAX_DESCRIPTION)] = ""
    tags: Tags = Field(default_factory=dict)
    payload: Annotated[
        Any,
        Field(
            description=f"Any JSON, up to {MAX_PAYLOAD_BYTES} bytes. Messages have in "
            "its string values what <scheduled_for>, <occurrence_id>, <schedule_name> "
            "and <attempt> stand for."
        ),
        AfterValidator(_payload),
    ] = None
    tracking: Annotated[
        Literal["TRACKED", "UNTRACKED"],
        Field(description="Whether workers claim its occurrences and report back."),
    ] = "UNTRACKED"
    overlap: Annotated[
        Literal["ALLOW", "SKIP_IF_RUNNING", "QUEUE_ONE"],
        Field(description="Of one claimed while another one runs; needs TRACKED."),
    ] = "ALLOW"
    retry: Annotated[
        RetryFields | None, Field(description="Of failed attempts; needs TRACKED.")
    ] = None
    flexible_window_seconds: Annotated[int, Field(ge=0, le=MAX_FLEXIBLE_SECONDS)] = 0
    misfire: MisfireFields | None = None

    @model_validator(mode="after")
    def _check_tracking(self) -> Self:
        """Refuse what only TRACKED occurrences can have."""
        if self.tracking == Tracking.TRACKED:
            return self
        findings = []
        if self.overlap != Overlap.ALLOW:
            message = f"{self.overlap} needs tracking TRACKED; UNTRACKED has ALLOW."
            code = "overlap_needs_tracking"
            findings.append(Finding("overlap", code, message, self.overlap))
        if self.retry is not None:
            message = "Retries need tracking TRACKED; leave them out, or null."
            found = write_json(self.retry.model_dump())
            findings.append(
                Finding("retry", "retry_needs_tracking", message, shown(found))
            )
        if findings:
            raise carried(*findings)
        return self

    def named(self, name: str, idempotency_key: str | None = None) -> NewSchedule:
        """Return what the use cases take."""
        request = NewSchedule(
            name=name,
            timing=self.timing(),
            handler=self.handler,
            body_hash="",
            payload_json=write_json(self.payload),
            tracking=Tracking(self.tracking),
            flexible_window_seconds=self.flexible_window_seconds,
            misfire=self.misfire.to_domain() if self.misfire else USUAL_MISFIRE,
            description=self.description,
            tags=dict(self.tags),
            overlap=Overlap(self.overlap),
            retry=self.retry.to_domain() if self.retry else USUAL_RETRY,
            idempotency_key=idempotency_key,
        )
        return replace(request, body_hash=body_hash(request))


class CreateSchedule(ScheduleFields):
    """The body of POST /v1/schedules."""

    name: Name

    def to_domain(self, idempotency_key: str | None = None) -> NewSchedule:
        """Return what the use cases take."""
        return self.named(self.name, idempotency_key)


class PutSchedule(ScheduleFields):
    """The body of PUT /v1/schedules/by-name/{name}."""


class GiveReason(WholeBody):
    """The body of a pause or a resume."""

    reason: Annotated[str | None, Field(max_length=MAX_REASON)] = None


class PreviewTimes(TimingFields):
    """The body of POST /v1/schedules/preview."""

    from_: Annotated[
        Timestamp | None,
        Field(alias="from", description="Times lie strictly after it; now if null."),
    ] = None
    count: Annotated[int, Field(ge=1, le=MAX_PREVIEW)] = 10

    def after(self, now: datetime) -> datetime:
        """Return the instant that the times come after."""
        return now if self.from_ is None else parse_instant(self.from_, field="from")


def name_of_path(text: str) -> str:
    """Return the schedule's name that a path holds, percent-encoded.

    Raises:
        InvalidInput: it cannot be one.
    """
    try:
        return _NAME_ALONE.validate_python(unquote(text))
    except ValidationError as error:
        errors = [{**each, "loc": ("path", "name")} for each in error.errors()]
        raise InvalidInput(findings=request_findings(errors, {})) from error


def body_hash(request: NewSchedule) -> str:
    """Return SHA-256 of what a request asks for, however it is written.

    A default that is spelled out, and one that is added to the API later, change
    nothing; nor does the order of members, in the payload too.
    """
    members: Mapping[str, object] = {
        **request.timing.to_dict(),
        "name": request.name,
        "handler": request.handler,
        "payload": read_json(request.payload_json),
        "tracking": request.tracking,
        "flexible_window_seconds": request.flexible_window_seconds,
        "misfire": misfire_members(request.misfire),
        "overlap": request.overlap,
        "retry": retry_members(request.retry),
        "description": request.description,
        "tags": request.tags,
    }
    said = {
        name: value
        for name, value in members.items()
        if name not in _DEFAULTS or value != _DEFAULTS[name]
    }
    return hashlib.sha256(write_json(said, sort_keys=True).encode()).hexdigest()


_DEFAULTS: Final[Mapping[str, object]] = {
    "zone": "UTC",
    "dst": {"gap": "SKIP", "fold": "FIRST"},
    "payload": None,
    "tracking": Tracking.UNTRACKED,
    "flexible_window_seconds": 0,
    "misfire": misfire_members(USUAL_MISFIRE),
    "overlap": Overlap.ALLOW,
    "retry": retry_members(USUAL_RETRY),
    "description": "",
    "tags": {},
}
