"""Rates: how many messages a second or a minute may become receivable, and where.

A rate divides time into slots, of a second or of a UTC minute, each with as many places
as its limit says. Who wants an instant gets the first place at or after it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from hourbell.domain.definition import Handler, Tenant
from hourbell.domain.instants import floor_minute
from hourbell.domain.shards import MINUTE

SECOND = timedelta(seconds=1)


class RateKind(StrEnum):
    """What a rate bounds.

    CATCH_UP: overdue occurrences of a tenant, a minute. TRIGGERS: all occurrences of a
    tenant, a minute. DISPATCHES: occurrences of a handler, a second. RETRIES: attempts
    of a tenant after a first one, a minute.
    """

    CATCH_UP = "catch-up"
    TRIGGERS = "triggers"
    DISPATCHES = "dispatches"
    RETRIES = "retries"


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit for each slot of time.

    Attributes:
        owner: whose it is: a tenant_id, or `<tenant_id>#<handler>`.
        limit: how many places a slot has, at least 1.
    """

    kind: RateKind
    owner: str
    limit: int

    @property
    def name(self) -> str:
        """What its places are kept under, whatever the limit."""
        return f"{self.kind}#{self.owner}"

    @property
    def unit(self) -> timedelta:
        """How long a slot is."""
        return SECOND if self.kind is RateKind.DISPATCHES else MINUTE

    @property
    def per_minute(self) -> int:
        """How many places a minute has."""
        return self.limit * (MINUTE // self.unit)

    def slot(self, instant: datetime) -> datetime:
        """Return the start of the slot that an instant lies in."""
        minute = floor_minute(instant)
        return minute + (instant - minute) // self.unit * self.unit

    def is_full(self, taken: Mapping[int, int]) -> bool:
        """Whether no slot of a minute has a place left."""
        return all(
            taken.get(slot, 0) >= self.limit for slot in range(MINUTE // self.unit)
        )


def catch_up_rate(tenant: Tenant) -> Rate:
    """Return the rate of a tenant's overdue occurrences."""
    limit = tenant.quotas.catch_up_per_minute
    return Rate(RateKind.CATCH_UP, tenant.tenant_id, limit)


def retry_rate(tenant: Tenant) -> Rate | None:
    """Return the rate of a tenant's retries; None when there is no limit."""
    limit = tenant.quotas.retries_per_minute
    return None if limit is None else Rate(RateKind.RETRIES, tenant.tenant_id, limit)


def usual_rates(tenant: Tenant, handler: Handler) -> tuple[Rate, ...]:
    """Return the rates that hold for every occurrence of a handler; often none."""
    rates: list[Rate] = []
    triggers = tenant.quotas.triggers_per_minute
    if triggers is not None:
        rates.append(Rate(RateKind.TRIGGERS, tenant.tenant_id, triggers))
    if handler.dispatch_rate is not None:
        owner = f"{handler.tenant_id}#{handler.name}"
        rates.append(Rate(RateKind.DISPATCHES, owner, handler.dispatch_rate))
    return tuple(rates)


@dataclass(frozen=True, slots=True)
class Filled:
    """A minute after places were taken in it.

    Attributes:
        taken: by the number of the slot within the minute, from 0, its places taken.
        places: the instants of those who got a place, the first who wait.
    """

    taken: dict[int, int]
    places: tuple[datetime, ...]


class Line:
    """Those who want places of a rate, in the order of the instants that they want.

    It is led from minute to minute: `minute` is the one to look at, None when nobody
    waits any more. `fill` says who would get which place there, and `accept` goes on
    once that is stored.
    """

    def __init__(self, rate: Rate, wanted: Sequence[datetime]) -> None:
        self._rate = rate
        self._wanted = wanted
        self._order = sorted(range(len(wanted)), key=wanted.__getitem__)
        self._served = 0
        self.places: list[datetime | None] = [None] * len(wanted)
        """The instants so far, in the order of `wanted`; None for who still waits."""
        self.minute = floor_minute(min(wanted)) if wanted else None

    def skip_to(self, minute: datetime) -> None:
        """Go on at a minute, or at the first one wanted if that is later."""
        if self._served == len(self._order):
            self.minute = None
            return
        first = self._wanted[self._order[self._served]]
        self.minute = max(minute, floor_minute(first))

    def fill(self, taken: Mapping[int, int]) -> Filled:
        """Return the current minute as it is when all who can have got a place.

        Whose own slot is full gets the first one later that is not. Of a slot as long
        as a minute, those who come from an earlier one are spread over it evenly.

        Args:
            taken: the places of each slot that are gone already.
        """
        rate, minute, counts = self._rate, self.minute, dict(taken)
        places: list[datetime] = []
        slot, end = 0, MINUTE // rate.unit
        for index in self._order[self._served :]:
            instant = self._wanted[index]
            if minute is None or instant >= minute + MINUTE:
                break
            slot = max(slot, (instant - minute) // rate.unit)
            while slot < end and counts.get(slot, 0) >= rate.limit:
                slot += 1
            if slot == end:
                break
            number = counts.get(slot, 0)
            counts[slot] = number + 1
            start = minute + slot * rate.unit
            spread = timedelta(seconds=rate.unit // SECOND * number // rate.limit)
            places.append(instant if instant >= start else start + spread)
        return Filled(counts, tuple(places))

    def accept(self, filled: Filled) -> None:
        """Give the places of the current minute out, and go on to the next one."""
        for place in filled.places:
            self.places[self._order[self._served]] = place
            self._served += 1
        if self.minute is not None:
            self.skip_to(self.minute + MINUTE)
