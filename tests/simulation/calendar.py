"""What befalls a world from outside: outages, long sleeps with expiry, suspensions."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hourbell.domain.definition import TenantState
from hourbell.usecases.tenants import Registrar, TenantChange, change_tenant

from tests.simulation.afterwards import skip_last_looks
from tests.simulation.faults import CALENDAR
from tests.simulation.rules import DAY, LORD_HOWE, MINUTE, NEW_YORK

SECOND = timedelta(seconds=1)
# When worlds begin, the zone whose clocks change soon, and when; the last two are an
# hour before midnight, and an ordinary noon.
STARTS: tuple[tuple[datetime, str, datetime | None], ...] = (
    (
        datetime(2026, 3, 8, 6, 22, 3, tzinfo=UTC),
        NEW_YORK,
        datetime(2026, 3, 8, 7, tzinfo=UTC),
    ),
    (
        datetime(2026, 11, 1, 5, 20, 3, tzinfo=UTC),
        NEW_YORK,
        datetime(2026, 11, 1, 6, tzinfo=UTC),
    ),
    (
        datetime(2026, 4, 4, 14, 20, 3, tzinfo=UTC),
        LORD_HOWE,
        datetime(2026, 4, 4, 15, tzinfo=UTC),
    ),
    (
        datetime(2026, 10, 3, 14, 48, 3, tzinfo=UTC),
        LORD_HOWE,
        datetime(2026, 10, 3, 15, 30, tzinfo=UTC),
    ),
    (datetime(2026, 6, 9, 23, 20, 3, tzinfo=UTC), NEW_YORK, None),
    (datetime(2026, 6, 9, 11, 59, 30, tzinfo=UTC), NEW_YORK, None),
)
EVERYTHING = ("tick", "materializer", "relay", "caller")
PARTS = (("tick",), ("materializer",), ("relay",), EVERYTHING)
# Longer than anything is kept.
SLEEP = 16 * DAY


def long_outage(seed: int) -> timedelta | None:
    """Return the outage of days that a seed has; which ones is not left to chance."""
    return {2: DAY, 7: DAY, 5: SLEEP}.get(seed % 12)


class Calendar:
    """Lets outages and suspensions come and go.

    Attributes:
        down: what is down, and until when.
        since: what an outage began with, and when.
        slept: whether so long went by that rows expire.
    """

    def __init__(self, world: Any) -> None:
        self.world = world
        self.rng = world.rng
        self.down: dict[str, datetime] = {}
        self.slept = False
        self._class = CALENDAR[0]
        self.since: tuple[str, datetime] = ("", world.now)
        self._long = long_outage(world.seed)
        if world.rates:
            first = self.rng.uniform(3, 20)
            world.at(world.now + first * MINUTE, "outage")
            world.at(world.now + self.rng.uniform(2, 10) * MINUTE, "suspension")

    def is_down(self, what: str) -> bool:
        """Whether an outage keeps something from happening; it is counted."""
        if what not in self.down:
            return False
        self.world.counts[self._class] += 1
        return True

    def begin_outage(self, _: Any) -> None:
        """Let something be down, now and then everything for a day or more."""
        world = self.world
        if world.callers.closed:
            return
        length = self.rng.choice((5 * MINUTE, 10 * MINUTE, 10 * MINUTE, 60 * MINUTE))
        what = self.rng.choice(PARTS)
        self._class = CALENDAR[0]
        if self._long is not None and self.rng.random() < 0.5:
            length, what, self._class = self._long, EVERYTHING, CALENDAR[1]
            self.slept = self.slept or length > DAY
            self._long = None
        self.down = dict.fromkeys(what, world.now + length)
        self.since = (what[0], world.now)
        world.note(f"~ outage of {length}: {', '.join(what)}")
        world.counts[f"outages of {length}"] += 1
        world.at(world.now + length, "back")
        pause = self.rng.uniform(4, 25) * MINUTE
        world.at(world.now + length + pause, "outage")

    def end_outage(self, _: Any) -> None:
        """Let everything be up again."""
        if self.down:
            self.world.log.outages.append((*self.since, self.world.now))
            self.world.rough_until = self.world.now + 3 * MINUTE
        self.down.clear()

    def expire(self) -> None:
        """Delete some of what has expired, once a world is old enough for that."""
        if self.slept and not self.down:
            deleted = self.world.store.expire(self.world.now, 0.5)
            if deleted:
                self.world.counts["expired rows"] += deleted
                self.world.note(f"{deleted} rows expire")
            skip_last_looks(self.world)

    def suspend(self, _: Any) -> None:
        """Suspend a tenant for some minutes."""
        if self.world.callers.closed:
            return
        tenant = self.rng.choice(sorted(self.world.tenants))
        self._become(tenant, TenantState.SUSPENDED)
        length = self.rng.uniform(4, 9) * MINUTE
        self.world.at(self.world.now + length, "readmission", tenant)
        pause = self.rng.uniform(1, 4) * MINUTE
        self.world.at(self.world.now + length + pause, "suspension")

    def readmit(self, tenant: str) -> None:
        """Let a suspended tenant call again."""
        self._become(tenant, TenantState.ACTIVE)

    def _become(self, tenant: str, state: TenantState) -> None:
        change = TenantChange(state=state, reason="of the simulation")
        changed = change_tenant(Registrar(self.world.directory), tenant, change)
        self.world.note(f"~ tenant {tenant} is {changed.state}")
