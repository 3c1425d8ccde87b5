"""Every error that Hourbell raises on purpose, with its stable code.

An expected outcome (a lost claim, a row that exists already) is a return value,
never one of these. Adapters translate SDK errors into `Transient` or `Permanent`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with the input, as the caller gets to read it.

    Attributes:
        field: where it is, as a dotted path of the input (`timing.expression`,
            `expression.minute`).
        code: stable machine-readable code, `lower_snake_case`.
        message: one sentence: what was found and what is allowed.
        found: the offending text, cut to 80 characters; empty when it is missing.
        suggestion: what the caller probably meant, ready to paste, if it is obvious.
    """

    field: str
    code: str
    message: str
    found: str = ""
    suggestion: str | None = None

    def as_dict(self) -> dict[str, str]:
        """Return the finding as JSON-ready members, what is optional only if told."""
        told = {"field": self.field, "code": self.code, "message": self.message}
        optional = {"found": self.found, "suggestion": self.suggestion}
        return told | {name: text for name, text in optional.items() if text}


class HourbellError(Exception):
    """Something went wrong in Hourbell.

    `members` are what a program may want to know besides the code, JSON-ready, by
    name: the current revision, the quota and what is used of it.
    """

    status: ClassVar[int] = 500
    default_code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        members: Mapping[str, object] | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").splitlines()[0]
        self.code = code or self.default_code
        self.members = dict(members or {})
        super().__init__(self.message)


class InvalidInput(HourbellError):
    """The input breaks a rule; `findings` say which fields and what is allowed."""

    status = 400
    default_code = "invalid_input"

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        findings: tuple[Finding, ...] = (),
    ) -> None:
        first = findings[0] if findings else None
        super().__init__(
            message or (first.message if first else None),
            code=code or (first.code if first else None),
        )
        self.findings = findings

    @classmethod
    def of(
        cls,
        field: str,
        code: str,
        message: str,
        *,
        found: object = "",
        suggestion: str | None = None,
    ) -> "InvalidInput":
        """Make the error for a single finding."""
        text = str(found)
        shown = text if len(text) <= 80 else text[:77] + "..."
        return cls(findings=(Finding(field, code, message, shown, suggestion),))


class Forbidden(HourbellError):
    """The caller is not allowed to do this."""

    status = 403
    default_code = "forbidden"


class NotFound(HourbellError):
    """Nothing with this id belongs to the caller."""

    status = 404
    default_code = "not_found"


class Conflict(HourbellError):
    """The request contradicts what is stored."""

    status = 409
    default_code = "conflict"


class PreconditionFailed(HourbellError):
    """The revision in If-Match is not the current one."""

    status = 412
    default_code = "precondition_failed"


class QuotaExceeded(HourbellError):
    """A quota of the tenant is used up."""

    status = 429
    default_code = "quota_exceeded"


class Transient(HourbellError):
    """A dependency did not answer in time or asked to come back; try again."""

    status = 503
    default_code = "unavailable"


class Permanent(HourbellError):
    """A dependency refused for good; trying again cannot help."""

    status = 500
    default_code = "refused"


class Unreadable(Permanent):
    """An item is damaged, or another release wrote what this one has no name for.

    It is at fault itself, not the store: what does not need it can go on.
    """

    default_code = "unreadable_item"
