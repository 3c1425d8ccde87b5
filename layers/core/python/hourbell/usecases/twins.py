"""The timeline while its shard count changes: each row is in one of two places.

Use cases name rows by the keys of the present count. While an epoch is not settled,
a row may lie under the other count; then this port finds it there, and sees to it that
no row is put twice.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hourbell.domain.dispatch import Dispatch
from hourbell.domain.occurrence import Occurrence, RowKey
from hourbell.usecases.ports import Change, Page, Timeline, Write
from hourbell.usecases.shard_ports import Relocation, ShardMaps


@dataclass(frozen=True, slots=True)
class TwinTimeline:
    """The `Timeline` port on a timeline whose rows may lie under either count.

    Attributes:
        timeline: where every row has one place.
        shards: tells which rows have two.
        relocation: puts a row where both places are free.
    """

    timeline: Timeline
    shards: ShardMaps
    relocation: Relocation

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        """Insert PLANNED rows where both of their places are free."""
        shard_map = self.shards.current()
        if shard_map.unsettled is None:
            return self.timeline.plan(rows)
        answers: dict[RowKey, Write] = {}
        alone: list[Occurrence] = []
        for row in rows:
            twin = shard_map.twin(row.key)
            if twin is None:
                alone.append(row)
            else:
                answers[row.key] = self.relocation.plan_apart(row, twin)
        keys = [row.key for row in alone]
        answers |= zip(keys, self.timeline.plan(alone), strict=True)
        return [answers[row.key] for row in rows]

    def move(self, changes: Sequence[Change]) -> list[Write]:
        """Make conditional transitions of rows that were read."""
        return self.timeline.move(changes)

    def page(
        self,
        bucket: str,
        shard: int,
        *,
        after: RowKey | None = None,
        limit: int = 1000,
        consistent: bool = False,
    ) -> Page:
        """Return rows of one bucket and shard, as they lie."""
        return self.timeline.page(
            bucket, shard, after=after, limit=limit, consistent=consistent
        )

    def unfinished(
        self, bucket: str, shard: int, *, after: RowKey | None = None
    ) -> Page:
        """Return what has no expiry, and all dispatch rows, as they lie."""
        return self.timeline.unfinished(bucket, shard, after=after)

    def read(self, keys: Iterable[RowKey]) -> dict[RowKey, Occurrence]:
        """Return those of the occurrences that exist, by the keys asked for.

        One that lies in its other place is returned as it lies: its own key is another
        than the one that it is found by, and what is written to it goes there.
        """
        wanted = list(keys)
        found = self.timeline.read(wanted)
        shard_map = self.shards.current()
        if shard_map.unsettled is None:
            return found
        twins = {
            twin: key
            for key in wanted
            if key not in found and (twin := shard_map.twin(key)) is not None
        }
        strays = self.timeline.read(twins) if twins else {}
        found |= {twins[twin]: row for twin, row in strays.items()}
        # Between the two reads it may have been moved to where it was looked for.
        missed = [key for key in twins.values() if key not in found]
        return found | (self.timeline.read(missed) if missed else {})

    def look_up(self, keys: Iterable[RowKey]) -> Page:
        """Return what lies under these keys, as it lies."""
        return self.timeline.look_up(keys)

    def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Insert dispatch rows where their keys are free.

        One that is put twice, in either place, does nothing the second time.
        """
        return self.timeline.post(dispatches)

    def settle(self, dispatches: Sequence[Dispatch]) -> list[Write]:
        """Set dispatch rows DONE, as they lie."""
        return self.timeline.settle(dispatches)

    def reopen(self, change: Change, release: Dispatch) -> Write:
        """Make a transition and put the dispatch row, in one transaction."""
        return self.timeline.reopen(change, release)
