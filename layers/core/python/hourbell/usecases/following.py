"""Put dispatch rows for rows that may come to lie behind their shard's watermark."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from hourbell.domain.dispatch import follow_of
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.shards import MINUTE, ShardMap
from hourbell.usecases.ports import Timeline, Write

# No watermark is so near to now, by whatever clock.
_AHEAD = MINUTE - timedelta(seconds=5)


def post_follows(
    timeline: Timeline, shards: ShardMap, rows: Iterable[Occurrence], now: datetime
) -> set[RowKey]:
    """Put the dispatch rows that see to overdue rows, before those are inserted.

    A deferred one has its release, and what is not overdue is ahead of every watermark.

    Args:
        timeline: where both kinds lie.
        shards: tells where.
        rows: about to be inserted.
        now: the current instant.

    Returns:
        the keys of the rows that must wait, as there was no clear answer.
    """
    behind = [
        row
        for row in rows
        if row.scheduled_for < now - _AHEAD and row.state is not State.DEFERRED
    ]
    if not behind:
        return set()
    answers = timeline.post([follow_of(row, shards, now) for row in behind])
    return {
        row.key
        for row, answer in zip(behind, answers, strict=True)
        if answer is Write.UNKNOWN
    }
