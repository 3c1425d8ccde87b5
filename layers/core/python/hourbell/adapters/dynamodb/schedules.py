"""Definitions and the version log on DynamoDB."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.expressions import assignments
from hourbell.adapters.dynamodb.layout import (
    SCHEDULES,
    TIMELINE,
    VERSIONS,
    backfill_sort,
    version_sort,
)
from hourbell.adapters.dynamodb.listing import ListIndex
from hourbell.adapters.dynamodb.models import DefinitionItem, NameItem, VersionItem
from hourbell.adapters.dynamodb.places import ESCROW_ABOVE, Place, Places
from hourbell.adapters.dynamodb.reading import batch_get, get_item, query
from hourbell.adapters.dynamodb.relocation import absent
from hourbell.adapters.dynamodb.row_items import encode_dispatch, encode_occurrence
from hourbell.adapters.dynamodb.schedule_items import (
    decode_backfill,
    decode_name,
    decode_run,
    decode_schedule,
    decode_version,
    definition_key,
    encode_backfill,
    encode_name,
    encode_run,
    encode_schedule,
    encode_version,
    name_item_key,
    run_item_key,
    schedule_values,
    version_key,
)
from hourbell.adapters.dynamodb.transactions import (
    Check,
    Delete,
    Member,
    Put,
    Update,
    first_refused,
    write_together,
)
from hourbell.domain.definition import Schedule, ScheduleState, Version, VersionRef
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.usecases.ports import Backfill, Creation, Listing, Run, Succession, Write

# What became of a create whose first refused write stands at this place.
_REFUSALS: Final = (
    Creation.EXISTS,  # DEF
    Creation.EXISTS,  # V#
    Creation.EXISTS,  # the first row
    Creation.NAME_TAKEN,
    Creation.QUOTA_FULL,
)

# States of a schedule that can be run by hand.
_RUNNABLE: Final = [
    state for state in ScheduleState if state is not ScheduleState.CANCELED
]


class DynamoSchedules:
    """The `Schedules` port.

    Args:
        database: tables and clients.
        escrow_above: the largest quota that is one counter alone; places of a larger
            one are granted to sub-counters.
    """

    def __init__(self, database: Database, *, escrow_above: int = ESCROW_ABOVE) -> None:
        self._database = database
        self._places = Places(database, escrow_above)
        self._tables = database.tables
        self._index = ListIndex(database)

    def create(
        self, schedule: Schedule, version: Version, first: Occurrence, *, quota: int
    ) -> Creation:
        """Store definition, version, row and name, and count it, in one transaction.

        Creates of one tenant meet at its counters, so conflicts are tried again for
        up to 8 s.
        """
        ids = (schedule.tenant_id, schedule.schedule_id)
        contended = self._database.contended
        begun = contended.monotonic()
        place = self._places.first_choice(*ids, quota)
        for _ in contended.rounds():
            left = contended.deadline_seconds - (contended.monotonic() - begun)
            backoff = replace(contended, deadline_seconds=left)
            members = self._creating(schedule, version, first, place)
            refused = first_refused(self._database, members, backoff)
            if refused is None:
                return Creation.CREATED
            if _REFUSALS[refused] is not Creation.QUOTA_FULL:
                return _REFUSALS[refused]
            found = self._places.another(*ids, quota, backoff)
            if found is None:
                return Creation.QUOTA_FULL
            place = found
        raise Transient("others were always first at the tenant's last places")

    def _creating(
        self, schedule: Schedule, version: Version, first: Occurrence, place: Place
    ) -> list[Member]:
        table = self._tables.schedules
        return [
            Put(table, SCHEDULES, encode_schedule(schedule, place.slot)),
            Put(table, SCHEDULES, encode_version(version)),
            Put(self._tables.timeline, TIMELINE, encode_occurrence(first)),
            Put(table, SCHEDULES, encode_name(schedule)),
            place.taking,
        ]

    def find_by_name(self, tenant_id: str, name: str) -> str | None:
        """Return the id of the tenant's schedule of that name, consistently."""
        key = name_item_key(tenant_id, name)
        item = get_item(self._database, self._tables.schedules, key, consistent=True)
        return None if item is None else decode_name(item)

    def relabel(self, schedule: Schedule, *, revision: int) -> Write:
        """Store description, tags, revision and updated_at, if `revision` stands."""
        values = {
            "description": schedule.description or None,
            "tags": schedule.tags or None,
            "revision": schedule.revision,
            "updated_at": schedule.updated_at,
        }
        update = Update(
            self._tables.schedules,
            definition_key(schedule.schedule_id),
            DefinitionItem.revision == revision,
            assignments(DefinitionItem, values),
        )
        return write_together(self._database, update)

    def succeed(self, change: Succession) -> Write:
        """Begin a change of version, in one transaction."""
        schedule, table = change.schedule, self._tables.schedules
        unchanged = DefinitionItem.revision == change.revision
        members: list[Member] = [
            Update(
                table,
                definition_key(schedule.schedule_id),
                unchanged & DefinitionItem.handover.does_not_exist(),
                assignments(DefinitionItem, schedule_values(schedule)),
            ),
            Put(table, SCHEDULES, encode_version(change.version)),
            Update(
                table,
                version_key(change.ended.ref),
                VersionItem.item.exists() & VersionItem.ends_at.does_not_exist(),
                assignments(
                    VersionItem,
                    {"ends_at": change.ended.ends_at, "ends_as": change.ended.ends_as},
                ),
            ),
            Put(self._tables.timeline, TIMELINE, encode_dispatch(change.dispatch)),
        ]
        if schedule.state is ScheduleState.CANCELED:
            members += self._freeing(schedule)
        return write_together(self._database, *members)

    def take_over(
        self,
        version: Version,
        ended: VersionRef,
        first: Occurrence | Dispatch | None,
    ) -> Write:
        """Set who owns which times, once, and put the first row, in one transaction."""
        table = self._tables.schedules
        owned = {
            "effective_from": version.effective_from,
            "base_sequence": version.base_sequence or None,
        }
        members: list[Member] = [
            Update(
                table,
                version_key(version.ref),
                VersionItem.item.exists() & VersionItem.effective_from.does_not_exist(),
                assignments(VersionItem, owned),
            ),
            Update(
                table,
                version_key(ended),
                VersionItem.item.exists() & VersionItem.effective_to.does_not_exist(),
                assignments(VersionItem, {"effective_to": version.effective_from}),
            ),
            Update(
                table,
                definition_key(version.schedule_id),
                DefinitionItem.handover == version.version,
                assignments(DefinitionItem, {"handover": None}),
            ),
        ]
        if first is not None:
            item = (
                encode_occurrence(first)
                if isinstance(first, Occurrence)
                else encode_dispatch(first)
            )
            members.append(Put(self._tables.timeline, TIMELINE, item))
        return write_together(self._database, *members)

    def complete(self, schedule: Schedule, *, revision: int) -> Write:
        """Store that a schedule is COMPLETED, and free its name and its quota."""
        values = {
            "state": schedule.state,
            "revision": schedule.revision,
            "updated_at": schedule.updated_at,
        }
        unchanged = DefinitionItem.revision == revision
        update = Update(
            self._tables.schedules,
            definition_key(schedule.schedule_id),
            unchanged & DefinitionItem.handover.does_not_exist(),
            assignments(DefinitionItem, values),
        )
        return write_together(self._database, update, *self._freeing(schedule))

    def record_run(
        self, run: Run, row: Occurrence, release: Dispatch | None = None
    ) -> Write:
        """Store a manual run, its row and its dispatch row in one transaction."""
        table, timeline = self._tables.schedules, self._tables.timeline
        members: list[Member] = [
            Put(table, SCHEDULES, encode_run(run)),
            Put(timeline, TIMELINE, encode_occurrence(row)),
        ]
        if release is not None:
            members.append(Put(timeline, TIMELINE, encode_dispatch(release)))
        members.append(
            Check(
                table,
                definition_key(run.schedule_id),
                DefinitionItem.state.is_in(*_RUNNABLE),
            )
        )
        refused = first_refused(self._database, members)
        if refused is None:
            return Write.APPLIED
        return Write.LOST if refused == len(members) - 1 else Write.EXISTS

    def find_run(self, schedule_id: str, run: str) -> Run | None:
        """Return a manual run by a consistent read."""
        item = get_item(
            self._database,
            self._tables.schedules,
            run_item_key(schedule_id, run),
            consistent=True,
        )
        return None if item is None else decode_run(item)

    def record_backfill(
        self,
        backfill: Backfill,
        row: Occurrence,
        release: Dispatch,
        *,
        twin: RowKey | None = None,
    ) -> Write:
        """Store a backfilled time, its row and its dispatch row in one transaction."""
        table, timeline = self._tables.schedules, self._tables.timeline
        members: list[Member] = [
            Put(table, SCHEDULES, encode_backfill(backfill)),
            Put(timeline, TIMELINE, encode_occurrence(row)),
            Put(timeline, TIMELINE, encode_dispatch(release)),
            *([] if twin is None else [absent(timeline, twin)]),
            Check(
                table,
                definition_key(backfill.schedule_id),
                DefinitionItem.state.is_in(*_RUNNABLE),
            ),
        ]
        refused = first_refused(self._database, members)
        if refused is None:
            return Write.APPLIED
        return Write.LOST if refused == len(members) - 1 else Write.EXISTS

    def backfills(
        self, schedule_id: str, first: datetime, last: datetime
    ) -> tuple[Backfill, ...]:
        """Return what was backfilled from `first` to `last`, both included."""
        items = query(
            self._database,
            None,
            TableName=self._tables.schedules,
            KeyConditionExpression="#id = :id AND #item BETWEEN :first AND :last",
            ExpressionAttributeNames={
                "#id": SCHEDULES.partition,
                "#item": SCHEDULES.sort,
            },
            ExpressionAttributeValues={
                ":id": {"S": schedule_id},
                ":first": {"S": backfill_sort(first)},
                ":last": {"S": backfill_sort(last)},
            },
            ConsistentRead=True,
        )
        return tuple(map(decode_backfill, items))

    def version_log(
        self, schedule_id: str, *, before: int | None = None, limit: int = 50
    ) -> tuple[Version, ...]:
        """Return versions with numbers below `before`, newest first, consistently."""
        last = "V$" if before is None else version_sort(max(before, 1) - 1)
        items = query(
            self._database,
            limit,
            TableName=self._tables.schedules,
            KeyConditionExpression="#id = :id AND #item BETWEEN :first AND :last",
            ExpressionAttributeNames={
                "#id": SCHEDULES.partition,
                "#item": SCHEDULES.sort,
            },
            ExpressionAttributeValues={
                ":id": {"S": schedule_id},
                ":first": {"S": VERSIONS},
                ":last": {"S": last},
            },
            ConsistentRead=True,
            ScanIndexForward=False,
        )
        return tuple(map(decode_version, items))

    def listing(
        self, tenant_id: str, *, prefix: str = "", after: str | None, limit: int
    ) -> Listing:
        """Return a page of the tenant's schedules whose names begin with `prefix`."""
        return self._index.page(tenant_id, prefix, after, limit)

    def count(self, tenant_id: str) -> int:
        """Return how many schedules count against the tenant's quota."""
        return self._places.count(tenant_id)

    def find(self, schedule_id: str) -> Schedule | None:
        """Return the current definition by a consistent read."""
        item = get_item(
            self._database,
            self._tables.schedules,
            definition_key(schedule_id),
            consistent=True,
        )
        return None if item is None else decode_schedule(item)

    def versions(
        self, refs: Iterable[VersionRef], *, consistent: bool
    ) -> dict[VersionRef, Version]:
        """Return those of the versions that exist; duplicates are read once."""
        keys = [version_key(ref) for ref in dict.fromkeys(refs)]
        items = batch_get(
            self._database, self._tables.schedules, keys, consistent=consistent
        )
        return {version.ref: version for version in map(decode_version, items)}

    def _freeing(self, schedule: Schedule) -> Sequence[Member]:
        """Return the writes that free a schedule's name and its place in the quota."""
        # Only its own name, so that freeing twice is impossible.
        name = Delete(
            self._tables.schedules,
            name_item_key(schedule.tenant_id, schedule.name),
            NameItem.held_by == schedule.schedule_id,
        )
        return [name, self._places.freeing(schedule.tenant_id, schedule.schedule_id)]
