"""Tenants, principals and handlers on DynamoDB."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from pynamodb.expressions.condition import Condition

from hourbell.adapters.cache import ExpiringCache
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, readable
from hourbell.adapters.dynamodb.control_items import (
    decode_handler,
    decode_listed,
    decode_own_principal,
    decode_principal,
    decode_tenant,
    encode_handler,
    encode_listed,
    encode_own_principal,
    encode_principal,
    encode_tenant,
    handler_item_key,
    handler_values,
    own_principal_key,
    principal_item_key,
    tenant_item_key,
    tenant_values,
)
from hourbell.adapters.dynamodb.expressions import assignments
from hourbell.adapters.dynamodb.layout import (
    CONTROL,
    HANDLERS,
    PRINCIPALS,
    TENANT_LIST,
    tenant_key,
)
from hourbell.adapters.dynamodb.models import (
    HandlerItem,
    PrincipalItem,
    TenantItem,
)
from hourbell.adapters.dynamodb.reading import batch_get, filled, get_item, query
from hourbell.adapters.dynamodb.transactions import (
    Delete,
    Put,
    Update,
    put_together,
    write_together,
)
from hourbell.domain.definition import Handler, Tenant
from hourbell.usecases.ports import Clock, Write

MAX_AGE_SECONDS: Final = 30


class DynamoDirectory:
    """The `Directory` port.

    What the hot paths ask for (a caller's tenant, tenants and handlers of many rows)
    is remembered for 30 s, so that a suspended tenant notices soon; what does not
    exist is asked for again, so that a new tenant can start at once.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._table = database.tables.control
        self._tenants: ExpiringCache[str, Tenant]
        self._tenants = ExpiringCache(clock, MAX_AGE_SECONDS)
        self._principals: ExpiringCache[str, str]
        self._principals = ExpiringCache(clock, MAX_AGE_SECONDS)
        self._handlers: ExpiringCache[tuple[str, str], Handler]
        self._handlers = ExpiringCache(clock, MAX_AGE_SECONDS)

    def tenant_of(self, principal: str) -> Tenant | None:
        """Return the tenant that a normalized principal is registered on."""
        tenant_id = self._principals.get(principal)
        if tenant_id is None:
            key = principal_item_key(principal)
            item = get_item(self._database, self._table, key, consistent=True)
            if item is None:
                return None
            tenant_id = decode_principal(item)
            self._principals.put(principal, tenant_id)
        return self.tenants([tenant_id]).get(tenant_id)

    def tenants(self, tenant_ids: Iterable[str]) -> dict[str, Tenant]:
        """Return those of the tenants that exist."""
        wanted = dict.fromkeys(tenant_ids)
        found = {each: self._tenants.get(each) for each in wanted}
        missing = [each for each, tenant in found.items() if tenant is None]
        keys = [tenant_item_key(each) for each in missing]
        for item in batch_get(self._database, self._table, keys, consistent=True):
            tenant = decode_tenant(item)
            self._tenants.put(tenant.tenant_id, tenant)
            found[tenant.tenant_id] = tenant
        return {each: tenant for each, tenant in found.items() if tenant is not None}

    def handler(self, tenant_id: str, name: str) -> Handler | None:
        """Return a handler of a tenant, consistently."""
        key = handler_item_key(tenant_id, name)
        item = get_item(self._database, self._table, key, consistent=True)
        if item is None:
            return None
        handler = decode_handler(item)
        self._handlers.put((tenant_id, name), handler)
        return handler

    def register_tenant(self, tenant: Tenant, principals: Sequence[str]) -> Write:
        """Create a tenant and its principals, at most 49, in one transaction."""
        items = [encode_tenant(tenant), encode_listed(tenant.tenant_id)]
        for each in principals:
            items += _principal_items(each, tenant.tenant_id)
        puts = [Put(self._table, CONTROL, item) for item in items]
        return put_together(self._database, puts)

    def register_handler(self, handler: Handler) -> Write:
        """Create a handler."""
        put = Put(self._table, CONTROL, encode_handler(handler))
        return put_together(self._database, [put])

    def find_tenant(self, tenant_id: str) -> Tenant | None:
        """Return a tenant by a consistent read."""
        key = tenant_item_key(tenant_id)
        item = get_item(self._database, self._table, key, consistent=True)
        return None if item is None else decode_tenant(item)

    def list_tenants(self, *, after: str | None, limit: int) -> tuple[Tenant, ...]:
        """Return tenants with ids above `after`, in order of id."""
        return filled(
            limit,
            lambda last: self._query(TENANT_LIST, "", _place(last, "", after), limit),
            self._listed_tenants,
        )

    def _listed_tenants(self, listed: Sequence[Item]) -> list[Tenant]:
        ids = readable("listed tenant", decode_listed, listed)
        keys = [tenant_item_key(each) for each in ids]
        items = batch_get(self._database, self._table, keys, consistent=True)
        found = readable("tenant", decode_tenant, items)
        return sorted(found, key=lambda tenant: tenant.tenant_id)

    def change_tenant(self, tenant: Tenant, *, revision: int) -> Write:
        """Store a tenant whose stored revision is `revision`."""
        update = Update(
            self._table,
            tenant_item_key(tenant.tenant_id),
            _stands(TenantItem, revision),
            assignments(TenantItem, tenant_values(tenant)),
        )
        self._tenants.forget(tenant.tenant_id)
        return write_together(self._database, update)

    def principals_of(self, tenant_id: str) -> tuple[str, ...]:
        """Return the principals registered on a tenant, in order."""
        items = self._query(tenant_key(tenant_id), PRINCIPALS, None, None)
        return tuple(map(decode_own_principal, items))

    def add_principal(self, tenant_id: str, principal: str) -> Write:
        """Register a principal; EXISTS when it is taken, by whatever tenant."""
        items = _principal_items(principal, tenant_id)
        return put_together(
            self._database, [Put(self._table, CONTROL, item) for item in items]
        )

    def remove_principal(self, tenant_id: str, principal: str) -> Write:
        """Take a principal off a tenant; LOST when it is not registered on it."""
        own = PrincipalItem.tenant_id == tenant_id
        self._principals.forget(principal)
        return write_together(
            self._database,
            Delete(self._table, principal_item_key(principal), own),
            Delete(self._table, own_principal_key(principal, tenant_id), own),
        )

    def named_handlers(
        self, refs: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], Handler]:
        """Return those of (tenant_id, name) that exist."""
        found = {each: self._handlers.get(each) for each in refs}
        missing = [each for each, handler in found.items() if handler is None]
        keys = [handler_item_key(*each) for each in missing]
        for item in batch_get(self._database, self._table, keys, consistent=True):
            handler = decode_handler(item)
            ref = (handler.tenant_id, handler.name)
            self._handlers.put(ref, handler)
            found[ref] = handler
        return {ref: handler for ref, handler in found.items() if handler is not None}

    def handlers(
        self, tenant_id: str, *, after: str | None, limit: int
    ) -> tuple[Handler, ...]:
        """Return handlers with names above `after`, in order of name."""
        partition, prefix = tenant_key(tenant_id), HANDLERS
        return filled(
            limit,
            lambda last: self._query(
                partition, prefix, _place(last, prefix, after), limit
            ),
            partial(readable, "handler", decode_handler),
        )

    def change_handler(self, handler: Handler, *, revision: int) -> Write:
        """Store a handler whose stored revision is `revision`."""
        update = Update(
            self._table,
            handler_item_key(handler.tenant_id, handler.name),
            _stands(HandlerItem, revision),
            assignments(HandlerItem, handler_values(handler)),
        )
        self._handlers.forget((handler.tenant_id, handler.name))
        return write_together(self._database, update)

    def _query(
        self, partition: str, prefix: str, after: str | None, limit: int | None
    ) -> list[Any]:
        """Return items whose sort keys begin with `prefix` and go on after `after`."""
        # The least text above `prefix + after`, and one above all that begin with it.
        first = prefix if after is None else f"{prefix}{after}\x00"
        return query(
            self._database,
            limit,
            TableName=self._table,
            KeyConditionExpression="#key = :key AND #item BETWEEN :first AND :last",
            ExpressionAttributeNames={
                "#key": CONTROL.partition,
                "#item": CONTROL.sort,
            },
            ExpressionAttributeValues={
                ":key": {"S": partition},
                ":first": {"S": first or "\x00"},
                ":last": {"S": f"{prefix}\U0010ffff"},
            },
            ConsistentRead=True,
        )


def _place(last: Item | None, prefix: str, otherwise: str | None) -> str | None:
    """Return what the sort key of a list's item says after its prefix."""
    if last is None:
        return otherwise
    return str(last[CONTROL.sort]["S"]).removeprefix(prefix)


def _principal_items(principal: str, tenant_id: str) -> list[Item]:
    return [
        encode_principal(principal, tenant_id),
        encode_own_principal(principal, tenant_id),
    ]


def _stands(model: type[TenantItem | HandlerItem], revision: int) -> Condition:
    """Return the condition that an item exists and has this revision."""
    same: Condition = model.revision == revision
    if revision == 1:
        # What was written before there were revisions has the first one.
        same |= model.item.exists() & model.revision.does_not_exist()
    return same
