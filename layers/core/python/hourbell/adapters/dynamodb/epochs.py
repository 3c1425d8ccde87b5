"""The list of shard counts on DynamoDB."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from hourbell.adapters.cache import ExpiringCache
from hourbell.adapters.dynamodb import layout
from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import Item, decode, encode
from hourbell.adapters.dynamodb.expressions import conditional, unless_refused
from hourbell.adapters.dynamodb.models import EpochsItem
from hourbell.adapters.dynamodb.reading import get_item
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.instants import format_instant
from hourbell.domain.policies import EPOCH_AGE
from hourbell.domain.shards import Epoch, Phase, ShardMap
from hourbell.usecases.ports import Clock, Write
from hourbell.usecases.shard_ports import EpochBook, Epochs, MoveProgress

_KEY: Final[Item] = encode(
    EpochsItem, {"control_key": layout.EPOCHS_KEY, "item": layout.EPOCHS_SORT}
)


class DynamoEpochBook:
    """The `EpochBook` port."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._table = database.tables.control

    def read(self) -> Epochs | None:
        """Return the list by a consistent read; None when none is stored."""
        item = get_item(self._database, self._table, _KEY, consistent=True)
        return None if item is None else _decode(item)

    def store(self, epochs: Epochs) -> Write:
        """Store the list, if what is stored has the revision before it."""
        before = epochs.revision - 1
        condition = (
            EpochsItem.revision == before
            if before
            else EpochsItem.control_key.does_not_exist()
        )
        arguments: dict[str, Any] = {
            "TableName": self._table,
            "Item": _encode(epochs),
            **conditional(condition),
        }
        with translation():
            # Not to be tried again unseen: its own success would pass for another's.
            answer = unless_refused(self._database.single.put_item, arguments)
        return Write.LOST if answer is None else Write.APPLIED


class DynamoShardMaps:
    """The `ShardMaps` port: reads the list anew every EPOCH_AGE."""

    def __init__(self, book: EpochBook, initial: ShardMap, clock: Clock) -> None:
        """Make the adapter.

        Args:
            book: where the list is stored.
            initial: what holds while none is stored.
            clock: tells the age of what was read.
        """
        self._book = book
        self._initial = initial
        self._clock = clock
        self._cache: ExpiringCache[str, ShardMap] = ExpiringCache(
            clock, int(EPOCH_AGE.total_seconds())
        )

    def current(self) -> ShardMap:
        """Return the map; what it tells may be up to EPOCH_AGE old."""
        known = self._cache.get("")
        if known is None:
            # A process may be frozen between the store's answer and its next line.
            read_at = self._clock.now()
            epochs = self._book.read()
            known = self._initial if epochs is None else epochs.shard_map
            self._cache.put("", known, read_at=read_at)
        return known


def _encode(epochs: Epochs) -> Item:
    progress = epochs.progress
    return _KEY | encode(
        EpochsItem,
        {
            "schema": layout.SCHEMA,
            "epochs": list(map(_written, epochs.shard_map.epochs)),
            "revision": epochs.revision,
            "changed_at": epochs.changed_at,
            "requested_by": epochs.requested_by,
            "round": progress.round,
            "segments": progress.segments,
            "done": sorted(progress.done),
            "moved": progress.moved,
            "left": progress.left,
        },
    )


def _decode(item: Mapping[str, Any]) -> Epochs:
    values = decode(EpochsItem, item)
    return Epochs(
        ShardMap(tuple(map(_read, values["epochs"]))),
        values["revision"],
        values["changed_at"],
        MoveProgress(
            round=values["round"],
            segments=values["segments"],
            done=frozenset(values["done"]),
            moved=values["moved"],
            left=values["left"],
        ),
        values.get("requested_by"),
    )


def _written(epoch: Epoch) -> list[Any]:
    since = None if epoch.since is None else format_instant(epoch.since)
    return [since, epoch.shards, epoch.groups, epoch.phase.value]


def _read(members: list[Any]) -> Epoch:
    since, shards, groups, phase = members
    begins = None if since is None else datetime.fromisoformat(since)
    return Epoch(begins, shards, groups, Phase(phase))
