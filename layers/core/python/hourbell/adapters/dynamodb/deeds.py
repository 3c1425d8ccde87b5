"""Deeds of the worker plane as members of a transaction."""

from dataclasses import dataclass
from typing import Any

from pynamodb.expressions.condition import Condition

from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.codec import Item
from hourbell.adapters.dynamodb.expressions import assignments
from hourbell.adapters.dynamodb.layout import TableNames
from hourbell.adapters.dynamodb.models import LaneItem, OccurrenceItem, RunningItem
from hourbell.adapters.dynamodb.moves import as_expected, update_of
from hourbell.adapters.dynamodb.row_items import encode_dispatch, row_item_key
from hourbell.adapters.dynamodb.transactions import Check, Delete, Member, Put, Update
from hourbell.adapters.dynamodb.work_items import (
    encode_attempt,
    encode_letter,
    lane_item_key,
    lane_values,
    letter_item_key,
    running_item_key,
    running_values,
)
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases import work_ports
from hourbell.usecases.work_ports import Deed


@dataclass(frozen=True, slots=True)
class _Store:
    """An item to be stored whatever is there."""

    table: str
    item: Item

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        return {"Put": {"TableName": self.table, "Item": self.item}}


@dataclass(frozen=True, slots=True)
class _Remove:
    """An item to be removed if it is there."""

    table: str
    key: Item

    def as_request(self) -> dict[str, Any]:
        """Return it as a member of a transaction."""
        return {"Delete": {"TableName": self.table, "Key": self.key}}


def is_one_change(deed: Deed) -> bool:
    """Whether a deed is a single change of a row, and nothing else."""
    return deed == Deed(deed.changes) and len(deed.changes) == 1


def members_of(tables: TableNames, deed: Deed) -> list[Member]:
    """Return the writes of a deed, but for `freeing`."""
    timeline, control = tables.timeline, tables.control
    members: list[Member] = [update_of(timeline, change) for change in deed.changes]
    members += [_check(timeline, check) for check in deed.checks]
    members += [
        Put(timeline, layout.TIMELINE, encode_dispatch(dispatch))
        for dispatch in deed.dispatches
    ]
    members += [
        Put(timeline, layout.TIMELINE, encode_attempt(attempt))
        for attempt in deed.attempts
    ]
    if deed.lane is not None:
        members.append(_lane(control, deed.lane))
    if deed.takes is not None:
        members.append(_taking(control, deed.takes, deed.frees))
    members += [_Store(control, encode_letter(letter)) for letter in deed.letters]
    members += [_Remove(control, letter_item_key(letter)) for letter in deed.forgets]
    return members


def freeing(tables: TableNames, deed: Deed) -> Member | None:
    """Return the write that frees a slot, unless it is the one that is taken."""
    slot, taken = deed.frees, deed.takes
    if slot is None or (taken is not None and _is_same_place(slot, taken)):
        return None
    key = running_item_key(slot.tenant_id, slot.number)
    return Delete(tables.control, key, _has(slot))


def _check(table: str, check: work_ports.Check) -> Check:
    stands = OccurrenceItem.state == check.state
    stands &= as_expected("attempt", check.attempt)
    return Check(table, row_item_key(check.key), stands)


def _lane(table: str, lane: OverlapLane) -> Update:
    before: Condition = LaneItem.revision == lane.revision - 1
    if lane.revision == 1:
        before = LaneItem.control_key.does_not_exist()
    actions = assignments(LaneItem, lane_values(lane))
    return Update(table, lane_item_key(lane.schedule_id), before, actions)


def _taking(table: str, slot: Slot, freed: Slot | None) -> Update:
    free: Condition = RunningItem.control_key.does_not_exist()
    if freed is not None and _is_same_place(slot, freed):
        free |= _has(freed)
    key = running_item_key(slot.tenant_id, slot.number)
    return Update(table, key, free, assignments(RunningItem, running_values(slot)))


def _has(slot: Slot) -> Condition:
    stands: Condition = RunningItem.holder == slot.holder
    return stands


def _is_same_place(one: Slot, other: Slot) -> bool:
    return (one.tenant_id, one.number) == (other.tenant_id, other.number)
