"""Many writers at the same items: exactly as many win as may."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from typing import TypeVar

import pytest
from hourbell.adapters.backoff import Backoff
from hourbell.adapters.dynamodb import (
    Database,
    DynamoSchedules,
    DynamoShardGroups,
    DynamoTimeline,
)
from hourbell.adapters.dynamodb.client import CONTENDED
from hourbell.domain.occurrence import State, Transition
from hourbell.usecases.ports import Change, Creation, Write

from tests.conformance import samples
from tests.conformance.samples import canceling, planned, scheduling

pytestmark = pytest.mark.engine

THREADS = 16
ROWS = 30
R = TypeVar("R")


def all_at_once(work: Callable[[int], R], threads: int = THREADS) -> list[R]:
    """Run the work on threads that start together."""
    barrier = Barrier(threads)

    def run(number: int) -> R:
        barrier.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, range(threads)))


def contending(database: Database) -> Database:
    """Return the database with pauses as they are in earnest."""
    return replace(database, backoff=Backoff(), contended=CONTENDED)


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
        canceled = [canceling(row, f"by {number}").row for row in rows]
        return timeline.move([Change(row, Transition.RECALL) for row in canceled])

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
            quota=1,
        )
    )

    assert Counter(results) == {Creation.CREATED: 1, Creation.EXISTS: THREADS - 1}
    stored = schedules.find(samples.schedule_id("one"))
    assert stored is not None
    assert stored.name == f"by {results.index(Creation.CREATED)}"


def test_a_quota_is_used_up_exactly(engine_database: Database) -> None:
    schedules = DynamoSchedules(contending(engine_database))

    results = all_at_once(
        lambda number: schedules.create(
            samples.schedule(number),
            samples.version(number),
            samples.planned(number),
            quota=100,
        ),
        threads=200,
    )

    assert Counter(results) == {Creation.CREATED: 100, Creation.QUOTA_FULL: 100}
    assert schedules.count("acme") == 100
    listed = schedules.listing("acme", after=None, limit=1_000)
    assert {entry.schedule_id for entry in listed.entries} == {
        samples.schedule_id(number)
        for number, result in enumerate(results)
        if result is Creation.CREATED
    }


def test_a_name_is_given_once(engine_database: Database) -> None:
    schedules = DynamoSchedules(contending(engine_database))

    results = all_at_once(
        lambda number: schedules.create(
            replace(samples.schedule(number), name="bell"),
            samples.version(number),
            samples.planned(number),
            quota=100,
        )
    )

    taken = {Creation.CREATED: 1, Creation.NAME_TAKEN: THREADS - 1}
    assert Counter(results) == taken
    assert schedules.count("acme") == 1
    winner = samples.schedule_id(results.index(Creation.CREATED))
    assert schedules.find_by_name("acme", "bell") == winner


def test_a_revision_is_changed_once(engine_database: Database) -> None:
    schedules = DynamoSchedules(contending(engine_database))
    schedules.create(samples.schedule(), samples.current(), samples.planned(), quota=1)

    def change(number: int) -> Write:
        wanted = samples.succession()
        labeled = replace(wanted.schedule, description=f"by {number}")
        return schedules.succeed(replace(wanted, schedule=labeled))

    results = all_at_once(change, threads=50)

    assert Counter(results) == {Write.APPLIED: 1, Write.LOST: 49}
    stored = schedules.find(samples.schedule_id("one"))
    assert stored is not None
    assert stored.description == f"by {results.index(Write.APPLIED)}"
    assert len(schedules.version_log(samples.schedule_id("one"))) == 2


def test_a_handover_is_finished_once(engine_database: Database) -> None:
    schedules = DynamoSchedules(contending(engine_database))
    timeline = DynamoTimeline(engine_database)
    schedules.create(samples.schedule(), samples.current(), samples.planned(), quota=1)
    change = samples.succession()
    schedules.succeed(change)
    firsts = [
        replace(samples.planned(due=samples.DUE + n * samples.MINUTE), version=2)
        for n in range(THREADS)
    ]

    def take_over(number: int) -> Write:
        begins = samples.NOW + number * samples.MINUTE
        heir = replace(change.version, effective_from=begins, base_sequence=number)
        return schedules.take_over(heir, change.ended.ref, firsts[number])

    results = all_at_once(take_over)

    assert Counter(results) == {Write.APPLIED: 1, Write.LOST: THREADS - 1}
    winner = results.index(Write.APPLIED)
    refs = [change.ended.ref, change.version.ref]
    log = schedules.versions(refs, consistent=True)
    boundary = samples.NOW + winner * samples.MINUTE
    assert log[refs[0]].effective_to == log[refs[1]].effective_from == boundary
    assert log[refs[1]].base_sequence == winner
    rows = timeline.read(first.key for first in firsts)
    assert list(rows) == [firsts[winner].key]


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
