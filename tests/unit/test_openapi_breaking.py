"""What breaks clients of an older OpenAPI document, and what does not."""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from devtools.openapi.breaking import breaks

Document = dict[str, Any]

OLD: Document = {
    "paths": {
        "/bells": {
            "post": {
                "parameters": [
                    {"name": "dry", "in": "query", "schema": {"enum": ["a", "b"]}}
                ],
                "requestBody": {
                    "content": {
                        "application/json": {
                            "schema": {"$ref": "#/components/schemas/NewBell"}
                        }
                    }
                },
                "responses": {
                    "201": {
                        "content": {
                            "application/json": {
                                "schema": {"$ref": "#/components/schemas/Bell"}
                            }
                        }
                    },
                    "429": {"$ref": "#/components/responses/Busy"},
                },
            },
            "get": {"responses": {"200": {"description": "OK"}}},
        }
    },
    "components": {
        "responses": {"Busy": {"description": "Busy"}},
        "schemas": {
            "NewBell": {
                "type": "object",
                "required": ["name"],
                "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 9},
                    "weight": {
                        "anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]
                    },
                },
            },
            "Bell": {
                "type": "object",
                "required": ["name", "parts"],
                "properties": {
                    "name": {"type": "string"},
                    "weight": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                    "parts": {
                        "type": "array",
                        "items": {"$ref": "#/components/schemas/Bell"},
                    },
                },
            },
        },
    },
}


def changed(change: Callable[[Document], object]) -> list[str]:
    new = copy.deepcopy(OLD)
    change(new)
    return breaks(OLD, new)


def post(document: Document) -> Document:
    found: Document = document["paths"]["/bells"]["post"]
    return found


def schema(document: Document, name: str) -> Document:
    found: Document = document["components"]["schemas"][name]
    return found


def member(document: Document, name: str, field: str) -> Document:
    found: Document = schema(document, name)["properties"][field]
    return found


def content(document: Document) -> Document:
    found: Document = post(document)["responses"]["201"]["content"]
    return found


BREAKS: dict[str, Callable[[Document], object]] = {
    "GET /bells: the route is gone": lambda new: new["paths"]["/bells"].pop("get"),
    "POST /bells: dry: the parameter is gone": lambda new: post(new).pop("parameters"),
    "POST /bells: dry: fewer values are allowed": lambda new: post(new)["parameters"][
        0
    ]["schema"]["enum"].remove("b"),
    "POST /bells: dry: the parameter is required now": lambda new: post(new)[
        "parameters"
    ][0].update(required=True),
    "POST /bells: body: a body is required now": lambda new: post(new)[
        "requestBody"
    ].update(required=True),
    "POST /bells: body: no longer application/json": lambda new: post(new)[
        "requestBody"
    ].update(content={}),
    "POST /bells: body.weight: the member is required now": lambda new: schema(
        new, "NewBell"
    )["required"].append("weight"),
    "POST /bells: body.weight: the member is gone": lambda new: schema(new, "NewBell")[
        "properties"
    ].pop("weight"),
    "POST /bells: body.name: maxLength is lower": lambda new: member(
        new, "NewBell", "name"
    ).update(maxLength=8),
    "POST /bells: body.name: minLength is higher": lambda new: member(
        new, "NewBell", "name"
    ).update(minLength=2),
    "POST /bells: body.name: pattern is another": lambda new: member(
        new, "NewBell", "name"
    ).update(pattern="^a$"),
    "POST /bells: body.weight: maximum is lower": lambda new: member(
        new, "NewBell", "weight"
    )["anyOf"][0].update(maximum=8),
    "POST /bells: body.weight: the type was integer or null, is integer": lambda new: (
        member(new, "NewBell", "weight")["anyOf"].pop()
    ),
    "POST /bells: 201: the answer is gone": lambda new: post(new)["responses"].pop(
        "201"
    ),
    "POST /bells: 201: no longer application/json": lambda new: content(new).clear(),
    "POST /bells: 201.weight: the member is gone": lambda new: schema(new, "Bell")[
        "properties"
    ].pop("weight"),
    "POST /bells: 201.name: the member may be missing now": lambda new: schema(
        new, "Bell"
    )["required"].remove("name"),
    "POST /bells: 201.name: the type was string, is null or string": lambda new: member(
        new, "Bell", "name"
    ).update(type=["string", "null"]),
}


@pytest.mark.parametrize("sentence", BREAKS)
def test_what_breaks_is_told(sentence: str) -> None:
    assert sentence in changed(BREAKS[sentence])


KEEPS: dict[str, Callable[[Document], object]] = {
    "nothing": lambda new: None,
    "a route more": lambda new: new["paths"].update({"/more": {"get": {}}}),
    "a problem less": lambda new: post(new)["responses"].pop("429"),
    "a member of an answer more": lambda new: schema(new, "Bell")["properties"].update(
        age={"type": "integer"}
    ),
    "an optional field more": lambda new: schema(new, "NewBell")["properties"].update(
        age={"type": "integer"}
    ),
    "an optional parameter more": lambda new: post(new)["parameters"].append(
        {"name": "x", "in": "query", "schema": {"type": "string"}}
    ),
    "a wider bound": lambda new: member(new, "NewBell", "name").update(maxLength=10),
    "a value more": lambda new: post(new)["parameters"][0]["schema"]["enum"].append(
        "c"
    ),
    "a required field that may be left out": lambda new: schema(new, "NewBell").pop(
        "required"
    ),
    "a member that is never null any more": lambda new: member(new, "Bell", "weight")[
        "anyOf"
    ].pop(),
}


@pytest.mark.parametrize("change", KEEPS)
def test_what_breaks_nothing_is_not_told(change: str) -> None:
    assert changed(KEEPS[change]) == []


def test_a_variant_of_an_answer_more_must_have_what_was_promised() -> None:
    def add(new: Document) -> None:
        bell = content(new)["application/json"]["schema"]
        other = {"type": "object", "properties": {"sound": {"type": "string"}}}
        content(new)["application/json"]["schema"] = {"anyOf": [bell, other]}

    assert "POST /bells: 201.name: the member may be missing now" in changed(add)
