"""A pass: materialize, sweep, watermarks, lease."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import LEASE_DURATION, run_pass

from tests.unit.usecases.world import EVERYTHING, MINUTE, START, World, times

EVERY_MINUTE = Timing("* * * * *")


def run_minutes(world: World, minutes: int, *, relay: bool = True) -> None:
    for _ in range(minutes):
        world.scan()
        if relay:
            world.relay_stream()
        world.clock.advance(MINUTE)


def test_an_untouched_group_has_nothing_to_lease() -> None:
    assert not any(report.leased for report in World().scan())


def test_a_pass_finds_every_due_row_of_every_shard() -> None:
    world = World()
    rows = [world.add(EVERY_MINUTE) for _ in range(40)]
    assert {row.shard for row in rows} == set(range(4))
    reports = world.scan()
    assert sum(report.tally.scheduled for report in reports) == 120
    assert all(report.finished and report.kept for report in reports)


def test_minute_by_minute_each_time_is_delivered_exactly_once() -> None:
    world = World()
    for _ in range(5):
        world.add(EVERY_MINUTE)
    run_minutes(world, 20)
    enqueued = world.rows(State.ENQUEUED)
    assert sorted(set(times(enqueued))) == [START + n * MINUTE for n in range(1, 23)]
    assert len(world.queues.accepted) == len(enqueued) == 5 * 22
    assert all(sent.visible_at >= sent.sent_at for sent in world.queues.accepted)


def test_in_the_steady_state_a_time_costs_one_insert_and_two_updates() -> None:
    world = World()
    for _ in range(5):
        world.add(EVERY_MINUTE)
    run_minutes(world, 5)
    world.store.take_stream()
    before = len(world.rows())
    reports = world.scan()
    written = len(world.store.take_stream())
    assert len(world.rows()) - before == 5
    assert written == 10
    assert sum(report.tally.existed + report.tally.lost for report in reports) == 0


def test_the_watermark_passes_only_closed_minutes_that_no_writer_can_reach() -> None:
    world = World()
    world.add(EVERY_MINUTE)
    run_minutes(world, 10)
    now = world.clock.now()
    oldest = [report.oldest for report in world.scan()]
    assert oldest == [now - 2 * MINUTE] * 2


def test_an_open_row_holds_its_shards_watermark() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    run_minutes(world, 10, relay=False)
    reports = world.scan()
    held = reports[world.shard_map.group_of(row.shard)]
    assert held.oldest == row.scheduled_for
    world.relay_stream()
    world.clock.advance(MINUTE)
    assert world.scan()[world.shard_map.group_of(row.shard)].oldest == (
        world.clock.now() - 2 * MINUTE
    )


def test_rows_older_than_any_scan_are_found_after_an_outage() -> None:
    world = World()
    world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(hours=3))
    reports = world.scan()
    # The 178 that are over a minute late, and five up to the horizon.
    assert len(world.rows(State.SCHEDULED)) == 183
    assert sum(report.tally.misfires for report in reports) == 178


def test_the_sweep_hands_over_what_the_stream_lost() -> None:
    world = World()
    for _ in range(6):
        world.add(EVERY_MINUTE)
    world.scan()
    world.store.take_stream()
    world.clock.advance(MINUTE)
    assert sum(report.swept for report in world.scan()) == 12
    reports = world.relay_sweep()
    assert sum(len(report.deliveries) for report in reports) == 12


def test_without_any_stream_everything_is_delivered_before_its_time() -> None:
    world = World()
    for _ in range(3):
        world.add(Timing("*/5 * * * *"))
    for _ in range(31):
        world.scan()
        world.relay_sweep()
        world.store.take_stream()
        world.clock.advance(MINUTE)
    enqueued = world.rows(State.ENQUEUED)
    assert sorted(set(times(enqueued))) == [START + 5 * n * MINUTE for n in range(1, 7)]
    for row in enqueued:
        assert row.enqueued_at is not None
        assert row.enqueued_at <= row.scheduled_for


def test_a_group_is_scanned_by_one_holder_at_a_time() -> None:
    world = World()
    world.add(EVERY_MINUTE)
    world.groups.acquire(0, "other", now=START, duration=LEASE_DURATION)
    first, second = world.scan()
    assert (first.leased, second.leased) == (False, True)
    world.clock.advance(LEASE_DURATION)
    assert world.scan()[0].leased


def test_a_holder_that_lost_its_lease_moves_no_watermark() -> None:
    world = World()
    world.add(EVERY_MINUTE)
    run_minutes(world, 8)

    class Overtaken:
        """The lease is taken over while its holder still scans."""

        def acquire(self, group: Any, holder: Any, *, now: Any, duration: Any) -> Any:
            lease = world.groups.acquire(group, holder, now=now, duration=duration)
            world.groups.acquire(
                group, "next", now=now + 2 * duration, duration=duration
            )
            return lease

        def release(self, *arguments: Any) -> Any:
            return world.groups.release(*arguments)

    before = {group: lease.watermarks for group, lease in world.store.groups.items()}
    report = run_pass(
        replace(world.scanner, groups=Overtaken()),  # type: ignore[arg-type]
        GroupWork(0, world.clock.now()),
        holder="slow",
    )
    assert not report.kept
    assert world.store.groups[0].watermarks == before[0]


def test_a_pass_that_fails_gives_its_lease_back_with_what_it_reached() -> None:
    world = World()
    world.add(EVERY_MINUTE)
    run_minutes(world, 8)
    world.clock.advance(MINUTE)

    class Failing:
        def __init__(self, calls: int) -> None:
            self.left = calls

        def __getattr__(self, name: Any) -> Any:
            return getattr(world.timeline, name)

        def page(self, *args: Any, **kwargs: Any) -> Any:
            self.left -= 1
            if self.left < 0:
                raise Transient
            return world.timeline.page(*args, **kwargs)

    # Twelve pages of the coming minutes, then those that may be passed.
    plane = replace(world.plane, timeline=Failing(14))
    before = world.store.groups[0].watermarks
    with pytest.raises(Transient):
        run_pass(
            replace(world.scanner, plane=plane),
            GroupWork(0, world.clock.now()),
            holder="m1",
        )
    after = world.store.groups[0].watermarks
    assert any(after[shard] > before[shard] for shard in before)
    assert all(after[shard] >= before[shard] for shard in before)
    assert world.groups.acquire(0, "m2", now=world.clock.now(), duration=LEASE_DURATION)


def test_at_its_deadline_a_pass_stops_and_the_next_goes_on() -> None:
    world = World()
    for _ in range(4):
        world.add(EVERY_MINUTE)
    reports = world.scan(deadline=world.clock.now())
    assert not any(report.finished for report in reports if report.leased)
    assert world.rows(State.SCHEDULED) == []
    assert sum(report.tally.scheduled for report in world.scan()) == 12
