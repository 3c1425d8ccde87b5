"""What working on occurrences needs, and how what a worker names is found."""

from collections.abc import Iterable
from dataclasses import dataclass

from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import (
    Occurrence,
    RowKey,
    parse_occurrence_id,
    row_key,
)
from hourbell.domain.shards import ShardMap
from hourbell.domain.work import Attempt
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import Clock, Directory, Ids, Schedules, Timeline
from hourbell.usecases.rate_port import Rates
from hourbell.usecases.shard_ports import ShardMaps
from hourbell.usecases.work_ports import Ledger

# How often what others changed meanwhile is looked at anew.
MAX_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class Look:
    """What was found of some occurrences.

    Attributes:
        rows: those that are there and the tenant's, by id.
        unclear: those of which something lies there that this release cannot read. They
            are nobody's to act on, and must not be taken for gone.
    """

    rows: dict[str, Occurrence]
    unclear: frozenset[str]

    def row(self, occurrence_id: str) -> Occurrence | None:
        """Return an occurrence; None when it is not there.

        Raises:
            Transient: it cannot be read.
        """
        if occurrence_id in self.unclear:
            raise Transient(f"{occurrence_id} cannot be read")
        return self.rows.get(occurrence_id)


@dataclass(frozen=True, slots=True)
class Workplace:
    """The ports of the worker plane."""

    schedules: Schedules
    timeline: Timeline
    ledger: Ledger
    shards: ShardMaps
    directory: Directory
    rates: Rates
    ids: Ids
    clock: Clock

    @classmethod
    def of(cls, plane: Plane, ledger: Ledger, ids: Ids, clock: Clock) -> "Workplace":
        """Return the worker plane of the same tables as materializing."""
        return cls(
            plane.schedules,
            plane.timeline,
            ledger,
            plane.shards,
            plane.directory,
            plane.rates,
            ids,
            clock,
        )

    @property
    def shard_map(self) -> ShardMap:
        """The shard count of every bucket, as it is known now."""
        return self.shards.current()

    def key_of(self, occurrence_id: str) -> RowKey:
        """Return the key under which an occurrence is looked for.

        Raises:
            InvalidInput: `invalid_occurrence_id`.
        """
        schedule_id, version, instant, run = parse_occurrence_id(occurrence_id)
        shard = self.shard_map.shard_of(schedule_id, instant)
        return row_key(schedule_id, version, instant, shard, run)

    def look(self, tenant_id: str, occurrence_ids: Iterable[str]) -> "Look":
        """Look for occurrences; tell apart what is not there from what is not clear.

        Raises:
            InvalidInput: `invalid_occurrence_id`.
            Transient: the store did not answer.
        """
        keys = {each: self.key_of(each) for each in occurrence_ids}
        rows = self.timeline.read(keys.values()) if keys else {}
        found = {
            each: row
            for each, key in keys.items()
            if (row := rows.get(key)) is not None and row.tenant_id == tenant_id
        }
        # Whether another tenant has it must not show, not even in the time it takes.
        missed = {each: key for each, key in keys.items() if each not in found}
        unreadable = self._unreadable(missed.values())
        unclear = {each for each, key in missed.items() if key in unreadable}
        return Look(found, frozenset(unclear))

    def _unreadable(self, keys: Iterable[RowKey]) -> set[RowKey]:
        """Return those of the keys under which, or whose twins, lies what is damaged.

        Or what another release wrote.
        """
        places = {key: key for key in keys}
        twins = {key: self.shard_map.twin(key) for key in places}
        places |= {twin: key for key, twin in twins.items() if twin is not None}
        if not places:
            return set()
        return {places[each] for each in self.timeline.look_up(places).unreadable}

    def attempts(self, row: Occurrence) -> tuple[Attempt, ...]:
        """Return the items of a row's attempts, the oldest first.

        While the shard count changes they may lie in another shard than their row, and
        be moved between two reads; hence the third one.

        Raises:
            Transient: the store did not answer.
        """
        twin = self.shard_map.twin(row.key)
        places = [row.key] if twin is None else [row.key, twin, row.key]
        found = {
            each.number: each for key in places for each in self.ledger.attempts(key)
        }
        return tuple(found[number] for number in sorted(found))

    def find(
        self, tenant_id: str, occurrence_ids: Iterable[str]
    ) -> dict[str, Occurrence]:
        """Return those of the occurrences that are there and the tenant's.

        Raises:
            InvalidInput: `invalid_occurrence_id`.
            Transient: the store did not answer, or one cannot be read by this release.
        """
        found = self.look(tenant_id, occurrence_ids)
        if found.unclear:
            raise Transient(f"{', '.join(sorted(found.unclear))} cannot be read")
        return found.rows
