"""schemas/tables.json as the stacks read it: no table or key is named twice."""

import json
from dataclasses import dataclass, field
from typing import Any

from stacks.settings import ROOT


@dataclass(frozen=True, slots=True)
class KeyPart:
    """An attribute of a key and its DynamoDB type."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index; `include` are the attributes that it carries."""

    name: str
    partition_key: KeyPart
    sort_key: KeyPart
    include: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table.

    Attributes:
        stream: what the stream's records show; None without a stream.
        outbox_states: the states whose rows the stream carries to the relay.
        ttl: the attribute that says when an item expires.
    """

    name: str
    partition_key: KeyPart
    sort_key: KeyPart
    stream: str | None = None
    outbox_states: tuple[str, ...] = ()
    ttl: str | None = None
    indexes: tuple[Index, ...] = field(default=())


def load() -> dict[str, TableSpec]:
    """Read all tables by their logical names."""
    text = (ROOT / "schemas" / "tables.json").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = json.loads(text)["tables"]
    return {name: _table(name, table) for name, table in tables.items()}


def _table(name: str, table: dict[str, Any]) -> TableSpec:
    return TableSpec(
        name=name,
        partition_key=KeyPart(**table["partition_key"]),
        sort_key=KeyPart(**table["sort_key"]),
        stream=table.get("stream"),
        outbox_states=tuple(table.get("outbox_states", ())),
        ttl=table.get("ttl"),
        indexes=tuple(
            Index(
                name=index_name,
                partition_key=KeyPart(**index["partition_key"]),
                sort_key=KeyPart(**index["sort_key"]),
                include=tuple(index["include"]),
            )
            for index_name, index in table["indexes"].items()
        ),
    )
