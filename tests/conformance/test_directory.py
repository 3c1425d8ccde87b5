"""The `Directory` port."""

from dataclasses import replace

import pytest
from hourbell.domain.definition import (
    Handler,
    HandlerState,
    Quotas,
    Routing,
    Tenant,
    TenantState,
    Tier,
)
from hourbell.usecases.ports import Write

from tests.conformance.worlds import World

ACME = Tenant("acme", Tier.PREMIUM)
ROLE = "123456789012:role/acme"
ANN = "123456789012:user/ann"
FULL = Tenant(
    "full",
    Tier.BASIC,
    TenantState.SUSPENDED,
    Quotas(7, 8, 9),
    weight=3,
    revision=5,
    reason="unpaid",
)
REPORTS = Handler("acme", "reports")


def test_a_registered_principal_leads_to_its_tenant(world: World) -> None:
    answer = world.directory.register_tenant(ACME, [ROLE, ANN])

    assert answer is Write.APPLIED
    assert world.directory.tenant_of(ROLE) == ACME
    assert world.directory.tenant_of(ANN) == ACME


def test_an_unknown_principal_has_no_tenant_until_it_is_registered(
    world: World,
) -> None:
    assert world.directory.tenant_of(ROLE) is None
    world.directory.register_tenant(ACME, [ROLE])
    assert world.directory.tenant_of(ROLE) == ACME


def test_a_tenant_id_is_taken_once(world: World) -> None:
    world.directory.register_tenant(ACME, [ROLE])

    again = world.directory.register_tenant(Tenant("acme", Tier.BASIC), ["other"])

    assert again is Write.EXISTS
    assert world.directory.tenants(["acme"]) == {"acme": ACME}
    assert world.directory.tenant_of("other") is None


def test_a_principal_belongs_to_one_tenant(world: World) -> None:
    world.directory.register_tenant(ACME, [ROLE])

    rival = world.directory.register_tenant(Tenant("rival", Tier.BASIC), ["x", ROLE])

    assert rival is Write.EXISTS
    assert world.directory.tenants(["rival"]) == {}
    assert world.directory.find_tenant("rival") is None
    assert world.directory.list_tenants(after=None, limit=9) == (ACME,)
    assert world.directory.principals_of("rival") == ()
    assert world.directory.tenant_of("x") is None
    assert world.directory.tenant_of(ROLE) == ACME


def test_tenants_returns_those_that_exist(world: World) -> None:
    world.directory.register_tenant(ACME, [])
    world.directory.register_tenant(FULL, [])

    found = world.directory.tenants(["acme", "nobody", "full", "acme"])

    assert found == {"acme": ACME, "full": FULL}
    assert world.directory.tenants([]) == {}


def test_find_tenant_returns_every_field(world: World) -> None:
    world.directory.register_tenant(FULL, [])

    assert world.directory.find_tenant("full") == FULL
    assert world.directory.find_tenant("nobody") is None


def test_tenants_are_listed_in_order_of_id(world: World) -> None:
    stored = [Tenant(f"t{n}", Tier.BASIC) for n in range(12)]
    for tenant in reversed(stored):
        world.directory.register_tenant(tenant, [])
    in_order = tuple(sorted(stored, key=lambda tenant: tenant.tenant_id))

    first = world.directory.list_tenants(after=None, limit=5)
    second = world.directory.list_tenants(after=first[-1].tenant_id, limit=5)
    last = world.directory.list_tenants(after=second[-1].tenant_id, limit=5)

    assert first + second + last == in_order
    assert (len(first), len(second), len(last)) == (5, 5, 2)
    assert world.directory.list_tenants(after="t9", limit=5) == ()
    assert world.directory.list_tenants(after="t1~", limit=1) == (stored[2],)


def test_a_tenant_is_changed_from_its_revision_only(world: World) -> None:
    changed = replace(FULL, tenant_id="acme", revision=2)
    assert world.directory.change_tenant(changed, revision=1) is Write.LOST
    assert world.directory.find_tenant("acme") is None
    world.directory.register_tenant(ACME, [ROLE])

    assert world.directory.change_tenant(changed, revision=1) is Write.APPLIED
    assert world.directory.find_tenant("acme") == changed
    assert world.directory.list_tenants(after=None, limit=9) == (changed,)

    later = replace(changed, weight=9, revision=3)
    assert world.directory.change_tenant(later, revision=1) is Write.LOST
    assert world.directory.find_tenant("acme") == changed


def test_principals_are_listed_in_order(world: World) -> None:
    world.directory.register_tenant(ACME, [ANN, ROLE])
    world.directory.register_tenant(FULL, ["x"])
    world.directory.register_handler(REPORTS)

    assert world.directory.add_principal("acme", "000000000000:root") is Write.APPLIED

    listed = world.directory.principals_of("acme")
    assert listed == ("000000000000:root", ROLE, ANN)
    assert world.directory.principals_of("nobody") == ()
    assert world.directory.tenant_of("000000000000:root") == ACME


@pytest.mark.parametrize("tenant_id", ["acme", "full"])
def test_a_taken_principal_is_not_added(world: World, tenant_id: str) -> None:
    world.directory.register_tenant(ACME, [ROLE])
    world.directory.register_tenant(FULL, [])

    assert world.directory.add_principal(tenant_id, ROLE) is Write.EXISTS

    assert world.directory.tenant_of(ROLE) == ACME
    assert world.directory.principals_of("full") == ()


def test_a_principal_is_taken_off_its_own_tenant_only(world: World) -> None:
    world.directory.register_tenant(ACME, [ROLE, ANN])
    world.directory.register_tenant(FULL, [])

    assert world.directory.remove_principal("full", ROLE) is Write.LOST
    assert world.directory.remove_principal("acme", "nobody") is Write.LOST
    assert world.directory.principals_of("acme") == (ROLE, ANN)
    assert world.directory.remove_principal("acme", ROLE) is Write.APPLIED

    assert world.directory.tenant_of(ROLE) is None
    assert world.directory.principals_of("acme") == (ANN,)
    assert world.directory.remove_principal("acme", ROLE) is Write.LOST
    assert world.directory.add_principal("full", ROLE) is Write.APPLIED
    assert world.directory.tenant_of(ROLE) == FULL


def test_a_handler_is_registered_once_per_tenant(world: World) -> None:
    assert world.directory.handler("acme", "reports") is None
    assert world.directory.register_handler(REPORTS) is Write.APPLIED
    assert world.directory.register_handler(REPORTS) is Write.EXISTS
    assert world.directory.handler("acme", "reports") == REPORTS
    assert world.directory.handler("rival", "reports") is None
    assert world.directory.handler("acme", "other") is None


def test_a_handler_is_changed_from_its_revision_only(world: World) -> None:
    full = Handler(
        "acme",
        "reports",
        Routing.EXTERNAL,
        HandlerState.RETIRED,
        queue_arn="arn:aws:sqs:eu-central-1:123456789012:reports",
        dispatch_rate=50,
        description="für Berichte",
        revision=2,
        dead_letter_queue_arn="arn:aws:sqs:eu-central-1:123456789012:letters",
    )
    assert world.directory.change_handler(full, revision=1) is Write.LOST
    assert world.directory.handler("acme", "reports") is None
    world.directory.register_handler(REPORTS)

    assert world.directory.change_handler(full, revision=1) is Write.APPLIED
    assert world.directory.handler("acme", "reports") == full
    assert world.directory.change_handler(full, revision=1) is Write.LOST

    plain = replace(REPORTS, revision=3)
    assert world.directory.change_handler(plain, revision=2) is Write.APPLIED
    assert world.directory.handler("acme", "reports") == plain


def test_named_handlers_returns_those_that_exist(world: World) -> None:
    foreign = Handler("full", "reports", Routing.DEDICATED)
    world.directory.register_handler(REPORTS)
    world.directory.register_handler(foreign)
    mine, theirs = ("acme", "reports"), ("full", "reports")

    found = world.directory.named_handlers([mine, ("acme", "no"), theirs, mine])

    assert found == {mine: REPORTS, theirs: foreign}
    assert world.directory.named_handlers([]) == {}


def test_handlers_are_listed_in_order_of_name(world: World) -> None:
    world.directory.register_tenant(ACME, [ROLE])
    stored = [Handler("acme", f"h{n}") for n in range(7)]
    for handler in reversed(stored):
        world.directory.register_handler(handler)
    world.directory.register_handler(Handler("full", "h9"))

    first = world.directory.handlers("acme", after=None, limit=4)
    rest = world.directory.handlers("acme", after="h3", limit=4)

    assert [*first, *rest] == stored
    assert world.directory.handlers("acme", after="h6", limit=4) == ()
    assert world.directory.handlers("acme", after="h3~", limit=1) == (stored[4],)
