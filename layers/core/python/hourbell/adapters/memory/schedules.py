"""Definitions and the version log in memory."""

from collections.abc import Iterable

from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.definition import Schedule, Version, VersionRef
from hourbell.domain.occurrence import Occurrence
from hourbell.usecases.ports import Write


class MemorySchedules:
    """The `Schedules` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def create(self, schedule: Schedule, version: Version, first: Occurrence) -> Write:
        """Store all three, or nothing when one of their keys is taken."""
        store = self._store
        taken = (
            schedule.schedule_id in store.schedules
            or version.ref in store.versions
            or store.row(first.key) is not None
        )
        if taken:
            return Write.EXISTS
        store.schedules[schedule.schedule_id] = schedule
        store.versions[version.ref] = version
        store.put_row(first)
        return Write.APPLIED

    def find(self, schedule_id: str) -> Schedule | None:
        """Return the current definition."""
        return self._store.schedules.get(schedule_id)

    def versions(
        self, refs: Iterable[VersionRef], *, consistent: bool
    ) -> dict[VersionRef, Version]:
        """Return those of the versions that exist; memory is always consistent."""
        del consistent
        stored = self._store.versions
        return {ref: stored[ref] for ref in dict.fromkeys(refs) if ref in stored}
