from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hourbell.adapters.memory import MemoryDirectory, MemoryStore
from hourbell.domain.definition import Handler, Tenant, Tier
from hourbell.local import demo_plan
from hourbell.local.demo_oracle import Customer
from hourbell.local.errors import LocalStackError
from hourbell.local.state import Credentials

NOON = datetime(2026, 3, 9, 12, 0, 0, 250_000, tzinfo=UTC)
USER = Credentials("AKIA", "secret", "arn:aws:iam::000000000000:user/demo-acme")
ACME = Customer("acme", "standard", "send")


def test_three_tenants_have_three_tiers() -> None:
    tiers = {customer.tier for customer in demo_plan.CUSTOMERS}

    assert tiers == {"premium", "standard", "basic"}


def test_the_burst_is_two_hundred_at_one_instant_over_all_tenants() -> None:
    at = NOON.replace(microsecond=0)
    orders = demo_plan.burst(at)

    assert len({order.name for order in orders}) == 200
    assert {order.at for order in orders} == {at}
    shares = Counter(order.customer.tier for order in orders)
    assert sorted(shares.values()) == [66, 67, 67]


def test_a_single_time_is_asked_for_in_local_time() -> None:
    order = demo_plan.one_time(NOON)
    body = demo_plan.request_body(order)

    assert order.at == datetime(2026, 3, 9, 12, 0, 7, tzinfo=UTC)
    assert body["expression"] == "at(2026-03-09T17:30:07)"
    assert body["zone"] == "Asia/Kolkata"
    assert "flexible_window_seconds" not in body


def test_the_flexible_one_names_its_window() -> None:
    order = demo_plan.flexible(NOON)

    assert order.at is not None
    assert order.at - NOON < timedelta(seconds=10)
    assert demo_plan.request_body(order)["flexible_window_seconds"] == 10


def test_seeding_registers_tenant_user_and_handler() -> None:
    store = MemoryStore()
    directory = MemoryDirectory(store)

    demo_plan.seed(directory, ACME, [USER])

    assert directory.tenant_of("000000000000:user/demo-acme") == Tenant(
        "acme", Tier.STANDARD
    )
    assert directory.handler("acme", "send") == Handler("acme", "send")


def test_seeding_twice_is_refused() -> None:
    directory = MemoryDirectory(MemoryStore())
    demo_plan.seed(directory, ACME, [USER])

    with pytest.raises(LocalStackError, match="registered already"):
        demo_plan.seed(directory, ACME, [USER])
