"""The `Directory` port."""

from hourbell.domain.definition import Handler, Tenant, TenantState, Tier
from hourbell.usecases.ports import Write

from tests.conformance.worlds import World

ACME = Tenant("acme", Tier.PREMIUM)
ROLE = "123456789012:role/acme"


def test_a_registered_principal_leads_to_its_tenant(world: World) -> None:
    answer = world.directory.register_tenant(ACME, [ROLE, "123456789012:user/ann"])

    assert answer is Write.APPLIED
    assert world.directory.tenant_of(ROLE) == ACME
    assert world.directory.tenant_of("123456789012:user/ann") == ACME


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
    assert world.directory.tenant_of("x") is None
    assert world.directory.tenant_of(ROLE) == ACME


def test_tenants_returns_those_that_exist(world: World) -> None:
    frozen = Tenant("frozen", Tier.BASIC, TenantState.SUSPENDED)
    world.directory.register_tenant(ACME, [])
    world.directory.register_tenant(frozen, [])

    found = world.directory.tenants(["acme", "nobody", "frozen", "acme"])

    assert found == {"acme": ACME, "frozen": frozen}
    assert world.directory.tenants([]) == {}


def test_a_handler_is_registered_once_per_tenant(world: World) -> None:
    handler = Handler("acme", "reports", "shared")

    assert world.directory.handler("acme", "reports") is None
    assert world.directory.register_handler(handler) is Write.APPLIED
    assert world.directory.register_handler(handler) is Write.EXISTS
    assert world.directory.handler("acme", "reports") == handler
    assert world.directory.handler("rival", "reports") is None
    assert world.directory.handler("acme", "other") is None
