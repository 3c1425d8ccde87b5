"""Tell what a new version of the OpenAPI document takes from existing clients."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

# Bounds that a request may only get wider, by the sign of "wider".
UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")


def breaks(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return what breaks clients of the old document, one sentence each.

    A route, parameter, status, media type or response member that is gone; a request
    that must say more than before, or may say less; a response member that may be of
    another type or missing.
    """
    found: list[str] = []
    for path, methods in old["paths"].items():
        for method, before in methods.items():
            place = f"{method.upper()} {path}"
            after = new["paths"].get(path, {}).get(method)
            if after is None:
                found.append(f"{place}: the route is gone")
                continue
            found += [f"{place}: {each}" for each in _route(old, new, before, after)]
    return found


@dataclass(frozen=True, slots=True)
class _Pair:
    """A place in both documents; `is_request` says who writes there, they or we."""

    old: dict[str, Any]
    new: dict[str, Any]
    is_request: bool

    def found(
        self,
        place: str,
        before: object,
        after: object,
        seen: frozenset[str] = frozenset(),
    ) -> Iterator[str]:
        """Yield what breaks between two schemas; `seen` are the references above."""
        name = before.get("$ref", "") if isinstance(before, dict) else ""
        if name in seen:
            return
        seen |= {name} if name else set()
        old, new = flat(self.old, before), flat(self.new, after)
        yield from self._values(place, old, new)
        yield from self._members(place, old, new, seen)
        if old.items is not None and new.items is not None:
            yield from self.found(f"{place}[]", old.items, new.items, seen)

    def _values(self, place: str, old: Flat, new: Flat) -> Iterator[str]:
        """Yield what may no longer be sent, or may newly come."""
        narrow, wide = (old, new) if self.is_request else (new, old)
        if wide.types and (not narrow.types or narrow.types - wide.types):
            yield f"{place}: the type was {_named(old.types)}, is {_named(new.types)}"
        if not self.is_request:
            return
        if new.values is not None and (old.values is None or old.values - new.values):
            yield f"{place}: fewer values are allowed"
        for name, limit in new.bounds.items():
            before = old.bounds.get(name)
            if name in UPPER and (before is None or limit < before):
                yield f"{place}: {name} is lower"
            if name in LOWER and (before is None or limit > before):
                yield f"{place}: {name} is higher"
            if name == "pattern" and limit != before:
                yield f"{place}: pattern is another"

    def _members(
        self, place: str, old: Flat, new: Flat, seen: frozenset[str]
    ) -> Iterator[str]:
        for name, part in old.properties.items():
            if name in new.properties:
                inner = f"{place}.{name}"
                yield from self.found(inner, part, new.properties[name], seen)
            else:
                yield f"{place}.{name}: the member is gone"
        if self.is_request:
            for name in sorted(new.required - old.required):
                yield f"{place}.{name}: the member is required now"
        else:
            for name in sorted((old.required - new.required) & set(new.properties)):
                yield f"{place}.{name}: the member may be missing now"


def _route(
    old: dict[str, Any],
    new: dict[str, Any],
    before: dict[str, Any],
    after: dict[str, Any],
) -> Iterator[str]:
    pair = _Pair(old, new, is_request=True)
    yield from _parameters(pair, before, after)
    yield from _bodies(pair, before.get("requestBody"), after.get("requestBody"))
    answers = _Pair(old, new, is_request=False)
    for status, response in before["responses"].items():
        if status not in after["responses"]:
            if status.startswith("2"):
                yield f"{status}: the answer is gone"
            continue
        content = resolve(new, after["responses"][status]).get("content", {})
        for kind, media in resolve(old, response).get("content", {}).items():
            if kind not in content:
                yield f"{status}: no longer {kind}"
            else:
                schemas = (media["schema"], content[kind]["schema"])
                yield from answers.found(status, *schemas)


def _parameters(
    pair: _Pair, before: dict[str, Any], after: dict[str, Any]
) -> Iterator[str]:
    old = {(each["in"], each["name"]): each for each in before.get("parameters", ())}
    new = {(each["in"], each["name"]): each for each in after.get("parameters", ())}
    for key, parameter in new.items():
        was_required = key in old and old[key].get("required", False)
        if parameter.get("required", False) and not was_required:
            yield f"{key[1]}: the parameter is required now"
    for key, parameter in old.items():
        if key not in new:
            yield f"{key[1]}: the parameter is gone"
        else:
            schemas = (parameter["schema"], new[key]["schema"])
            yield from pair.found(key[1], *schemas)


def _bodies(
    pair: _Pair, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> Iterator[str]:
    if after and after.get("required") and not (before and before.get("required")):
        yield "body: a body is required now"
    if not before:
        return
    content = (after or {}).get("content", {})
    for kind, media in before["content"].items():
        if kind not in content:
            yield f"body: no longer {kind}"
        else:
            schemas = (media["schema"], content[kind]["schema"])
            yield from pair.found("body", *schemas)


@dataclass(frozen=True, slots=True)
class Flat:
    """A schema without references and branches.

    Attributes:
        types: what it may be; empty for anything.
        values: of an enumeration; None for any.
    """

    types: frozenset[str] = frozenset()
    values: frozenset[str] | None = None
    bounds: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    items: object = None


def flat(document: dict[str, Any], schema: object) -> Flat:
    """Follow references, and draw together what branches (`anyOf`, `allOf`) say."""
    if not isinstance(schema, dict):
        return Flat()
    schema = resolve(document, schema)
    kinds = schema.get("anyOf") or schema.get("oneOf") or ()
    parts = [_own(schema)]
    if kinds:
        parts.append(_any_of([flat(document, kind) for kind in kinds]))
    parts += [flat(document, kind) for kind in schema.get("allOf", ())]
    return _all_of(parts)


def resolve(document: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return what a part refers to, or the part when it is no reference."""
    while "$ref" in part:
        target: Any = document
        for step in part["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        part = target
    return part


def _own(schema: dict[str, Any]) -> Flat:
    kind = schema.get("type", ())
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    names = (*UPPER, *LOWER, "pattern")
    return Flat(
        frozenset([kind] if isinstance(kind, str) else kind),
        None if values is None else frozenset(map(str, values)),
        {name: schema[name] for name in names if name in schema},
        dict(schema.get("properties", {})),
        frozenset(schema.get("required", ())),
        schema.get("items"),
    )


def _all_of(parts: list[Flat]) -> Flat:
    """Return what holds if all parts do; the last one wins where two say the same."""
    whole = Flat()
    for part in parts:
        whole = Flat(
            part.types or whole.types,
            whole.values if part.values is None else part.values,
            {**whole.bounds, **part.bounds},
            {**whole.properties, **part.properties},
            whole.required | part.required,
            whole.items if part.items is None else part.items,
        )
    return whole


def _any_of(parts: list[Flat]) -> Flat:
    """Return what holds if one part does; bounds only if one alone has any."""
    solid = [part for part in parts if part.types != {"null"}]
    is_any = any(not part.types for part in parts)
    types = frozenset(kind for part in parts for kind in part.types)
    if len(solid) == 1:
        return replace(solid[0], types=frozenset() if is_any else types)
    return Flat(
        frozenset() if is_any else types,
        properties={
            name: each for part in solid for name, each in part.properties.items()
        },
        required=frozenset.intersection(*(part.required for part in solid)),
    )


def _named(types: frozenset[str]) -> str:
    return " or ".join(sorted(types)) or "anything"
