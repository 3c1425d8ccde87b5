"""Administer tenants: who they are, what they may use, and who may call for them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from hourbell.domain.definition import Quotas, Tenant, TenantState, Tier
from hourbell.domain.errors import (
    Conflict,
    Finding,
    InvalidInput,
    NotFound,
    Transient,
)
from hourbell.domain.names import is_tenant_id
from hourbell.usecases.expected import ANY, Expected
from hourbell.usecases.identify import registered_form
from hourbell.usecases.kept import Kept
from hourbell.usecases.paging import page_after
from hourbell.usecases.ports import Directory, Write

MAX_PRINCIPALS_AT_ONCE: Final = 49
"""Principals of a create, which is one transaction."""

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Registrar:
    """What administering tenants needs.

    Attributes:
        operators: normalized principals of the platform role; no tenant may have them.
    """

    directory: Directory
    operators: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """The quotas that a change names; None leaves one as it is.

    Attributes:
        triggers_per_minute: None is any number; KEPT leaves it as it is. So it is with
            `running`, `retries_per_minute` and `retry_deadline_seconds`.
    """

    schedules: int | None = None
    payload_bytes: int | None = None
    min_interval_seconds: int | None = None
    catch_up_per_minute: int | None = None
    triggers_per_minute: int | Kept | None = Kept.KEPT
    running: int | Kept | None = Kept.KEPT
    retries_per_minute: int | Kept | None = Kept.KEPT
    retry_attempts: int | None = None
    retry_deadline_seconds: int | Kept | None = Kept.KEPT

    def applied_to(self, quotas: Quotas) -> Quotas:
        """Return the quotas after the change."""
        return Quotas(
            _first(self.schedules, quotas.schedules),
            _first(self.payload_bytes, quotas.payload_bytes),
            _first(self.min_interval_seconds, quotas.min_interval_seconds),
            _first(self.catch_up_per_minute, quotas.catch_up_per_minute),
            _said(self.triggers_per_minute, quotas.triggers_per_minute),
            _said(self.running, quotas.running),
            _said(self.retries_per_minute, quotas.retries_per_minute),
            _first(self.retry_attempts, quotas.retry_attempts),
            _said(self.retry_deadline_seconds, quotas.retry_deadline_seconds),
        )


@dataclass(frozen=True, slots=True)
class TenantChange:
    """What a change names; None leaves a field as it is.

    Attributes:
        reason: why the state is changed; needed for a suspension.
    """

    tier: Tier | None = None
    state: TenantState | None = None
    reason: str | None = None
    quotas: QuotaChange = QuotaChange()
    weight: int | None = None

    def applied_to(self, tenant: Tenant) -> Tenant:
        """Return the tenant after the change, its revision as it was."""
        return replace(
            tenant,
            tier=self.tier or tenant.tier,
            state=self.state or tenant.state,
            quotas=self.quotas.applied_to(tenant.quotas),
            weight=_first(self.weight, tenant.weight),
            reason=tenant.reason if self.reason is None else self.reason,
        )


@dataclass(frozen=True, slots=True)
class TenantPage:
    """Tenants in order of id; `after` is where the next page begins, if any."""

    tenants: tuple[Tenant, ...]
    after: str | None


def create_tenant(
    registrar: Registrar, tenant: Tenant, principals: Sequence[str]
) -> tuple[str, ...]:
    """Store a tenant with its first principals, or nothing.

    Args:
        registrar: the ports.
        tenant: at revision 1.
        principals: ARNs of those who may call for it.

    Returns:
        the principals in the form in which they are registered.

    Raises:
        InvalidInput: an ARN is none of a role or user (`invalid_principal`).
        Conflict: the id is taken (`tenant_exists`) or a principal (`principal_taken`).
    """
    places = [f"principals.{place}" for place in range(len(principals))]
    registered = _registered(principals, places)
    if registrar.operators.intersection(registered):
        raise _principal_taken()
    written = registrar.directory.register_tenant(tenant, registered)
    if written is Write.EXISTS:
        if registrar.directory.find_tenant(tenant.tenant_id) is None:
            raise _principal_taken()
        raise Conflict("There is a tenant with this id.", code="tenant_exists")
    return tuple(sorted(registered))


def get_tenant(registrar: Registrar, tenant_id: str) -> Tenant:
    """Return a tenant as it is stored now.

    Raises:
        NotFound: there is none with this id.
    """
    found = None
    if is_tenant_id(tenant_id):
        found = registrar.directory.find_tenant(tenant_id)
    if found is None:
        raise NotFound("There is no tenant with this id.")
    return found


def list_tenants(registrar: Registrar, *, after: str | None, limit: int) -> TenantPage:
    """Return a page of all tenants, in order of id.

    Args:
        registrar: the ports.
        after: where an earlier page ended; None for the first.
        limit: the most that a page holds.

    Raises:
        InvalidInput: no page ended there (`invalid_cursor`).
    """
    page = page_after(
        after,
        limit,
        lambda most: registrar.directory.list_tenants(after=after, limit=most),
        place_of=lambda tenant: tenant.tenant_id,
        is_place=is_tenant_id,
    )
    return TenantPage(*page)


def change_tenant(
    registrar: Registrar,
    tenant_id: str,
    change: TenantChange,
    *,
    expected: Expected = ANY,
) -> Tenant:
    """Change what the change names, and count the revision up if anything differs.

    A suspension stops the API for the tenant's callers, within 30 s; what is scheduled
    goes on.

    Args:
        registrar: the ports.
        tenant_id: whom to change.
        change: what shall be different.
        expected: which revisions it was made for.

    Raises:
        InvalidInput: a suspension without a reason (`missing`).
        NotFound: there is none with this id.
        PreconditionFailed: the stored revision is none of those.
        Transient: others kept changing it.
    """
    if change.state is TenantState.SUSPENDED and not change.reason:
        message = "A suspension needs a reason."
        raise InvalidInput.of("reason", "missing", message)
    for _ in range(_ROUNDS):
        stored = get_tenant(registrar, tenant_id)
        expected.check(stored.revision)
        changed = change.applied_to(stored)
        if changed == stored:
            return stored
        changed = replace(changed, revision=stored.revision + 1)
        answer = registrar.directory.change_tenant(changed, revision=stored.revision)
        if answer is Write.APPLIED:
            return changed
    raise Transient(f"tenant {tenant_id} is being changed by others")


def list_principals(registrar: Registrar, tenant_id: str) -> tuple[str, ...]:
    """Return who may call for a tenant, in normalized form and in order.

    Raises:
        NotFound: there is no such tenant.
    """
    tenant = get_tenant(registrar, tenant_id)
    return registrar.directory.principals_of(tenant.tenant_id)


def add_principal(registrar: Registrar, tenant_id: str, principal: str) -> str:
    """Let one more identity call for a tenant; once more is no error.

    Returns:
        the form in which it is registered.

    Raises:
        InvalidInput: it is not the ARN of a role or user (`invalid_principal`).
        NotFound: there is no such tenant.
        Conflict: it calls for somebody else (`principal_taken`).
    """
    registered = registered_form(principal)
    tenant = get_tenant(registrar, tenant_id)
    if registered in registrar.operators:
        raise _principal_taken()
    directory = registrar.directory
    if directory.add_principal(tenant.tenant_id, registered) is Write.APPLIED:
        return registered
    if registered not in directory.principals_of(tenant.tenant_id):
        raise _principal_taken()
    return registered


def remove_principal(registrar: Registrar, tenant_id: str, principal: str) -> str:
    """Let an identity no longer call for a tenant; it takes effect within 30 s.

    Returns:
        the form in which it was registered.

    Raises:
        InvalidInput: it is not the ARN of a role or user (`invalid_principal`).
        NotFound: there is no such tenant, or it is not registered on it.
    """
    registered = registered_form(principal)
    tenant = get_tenant(registrar, tenant_id)
    answer = registrar.directory.remove_principal(tenant.tenant_id, registered)
    if answer is not Write.APPLIED:
        raise NotFound("The principal is not registered on this tenant.")
    return registered


def _registered(principals: Sequence[str], places: Sequence[str]) -> tuple[str, ...]:
    """Return the normalized forms, each once, or all that is wrong."""
    found: list[str] = []
    findings: list[Finding] = []
    for principal, place in zip(principals, places, strict=True):
        try:
            found.append(registered_form(principal, field=place))
        except InvalidInput as error:
            findings += error.findings
    if findings:
        raise InvalidInput(findings=tuple(findings))
    return tuple(dict.fromkeys(found))


def _principal_taken() -> Conflict:
    return Conflict(
        "A principal is registered elsewhere; it can call for one tenant only.",
        code="principal_taken",
    )


def _first(given: int | None, otherwise: int) -> int:
    return otherwise if given is None else given


def _said(given: int | Kept | None, otherwise: int | None) -> int | None:
    return otherwise if isinstance(given, Kept) else given
