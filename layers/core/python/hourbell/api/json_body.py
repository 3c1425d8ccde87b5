"""Reading JSON as strictly as it will be passed on.

What is accepted here goes into messages that consumers of any language parse, so
anything on which parsers disagree is refused: duplicate names, NaN and infinities,
lone surrogates, numbers beyond the range of a double, nesting without end. Within it
numbers stay as they are written.
"""

import json
import math
import re
from collections import Counter
from typing import Any, NoReturn

from hourbell.api.json_text import Number, read_integer
from hourbell.domain.errors import InvalidInput

MAX_BODY_BYTES = 256 * 1024
MAX_DEPTH = 32
MAX_DIGITS = 400

_SURROGATE = re.compile("[\ud800-\udfff]")
# A string without its end goes on to that of the text, so that none is read twice.
_STRUCTURE = re.compile(r'"(?:[^"\\]|\\.)*+"?|([\[{])|([\]}])', re.DOTALL)


def parse_body(text: str) -> dict[str, Any]:
    """Parse the text of a request's body, a JSON object.

    Raises:
        InvalidInput: with the code `body_too_large`, `body_too_deep` or
            `invalid_json`.
    """
    # A body that came as text and not as bytes may hold half a character.
    if _SURROGATE.search(text):
        raise _invalid("The body is not Unicode text.")
    if len(text) > MAX_BODY_BYTES or len(text.encode()) > MAX_BODY_BYTES:
        raise InvalidInput.of(
            "body",
            "body_too_large",
            f"The body is larger than {MAX_BODY_BYTES} bytes.",
        )
    _check_depth(text)
    try:
        document = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_fraction,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise _invalid(
            f"The body is not JSON: {error.msg} (line {error.lineno}, "
            f"column {error.colno})."
        ) from error
    _check_surrogates(text, document)
    if not isinstance(document, dict):
        raise _invalid("The body is not a JSON object.")
    return document


def _invalid(message: str, found: str = "") -> InvalidInput:
    return InvalidInput.of("body", "invalid_json", message, found=found)


def _check_depth(text: str) -> None:
    depth = 0
    for match in _STRUCTURE.finditer(text):
        depth += (match.lastindex == 1) - (match.lastindex == 2)
        if depth > MAX_DEPTH:
            raise InvalidInput.of(
                "body",
                "body_too_deep",
                f"The body nests deeper than {MAX_DEPTH} levels.",
            )


def _check_surrogates(text: str, document: object) -> None:
    """Refuse escapes that spell half a character; only escapes still can."""
    if "\\u" not in text:
        return
    if _SURROGATE.search(json.dumps(document, ensure_ascii=False)):
        raise _invalid("The body holds half of a surrogate pair (\\uD800-\\uDFFF).")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        twice = next(name for name, count in counts.items() if count > 1)
        raise _invalid("The body names a member twice in one object.", twice)
    return members


def _integer(text: str) -> int | Number:
    _check_number(text)
    return read_integer(text)


def _fraction(text: str) -> Number:
    _check_number(text)
    return Number(text)


def _check_number(text: str) -> None:
    if len(text) > MAX_DIGITS:
        raise _invalid(f"A number has more than {MAX_DIGITS} characters.", text)
    if not math.isfinite(float(text)):
        raise _invalid("A number is larger than a double can hold.", text)


def _constant(text: str) -> NoReturn:
    raise _invalid("NaN and infinities are not JSON.", text)
