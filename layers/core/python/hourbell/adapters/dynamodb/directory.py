"""Tenants, principals and handlers on DynamoDB."""

from collections.abc import Iterable, Sequence
from typing import Final

from hourbell.adapters.cache import ExpiringCache
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.control_items import (
    decode_handler,
    decode_principal,
    decode_tenant,
    encode_handler,
    encode_principal,
    encode_tenant,
    handler_item_key,
    principal_item_key,
    tenant_item_key,
)
from hourbell.adapters.dynamodb.layout import CONTROL
from hourbell.adapters.dynamodb.reading import batch_get, get_item
from hourbell.adapters.dynamodb.transactions import Put, put_together
from hourbell.domain.definition import Handler, Tenant
from hourbell.usecases.ports import Clock, Write

MAX_AGE_SECONDS: Final = 30


class DynamoDirectory:
    """The `Directory` port.

    What exists is remembered for 30 s, so that a suspended tenant notices soon; what
    does not exist is asked for again, so that a new tenant can start at once.
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
        """Return a handler of a tenant."""
        handler = self._handlers.get((tenant_id, name))
        if handler is None:
            key = handler_item_key(tenant_id, name)
            item = get_item(self._database, self._table, key, consistent=True)
            if item is None:
                return None
            handler = decode_handler(item)
            self._handlers.put((tenant_id, name), handler)
        return handler

    def register_tenant(self, tenant: Tenant, principals: Sequence[str]) -> Write:
        """Create a tenant and its principals in one transaction."""
        items = [encode_principal(each, tenant.tenant_id) for each in principals]
        puts = [
            Put(self._table, CONTROL, item) for item in (encode_tenant(tenant), *items)
        ]
        return put_together(self._database, puts)

    def register_handler(self, handler: Handler) -> Write:
        """Create a handler."""
        put = Put(self._table, CONTROL, encode_handler(handler))
        return put_together(self._database, [put])
