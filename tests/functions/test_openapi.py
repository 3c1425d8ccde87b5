"""schemas/openapi.json is current, and says the same as docs/api.md and the stack."""

import json
import re
from pathlib import Path

import pytest

from devtools.openapi import __main__ as command
from devtools.openapi.breaking import breaks
from devtools.openapi.document import document
from devtools.openapi.operations import OPERATIONS, STATUSES
from stacks.api import ROUTES
from tests.functions.contract import (
    DOCUMENT,
    check_answer,
    operation_of,
    rooted,
    validator,
)
from tests.functions.events import api_event

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([0-9]{3}) \| ((?:`[a-z_]+`(?:, )?)+) \|", re.MULTILINE)
PARAMETERS = {"If-Match", "If-None-Match", "Idempotency-Key", "dry_run", "cursor"}


def test_it_is_current() -> None:
    assert document() == DOCUMENT
    assert command.main(["--check"]) == 0


def test_a_stale_one_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "CURRENT", tmp_path / "openapi.json")
    assert command.main(["--check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert command.main([]) == 0
    assert command.main(["--check"]) == 0


def test_a_break_with_the_last_release_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    released = document()
    released["paths"]["/v1/gone"] = {"get": {"responses": {}}}
    (tmp_path / "openapi.json").write_text(json.dumps(released))
    monkeypatch.setattr(command, "RELEASED", tmp_path / "openapi.json")
    assert command.main(["--check"]) == 1
    assert "GET /v1/gone: the route is gone" in capsys.readouterr().err


def test_it_breaks_nothing_of_itself() -> None:
    assert breaks(DOCUMENT, DOCUMENT) == []


def test_it_has_the_routes_of_the_stack() -> None:
    assert set(OPERATIONS) == set(ROUTES)


def test_it_has_the_codes_of_the_docs() -> None:
    text = ROOT.joinpath("docs", "api.md").read_text("utf-8")
    listed = {
        code: int(status)
        for status, codes in ROW.findall(text)
        for code in re.findall("`([a-z_]+)`", codes)
    }
    said = {code for operation in OPERATIONS.values() for code in operation.codes}
    # An unknown route is no operation; a lost lease is told item by item.
    assert listed.keys() - said == {"unknown_route", "lease_lost"}
    assert {code: STATUSES.get(code, 400) for code in said}.items() <= listed.items()


def test_operations_have_names_of_their_own() -> None:
    names = [operation.name for operation in OPERATIONS.values()]
    assert len(set(names)) == len(names)


def test_it_has_headers_and_parameters_by_their_usual_names() -> None:
    named = {
        parameter["name"]
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        for parameter in operation.get("parameters", ())
    }
    assert named >= PARAMETERS


def test_a_change_may_leave_out_but_not_say_null() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    assert schemas["ChangeHandler"]["properties"]["state"]["type"] == "string"
    assert "required" not in schemas["ChangeHandler"]


def test_defaults_are_what_they_are_defaults_of() -> None:
    checked = 0
    for model in DOCUMENT["components"]["schemas"].values():
        for part in model.get("properties", {}).values():
            if "default" in part:
                schema = validator(json.dumps(rooted(part)))
                assert schema.is_valid(part["default"]), part
                checked += 1
    assert checked >= 10


@pytest.mark.parametrize(
    ("status", "headers", "text"),
    [
        (418, {"Content-Type": "application/json"}, "{}"),
        (200, {"Content-Type": "text/plain"}, "{}"),
        (200, {"Content-Type": "application/json", "X-Other": "1"}, "{}"),
        (200, {"Content-Type": "application/json"}, '{"tenant_id": "acme"}'),
    ],
)
def test_another_answer_is_noticed(
    status: int, headers: dict[str, str], text: str
) -> None:
    with pytest.raises(AssertionError):
        check_answer(api_event("GET", "/v1/usage"), status, headers, text)


def test_a_fixed_path_comes_first() -> None:
    preview = operation_of("POST", "/v1/schedules/preview")
    assert preview is not None
    assert preview["operationId"] == "schedules.preview"
