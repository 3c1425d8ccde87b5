"""The list of a tenant's dead letters: list shard after list shard, each by time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from hourbell.adapters.dynamodb.client import Database
from hourbell.adapters.dynamodb.codec import readable
from hourbell.adapters.dynamodb.layout import CONTROL, DEAD_SHARDS, dead_key
from hourbell.adapters.dynamodb.work_items import dead_shard, decode_letter
from hourbell.adapters.letters import LETTER_KEY, letter_range, schedule_of
from hourbell.adapters.listing import Position, invalid_cursor, position_of
from hourbell.adapters.sdk_errors import translation
from hourbell.domain.work import DeadLetter


@dataclass(frozen=True, slots=True)
class LetterQuery:
    """Which dead letters are asked for; see the port `Ledger`."""

    tenant_id: str
    schedule_id: str | None
    since: datetime | None
    until: datetime | None

    @property
    def shards(self) -> range:
        """The list shards that they lie in."""
        if self.schedule_id is None:
            return range(DEAD_SHARDS)
        shard = dead_shard(self.schedule_id)
        return range(shard, shard + 1)


def page_of(
    database: Database, wanted: LetterQuery, after: str | None, limit: int
) -> tuple[Sequence[DeadLetter], str | None]:
    """Return dead letters, and what leads to the next page; None at the end.

    Raises:
        InvalidInput: `after` is not what an earlier page gave.
    """
    position: Position | None = _start(wanted, after)
    letters: list[DeadLetter] = []
    read, left = partial(decode_letter, wanted.tenant_id), limit
    while position is not None and left > 0:
        items, position = _read(database, wanted, position, left)
        left -= len(items)
        letters += [
            letter
            for letter in readable("dead letter", read, items)
            if wanted.schedule_id in (None, schedule_of(letter))
        ]
    return letters, None if position is None else position.written()


def _start(wanted: LetterQuery, after: str | None) -> Position:
    if after is None:
        return Position(wanted.shards.start)
    found = position_of(after, prefix="", shards=DEAD_SHARDS, form=LETTER_KEY)
    if found.shard not in wanted.shards:
        raise invalid_cursor(after)
    return found


def _read(
    database: Database, wanted: LetterQuery, position: Position, limit: int
) -> tuple[list[Any], Position | None]:
    """Return what is read of one list shard, and where to go on."""
    first, last = letter_range(position.key, wanted.since, wanted.until)
    if first > last:
        return [], _next(wanted, position, None)
    partition = dead_key(wanted.tenant_id, position.shard)
    with translation():
        answer = database.client.query(
            TableName=database.tables.control,
            KeyConditionExpression="#shard = :shard AND #key BETWEEN :first AND :last",
            ExpressionAttributeNames={
                "#shard": CONTROL.partition,
                "#key": CONTROL.sort,
            },
            ExpressionAttributeValues={
                ":shard": {"S": partition},
                ":first": {"S": first},
                ":last": {"S": last},
            },
            ConsistentRead=True,
            Limit=limit,
        )
    last_key = answer.get("LastEvaluatedKey")
    return answer["Items"], _next(wanted, position, last_key)


def _next(
    wanted: LetterQuery, position: Position, last: Mapping[str, Any] | None
) -> Position | None:
    if last is not None:
        return Position(position.shard, last[CONTROL.sort]["S"])
    following = position.shard + 1
    return Position(following) if following in wanted.shards else None
