"""How a pass tells how far behind its group is."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.occurrence import State
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import PassReport

from tests.unit.usecases.poison import EVERY_TEN, POISONS
from tests.unit.usecases.test_continuation import backlogged, take
from tests.unit.usecases.test_parking import poisoned
from tests.unit.usecases.test_scan import EVERY_MINUTE, run_minutes
from tests.unit.usecases.world import MINUTE, START, World


def of_group(world: World, shard: int) -> PassReport:
    return world.scan()[world.shard_map.group_of(shard)]


def test_in_the_steady_state_nothing_is_pending_and_nothing_is_to_be_drained() -> None:
    world = World()
    for _ in range(10):
        world.add(EVERY_MINUTE)
    run_minutes(world, 30)
    for report in world.scan():
        assert (report.pending_since, report.drain) == (None, timedelta(0))


def test_the_row_that_is_due_longest_is_told_until_it_is_parked() -> None:
    world, row = poisoned(POISONS["tenant gone"])
    world.minutes(20)
    assert of_group(world, row.shard).pending_since == row.scheduled_for
    world.minutes(10)
    assert len(world.store.parked) == 1
    assert of_group(world, row.shard).pending_since is None


def test_rows_of_every_kind_are_told() -> None:
    world, row = poisoned(POISONS["row unreadable"])
    world.minutes(15)
    # It may be due at any time of its minute, so it is by the end of it.
    report = of_group(world, row.shard)
    assert report.pending_since == row.scheduled_for + MINUTE
    world.store.put_dispatch(
        Dispatch(
            DispatchKind.COMPLETE,
            row.schedule_id,
            9,
            "acme",
            row.scheduled_for,
            row.shard,
            START,
        )
    )
    assert of_group(world, row.shard).pending_since == row.scheduled_for


def test_an_outbox_record_is_pending_from_when_its_message_may_be_received() -> None:
    world = World()
    row = world.add(EVERY_TEN)
    due = row.scheduled_for + 4 * MINUTE
    world.store.put_row(
        replace(row, state=State.SCHEDULED, available_at=due, scheduled_at=due)
    )
    world.clock.advance(13 * MINUTE)
    assert of_group(world, row.shard).pending_since is None
    world.clock.advance(2 * MINUTE)
    assert of_group(world, row.shard).pending_since == due


def test_the_estimate_comes_true_for_a_backlog_of_even_buckets() -> None:
    world = backlogged()
    order = GroupWork(0, world.clock.now())
    # The first pass decides what is overdue; the ones after it read what is left.
    take(world, order, "m0", 1)
    report = take(world, order, "m1", 1)
    assert report.drain is not None
    assert report.pending_since == report.oldest
    started, passes = world.clock.now(), 0
    estimate: Any = report.drain
    while not report.finished:
        passes += 1
        report = take(world, order, f"n{passes}", 1)
    took = world.clock.now() - started
    # Each pass spends more than half of its time on the coming minutes.
    assert 0.3 * took <= estimate <= 1.5 * took


def test_a_pass_that_got_to_no_bucket_estimates_nothing() -> None:
    world = backlogged()
    report = world.scan(deadline=world.clock.now())[0]
    assert (report.finished, report.drain) == (False, None)
    assert report.pending_since == report.oldest
