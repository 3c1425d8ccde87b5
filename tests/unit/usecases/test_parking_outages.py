"""After an outage everything is late, and nothing is parked that nobody tried yet."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.dispatch import release_of
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.parking import ParkReason
from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import GroupWork, Sent
from hourbell.usecases.scan import PassReport, run_pass

from tests.unit.usecases.poison import EVERY_TEN, POISONS, PoisonedWorld
from tests.unit.usecases.test_parking import only, poisoned
from tests.unit.usecases.world import MINUTE, SECOND, START

HOUR = timedelta(hours=1)


def unsent(world: PoisonedWorld) -> Occurrence:
    """Leave an outbox record of 12:10 behind that no relay has come to."""
    row = world.add(EVERY_TEN)
    world.clock.set(START + 8 * MINUTE)
    world.scan()
    world.store.take_stream()
    world.sweep_queue.take()
    stored = world.store.row(row.key)
    assert stored is not None
    assert stored.state is State.SCHEDULED
    return stored


@pytest.mark.parametrize("last", [8, 11], ids=["before its time", "after its time"])
def test_what_was_unsent_when_all_stopped_is_sent_and_not_parked(last: int) -> None:
    world = PoisonedWorld()
    row = unsent(world)
    world.clock.set(START + last * MINUTE)
    world.scan()
    world.sweep_queue.take()
    world.clock.advance(3 * HOUR)
    reports = world.minutes(3)
    assert [report.parked for report in reports] == [0] * len(reports)
    sent = world.store.row(row.key)
    assert sent is not None
    assert sent.state is State.ENQUEUED


def test_what_no_relay_takes_after_an_outage_is_parked_by_the_second_pass() -> None:
    world = PoisonedWorld()
    row = unsent(world)
    world.answers[row.occurrence_id] = Sent.RETRY
    world.clock.advance(3 * HOUR)
    world.minutes(1)
    assert world.store.parked == {}
    world.minutes(1)
    assert (only(world).key, only(world).reason) == (row.key, ParkReason.UNSENT)


@pytest.mark.parametrize("name", POISONS)
def test_poison_of_before_an_outage_is_parked_by_the_second_pass(name: str) -> None:
    world, row = poisoned(POISONS[name])
    # The outbox record of the deleted queue is made, and the others are tried.
    world.minutes(11)
    world.clock.advance(2 * HOUR)
    first, second = world.minutes(1), world.minutes(1)
    assert sum(report.parked for report in first) == 0
    assert sum(report.parked for report in second) == 1
    assert only(world).key.bucket == row.key.bucket


def test_the_very_first_pass_of_a_group_parks_nothing() -> None:
    world, _ = poisoned(POISONS["tenant gone"])
    world.clock.advance(5 * HOUR)
    world.minutes(1)
    assert world.store.parked == {}
    world.minutes(1)
    assert only(world).reason is ParkReason.TENANT_GONE


def test_a_record_that_was_late_from_the_start_has_its_hour() -> None:
    world = PoisonedWorld()
    row = replace(
        world.add(EVERY_TEN),
        state=State.DEFERRED,
        available_at=START + 20 * MINUTE,
        queue="standard-strict",
    )
    world.store.put_row(row)
    shard = world.shard_map.shard_of(row.schedule_id, START + 20 * MINUTE)
    world.store.put_dispatch(release_of(row, shard, START))
    world.answers[row.occurrence_id] = Sent.RETRY
    # Its dispatch row is due at 12:20; released at 15:00, the relay has until 16:00.
    world.clock.set(START + 3 * HOUR)
    world.minutes(60)
    assert [each for _, each in world.store.parked] == []
    world.minutes(2)
    assert only(world).reason is ParkReason.UNSENT


def test_when_no_pass_is_ever_finished_poison_is_parked_all_the_same() -> None:
    world = PoisonedWorld(shard_map=ShardMap.constant(1, 1))
    row = world.add(EVERY_TEN, tenant="zeta")
    del world.store.tenants["zeta"]
    world.clock.advance(2 * HOUR)
    reports = [hurried(world) for _ in range(3)]
    assert not any(report.finished for report in reports)
    # The first comes to 12:10 and tries it; the second begins there, and parks.
    assert [report.parked for report in reports[:2]] == [0, 1]
    assert only(world).key == row.key
    lease = world.store.groups[0]
    assert lease.passed_at is None
    # Nor does it hold up what is behind it.
    assert lease.watermarks[0] > row.scheduled_for


def hurried(world: PoisonedWorld) -> PassReport:
    """Let a pass have time for some 30 buckets of the past, of 2 h and more."""
    world.clock.advance(MINUTE)
    deadline = world.clock.now() + 45 * SECOND
    plain = world.timeline
    calls = 0

    class Slow:
        """A timeline of which 40 pages take all the time."""

        def __getattr__(self, name: str) -> Any:
            return getattr(plain, name)

        def page(self, *args: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == 40:
                world.clock.set(deadline)
            return plain.page(*args, **options)

    scanner = world.scanner
    timeline: Any = Slow()
    plane = replace(scanner.plane, timeline=timeline)
    work = GroupWork(0, world.clock.now())
    return run_pass(replace(scanner, plane=plane), work, holder="m", deadline=deadline)
