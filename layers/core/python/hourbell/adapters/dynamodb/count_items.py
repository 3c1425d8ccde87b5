"""Items of the control table that count a tenant's schedules against its quota.

How they work together: see `places`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pynamodb.expressions.condition import Condition

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item, decode, encode
from hourbell.adapters.dynamodb.models import CountItem, SlotItem
from hourbell.adapters.dynamodb.transactions import Update

SLOTS: Final = 8
"""How many sub-counters a tenant has. More may come to be, fewer never."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A sub-counter.

    Attributes:
        used: schedules that hold one of its places.
        granted: its places.
        quota: the quota under which free places may be taken; None: under none.
        stored: False when there is no item yet.
    """

    number: int
    used: int = 0
    granted: int = 0
    quota: int | None = None
    stored: bool = False

    @property
    def room(self) -> int:
        """How many of its places are free."""
        return self.granted - self.used


@dataclass(frozen=True, slots=True)
class Counter:
    """A tenant's counter.

    Attributes:
        used: schedules that it counts itself, and all places of the slots.
        quota: the quota under which places are granted; None: none ever were.
        grants: grows with every grant and with every change of `quota`.
    """

    used: int = 0
    quota: int | None = None
    grants: int = 0


def count_item_key(tenant_id: str) -> Item:
    """Return the key of the counter of a tenant's schedules."""
    values = {"control_key": layout.tenant_key(tenant_id), "item": layout.COUNT_SORT}
    return encode(CountItem, values)


def slot_item_key(tenant_id: str, slot: int) -> Item:
    """Return the key of a sub-counter."""
    key = layout.slot_key(tenant_id, slot)
    return encode(SlotItem, {"control_key": key, "item": layout.COUNT_SORT})


def decode_counter(item: Mapping[str, Any] | None) -> Counter:
    """Read a counter; None is that of a tenant that never had a schedule."""
    if item is None:
        return Counter()
    values = decode(CountItem, item)
    return Counter(values["used"], values.get("quota"), values.get("grants", 0))


def decode_slot(number: int, item: Mapping[str, Any] | None) -> Slot:
    """Read a sub-counter."""
    if item is None:
        return Slot(number)
    values = decode(SlotItem, item)
    used, granted = values["used"], values["granted"]
    return Slot(number, used, granted, values.get("quota"), stored=True)


def counting(table: str, tenant_id: str, quota: int) -> Update:
    """Return the write that counts one more schedule, if the quota has room."""
    room = CountItem.used < quota
    if quota > 0:
        room |= CountItem.used.does_not_exist()
    return Update(
        table,
        count_item_key(tenant_id),
        room,
        [CountItem.used.add(1), CountItem.schema.set(layout.SCHEMA)],
    )


def uncounting(table: str, tenant_id: str) -> Update:
    """Return the write that counts one schedule less."""
    return Update(
        table, count_item_key(tenant_id), CountItem.used > 0, [CountItem.used.add(-1)]
    )


def taking(table: str, tenant_id: str, slot: int, quota: int) -> Update:
    """Return the write that takes a place of a slot, if one is free."""
    is_free = (SlotItem.quota == quota) & (SlotItem.used < SlotItem.granted)
    key = slot_item_key(tenant_id, slot)
    return Update(table, key, is_free, [SlotItem.used.add(1)])


def giving_back(table: str, tenant_id: str, slot: int) -> Update:
    """Return the write that frees a place of a slot."""
    key = slot_item_key(tenant_id, slot)
    return Update(table, key, SlotItem.used > 0, [SlotItem.used.add(-1)])


def granting(
    table: str, tenant_id: str, slot: Slot, amount: int, quota: int
) -> tuple[Update, Update]:
    """Return the writes that grant places to a slot and open it.

    They are refused when the counter has no longer room or grants under another
    quota, or when the slot was granted some meanwhile.
    """
    room = CountItem.used <= quota - amount
    return (
        Update(
            table,
            count_item_key(tenant_id),
            (CountItem.quota == quota) & room,
            [CountItem.used.add(amount), CountItem.grants.add(1)],
        ),
        Update(
            table,
            slot_item_key(tenant_id, slot.number),
            _granted_as(slot),
            [
                SlotItem.granted.add(amount),
                SlotItem.used.add(0),
                SlotItem.quota.set(quota),
                SlotItem.schema.set(layout.SCHEMA),
            ],
        ),
    )


def calling_in(table: str, tenant_id: str, slot: Slot) -> tuple[Update, Update]:
    """Return the writes that bring a slot's free places back to the counter."""
    unchanged = _granted_as(slot) & (SlotItem.used == slot.used)
    key = slot_item_key(tenant_id, slot.number)
    return (
        Update(table, key, unchanged, [SlotItem.granted.set(slot.used)]),
        Update(
            table,
            count_item_key(tenant_id),
            CountItem.used >= slot.room,
            [CountItem.used.add(-slot.room)],
        ),
    )


def closing(table: str, tenant_id: str, slot: int) -> Update:
    """Return the write after which no place of a slot can be taken.

    It is refused when the slot is not open.
    """
    key = slot_item_key(tenant_id, slot)
    return Update(table, key, SlotItem.quota.exists(), [SlotItem.quota.remove()])


def beginning(table: str, tenant_id: str, counter: Counter, quota: int) -> Update:
    """Return the write that lets places be granted under another quota.

    It is refused when one was granted since the counter was read.
    """
    unchanged: Condition = CountItem.grants == counter.grants
    if not counter.grants:
        unchanged = CountItem.grants.does_not_exist()
    return Update(
        table,
        count_item_key(tenant_id),
        unchanged,
        [
            CountItem.used.add(0),
            CountItem.grants.add(1),
            CountItem.quota.set(quota),
            CountItem.schema.set(layout.SCHEMA),
        ],
    )


def _granted_as(slot: Slot) -> Condition:
    if slot.stored:
        return SlotItem.granted == slot.granted
    return SlotItem.item.does_not_exist()
