"""Leases and watermarks of the shard groups on DynamoDB."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from pynamodb.expressions.condition import Condition
from pynamodb.expressions.update import Action

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.control_items import (
    decode_lease,
    encode_group,
    group_item_key,
)
from hourbell.adapters.dynamodb.expressions import conditional, unless_refused
from hourbell.adapters.dynamodb.models import GroupItem
from hourbell.adapters.sdk_errors import translation
from hourbell.usecases.ports import Lease, Write


class DynamoShardGroups:
    """The `ShardGroups` port."""

    def __init__(self, database: Database) -> None:
        self._client = database.client
        self._table = database.tables.control
        self._known: set[int] = set()

    def ensure(self, group: int, floor: datetime) -> None:
        """Create the group's record unless it exists; asked once per process."""
        if group in self._known:
            return
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "Item": encode_group(group, floor),
            **conditional(GroupItem.control_key.does_not_exist()),
        }
        with translation():
            unless_refused(self._client.put_item, arguments)
        self._known.add(group)

    def acquire(
        self, group: int, holder: str, *, now: datetime, duration: timedelta
    ) -> Lease | None:
        """Take the lease if it is free, expired, or the holder's own."""
        available = (
            (GroupItem.holder == holder)
            | (GroupItem.lease_until <= now)
            | GroupItem.lease_until.does_not_exist()
        )
        item = self._update(
            group,
            GroupItem.control_key.exists() & available,
            [
                GroupItem.holder.set(holder),
                GroupItem.lease_until.set(now + duration),
                GroupItem.generation.set(GroupItem.generation + 1),
            ],
        )
        return None if item is None else decode_lease(item)

    def release(
        self,
        lease: Lease,
        watermarks: Mapping[int, datetime],
        passed_at: datetime | None = None,
        looked_at: datetime | None = None,
        looked_until: datetime | None = None,
    ) -> Write:
        """Store watermarks over the lease's own ones, and give the lease back.

        Holder and generation stay, so that a second release of the same lease applies
        again: the answer to the first one may have been lost.
        """
        unchanged = (GroupItem.holder == lease.holder) & (
            GroupItem.generation == lease.generation
        )
        changes: list[Action] = [
            GroupItem.lease_until.remove(),
            GroupItem.watermarks.set({**lease.watermarks, **watermarks}),
        ]
        told = (
            (GroupItem.passed_at, passed_at),
            (GroupItem.looked_at, looked_at),
            (GroupItem.looked_until, looked_until),
        )
        changes += [name.set(value) for name, value in told if value is not None]
        item = self._update(lease.group, unchanged, changes)
        return Write.LOST if item is None else Write.APPLIED

    def _update(
        self, group: int, condition: Condition, updates: Sequence[Action]
    ) -> dict[str, Any] | None:
        """Return the new item, or None when the condition did not hold."""
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "Key": group_item_key(group),
            "ReturnValues": "ALL_NEW",
            **conditional(condition, updates),
        }
        with translation():
            answer = unless_refused(self._client.update_item, arguments)
        return None if answer is None else answer["Attributes"]
