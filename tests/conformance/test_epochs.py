"""The list of shard counts."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from botocore.exceptions import ReadTimeoutError
from hourbell.adapters.dynamodb import Database
from hourbell.adapters.dynamodb.epochs import DynamoEpochBook, DynamoShardMaps
from hourbell.adapters.memory import FixedClock
from hourbell.domain.errors import Transient
from hourbell.domain.shards import Epoch, Phase, ShardMap
from hourbell.usecases.ports import Write
from hourbell.usecases.shard_ports import Epochs, MoveProgress

from tests.conformance import faults
from tests.conformance.samples import DUE, MINUTE, NOW
from tests.conformance.test_races import THREADS, all_at_once
from tests.conformance.worlds import World

FIRST = Epochs(ShardMap.constant(4, 2), 1, NOW)
SECOND = Epochs(
    ShardMap(
        (
            Epoch(None, 4, 2),
            Epoch(DUE - 60 * MINUTE, 16, 2),
            Epoch(DUE, 4096, 64, Phase.MOVING),
        )
    ),
    2,
    NOW + timedelta(milliseconds=250),
    MoveProgress(round=3, segments=64, done=frozenset({0, 7, 63}), moved=10**9, left=5),
    "arn:aws:iam::123456789012:role/über",
)


def test_nothing_is_stored_at_first(world: World) -> None:
    assert world.book.read() is None


def test_the_list_is_read_as_it_was_stored(world: World) -> None:
    for epochs in (FIRST, SECOND):
        assert world.book.store(epochs) is Write.APPLIED
        assert world.book.read() == epochs


@pytest.mark.parametrize("phase", Phase)
def test_every_phase_is_told(world: World, phase: Phase) -> None:
    world.book.store(FIRST)
    told = replace(SECOND, shard_map=SECOND.shard_map.with_phase(phase))
    world.book.store(told)
    assert world.book.read() == told


@pytest.mark.parametrize("revision", [2, 3, 9])
def test_without_a_list_only_the_first_is_stored(world: World, revision: int) -> None:
    assert world.book.store(replace(SECOND, revision=revision)) is Write.LOST
    assert world.book.read() is None


@pytest.mark.parametrize("revision", [1, 2, 4, 5])
def test_a_list_is_stored_only_over_the_one_before_it(
    world: World, revision: int
) -> None:
    world.book.store(FIRST)
    world.book.store(SECOND)
    assert world.book.store(replace(FIRST, revision=revision)) is Write.LOST
    assert world.book.read() == SECOND
    assert world.book.store(replace(FIRST, revision=3)) is Write.APPLIED


@pytest.mark.engine
@pytest.mark.parametrize("revision", [1, 2])
def test_of_many_that_store_at_once_one_is_first(
    engine_database: Database, revision: int
) -> None:
    book = DynamoEpochBook(engine_database)
    if revision > 1:
        book.store(FIRST)

    results = all_at_once(
        lambda number: book.store(
            replace(SECOND, revision=revision, requested_by=f"{number}")
        )
    )

    assert Counter(results) == {Write.APPLIED: 1, Write.LOST: THREADS - 1}
    stored = book.read()
    assert stored is not None
    assert stored.requested_by == f"{results.index(Write.APPLIED)}"


def test_a_lost_answer_passes_for_nobody_elses_success() -> None:
    """It is not tried again: the second attempt would find the first one's list."""
    script = faults.Script(faults.timeout)
    with pytest.raises(Transient):
        DynamoEpochBook(faults.scripted_database(script)).store(SECOND)
    assert len(script.requests) == 1


def test_what_was_stored_by_a_call_without_answer_is_there(
    moto_database: Database,
) -> None:
    book = DynamoEpochBook(moto_database)
    book.store(FIRST)
    real = moto_database.single.put_item

    class Deaf:
        def put_item(self, **arguments: object) -> None:
            real(**arguments)  # type: ignore[arg-type]
            raise ReadTimeoutError(endpoint_url="http://somewhere")

    deaf = DynamoEpochBook(replace(moto_database, single=Deaf()))  # type: ignore[arg-type]
    with pytest.raises(Transient):
        deaf.store(SECOND)
    assert book.read() == SECOND
    assert book.store(SECOND) is Write.LOST


def test_a_map_is_read_anew_every_half_minute(moto_database: Database) -> None:
    book, clock = DynamoEpochBook(moto_database), FixedClock(NOW)
    initial = ShardMap.constant(8, 1)
    maps = DynamoShardMaps(book, initial, clock)
    assert maps.current() == initial
    book.store(FIRST)
    clock.advance(timedelta(seconds=29))
    assert maps.current() == initial
    clock.advance(timedelta(seconds=1))
    assert maps.current() == FIRST.shard_map
    book.store(SECOND)
    clock.advance(timedelta(seconds=30))
    assert maps.current() == SECOND.shard_map


def test_a_map_that_is_too_old_is_not_told() -> None:
    script = faults.Script(faults.answer({}), *[faults.timeout] * 9)
    clock = FixedClock(NOW)
    initial = ShardMap.constant(8, 1)
    maps = DynamoShardMaps(
        DynamoEpochBook(faults.scripted_database(script)), initial, clock
    )
    assert maps.current() == initial
    clock.advance(timedelta(seconds=29))
    assert maps.current() == initial
    clock.advance(timedelta(seconds=1))
    with pytest.raises(Transient):
        maps.current()
