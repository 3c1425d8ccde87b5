"""Items of the schedules table: definitions and the version log."""

from collections.abc import Mapping
from typing import Any

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, Values, decode, encode
from hourbell.adapters.dynamodb.models import DefinitionItem, VersionItem
from hourbell.domain.definition import Definition, Schedule, Version, VersionRef
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import stable_hash


def encode_schedule(schedule: Schedule) -> Item:
    """Write the current definition."""
    shard = stable_hash(schedule.schedule_id) % layout.BY_TENANT_SHARDS
    return encode(
        DefinitionItem,
        {
            "schedule_id": schedule.schedule_id,
            "item": layout.DEFINITION_SORT,
            "schema": layout.SCHEMA,
            "tenant_shard": f"{schedule.tenant_id}#{shard:02d}",
            "listing_key": f"{schedule.name}#{schedule.schedule_id}",
            "tenant_id": schedule.tenant_id,
            "name": schedule.name,
            "state": schedule.state,
            "version": schedule.version,
            "revision": schedule.revision,
            "created_at": schedule.created_at,
            "updated_at": schedule.updated_at,
            "description": schedule.description or None,
            "tags": schedule.tags or None,
            "home_region": schedule.home_region or None,
            "generation": schedule.generation,
            **_definition_values(schedule.definition),
        },
    )


def definition_key(schedule_id: str) -> Item:
    """Return the key of a current definition."""
    return encode(
        DefinitionItem, {"schedule_id": schedule_id, "item": layout.DEFINITION_SORT}
    )


def decode_schedule(item: Mapping[str, Any]) -> Schedule:
    """Read a current definition."""
    values = decode(DefinitionItem, item)
    return Schedule(
        schedule_id=values["schedule_id"],
        tenant_id=values["tenant_id"],
        name=values["name"],
        definition=_definition_of(values),
        state=values["state"],
        version=values["version"],
        revision=values["revision"],
        created_at=values["created_at"],
        updated_at=values["updated_at"],
        description=values.get("description", ""),
        tags=values.get("tags", {}),
        home_region=values.get("home_region", ""),
        generation=values["generation"],
    )


def encode_version(version: Version) -> Item:
    """Write an entry of the version log."""
    return encode(
        VersionItem,
        {
            "schedule_id": version.schedule_id,
            "item": layout.version_sort(version.version),
            "schema": layout.SCHEMA,
            "version": version.version,
            "tenant_id": version.tenant_id,
            "name": version.name,
            "effective_from": version.effective_from,
            "effective_to": version.effective_to,
            "tzdb": version.tzdb,
            "created_at": version.created_at,
            "created_by": version.created_by,
            "source": version.source,
            "reason": version.reason,
            "body_hash": version.body_hash,
            **_definition_values(version.definition),
        },
    )


def decode_version(item: Mapping[str, Any]) -> Version:
    """Read an entry of the version log."""
    values = decode(VersionItem, item)
    return Version(
        schedule_id=values["schedule_id"],
        version=values["version"],
        tenant_id=values["tenant_id"],
        name=values["name"],
        definition=_definition_of(values),
        effective_from=values["effective_from"],
        effective_to=values.get("effective_to"),
        tzdb=values["tzdb"],
        created_at=values["created_at"],
        created_by=values["created_by"],
        source=values["source"],
        reason=values.get("reason"),
        body_hash=values.get("body_hash"),
    )


def version_key(ref: VersionRef) -> Item:
    """Return the key of a version log entry."""
    return encode(
        VersionItem,
        {"schedule_id": ref.schedule_id, "item": layout.version_sort(ref.version)},
    )


def _definition_values(definition: Definition) -> dict[str, Any]:
    return {
        "timing": definition.timing.to_dict(),
        "handler": definition.handler,
        "payload": definition.payload_json,
        "tracking": definition.tracking,
        "flexible_window_seconds": definition.flexible_window_seconds or None,
    }


def _definition_of(values: Values) -> Definition:
    return Definition(
        timing=Timing.from_dict(values["timing"]),
        handler=values["handler"],
        payload_json=values["payload"],
        tracking=values["tracking"],
        flexible_window_seconds=values.get("flexible_window_seconds", 0),
    )
