"""Items of the control table: tenants, principals, handlers, shard groups."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode, reads
from hourbell.adapters.dynamodb.models import (
    GroupItem,
    HandlerItem,
    ListedItem,
    PrincipalItem,
    TenantItem,
)
from hourbell.domain.definition import Handler, HandlerState, Quotas, Tenant
from hourbell.usecases.ports import Lease


def encode_tenant(tenant: Tenant) -> Item:
    """Write a tenant."""
    key = tenant_item_key(tenant.tenant_id)
    return key | encode(TenantItem, tenant_values(tenant))


def tenant_values(tenant: Tenant) -> dict[str, Any]:
    """Return what a tenant has besides its key."""
    return {
        "schema": layout.SCHEMA,
        "tenant_id": tenant.tenant_id,
        "tier": tenant.tier,
        "state": tenant.state,
        "reason": tenant.reason or None,
        "weight": tenant.weight,
        "revision": tenant.revision,
        "quota_schedules": tenant.quotas.schedules,
        "quota_payload_bytes": tenant.quotas.payload_bytes,
        "quota_min_interval_seconds": tenant.quotas.min_interval_seconds,
        "quota_catch_up_per_minute": tenant.quotas.catch_up_per_minute,
        "quota_triggers_per_minute": tenant.quotas.triggers_per_minute,
        "quota_running": tenant.quotas.running,
        "quota_retries_per_minute": tenant.quotas.retries_per_minute,
        "quota_retry_attempts": tenant.quotas.retry_attempts,
        "quota_retry_deadline_seconds": tenant.quotas.retry_deadline_seconds,
    }


def tenant_item_key(tenant_id: str) -> Item:
    """Return the key of a tenant."""
    values = {"control_key": layout.tenant_key(tenant_id), "item": layout.TENANT_SORT}
    return encode(TenantItem, values)


@reads("tenant")
def decode_tenant(item: Mapping[str, Any]) -> Tenant:
    """Read a tenant.

    Raises:
        Unreadable: it is none that this code reads.
    """
    values = decode(TenantItem, item)
    usual = Quotas()
    return Tenant(
        tenant_id=values["tenant_id"],
        tier=values["tier"],
        state=values["state"],
        quotas=Quotas(
            values.get("quota_schedules", usual.schedules),
            values.get("quota_payload_bytes", usual.payload_bytes),
            values.get("quota_min_interval_seconds", usual.min_interval_seconds),
            values.get("quota_catch_up_per_minute", usual.catch_up_per_minute),
            values.get("quota_triggers_per_minute"),
            values.get("quota_running"),
            values.get("quota_retries_per_minute"),
            values.get("quota_retry_attempts", usual.retry_attempts),
            values.get("quota_retry_deadline_seconds"),
        ),
        weight=values.get("weight", 1),
        revision=values.get("revision", 1),
        reason=values.get("reason", ""),
    )


def encode_listed(tenant_id: str) -> Item:
    """Write a tenant's id into the list of all."""
    values = {
        "control_key": layout.TENANT_LIST,
        "item": tenant_id,
        "schema": layout.SCHEMA,
    }
    return encode(ListedItem, values)


def decode_listed(item: Mapping[str, Any]) -> str:
    """Read a tenant's id from the list of all."""
    return cast("str", decode(ListedItem, item)["item"])


def encode_handler(handler: Handler) -> Item:
    """Write a handler."""
    key = handler_item_key(handler.tenant_id, handler.name)
    return key | encode(HandlerItem, handler_values(handler))


def handler_values(handler: Handler) -> dict[str, Any]:
    """Return what a handler has besides its key; None for what it lacks."""
    return {
        "schema": layout.SCHEMA,
        "tenant_id": handler.tenant_id,
        "name": handler.name,
        "routing": handler.routing,
        "state": handler.state,
        "queue_arn": handler.queue_arn,
        "dead_letter_queue_arn": handler.dead_letter_queue_arn,
        "dispatch_rate": handler.dispatch_rate,
        "description": handler.description or None,
        "revision": handler.revision,
    }


def handler_item_key(tenant_id: str, name: str) -> Item:
    """Return the key of a handler."""
    return encode(
        HandlerItem,
        {
            "control_key": layout.tenant_key(tenant_id),
            "item": layout.handler_sort(name),
        },
    )


@reads("handler")
def decode_handler(item: Mapping[str, Any]) -> Handler:
    """Read a handler.

    Raises:
        Unreadable: it is none that this code reads.
    """
    values = decode(HandlerItem, item)
    return Handler(
        tenant_id=values["tenant_id"],
        name=values["name"],
        routing=values["routing"],
        state=values.get("state", HandlerState.ACTIVE),
        queue_arn=values.get("queue_arn"),
        dispatch_rate=values.get("dispatch_rate"),
        description=values.get("description", ""),
        revision=values.get("revision", 1),
        dead_letter_queue_arn=values.get("dead_letter_queue_arn"),
    )


def encode_principal(principal: str, tenant_id: str) -> Item:
    """Write whose an IAM identity is."""
    return encode(
        PrincipalItem,
        {
            "control_key": layout.principal_key(principal),
            "item": layout.PRINCIPAL_SORT,
            "schema": layout.SCHEMA,
            "tenant_id": tenant_id,
        },
    )


def principal_item_key(principal: str) -> Item:
    """Return the key of an IAM identity."""
    return encode(
        PrincipalItem,
        {
            "control_key": layout.principal_key(principal),
            "item": layout.PRINCIPAL_SORT,
        },
    )


def encode_own_principal(principal: str, tenant_id: str) -> Item:
    """Write an IAM identity under its tenant, where it is listed."""
    values = {"schema": layout.SCHEMA, "tenant_id": tenant_id}
    return own_principal_key(principal, tenant_id) | encode(PrincipalItem, values)


def own_principal_key(principal: str, tenant_id: str) -> Item:
    """Return the key of an IAM identity under its tenant."""
    return encode(
        PrincipalItem,
        {
            "control_key": layout.tenant_key(tenant_id),
            "item": layout.principal_sort(principal),
        },
    )


def decode_own_principal(item: Mapping[str, Any]) -> str:
    """Read an IAM identity that is listed under its tenant."""
    sort = cast("str", decode(PrincipalItem, item)["item"])
    return sort.removeprefix(layout.PRINCIPALS)


def decode_principal(item: Mapping[str, Any]) -> str:
    """Read the tenant_id of an IAM identity."""
    return cast("str", decode(PrincipalItem, item)["tenant_id"])


def encode_group(group: int, floor: datetime) -> Item:
    """Write the record of a shard group that was never leased."""
    return encode(
        GroupItem,
        {
            "control_key": layout.group_key(group),
            "item": layout.LEASE_SORT,
            "schema": layout.SCHEMA,
            "floor": floor,
            "generation": 0,
        },
    )


def group_item_key(group: int) -> Item:
    """Return the key of a shard group's record."""
    values = {"control_key": layout.group_key(group), "item": layout.LEASE_SORT}
    return encode(GroupItem, values)


@reads("lease")
def decode_lease(item: Mapping[str, Any]) -> Lease:
    """Read the record of a shard group that is leased."""
    values = decode(GroupItem, item)
    return Lease(
        group=int(values["control_key"].partition("#")[2]),
        holder=values["holder"],
        generation=values["generation"],
        expires_at=values["lease_until"],
        floor=values["floor"],
        watermarks=values.get("watermarks", {}),
        passed_at=values.get("passed_at"),
        looked_at=values.get("looked_at"),
        looked_until=values.get("looked_until"),
    )
