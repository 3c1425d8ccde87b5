"""Moves of occurrences as conditional updates."""

from functools import reduce
from operator import and_

from pynamodb.expressions.condition import Condition

from hourbell.adapters.dynamodb.expressions import assignments
from hourbell.adapters.dynamodb.models import OccurrenceItem
from hourbell.adapters.dynamodb.row_items import COUNTS, row_item_key
from hourbell.adapters.dynamodb.transactions import Update
from hourbell.domain.occurrence import TRANSITIONS
from hourbell.usecases.ports import Change


def stored(name: str, value: object) -> object:
    """Return a field's value as a move stores it: a count of 0 like None.

    So what lacks a value has no attribute of the field's type, whoever wrote it. Other
    numbers have a 0 of their own: it is the first of a tenant's places.
    """
    return None if name in COUNTS and value == 0 else value


def as_expected(name: str, value: object) -> Condition:
    """Return the condition that a stored field has a value; a count of 0 is none."""
    attribute = OccurrenceItem.get_attributes()[name]
    # What packed writes stored as NULL is no value either.
    is_set: Condition = attribute.is_type()  # type: ignore[no-untyped-call]
    equal: Condition = attribute == value
    return ~is_set if stored(name, value) is None else equal


def allowed(change: Change) -> Condition:
    """Return the condition under which a change is made."""
    sources: Condition = OccurrenceItem.state.is_in(
        *sorted(TRANSITIONS[change.transition].sources)
    )
    return reduce(and_, (as_expected(*each) for each in change.expects), sources)


def update_of(table: str, change: Change) -> Update:
    """Return a change as a conditional update."""
    move, row = TRANSITIONS[change.transition], change.row
    written = {name: stored(name, getattr(row, name)) for name in move.writes}
    return Update(
        table,
        row_item_key(row.key),
        allowed(change),
        assignments(OccurrenceItem, {"state": move.target, **written}),
    )
