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

    def find_tenant(self, tenant_id: str) -> Tenant | None:
        """Return a tenant."""
        return self._store.tenants.get(tenant_id)

    def list_tenants(self, *, after: str | None, limit: int) -> tuple[Tenant, ...]:
        """Return tenants with ids above `after`, in order of id."""
        stored = self._store.tenants
        ids = sorted(each for each in stored if after is None or each > after)
        return tuple(stored[each] for each in ids[:limit])

    def change_tenant(self, tenant: Tenant, *, revision: int) -> Write:
        """Store a tenant whose stored revision is `revision`."""
        stored = self._store.tenants.get(tenant.tenant_id)
        if stored is None or stored.revision != revision:
            return Write.LOST
        self._store.tenants[tenant.tenant_id] = tenant
        return Write.APPLIED

    def principals_of(self, tenant_id: str) -> tuple[str, ...]:
        """Return the principals registered on a tenant, in order."""
        registered = self._store.principals.items()
        return tuple(sorted(each for each, owner in registered if owner == tenant_id))

    def add_principal(self, tenant_id: str, principal: str) -> Write:
        """Register a principal that is free."""
        if principal in self._store.principals:
            return Write.EXISTS
        self._store.principals[principal] = tenant_id
        return Write.APPLIED

    def remove_principal(self, tenant_id: str, principal: str) -> Write:
        """Take a principal off a tenant that it is registered on."""
        if self._store.principals.get(principal) != tenant_id:
            return Write.LOST
        del self._store.principals[principal]
        return Write.APPLIED

    def named_handlers(
        self, refs: Iterable[tuple[str, str]]
    ) -> dict[tuple[str, str], Handler]:
        """Return those of (tenant_id, name) that exist."""
        stored = self._store.handlers
        return {ref: stored[ref] for ref in dict.fromkeys(refs) if ref in stored}

    def handlers(
        self, tenant_id: str, *, after: str | None, limit: int
    ) -> tuple[Handler, ...]:
        """Return handlers with names above `after`, in order of name."""
        stored = self._store.handlers
        names = sorted(
            name
            for owner, name in stored
            if owner == tenant_id and (after is None or name > after)
        )
        return tuple(stored[tenant_id, name] for name in names[:limit])

    def change_handler(self, handler: Handler, *, revision: int) -> Write:
        """Store a handler whose stored revision is `revision`."""
        key = (handler.tenant_id, handler.name)
        stored = self._store.handlers.get(key)
        if stored is None or stored.revision != revision:
            return Write.LOST
        self._store.handlers[key] = handler
        return Write.APPLIED
