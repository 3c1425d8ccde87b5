"""Items of the control table: tenants, principals, handlers, shard groups."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode
from hourbell.adapters.dynamodb.models import (
    GroupItem,
    HandlerItem,
    PrincipalItem,
    TenantItem,
)
from hourbell.domain.definition import Handler, Tenant
from hourbell.usecases.ports import Lease


def encode_tenant(tenant: Tenant) -> Item:
    """Write a tenant."""
    return encode(
        TenantItem,
        {
            "control_key": layout.tenant_key(tenant.tenant_id),
            "item": layout.TENANT_SORT,
            "schema": layout.SCHEMA,
            "tenant_id": tenant.tenant_id,
            "tier": tenant.tier,
            "state": tenant.state,
        },
    )


def tenant_item_key(tenant_id: str) -> Item:
    """Return the key of a tenant."""
    values = {"control_key": layout.tenant_key(tenant_id), "item": layout.TENANT_SORT}
    return encode(TenantItem, values)


def decode_tenant(item: Mapping[str, Any]) -> Tenant:
    """Read a tenant."""
    values = decode(TenantItem, item)
    return Tenant(values["tenant_id"], values["tier"], values["state"])


def encode_handler(handler: Handler) -> Item:
    """Write a handler."""
    return encode(
        HandlerItem,
        {
            "control_key": layout.tenant_key(handler.tenant_id),
            "item": layout.handler_sort(handler.name),
            "schema": layout.SCHEMA,
            "tenant_id": handler.tenant_id,
            "name": handler.name,
            "routing": handler.routing,
        },
    )


def handler_item_key(tenant_id: str, name: str) -> Item:
    """Return the key of a handler."""
    return encode(
        HandlerItem,
        {
            "control_key": layout.tenant_key(tenant_id),
            "item": layout.handler_sort(name),
        },
    )


def decode_handler(item: Mapping[str, Any]) -> Handler:
    """Read a handler."""
    values = decode(HandlerItem, item)
    return Handler(values["tenant_id"], values["name"], values["routing"])


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
    )
