"""The places of a tenant's quota of schedules.

Up to ESCROW_ABOVE, one counter per tenant: each create adds one if it is below the
quota, so all creates of a tenant meet at one item. Above, that counter grants places
in chunks to SLOTS sub-counters, each an item in a partition of its own, and a create
takes a place of the slot that its schedule's id leads to.

**Never over.** The counter's `used` is at least the number of schedules: it holds those
without a slot, and every place granted, free or not. A grant needs
`used + chunk <= quota`. A free place is taken only in a slot that is open under the
create's own quota. Only a grant opens a slot, and the counter grants under one quota
at a time. To change that, the counter is read, then all slots are closed, then the
counter's quota is set if nothing was granted since it was read: no slot can have been
opened behind the change's back. So `used <= quota` held when an open slot was opened,
and no write since could raise `used` above.

**Early by 1 % at most.** A chunk is quota / (100 x SLOTS), so granting ahead takes at
most SLOTS chunks, 1 % of the quota, out of others' reach. And whoever finds slot and
counter full looks at all slots, takes a place of another one, or calls places of closed
ones in: so none was free as they were read, and a refusal can be early only by what
others give back or are granted during that read.

A quota that was lowered closes the slots; their free places are called in once the
counter itself has none left. Schedules without a slot give back to the counter. An
interruption anywhere leaves places that are granted and free, which later creates find.
While processes know two quotas of a tenant, for 30 s after a change, each keeps to its
own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hourbell.adapters.backoff import Backoff
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.count_items import (
    SLOTS,
    Counter,
    Slot,
    beginning,
    calling_in,
    closing,
    count_item_key,
    counting,
    decode_counter,
    decode_slot,
    giving_back,
    granting,
    slot_item_key,
    taking,
    uncounting,
)
from hourbell.adapters.dynamodb.layout import CONTROL
from hourbell.adapters.dynamodb.reading import batch_get, get_item
from hourbell.adapters.dynamodb.schedule_items import decode_slot_of, definition_key
from hourbell.adapters.dynamodb.transactions import Update, first_refused
from hourbell.domain.shards import stable_hash

ESCROW_ABOVE: Final = 10_000
"""The largest quota that one counter alone is for."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place to be taken.

    Attributes:
        slot: whose it is; None for the counter's own.
        taking: the write that takes it, if it is free.
    """

    slot: int | None
    taking: Update


def chunk_of(quota: int) -> int:
    """Return how many places a slot is granted at once: 1 % of the quota in all."""
    return max(1, quota // (100 * SLOTS))


class Places:
    """The counters of all tenants."""

    def __init__(self, database: Database, escrow_above: int = ESCROW_ABOVE) -> None:
        self._database = database
        self._control = database.tables.control
        self._escrow_above = escrow_above

    def count(self, tenant_id: str) -> int:
        """Return how many schedules count."""
        counter, slots = self._counter(tenant_id), list[Slot]()
        if counter.quota is not None:
            counter, slots = self._all(tenant_id)
        # Their reads are not one: a grant between them is seen in the slot alone.
        return max(0, counter.used - sum(slot.room for slot in slots))

    def first_choice(self, tenant_id: str, schedule_id: str, quota: int) -> Place:
        """Return the place that a schedule should take."""
        if quota <= self._escrow_above:
            return Place(None, counting(self._control, tenant_id, quota))
        return self._in_slot(tenant_id, _slot_of(schedule_id), quota)

    def another(
        self, tenant_id: str, schedule_id: str, quota: int, backoff: Backoff
    ) -> Place | None:
        """Return where to try again when no place was free; None when all are taken.

        Makes room where it can: by a grant, or by calling free places in.

        Raises:
            Transient: a store did not answer, or conflicts outlasted the backoff.
        """
        if quota <= self._escrow_above:
            return self._another_counted(tenant_id, quota, backoff)
        counter, slots = self._all(tenant_id)
        if counter.quota != quota:
            if not self._begin(tenant_id, counter, quota, backoff):
                return self.first_choice(tenant_id, schedule_id, quota)
            counter, slots = self._all(tenant_id)
        own = _slot_of(schedule_id)
        ring = [*slots[own:], *slots[:own]]
        is_open = [slot for slot in ring if slot.quota == quota and slot.room > 0]
        rest = quota - counter.used
        if slots[own] not in is_open and rest > 0:
            amount = min(chunk_of(quota), rest)
            writes = granting(self._control, tenant_id, slots[own], amount, quota)
            first_refused(self._database, writes, backoff)
        elif is_open:
            return self._in_slot(tenant_id, is_open[0].number, quota)
        elif not self._call_in(tenant_id, slots, backoff):
            return None
        return self._in_slot(tenant_id, own, quota)

    def freeing(self, tenant_id: str, schedule_id: str) -> Update:
        """Return the write that gives a schedule's place back to where it is from."""
        item = get_item(
            self._database,
            self._database.tables.schedules,
            definition_key(schedule_id),
            consistent=True,
        )
        slot = None if item is None else decode_slot_of(item)
        if slot is None:
            return uncounting(self._control, tenant_id)
        return giving_back(self._control, tenant_id, slot)

    def _another_counted(
        self, tenant_id: str, quota: int, backoff: Backoff
    ) -> Place | None:
        """Bring back what was granted when the quota was larger."""
        if self._counter(tenant_id).quota is None:
            return None
        _, slots = self._all(tenant_id)
        if not self._call_in(tenant_id, slots, backoff):
            return None
        return Place(None, counting(self._control, tenant_id, quota))

    def _begin(
        self,
        tenant_id: str,
        counter: Counter,
        quota: int,
        backoff: Backoff,
    ) -> bool:
        """Grant under another quota from now on; False if others granted meanwhile."""
        for number in range(SLOTS):
            # Whatever was read of it: it may be open since.
            write = closing(self._control, tenant_id, number)
            first_refused(self._database, [write], backoff)
        write = beginning(self._control, tenant_id, counter, quota)
        return first_refused(self._database, [write], backoff) is None

    def _call_in(self, tenant_id: str, slots: Sequence[Slot], backoff: Backoff) -> bool:
        """Bring free places back to the counter; False if there are none."""
        free = [slot for slot in slots if slot.room > 0]
        for slot in free:
            # Refused, it was overtaken by a create or a cancel: the next look tells.
            writes = calling_in(self._control, tenant_id, slot)
            first_refused(self._database, writes, backoff)
        return bool(free)

    def _in_slot(self, tenant_id: str, slot: int, quota: int) -> Place:
        return Place(slot, taking(self._control, tenant_id, slot, quota))

    def _counter(self, tenant_id: str) -> Counter:
        key = count_item_key(tenant_id)
        item = get_item(self._database, self._control, key, consistent=True)
        return decode_counter(item)

    def _all(self, tenant_id: str) -> tuple[Counter, list[Slot]]:
        """Read counter and slots in one call."""
        numbers = range(SLOTS)
        keys = [count_item_key(tenant_id)]
        keys += [slot_item_key(tenant_id, number) for number in numbers]
        items = batch_get(self._database, self._control, keys, consistent=True)
        found = {item[CONTROL.partition]["S"]: item for item in items}
        main, *others = [found.get(key[CONTROL.partition]["S"]) for key in keys]
        slots = [decode_slot(*each) for each in zip(numbers, others, strict=True)]
        return decode_counter(main), slots


def _slot_of(schedule_id: str) -> int:
    return stable_hash(schedule_id) % SLOTS
