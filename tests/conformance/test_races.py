"""Sixteen writers at the same rows: exactly one wins each."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import TypeVar

import pytest
from hourbell.adapters.dynamodb import (
    Database,
    DynamoSchedules,
    DynamoShardGroups,
    DynamoTimeline,
)
from hourbell.domain.occurrence import State
from hourbell.usecases.ports import Write

from tests.conformance import samples
from tests.conformance.samples import canceling, planned, scheduling

pytestmark = pytest.mark.engine

THREADS = 16
ROWS = 30
R = TypeVar("R")


def all_at_once(work: Callable[[int], R]) -> list[R]:
    """Run the work on 16 threads that start together."""
    barrier = Barrier(THREADS)

    def run(number: int) -> R:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def test_each_row_is_inserted_once(engine_database: Database) -> None:
    timeline = DynamoTimeline(engine_database)
    rows = [planned(n) for n in range(ROWS)]

    results = all_at_once(
        lambda number: timeline.plan([replace(row, sequence=number) for row in rows])
    )

    for index, row in enumerate(rows):
        answers = Counter(result[index] for result in results)
        assert answers == {Write.APPLIED: 1, Write.EXISTS: THREADS - 1}
        winner = next(n for n, r in enumerate(results) if r[index] is Write.APPLIED)
        assert timeline.read([row.key])[row.key].sequence == winner


def test_each_row_is_scheduled_or_canceled_once(engine_database: Database) -> None:
    timeline = DynamoTimeline(engine_database)
    rows = [planned(n) for n in range(ROWS)]
    timeline.plan(rows)

    def move(number: int) -> list[Write]:
        if number % 2:
            return timeline.move([scheduling(row) for row in rows])
        return timeline.move([canceling(row, f"by {number}") for row in rows])

    results = all_at_once(move)

    stored = timeline.read(row.key for row in rows)
    for index, row in enumerate(rows):
        schedulers = [results[number][index] for number in range(1, THREADS, 2)]
        cancelers = [results[number][index] for number in range(0, THREADS, 2)]
        # A cancel may follow a schedule, never the other way round.
        assert cancelers.count(Write.APPLIED) == 1
        assert schedulers.count(Write.APPLIED) <= 1
        final = stored[row.key]
        assert final.state is State.CANCELED
        assert final.reason == f"by {2 * cancelers.index(Write.APPLIED)}"
        assert (final.queue is not None) == (Write.APPLIED in schedulers)


def test_a_schedule_id_is_created_once(engine_database: Database) -> None:
    schedules = DynamoSchedules(engine_database)

    results = all_at_once(
        lambda number: schedules.create(
            replace(samples.schedule(), name=f"by {number}"),
            samples.version(),
            samples.planned(),
        )
    )

    assert Counter(results) == {Write.APPLIED: 1, Write.EXISTS: THREADS - 1}
    stored = schedules.find(samples.schedule_id("one"))
    assert stored is not None
    assert stored.name == f"by {results.index(Write.APPLIED)}"


def test_a_lease_has_one_holder(engine_database: Database) -> None:
    groups = DynamoShardGroups(engine_database)
    groups.ensure(1, samples.DUE)

    for generation in range(1, 4):
        now = samples.NOW + generation * samples.MINUTE
        leases = all_at_once(
            lambda number, now=now: groups.acquire(  # type: ignore[misc]
                1, f"holder {number}", now=now, duration=timedelta(seconds=60)
            )
        )
        winners = [lease for lease in leases if lease is not None]
        assert [lease.generation for lease in winners] == [generation]
