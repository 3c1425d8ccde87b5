"""What lies in an engine's tables, brought into the store that is judged."""

from collections.abc import Iterable
from typing import Any

from hourbell.adapters.dynamodb import Database, layout
from hourbell.adapters.dynamodb.codec import Item, encode
from hourbell.adapters.dynamodb.control_items import decode_lease
from hourbell.adapters.dynamodb.models import GroupItem
from hourbell.adapters.dynamodb.row_items import (
    decode_dispatch,
    decode_occurrence,
    is_attempt,
    is_dispatch,
)
from hourbell.adapters.dynamodb.schedule_items import (
    decode_run,
    decode_schedule,
    decode_version,
)
from hourbell.adapters.dynamodb.work_items import (
    decode_attempt,
    decode_lane,
    decode_letter,
    decode_running,
)

KEYS = {
    "schedules": layout.SCHEDULES,
    "timeline": layout.TIMELINE,
    "control": layout.CONTROL,
}


class Mirror:
    """Follows tables: what was written there since the last look is put in a store.

    Args:
        world: whose store it is.
        database: the tables.
    """

    def __init__(self, world: Any, database: Database) -> None:
        self._world, self._database = world, database
        self._known: dict[str, dict[tuple[str, str], Item]] = {
            table: {} for table in KEYS
        }

    def follow(self, tables: Iterable[str]) -> None:
        """Bring the store to what some tables hold."""
        follow = {
            "schedules": self._follow_schedules,
            "timeline": self._follow_timeline,
            "control": self._follow_control,
        }
        for table in tables:
            found = self._scan(table)
            known, self._known[table] = self._known[table], found
            new = [found[key] for key in sorted(found) if found[key] != known.get(key)]
            follow[table](new)
            for key in sorted(known.keys() - found.keys()):
                self._forget(*key)

    def _scan(self, table: str) -> dict[tuple[str, str], Any]:
        name, keys = getattr(self._database.tables, table), KEYS[table]
        answer = self._database.client.scan(TableName=name, ConsistentRead=True)
        return {
            (item[keys.partition]["S"], item[keys.sort]["S"]): item
            for item in answer["Items"]
        }

    def _follow_schedules(self, items: list[Any]) -> None:
        store = self._world.store
        for item in items:
            kind = item["item"]["S"]
            if kind.startswith(layout.VERSIONS):
                version = decode_version(item)
                store.versions[version.ref] = version
            elif kind == layout.DEFINITION_SORT:
                schedule = decode_schedule(item)
                store.schedules[schedule.schedule_id] = schedule
            elif kind.startswith(layout.run_sort("")):
                run = decode_run(item)
                store.runs[run.schedule_id, run.run] = run

    def _follow_timeline(self, items: list[Any]) -> None:
        store = self._world.store
        rows = []
        for item in items:
            if is_attempt(item):
                store.put_attempt(decode_attempt(item))
            elif is_dispatch(item):
                store.put_dispatch(decode_dispatch(item))
            else:
                rows.append(decode_occurrence(item))
        # What is released is judged by its dispatch row.
        for row in rows:
            store.put_row(row)

    def _follow_control(self, items: list[Any]) -> None:
        store = self._world.store
        for item in items:
            keys = layout.CONTROL
            partition, kind = item[keys.partition]["S"], item[keys.sort]["S"]
            _, _, name = partition.partition("#")
            if kind == layout.LEASE_SORT and "holder" in item:
                # One that was given back has no end: it is over now.
                over = encode(GroupItem, {"lease_until": self._world.now})
                lease = decode_lease(over | item)
                store.groups[lease.group] = lease
            elif kind == layout.LANE_SORT:
                store.lanes[name] = decode_lane(name, item)
            elif kind.startswith(layout.RUNNING):
                slot = decode_running(name, item)
                store.slots[name, slot.number] = slot
            elif partition.startswith(DEAD):
                letter = decode_letter(_tenant_of(partition), item)
                store.letters[letter.tenant_id, kind] = letter

    def _forget(self, partition: str, sort: str) -> None:
        """Take what was removed from its table out of the store."""
        store = self._world.store
        if sort.startswith(layout.RUNNING):
            tenant, number = partition.partition("#")[2], sort[len(layout.RUNNING) :]
            del store.slots[tenant, int(number)]
        elif partition.startswith(DEAD):
            del store.letters[_tenant_of(partition), sort]


DEAD = layout.dead_key("", 0).partition("#")[0] + "#"


def _tenant_of(partition: str) -> str:
    """Return whose dead letters lie in a partition."""
    return partition.removeprefix(DEAD).rpartition("#")[0]
