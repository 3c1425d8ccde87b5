"""Whose rows a pass takes first: all tenants in turns, and each up to a cap."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from hourbell.domain.occurrence import Occurrence, RowKey, bucket_of
from hourbell.domain.policies import PASS_CAP
from hourbell.usecases.directory_reads import read_tenants
from hourbell.usecases.ports import Directory

MAX_LATER: Final = 50_000
"""How many rows beyond caps a pass keeps in mind. The next one finds the others."""


class Turns:
    """The turns of the tenants in one pass over a shard group.

    Attributes:
        later: rows beyond their tenants' caps, to be taken when all others were.
    """

    def __init__(self, directory: Directory, cap: int | None = PASS_CAP) -> None:
        """Begin with nothing taken.

        Args:
            directory: knows the tenants' weights.
            cap: how many rows of a tenant of weight 1 are admitted; None for all.
        """
        self._directory = directory
        self._cap = cap
        self._weights: dict[str, int] = {}
        self._taken: defaultdict[str, int] = defaultdict(int)
        self._left: set[RowKey] = set()
        self.later: list[Occurrence] = []

    def admit(self, rows: Sequence[Occurrence]) -> list[Occurrence]:
        """Return the rows of tenants that are below their caps; keep the others.

        They are ordered by bucket, within one by turns, and within a turn by time. In
        a turn a tenant has as many rows as its weight says. Gap rows that let others
        run come after all that do not, for what is on time does not wait for a backlog.
        They count for what they let run too, and may go beyond the cap by that.

        Raises:
            Transient: tenants could not be read.
        """
        by_time = sorted(rows, key=lambda row: (row.weight > 1, row.scheduled_for))
        if self._cap is None and len({row.tenant_id for row in rows}) <= 1:
            return by_time
        self._weigh({row.tenant_id for row in rows})
        admitted: list[Occurrence] = []
        turns: list[tuple[bool, str, int]] = []
        counts: defaultdict[tuple[str, str], int] = defaultdict(int)
        for row in by_time:
            if self._is_beyond(row):
                self._leave(row)
                continue
            self._taken[row.tenant_id] += row.weight
            bucket, weight = bucket_of(row.scheduled_for), self._weights[row.tenant_id]
            turn = counts[bucket, row.tenant_id] // weight
            turns.append((row.weight > 1, bucket, turn))
            counts[bucket, row.tenant_id] += row.weight
            admitted.append(row)
        order = sorted(range(len(admitted)), key=turns.__getitem__)
        return [admitted[index] for index in order]

    def _leave(self, row: Occurrence) -> None:
        """Keep a row for the end, once: a pass may meet it in two buckets."""
        if row.key not in self._left and len(self.later) < MAX_LATER:
            self._left.add(row.key)
            self.later.append(row)

    def _is_beyond(self, row: Occurrence) -> bool:
        if self._cap is None:
            return False
        allowed = self._cap * self._weights[row.tenant_id]
        return self._taken[row.tenant_id] >= allowed

    def _weigh(self, tenant_ids: set[str]) -> None:
        """Look up the weights of tenants that are new to the pass; 1 where unknown."""
        new = tenant_ids - self._weights.keys()
        if new:
            found, _ = read_tenants(self._directory, new)
            for tenant_id in new:
                tenant = found.get(tenant_id)
                self._weights[tenant_id] = 1 if tenant is None else tenant.weight
