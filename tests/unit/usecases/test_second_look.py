"""What a late writer leaves behind the watermark is found 20 minutes later."""

from dataclasses import replace

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.scan import PassReport

from tests.unit.usecases.poison import EVERY_TEN, POISONS, PoisonedWorld
from tests.unit.usecases.test_parking import is_caught_up, poisoned
from tests.unit.usecases.world import EVERYTHING, MINUTE, START, times

LATE = START + 5 * MINUTE


def late_world() -> tuple[PoisonedWorld, Occurrence]:
    """Return a world at 12:10, and a row of 12:05 that is not in it.

    As if its writer, long dead, had only now come to write it.
    """
    world = PoisonedWorld()
    world.add(EVERY_TEN)
    row = world.add(Timing("at(2026-03-09T12:05:00)"), misfire=EVERYTHING)
    del world.store.rows[row.key.partition][row.key.sort]
    world.minutes(10)
    assert world.store.groups[world.shard_map.group_of(row.shard)].watermarks[
        row.shard
    ] == (START + 7 * MINUTE)
    return world, row


def found(reports: list[PassReport]) -> int:
    return sum(report.late for report in reports)


def test_a_planned_row_is_found_and_decided() -> None:
    world, row = late_world()
    world.store.put_row(row)
    # The bucket of 12:05 is over at 12:06, and 20 minutes old at 12:26.
    assert found(world.minutes(16)) == 0
    reports = world.minutes(1)
    assert found(reports) == 1
    stored = world.store.row(row.key)
    assert stored is not None
    assert (stored.state, stored.lane) == (State.ENQUEUED, Lane.CATCHUP)
    assert found(world.minutes(60)) == 0
    is_caught_up(world)


def test_an_outbox_record_is_found_and_sent() -> None:
    world, row = late_world()
    world.store.put_row(
        replace(
            row,
            state=State.SCHEDULED,
            available_at=LATE,
            scheduled_at=LATE,
            lane=Lane.STRICT,
            queue="standard-strict",
        )
    )
    # The stream lost it.
    world.store.take_stream()
    assert found(world.minutes(16)) == 0
    assert found(world.minutes(1)) == 1
    stored = world.store.row(row.key)
    assert stored is not None
    assert stored.state is State.ENQUEUED
    assert found(world.minutes(60)) == 0
    is_caught_up(world)


def test_a_dispatch_row_is_found_and_worked_off() -> None:
    world, row = late_world()
    world.store.put_dispatch(
        Dispatch(
            DispatchKind.COMPLETE, row.schedule_id, 1, "acme", LATE, row.shard, LATE
        )
    )
    assert found(world.minutes(16)) == 0
    assert found(world.minutes(1)) == 1
    assert [each.state for each in world.store.all_dispatches()] == [DispatchState.DONE]
    assert found(world.minutes(60)) == 0
    is_caught_up(world)


@pytest.mark.parametrize("minutes", [17, 45, 600])
def test_buckets_whose_turn_came_while_no_pass_ran_are_looked_at_too(
    minutes: int,
) -> None:
    world, row = late_world()
    world.store.put_row(row)
    world.clock.advance(minutes * MINUTE)
    assert found(world.minutes(1)) == 1
    world.minutes(3)
    is_caught_up(world)


def test_each_bucket_is_looked_at_once() -> None:
    world = PoisonedWorld()
    world.add(EVERY_TEN)
    world.minutes(60)
    world.pages()
    world.minutes(100)
    # Of each of four shards: two minutes behind, now, three ahead, the one that may
    # be passed, and the one that is 20 minutes old.
    assert world.pages() == 100 * 4 * (2 + 1 + 3 + 1 + 1)


def test_a_pass_without_time_for_second_looks_leaves_them_to_the_next() -> None:
    world, row = late_world()
    world.store.put_row(row)
    world.clock.advance(16 * MINUTE)
    reports = world.scan(deadline=world.clock.now())
    assert not any(report.finished for report in reports)
    assert found(world.minutes(1)) == 1


def test_what_is_parked_or_released_is_not_late() -> None:
    world, parked = poisoned(POISONS["tenant gone"])
    # 40 minutes of time each: deferred, and released behind the watermark.
    rows = [world.add(EVERY_TEN, window=2_400) for _ in range(10)]
    reports = world.minutes(150)
    assert found(reports) == 0
    assert [key for _, key in world.store.parked] == [parked.key]
    ids = {row.schedule_id for row in rows}
    sent = [r for r in world.rows(State.ENQUEUED) if r.schedule_id in ids]
    assert set(times(sent)) >= {START + n * 10 * MINUTE for n in range(1, 12)}
    slow = [r for r in sent if r.available_at and r.available_at > r.scheduled_for]
    assert any((r.available_at or START) - r.scheduled_for > 20 * MINUTE for r in slow)
