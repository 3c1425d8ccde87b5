"""How tenants and handlers may be called, and what a schedule's id looks like."""

import re
from typing import Final

from hourbell.domain.errors import InvalidInput

MAX_HANDLER_NAME: Final = 64

# As the schemas of requests say it too.
TENANT_ID: Final = "^[a-z][a-z0-9-]{1,62}$"
SCHEDULE_ID: Final = "^sch[0-9a-hjkmnp-tv-z]{26}$"
HANDLER_NAME: Final = f"^[A-Za-z0-9._-]{{1,{MAX_HANDLER_NAME}}}$"

# Clients take them out of a path, so nothing called so could be reached.
DOTS: Final = frozenset({".", ".."})

_TENANT_ID = re.compile(TENANT_ID)
_HANDLER_NAME = re.compile(HANDLER_NAME)
_SCHEDULE_ID = re.compile(SCHEDULE_ID)


def is_tenant_id(text: str) -> bool:
    """Whether it is a small letter and 1 to 62 small letters, digits, hyphens."""
    return _TENANT_ID.fullmatch(text) is not None


def is_handler_name(text: str) -> bool:
    """Whether it is 1 to 64 of letters, digits, and `. _ -`."""
    return _HANDLER_NAME.fullmatch(text) is not None


def is_schedule_id(text: str) -> bool:
    """Whether it is `sch` and 26 characters of base 32, as ids of schedules are."""
    return _SCHEDULE_ID.fullmatch(text) is not None


def check_tenant_id(text: str, *, field: str = "tenant_id") -> None:
    """Judge a tenant's id.

    Raises:
        InvalidInput: `invalid_characters`.
    """
    if not is_tenant_id(text):
        message = "Allowed are 2 to 63 of a-z, 0-9 and -, the first a letter."
        raise InvalidInput.of(field, "invalid_characters", message, found=text)


def check_handler_name(text: str, *, field: str = "name") -> None:
    """Judge a handler's name.

    Raises:
        InvalidInput: `invalid_characters`, or `reserved`: it is a dot or two.
    """
    if text in DOTS:
        message = "A dot or two cannot be a name: they mean something else in a path."
        raise InvalidInput.of(field, "reserved", message, found=text)
    if not is_handler_name(text):
        message = f"Allowed are 1 to {MAX_HANDLER_NAME} of A-Z, a-z, 0-9 and . _ -"
        raise InvalidInput.of(field, "invalid_characters", message, found=text)
