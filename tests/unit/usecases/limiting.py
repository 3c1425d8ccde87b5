"""Worlds with rates, and what must hold of what they send."""

from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta

from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing

from tests.unit.usecases.deferring import available
from tests.unit.usecases.world import MINUTE, World

GOING = {State.SCHEDULED, State.DEFERRED, State.ENQUEUED}


def limit(
    world: World,
    *,
    tenant: str = "acme",
    a_second: int | None = None,
    a_minute: int | None = None,
) -> None:
    """Bound a tenant's handler, and the tenant."""
    store, ref = world.store, (tenant, "ring")
    store.handlers[ref] = replace(store.handlers[ref], dispatch_rate=a_second)
    quotas = replace(store.tenants[tenant].quotas, triggers_per_minute=a_minute)
    store.tenants[tenant] = replace(store.tenants[tenant], quotas=quotas)


def once(world: World, due: datetime, count: int, tenant: str = "acme") -> None:
    """Add schedules that are due once, at the same time."""
    for _ in range(count):
        world.add(Timing(f"at({due:%Y-%m-%dT%H:%M:%S})"), tenant=tenant)


def going(world: World, tenant: str = "acme") -> list[Occurrence]:
    """Return a tenant's rows that run, in the order of their instants."""
    rows = [r for r in world.rows() if r.tenant_id == tenant and r.state in GOING]
    return sorted(rows, key=available)


def offsets(world: World, start: datetime, tenant: str = "acme") -> list[int]:
    """Return how many seconds after an instant each row may be received."""
    return [
        (available(row) - start) // timedelta(seconds=1) for row in going(world, tenant)
    ]


def fullest(rows: list[Occurrence], unit: timedelta) -> int:
    """Return how many rows the second or minute has that has most of them."""
    slots = Counter(
        available(row).replace(microsecond=0)
        if unit < MINUTE
        else available(row).replace(second=0, microsecond=0)
        for row in rows
    )
    return max(slots.values(), default=0)
