"""Items of the schedules table: definitions and the version log."""

from collections.abc import Mapping
from typing import Any, Final, cast

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import (
    Item,
    Values,
    decode,
    encode,
    fields_of,
    reads,
)
from hourbell.adapters.dynamodb.models import (
    BackfillItem,
    DefinitionItem,
    NameItem,
    RunItem,
    VersionItem,
)
from hourbell.adapters.listing import listing_key
from hourbell.domain.definition import (
    Definition,
    Schedule,
    ScheduleState,
    Version,
    VersionRef,
)
from hourbell.domain.misfire import USUAL_MISFIRE, Misfire
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import USUAL_RETRY
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import stable_hash
from hourbell.usecases.ports import Backfill, ListEntry, Run

# What a listing shows; the index has no schema, so it is read leniently.
_LISTED: Final = (
    "schedule_id",
    "name",
    "state",
    "version",
    "revision",
    "created_at",
    "updated_at",
    "tags",
)


def encode_schedule(schedule: Schedule, slot: int | None = None) -> Item:
    """Write the current definition, and in which slot it counts."""
    return encode(
        DefinitionItem,
        {
            "schedule_id": schedule.schedule_id,
            "item": layout.DEFINITION_SORT,
            "slot": slot,
            **schedule_values(schedule),
        },
    )


def schedule_values(schedule: Schedule) -> dict[str, Any]:
    """Return what a current definition has besides its key; None for what it lacks."""
    return {
        "schema": layout.SCHEMA,
        "tenant_shard": tenant_shard(
            schedule.tenant_id, list_shard(schedule.schedule_id)
        ),
        "listing_key": listing_key(schedule),
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
        "handover": schedule.version if schedule.handover else None,
        **_definition_values(schedule.definition),
    }


def list_shard(schedule_id: str) -> int:
    """Return which of a tenant's list shards a schedule is in."""
    return stable_hash(schedule_id) % layout.BY_TENANT_SHARDS


def tenant_shard(tenant_id: str, shard: int) -> str:
    """Return the partition of a tenant's list shard."""
    return f"{tenant_id}#{shard:02d}"


def definition_key(schedule_id: str) -> Item:
    """Return the key of a current definition."""
    return encode(
        DefinitionItem, {"schedule_id": schedule_id, "item": layout.DEFINITION_SORT}
    )


@reads("definition")
def decode_schedule(item: Mapping[str, Any]) -> Schedule:
    """Read a current definition.

    Raises:
        Unreadable: it is none that this code reads.
    """
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
        handover="handover" in values,
    )


@reads("definition")
def decode_slot_of(item: Mapping[str, Any]) -> int | None:
    """Read in which slot a definition counts; None: in none."""
    return cast("int | None", decode(DefinitionItem, item).get("slot"))


@reads("definition")
def decode_entry(item: Mapping[str, Any]) -> ListEntry:
    """Read what the list index has of a definition.

    Raises:
        Unreadable: it is none that this code reads.
    """
    fields = fields_of(DefinitionItem)
    values = {
        name: fields[name].read(item[fields[name].wire][fields[name].type])
        for name in _LISTED
        if fields[name].wire in item
    }
    return ListEntry(**{"tags": {}, **values})


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
            "state": None if version.state is ScheduleState.ACTIVE else version.state,
            "base_sequence": version.base_sequence or None,
            "ends_at": version.ends_at,
            "ends_as": version.ends_as,
            **_definition_values(version.definition),
        },
    )


@reads("version")
def decode_version(item: Mapping[str, Any]) -> Version:
    """Read an entry of the version log.

    Raises:
        Unreadable: it is none that this code reads.
    """
    values = decode(VersionItem, item)
    return Version(
        schedule_id=values["schedule_id"],
        version=values["version"],
        tenant_id=values["tenant_id"],
        name=values["name"],
        definition=_definition_of(values),
        effective_from=values.get("effective_from"),
        effective_to=values.get("effective_to"),
        tzdb=values["tzdb"],
        created_at=values["created_at"],
        created_by=values["created_by"],
        source=values["source"],
        reason=values.get("reason"),
        body_hash=values.get("body_hash"),
        state=values.get("state", ScheduleState.ACTIVE),
        base_sequence=values.get("base_sequence", 0),
        ends_at=values.get("ends_at"),
        ends_as=values.get("ends_as"),
    )


def version_key(ref: VersionRef) -> Item:
    """Return the key of a version log entry."""
    return encode(
        VersionItem,
        {"schedule_id": ref.schedule_id, "item": layout.version_sort(ref.version)},
    )


def encode_name(schedule: Schedule) -> Item:
    """Write that a schedule has its name."""
    values = {"schema": layout.SCHEMA, "held_by": schedule.schedule_id}
    return name_item_key(schedule.tenant_id, schedule.name) | encode(NameItem, values)


def name_item_key(tenant_id: str, name: str) -> Item:
    """Return the key of a name of a tenant."""
    return encode(
        NameItem,
        {"schedule_id": layout.name_key(tenant_id, name), "item": layout.NAME_SORT},
    )


@reads("name")
def decode_name(item: Mapping[str, Any]) -> str:
    """Read the schedule_id that has a name."""
    return cast("str", decode(NameItem, item)["held_by"])


def encode_run(run: Run) -> Item:
    """Write a manual run."""
    values = {
        "schema": layout.SCHEMA,
        "key_hash": run.key_hash,
        "version": run.version,
        "scheduled_for": run.scheduled_for,
        "requested_by": run.requested_by,
        "reason": run.reason,
    }
    return run_item_key(run.schedule_id, run.run) | encode(RunItem, values)


def run_item_key(schedule_id: str, run: str) -> Item:
    """Return the key of a manual run."""
    return encode(RunItem, {"schedule_id": schedule_id, "item": layout.run_sort(run)})


@reads("manual run")
def decode_run(item: Mapping[str, Any]) -> Run:
    """Read a manual run."""
    values = decode(RunItem, item)
    return Run(
        schedule_id=values["schedule_id"],
        key_hash=values["key_hash"],
        version=values["version"],
        scheduled_for=values["scheduled_for"],
        requested_by=values["requested_by"],
        reason=values.get("reason"),
    )


def encode_backfill(backfill: Backfill) -> Item:
    """Write a backfilled time."""
    values = {
        "schema": layout.SCHEMA,
        "scheduled_for": backfill.scheduled_for,
        "version": backfill.version,
        "requested_at": backfill.requested_at,
        "requested_by": backfill.requested_by,
        "reason": backfill.reason,
    }
    key = {
        "schedule_id": backfill.schedule_id,
        "item": layout.backfill_sort(backfill.scheduled_for),
    }
    return encode(BackfillItem, key | values)


@reads("backfilled time")
def decode_backfill(item: Mapping[str, Any]) -> Backfill:
    """Read a backfilled time."""
    values = decode(BackfillItem, item)
    return Backfill(
        schedule_id=values["schedule_id"],
        scheduled_for=values["scheduled_for"],
        version=values["version"],
        requested_at=values["requested_at"],
        requested_by=values["requested_by"],
        reason=values.get("reason"),
    )


def _definition_values(definition: Definition) -> dict[str, Any]:
    return {
        "timing": definition.timing.to_dict(),
        "handler": definition.handler,
        "payload": definition.payload_json,
        "tracking": definition.tracking,
        "flexible_window_seconds": definition.flexible_window_seconds or None,
        **_misfire_values(definition.misfire),
        "overlap": None if definition.overlap is Overlap.ALLOW else definition.overlap,
        "retry": None if definition.retry == USUAL_RETRY else definition.retry,
    }


def _misfire_values(misfire: Misfire) -> dict[str, Any]:
    """Return a misfire policy's values; the usual one is left out."""
    usual = misfire.policy is USUAL_MISFIRE.policy
    return {
        "misfire": None if usual else misfire.policy,
        "catch_up_limit": misfire.limit,
        "max_lateness_seconds": misfire.max_lateness_seconds,
    }


def _definition_of(values: Values) -> Definition:
    return Definition(
        timing=Timing.from_dict(values["timing"]),
        handler=values["handler"],
        payload_json=values["payload"],
        tracking=values["tracking"],
        flexible_window_seconds=values.get("flexible_window_seconds", 0),
        misfire=Misfire(
            values.get("misfire", USUAL_MISFIRE.policy),
            values.get("catch_up_limit"),
            values.get("max_lateness_seconds"),
        ),
        overlap=values.get("overlap", Overlap.ALLOW),
        retry=values.get("retry", USUAL_RETRY),
    )
