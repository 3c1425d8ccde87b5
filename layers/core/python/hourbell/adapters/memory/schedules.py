"""Definitions and the version log in memory."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from hourbell.adapters.listing import Position, listing_key, position_of
from hourbell.adapters.memory.store import MemoryStore
from hourbell.domain.definition import Schedule, ScheduleState, Version, VersionRef
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.domain.shards import stable_hash
from hourbell.usecases.ports import (
    Backfill,
    Creation,
    ListEntry,
    Listing,
    Run,
    Succession,
    Write,
)

# As many as the index has, so that nobody comes to rely on one order by name.
LIST_SHARDS: Final = 16


class MemorySchedules:
    """The `Schedules` port on a `MemoryStore`."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    def create(
        self, schedule: Schedule, version: Version, first: Occurrence, *, quota: int
    ) -> Creation:
        """Store definition, version, row and name, and count it; or do nothing."""
        store, tenant_id = self._store, schedule.tenant_id
        taken = (
            schedule.schedule_id in store.schedules
            or version.ref in store.versions
            or store.row(first.key) is not None
        )
        if taken:
            return Creation.EXISTS
        if (tenant_id, schedule.name) in store.names:
            return Creation.NAME_TAKEN
        used = store.counts.get(tenant_id, 0)
        if used >= quota:
            return Creation.QUOTA_FULL
        store.schedules[schedule.schedule_id] = schedule
        store.versions[version.ref] = version
        store.put_row(first)
        store.names[tenant_id, schedule.name] = schedule.schedule_id
        store.counts[tenant_id] = used + 1
        return Creation.CREATED

    def find_by_name(self, tenant_id: str, name: str) -> str | None:
        """Return the id of the tenant's schedule of that name."""
        return self._store.names.get((tenant_id, name))

    def relabel(self, schedule: Schedule, *, revision: int) -> Write:
        """Store description, tags, revision and updated_at, if `revision` stands."""
        stored = self._store.schedules.get(schedule.schedule_id)
        if stored is None or stored.revision != revision:
            return Write.LOST
        self._store.schedules[schedule.schedule_id] = replace(
            stored,
            description=schedule.description,
            tags=schedule.tags,
            revision=schedule.revision,
            updated_at=schedule.updated_at,
        )
        return Write.APPLIED

    def succeed(self, change: Succession) -> Write:
        """Begin a change of version, or do nothing."""
        if not self._may_succeed(change):
            return Write.LOST
        store, schedule = self._store, change.schedule
        store.schedules[schedule.schedule_id] = schedule
        store.versions[change.version.ref] = change.version
        store.versions[change.ended.ref] = replace(
            store.versions[change.ended.ref],
            ends_at=change.ended.ends_at,
            ends_as=change.ended.ends_as,
        )
        store.put_dispatch(change.dispatch)
        if schedule.state is ScheduleState.CANCELED:
            del store.names[schedule.tenant_id, schedule.name]
            store.counts[schedule.tenant_id] -= 1
        return Write.APPLIED

    def take_over(
        self,
        version: Version,
        ended: VersionRef,
        first: Occurrence | Dispatch | None,
    ) -> Write:
        """Set who owns which times, once, and put the first row."""
        store = self._store
        definition = store.schedules.get(version.schedule_id)
        new, old = store.versions.get(version.ref), store.versions.get(ended)
        if definition is None or new is None or old is None:
            return Write.LOST
        under_way = definition.handover and definition.version == version.version
        finished = new.effective_from is not None or old.effective_to is not None
        taken = first is not None and store.has(first.key)
        if finished or taken or not under_way:
            return Write.LOST
        store.versions[version.ref] = replace(
            new,
            effective_from=version.effective_from,
            base_sequence=version.base_sequence,
        )
        store.versions[ended] = replace(old, effective_to=version.effective_from)
        store.schedules[version.schedule_id] = replace(definition, handover=False)
        if isinstance(first, Occurrence):
            store.put_row(first)
        elif first is not None:
            store.put_dispatch(first)
        return Write.APPLIED

    def complete(self, schedule: Schedule, *, revision: int) -> Write:
        """Store that a schedule is COMPLETED, and free its name and its quota."""
        store = self._store
        stored = store.schedules.get(schedule.schedule_id)
        if stored is None or stored.handover or stored.revision != revision:
            return Write.LOST
        name = (schedule.tenant_id, schedule.name)
        if store.names.get(name) != schedule.schedule_id:
            return Write.LOST
        store.schedules[schedule.schedule_id] = replace(
            stored,
            state=schedule.state,
            revision=schedule.revision,
            updated_at=schedule.updated_at,
        )
        del store.names[name]
        store.counts[schedule.tenant_id] -= 1
        return Write.APPLIED

    def record_run(
        self, run: Run, row: Occurrence, release: Dispatch | None = None
    ) -> Write:
        """Store a manual run, its row and its dispatch row."""
        store, key = self._store, (run.schedule_id, run.run)
        schedule = store.schedules.get(run.schedule_id)
        if key in store.runs or store.row(row.key) is not None:
            return Write.EXISTS
        if schedule is None or schedule.state is ScheduleState.CANCELED:
            return Write.LOST
        store.runs[key] = run
        store.put_row(row)
        if release is not None:
            store.put_dispatch(release)
        return Write.APPLIED

    def find_run(self, schedule_id: str, run: str) -> Run | None:
        """Return a manual run."""
        return self._store.runs.get((schedule_id, run))

    def record_backfill(
        self,
        backfill: Backfill,
        row: Occurrence,
        release: Dispatch,
        *,
        twin: RowKey | None = None,
    ) -> Write:
        """Store a backfilled time, its row and its dispatch row."""
        store, key = self._store, (backfill.schedule_id, backfill.scheduled_for)
        schedule = store.schedules.get(backfill.schedule_id)
        taken = store.row(row.key) or store.dispatch(release.key)
        elsewhere = twin is not None and store.has(twin)
        if key in store.backfills or taken is not None or elsewhere:
            return Write.EXISTS
        if schedule is None or schedule.state is ScheduleState.CANCELED:
            return Write.LOST
        store.backfills[key] = backfill
        store.put_row(row)
        store.put_dispatch(release)
        return Write.APPLIED

    def backfills(
        self, schedule_id: str, first: datetime, last: datetime
    ) -> tuple[Backfill, ...]:
        """Return what was backfilled from `first` to `last`, both included."""
        found = [
            backfill
            for (owner, instant), backfill in self._store.backfills.items()
            if owner == schedule_id and first <= instant <= last
        ]
        return tuple(sorted(found, key=lambda backfill: backfill.scheduled_for))

    def version_log(
        self, schedule_id: str, *, before: int | None = None, limit: int = 50
    ) -> tuple[Version, ...]:
        """Return versions with numbers below `before`, newest first."""
        found = [
            version
            for version in self._store.versions.values()
            if version.schedule_id == schedule_id
            and (before is None or version.version < before)
        ]
        found.sort(key=lambda version: version.version, reverse=True)
        return tuple(found[:limit])

    def listing(
        self, tenant_id: str, *, prefix: str = "", after: str | None, limit: int
    ) -> Listing:
        """Return a page of the tenant's schedules whose names begin with `prefix`."""
        start = position_of(after, prefix=prefix, shards=LIST_SHARDS)
        keyed = sorted(
            (_list_shard(each), listing_key(each), each.schedule_id)
            for each in self._store.schedules.values()
            if each.tenant_id == tenant_id and each.name.startswith(prefix)
        )
        left = [each for each in keyed if each[:2] > (start.shard, start.key or "")]
        page, more = left[:limit], len(left) > limit
        return Listing(
            tuple(_entry(self._store.schedules[each[2]]) for each in page),
            Position(page[-1][0], page[-1][1]).written() if more else None,
        )

    def count(self, tenant_id: str) -> int:
        """Return how many schedules count against the tenant's quota."""
        return self._store.counts.get(tenant_id, 0)

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

    def _may_succeed(self, change: Succession) -> bool:
        """Whether every condition of a change of version holds."""
        store, schedule = self._store, change.schedule
        stored = store.schedules.get(schedule.schedule_id)
        if stored is None or stored.handover or stored.revision != change.revision:
            return False
        ended = store.versions.get(change.ended.ref)
        if ended is None or ended.ends_at is not None:
            return False
        if change.version.ref in store.versions or store.dispatch(change.dispatch.key):
            return False
        holder = store.names.get((schedule.tenant_id, schedule.name))
        canceled = schedule.state is ScheduleState.CANCELED
        return not canceled or holder == schedule.schedule_id


def _list_shard(schedule: Schedule) -> int:
    return stable_hash(schedule.schedule_id) % LIST_SHARDS


def _entry(schedule: Schedule) -> ListEntry:
    return ListEntry(
        schedule_id=schedule.schedule_id,
        name=schedule.name,
        state=schedule.state,
        version=schedule.version,
        revision=schedule.revision,
        created_at=schedule.created_at,
        updated_at=schedule.updated_at,
        tags=schedule.tags,
    )
