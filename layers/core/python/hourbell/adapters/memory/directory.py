"""Tenants, principals and handlers in memory."""

from collections.abc import Iterable, Sequence

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.definition import Handler, Tenant
from hourbell.usecases.ports import Write


class MemoryDirectory:
    """The `Directory` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def tenant_of(self, principal: str) -> Tenant | None:
        """Return the tenant that a principal is registered on."""
        tenant_id = self._store.principals.get(principal)
        return None if tenant_id is None else self._store.tenants.get(tenant_id)

    def tenants(self, tenant_ids: Iterable[str]) -> dict[str, Tenant]:
        """Return those of the tenants that exist."""
        stored = self._store.tenants
        return {each: stored[each] for each in tenant_ids if each in stored}

    def handler(self, tenant_id: str, name: str) -> Handler | None:
        """Return a handler of a tenant."""
        return self._store.handlers.get((tenant_id, name))

    def register_tenant(self, tenant: Tenant, principals: Sequence[str]) -> Write:
        """Create a tenant and its principals, or nothing."""
        store = self._store
        taken = any(principal in store.principals for principal in principals)
        if taken or tenant.tenant_id in store.tenants:
            return Write.EXISTS
        store.tenants[tenant.tenant_id] = tenant
        store.principals.update(dict.fromkeys(principals, tenant.tenant_id))
        return Write.APPLIED

    def register_handler(self, handler: Handler) -> Write:
        """Create a handler."""
        key = (handler.tenant_id, handler.name)
        if key in self._store.handlers:
            return Write.EXISTS
        self._store.handlers[key] = handler
        return Write.APPLIED
