"""docs/api.md names what the API says."""

import re
from pathlib import Path

from hourbell.api import problems
from hourbell.api.requests import BODIES

from tests.functions.test_api_create import SINGLE_FAULTS

DOCUMENT = Path(__file__).parents[2].joinpath("docs", "api.md").read_text("utf-8")
PROSE = re.sub(r"```.*?```", "", DOCUMENT, flags=re.DOTALL)
TERMS = set(re.findall(r"`([^`]+)`", PROSE))


def test_every_code_is_listed() -> None:
    codes = {code for _, _, code in SINGLE_FAULTS.values()}
    codes |= {code for code, _ in problems._SENTENCES.values()}
    codes |= set(problems._STATUS_OF_CODE)
    assert codes <= TERMS


def test_every_field_is_listed() -> None:
    fields = {
        info.alias or name
        for model in BODIES.values()
        for name, info in model.model_fields.items()
    }
    assert fields <= TERMS
