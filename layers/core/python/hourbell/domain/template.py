"""Tokens in a payload, and what stands in their place in a message.

A payload is JSON text. Inside its string values `<scheduled_for>`, `<occurrence_id>`,
`<schedule_name>` and `<attempt>` are tokens; names of members are not looked at, so
that no two of them can become one. A doubled bracket, `<<attempt>>`, stands for the
token's own spelling, `<attempt>`. Everything else is left as it is.
"""

import json
import re
from collections.abc import Mapping
from typing import Final

TOKENS: Final = ("scheduled_for", "occurrence_id", "schedule_name", "attempt")
"""The names that are tokens between angle brackets."""

_NAMES: Final = "|".join(TOKENS)
_TOKEN: Final = re.compile(f"<<({_NAMES})>>|<({_NAMES})>")

# A whole string, and the colon after it if it is a member's name.
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"(\s*:)?', re.DOTALL)


def fill(payload_json: str, values: Mapping[str, str]) -> str:
    """Put values in the place of the tokens of a payload.

    The text around them stays character by character: nothing is parsed and written
    again, so no number can change.

    Args:
        payload_json: JSON text that spells `<` as it is, not as an escape.
        values: what each of TOKENS stands for, as plain text.

    Returns:
        JSON text; what was a string is one still.
    """
    # Outside a string, JSON has no angle brackets.
    if "<" not in payload_json:
        return payload_json
    escaped = {
        name: json.dumps(value, ensure_ascii=False)[1:-1]
        for name, value in values.items()
    }

    def in_token(found: re.Match[str]) -> str:
        literal, name = found.groups()
        return f"<{literal}>" if literal else escaped[name]

    def in_string(found: re.Match[str]) -> str:
        return found[0] if found[1] else _TOKEN.sub(in_token, found[0])

    return _STRING.sub(in_string, payload_json)
