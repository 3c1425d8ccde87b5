"""The worker plane's store in memory."""

import json
from collections.abc import Sequence
from datetime import datetime

from hourbell.adapters.memory.store import MemoryStore
from hourbell.adapters.memory.timeline import is_allowed, write_change
from hourbell.domain.errors import InvalidInput
from hourbell.domain.occurrence import RowKey
from hourbell.domain.work import Attempt, DeadLetter, OverlapLane, Slot
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Check, Deed


class MemoryLedger:
    """The `Ledger` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def do(self, deed: Deed) -> Write:
        """Do all that a deed says, or nothing of it."""
        if not self._is_possible(deed):
            return Write.LOST
        store = self._store
        for change in deed.changes:
            write_change(store, change)
        for dispatch in deed.dispatches:
            store.put_dispatch(dispatch)
        for attempt in deed.attempts:
            store.attempts.setdefault(attempt.key, {})[attempt.number] = attempt
        if deed.lane is not None:
            store.lanes[deed.lane.schedule_id] = deed.lane
        self._change_slots(deed)
        store.letters |= {_place(letter): letter for letter in deed.letters}
        for letter in deed.forgets:
            store.letters.pop(_place(letter), None)
        return Write.APPLIED

    def _change_slots(self, deed: Deed) -> None:
        slots = self._store.slots
        if deed.takes is not None:
            slots[deed.takes.tenant_id, deed.takes.number] = deed.takes
        if deed.frees is not None:
            place = deed.frees.tenant_id, deed.frees.number
            if slots.get(place) == deed.frees:
                del slots[place]

    def lane(self, schedule_id: str) -> OverlapLane:
        """Return a schedule's lane."""
        return self._store.lanes.get(schedule_id, OverlapLane(schedule_id))

    def slots(self, tenant_id: str) -> dict[int, Slot]:
        """Return the slots of a tenant that are taken, by number."""
        return {
            number: slot
            for (owner, number), slot in self._store.slots.items()
            if owner == tenant_id
        }

    def attempts(self, key: RowKey) -> tuple[Attempt, ...]:
        """Return the items of an occurrence's attempts, the oldest first."""
        found = self._store.attempts.get(key, {})
        return tuple(found[number] for number in sorted(found))

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
        """Return a page of a tenant's dead letters, the oldest first."""
        begin = _cursor(after)
        own = sorted(
            (list(place), letter)
            for place, letter in self._store.letters.items()
            if letter.tenant_id == tenant_id
            and (
                schedule_id is None
                or letter.occurrence_id.startswith(f"{schedule_id}.")
            )
            and (since is None or letter.died_at >= since)
            and (until is None or letter.died_at < until)
            and list(place) > begin
        )
        page = own[:limit]
        more = json.dumps(page[-1][0]) if len(own) > limit else None
        return tuple(letter for _, letter in page), more

    def _is_possible(self, deed: Deed) -> bool:
        store = self._store
        lane, takes = deed.lane, deed.takes
        return (
            all(is_allowed(store, change) for change in deed.changes)
            and not any(store.has(each.key) for each in deed.dispatches)
            and not any(
                each.number in store.attempts.get(each.key, {})
                for each in deed.attempts
            )
            and (
                lane is None
                or self.lane(lane.schedule_id).revision == lane.revision - 1
            )
            and (takes is None or (takes.tenant_id, takes.number) not in store.slots)
            and all(self._holds(check) for check in deed.checks)
        )

    def _holds(self, check: Check) -> bool:
        row = self._store.row(check.key)
        return (
            row is not None
            and row.state is check.state
            and row.attempt == check.attempt
        )


def _place(letter: DeadLetter) -> tuple[str, str, int]:
    return letter.died_at.isoformat(), letter.occurrence_id, letter.attempt


def _cursor(after: str | None) -> list[object]:
    if after is None:
        return []
    try:
        died_at, name, attempt = json.loads(after)
    except ValueError as error:
        raise InvalidInput.of(
            "cursor", "invalid_cursor", "It is no cursor of this list.", found=after
        ) from error
    return [died_at, name, attempt]
