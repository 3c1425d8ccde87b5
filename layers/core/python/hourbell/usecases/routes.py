"""Tenants and handlers: where a version's messages go, and how fast."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from hourbell.domain.definition import Handler, Tenant, Version
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.parking import ParkReason
from hourbell.domain.rates import Rate, catch_up_rate, usual_rates
from hourbell.domain.routing import queue_key
from hourbell.domain.shards import ShardMap
from hourbell.usecases.directory_reads import read_handlers, read_tenants
from hourbell.usecases.judging import Bench
from hourbell.usecases.ports import Directory, Schedules


@dataclass(frozen=True, slots=True)
class Routes:
    """The tenants and handlers of some versions, as far as they are there.

    What cannot be read is as good as gone: rows wait for it, and are parked.
    """

    tenants: dict[str, Tenant]
    handlers: dict[tuple[str, str], Handler]

    @classmethod
    def find(cls, directory: Directory, versions: Iterable[Version]) -> "Routes":
        """Look up what some versions need; may be up to 30 s old.

        Raises:
            Transient: the store did not answer.
        """
        named = list(versions)
        tenants, _ = read_tenants(directory, {each.tenant_id for each in named})
        handlers, _ = read_handlers(directory, map(_handler_ref, named))
        return cls(tenants, handlers)

    def hindrance(
        self, row: Occurrence, version: Version | None, *, is_unreadable: bool
    ) -> ParkReason | None:
        """Return why a row cannot be judged now; None when it can."""
        if is_unreadable:
            return ParkReason.VERSION_UNREADABLE
        if version is None:
            return None
        return (
            ParkReason.HELD if version.holds(row.scheduled_for) else self.lack(version)
        )

    def lack(self, version: Version) -> ParkReason | None:
        """Return what of a version is not there; None when it can be routed."""
        if version.tenant_id not in self.tenants:
            return ParkReason.TENANT_GONE
        if _handler_ref(version) not in self.handlers:
            return ParkReason.HANDLER_GONE
        return None

    def bench(
        self,
        schedules: Schedules,
        shard_map: ShardMap,
        version: Version,
        now: datetime,
    ) -> Bench:
        """Return what judging a row of a version needs."""
        tenant = self.tenants[version.tenant_id]
        handler = self.handlers[_handler_ref(version)]
        return Bench(
            schedules,
            shard_map,
            lambda lane: queue_key(tenant.tier, handler, lane),
            tenant.quotas.catch_up_per_minute,
            now,
        )

    def rates(self, version: Version, *, overdue: bool) -> tuple[Rate, ...]:
        """Return the rates that an occurrence of a version is subject to."""
        tenant = self.tenants[version.tenant_id]
        usual = usual_rates(tenant, self.handlers[_handler_ref(version)])
        return (catch_up_rate(tenant), *usual) if overdue else usual


def _handler_ref(version: Version) -> tuple[str, str]:
    return version.tenant_id, version.definition.handler
