"""docs/api.md names what the API says."""

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from hourbell.api import problems
from hourbell.api.parameters import body_fields

ROOT = Path(__file__).parents[2]
CORE = ROOT / "layers" / "core" / "python" / "hourbell"
DOCUMENT = ROOT.joinpath("docs", "api.md").read_text("utf-8")
PROSE = re.sub(r"```.*?```", "", DOCUMENT, flags=re.DOTALL)
TERMS = set(re.findall(r"`([^`]+)`", PROSE))

# Where a code stands in the source: `code="..."`, and the second argument of a finding.
CODES = re.compile(
    r'\bcode="([a-z_]+)"|\b(?:InvalidInput\.of|Finding)\(\s*[^,()]*,\s*"([a-z_]+)"'
)


def routes() -> list[Any]:
    names = ("api", "workers")
    apps = [import_module(f"functions.{name}.handler").front.app for name in names]
    return [
        each for app in apps for each in [*app._static_routes, *app._dynamic_routes]
    ]


def spelled(route: Any) -> str:
    return f"{''.join(route.method)} {route.openapi_path}"


def test_every_code_is_listed() -> None:
    codes = {code for code, _ in problems._SENTENCES.values()}
    codes |= set(problems._STATUS_OF_CODE)
    for folder in ("api", "usecases", "domain"):
        for file in CORE.joinpath(folder).glob("*.py"):
            codes |= {a or b for a, b in CODES.findall(file.read_text("utf-8"))}
    assert len(codes) > 40
    assert codes - TERMS == set()


def test_every_field_and_parameter_is_listed() -> None:
    said = {
        field
        for route in routes()
        for fields in body_fields(route).values()
        for field in fields
    }
    said |= {
        parameter.alias
        for route in routes()
        for parameter in route.dependant.query_params
    }
    assert {"expression", "gap", "cursor"} <= said
    assert said - TERMS == set()


def test_the_routes_are_listed() -> None:
    listed = re.findall(r"^\| `((?:[A-Z]+) /v1/[^`]+)`", DOCUMENT, re.MULTILINE)
    assert sorted(listed) == sorted(map(spelled, routes()))
