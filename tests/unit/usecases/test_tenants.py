"""Administering tenants, with others at it at the same time."""

from dataclasses import replace

import pytest
from hourbell.adapters.memory import MemoryDirectory, MemoryStore
from hourbell.domain.definition import Quotas, Tenant, TenantState, Tier
from hourbell.domain.errors import (
    Conflict,
    InvalidInput,
    PreconditionFailed,
    Transient,
)
from hourbell.usecases.expected import Expected
from hourbell.usecases.kept import Kept
from hourbell.usecases.ports import Write
from hourbell.usecases.tenants import (
    QuotaChange,
    Registrar,
    TenantChange,
    add_principal,
    change_tenant,
    create_tenant,
    list_principals,
)

ACME = Tenant("acme", Tier.STANDARD)
ANN = "arn:aws:iam::123456789012:user/ann"


class Contended(MemoryDirectory):
    """A directory in which somebody else is first for a while."""

    def __init__(self, store: MemoryStore, times: int) -> None:
        super().__init__(store)
        self.times = times

    def change_tenant(self, tenant: Tenant, *, revision: int) -> Write:
        if self.times:
            self.times -= 1
            stored = self._store.tenants[tenant.tenant_id]
            self._store.tenants[tenant.tenant_id] = replace(
                stored, weight=stored.weight + 1, revision=stored.revision + 1
            )
        return super().change_tenant(tenant, revision=revision)


def registrar(times: int = 0) -> Registrar:
    found = Registrar(Contended(MemoryStore(), times))
    create_tenant(found, ACME, [ANN])
    return found


def test_a_change_keeps_what_it_does_not_name() -> None:
    quotas = QuotaChange(payload_bytes=1_000)
    changed = change_tenant(registrar(), "acme", TenantChange(quotas=quotas))
    expected = replace(ACME, quotas=Quotas(payload_bytes=1_000), revision=2)
    assert changed == expected


def test_the_catch_up_rate_is_changed_alone() -> None:
    quotas = QuotaChange(catch_up_per_minute=90)
    changed = change_tenant(registrar(), "acme", TenantChange(quotas=quotas))
    assert changed.quotas == Quotas(5_000, 65_536, 60, 90)


@pytest.mark.parametrize("rate", [7, None])
def test_the_rate_of_triggers_is_changed_alone(rate: int | None) -> None:
    found = registrar()
    for each in (9, rate):
        quotas = QuotaChange(triggers_per_minute=each)
        changed = change_tenant(found, "acme", TenantChange(quotas=quotas))
    assert changed.quotas == Quotas(5_000, 65_536, 60, 600, rate)


@pytest.mark.parametrize("limit", [7, None])
def test_what_workers_may_do_is_changed_alone(limit: int | None) -> None:
    found = registrar()
    for running, retries in ((9, 90), (limit, Kept.KEPT)):
        quotas = QuotaChange(running=running, retries_per_minute=retries)
        changed = change_tenant(found, "acme", TenantChange(quotas=quotas))
    assert changed.quotas == Quotas(running=limit, retries_per_minute=90)


def test_a_change_that_changes_nothing_keeps_the_revision() -> None:
    found = registrar()
    change = TenantChange(tier=Tier.STANDARD, weight=1)
    assert change_tenant(found, "acme", change) == ACME
    assert found.directory.find_tenant("acme") == ACME


def test_without_a_revision_another_change_is_built_upon() -> None:
    found = registrar(times=2)
    changed = change_tenant(found, "acme", TenantChange(tier=Tier.PREMIUM))
    assert (changed.tier, changed.weight, changed.revision) == (Tier.PREMIUM, 3, 4)


def test_with_a_revision_another_change_wins() -> None:
    change, expected = TenantChange(tier=Tier.PREMIUM), Expected(frozenset({1}))
    with pytest.raises(PreconditionFailed) as caught:
        change_tenant(registrar(times=1), "acme", change, expected=expected)
    assert caught.value.members == {"revision": 2}


def test_endless_contention_is_told() -> None:
    with pytest.raises(Transient):
        change_tenant(registrar(times=9), "acme", TenantChange(tier=Tier.PREMIUM))


@pytest.mark.parametrize("reason", [None, ""])
def test_a_suspension_has_a_reason(reason: str | None) -> None:
    change = TenantChange(state=TenantState.SUSPENDED, reason=reason)
    with pytest.raises(InvalidInput) as caught:
        change_tenant(registrar(), "acme", change)
    assert caught.value.findings[0].field == "reason"


def test_a_principal_given_twice_is_registered_once() -> None:
    found = registrar()
    role = "arn:aws:iam::123456789012:role/x/job"
    session = "arn:aws:sts::123456789012:assumed-role/job/s"
    done = create_tenant(found, Tenant("zenith", Tier.BASIC), [role, session])
    assert done == ("123456789012:role/job",)
    assert list_principals(found, "zenith") == done


def test_every_wrong_principal_is_named() -> None:
    with pytest.raises(InvalidInput) as caught:
        create_tenant(registrar(), Tenant("zenith", Tier.BASIC), ["*", ANN, "x"])
    places = [finding.field for finding in caught.value.findings]
    assert places == ["principals.0", "principals.2"]


def test_a_principal_calls_for_one_tenant_only() -> None:
    found = registrar()
    create_tenant(found, Tenant("zenith", Tier.BASIC), [])
    with pytest.raises(Conflict) as caught:
        add_principal(found, "zenith", ANN)
    assert caught.value.code == "principal_taken"
    assert add_principal(found, "acme", ANN) == "123456789012:user/ann"


def test_the_platforms_own_principals_are_never_a_tenants() -> None:
    found = replace(registrar(), operators=frozenset({"123456789012:role/ops"}))
    ops = "arn:aws:iam::123456789012:role/ops"
    with pytest.raises(Conflict):
        add_principal(found, "acme", ops)
    with pytest.raises(Conflict):
        create_tenant(found, Tenant("zenith", Tier.BASIC), [ops])
    assert found.directory.find_tenant("zenith") is None
