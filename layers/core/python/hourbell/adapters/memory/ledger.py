"""What the worker plane stores, in memory."""

from collections.abc import Sequence
from datetime import datetime

from hourbell.adapters.deeds import reject_repeats
from hourbell.adapters.letters import (
    LETTER_KEY,
    letter_key,
    letter_range,
    schedule_of,
)
from hourbell.adapters.listing import Position, position_of
from hourbell.adapters.memory.moves import is_allowed, make
from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.occurrence import RowKey
from hourbell.domain.work import Attempt, DeadLetter, OverlapLane, Slot
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Check, Deed


class MemoryLedger:
    """The `Ledger` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def do(self, deed: Deed) -> Write:
        """Do all that a deed says, or nothing of it.

        Raises:
            ValueError: the deed names a row or an item twice.
        """
        reject_repeats(deed)
        if not self._may(deed):
            return Write.LOST
        self._do(deed)
        return Write.APPLIED

    def lane(self, schedule_id: str) -> OverlapLane:
        """Return a schedule's lane."""
        return self._store.lanes.get(schedule_id, OverlapLane(schedule_id))

    def slots(self, tenant_id: str) -> dict[int, Slot]:
        """Return the slots of a tenant that are taken, by number."""
        return {
            number: slot
            for (owner, number), slot in sorted(self._store.slots.items())
            if owner == tenant_id
        }

    def attempts(self, key: RowKey) -> tuple[Attempt, ...]:
        """Return the items of an occurrence's attempts, the oldest first."""
        found = self._store.attempts.get(key.partition, {}).values()
        own = [attempt for attempt in found if attempt.key == key]
        return tuple(sorted(own, key=lambda attempt: attempt.number))

    def letters(
        self,
        tenant_id: str,
        *,
        schedule_id: str | None = None,
        after: str | None,
        limit: int,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> tuple[Sequence[DeadLetter], str | None]:
        """Return a page of a tenant's dead letters, and what leads to the next one."""
        start = position_of(after, prefix="", shards=1, form=LETTER_KEY)
        first, last = letter_range(start.key, since, until)
        found = [
            letter
            for (owner, key), letter in sorted(self._store.letters.items())
            if owner == tenant_id
            and first <= key <= last
            and schedule_id in (None, schedule_of(letter))
        ]
        page = found[:limit]
        if len(found) == len(page):
            return page, None
        # Nothing was asked for: the next page begins where this one does.
        place = Position(0, letter_key(page[-1])) if page else start
        return page, place.written()

    def _may(self, deed: Deed) -> bool:
        store = self._store
        return (
            all(is_allowed(store, change) for change in deed.changes)
            and all(self._stands(check) for check in deed.checks)
            and all(store.dispatch(each.key) is None for each in deed.dispatches)
            and all(store.attempt(each) is None for each in deed.attempts)
            and self._may_change(deed.lane)
            and self._may_take(deed.takes, deed.frees)
        )

    def _stands(self, check: Check) -> bool:
        row = self._store.row(check.key)
        return row is not None and (row.state, row.attempt) == (
            check.state,
            check.attempt,
        )

    def _may_change(self, lane: OverlapLane | None) -> bool:
        return lane is None or self.lane(lane.schedule_id).revision == lane.revision - 1

    def _may_take(self, slot: Slot | None, freed: Slot | None) -> bool:
        if slot is None:
            return True
        found = self._store.slots.get((slot.tenant_id, slot.number))
        return found is None or found == freed

    def _do(self, deed: Deed) -> None:
        store = self._store
        for change in deed.changes:
            make(store, change)
        for dispatch in deed.dispatches:
            store.put_dispatch(dispatch)
        for attempt in deed.attempts:
            store.put_attempt(attempt)
        if deed.lane is not None:
            store.lanes[deed.lane.schedule_id] = deed.lane
        self._change_slots(deed.takes, deed.frees)
        for letter in deed.letters:
            store.letters[letter.tenant_id, letter_key(letter)] = letter
        for letter in deed.forgets:
            store.letters.pop((letter.tenant_id, letter_key(letter)), None)

    def _change_slots(self, taken: Slot | None, freed: Slot | None) -> None:
        slots = self._store.slots
        if freed is not None and slots.get((freed.tenant_id, freed.number)) == freed:
            del slots[freed.tenant_id, freed.number]
        if taken is not None:
            slots[taken.tenant_id, taken.number] = taken
