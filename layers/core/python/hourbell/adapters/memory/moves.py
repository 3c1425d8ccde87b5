"""Moves of occurrences in memory."""

from dataclasses import replace

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.occurrence import TRANSITIONS
from hourbell.usecases.ports import Change


def is_allowed(store: MemoryStore, change: Change) -> bool:
    """Whether the stored row is as a change requires."""
    stored = store.row(change.row.key)
    if stored is None or stored.state not in TRANSITIONS[change.transition].sources:
        return False
    return all(getattr(stored, name) == value for name, value in change.expects)


def make(store: MemoryStore, change: Change) -> None:
    """Make a change that is allowed."""
    stored = store.row(change.row.key)
    if stored is None:
        raise KeyError(change.row.key)
    move = TRANSITIONS[change.transition]
    written = {name: getattr(change.row, name) for name in move.writes}
    store.put_row(replace(stored, state=move.target, **written))
