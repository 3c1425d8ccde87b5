"""How old what a process knows of the shard counts may be."""

from datetime import UTC, datetime, timedelta

from hourbell.adapters.dynamodb.epochs import DynamoShardMaps
from hourbell.adapters.memory import MemoryStore
from hourbell.adapters.memory.clocks import FixedClock
from hourbell.adapters.memory.shards import MemoryEpochBook
from hourbell.domain.policies import EPOCH_AGE
from hourbell.domain.shards import ShardMap
from hourbell.usecases.shard_ports import Epochs

NOW = datetime(2026, 3, 9, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
INITIAL, OTHER = ShardMap.constant(2, 1), ShardMap.constant(3, 1)


class SlowBook(MemoryEpochBook):
    """A book whose reader is frozen after the answer, the first time."""

    def __init__(self, store: MemoryStore, clock: FixedClock) -> None:
        super().__init__(store)
        self._clock = clock
        self._frozen = 100 * SECOND

    def read(self) -> Epochs | None:
        found = super().read()
        self._clock.advance(self._frozen)
        self._frozen = 0 * SECOND
        return found


def test_the_age_of_what_is_known_counts_from_before_it_was_read() -> None:
    clock = FixedClock(NOW)
    book = SlowBook(MemoryStore(), clock)
    maps = DynamoShardMaps(book, INITIAL, clock)
    assert maps.current() == INITIAL
    book.store(Epochs(OTHER, 1, NOW))

    assert maps.current() == OTHER


def test_what_is_known_is_not_read_anew_before_it_is_old() -> None:
    clock = FixedClock(NOW)
    book = MemoryEpochBook(MemoryStore())
    maps = DynamoShardMaps(book, INITIAL, clock)
    maps.current()
    book.store(Epochs(OTHER, 1, NOW))

    clock.advance(EPOCH_AGE - SECOND)
    assert maps.current() == INITIAL
    clock.advance(SECOND)
    assert maps.current() == OTHER
