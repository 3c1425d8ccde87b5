"""A pass, with something wrong: bad rows, slow stores, crashes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import Permanent
from hourbell.domain.instants import ceil_second
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.relay import relay_rows
from hourbell.usecases.scan import LEASE_DURATION, run_pass

from tests.unit.usecases.faults import Crash, Crashing
from tests.unit.usecases.test_scan import EVERY_MINUTE
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 9))
def test_a_crash_at_any_write_of_a_pass_loses_nothing(nth: int, after: bool) -> None:
    world = World()
    world.add(EVERY_MINUTE)
    world.add(Timing("rate(1 minute)", anchor=START))
    crashing = Crashing(world.timeline, ("plan", "move"), nth=nth, after=after)
    plane = replace(world.plane, timeline=crashing)
    for group in range(2):
        try:
            run_pass(
                replace(world.scanner, plane=plane),
                GroupWork(group, START),
                holder="doomed",
            )
        except Crash:
            break
    world.store.take_stream()
    for _ in range(6):
        world.clock.advance(MINUTE)
        world.scan()
        world.relay_stream()
        world.relay_sweep()
    due = [t for t in times(world.rows()) if t <= world.clock.now()]
    assert due == sorted([START + n * MINUTE for n in range(1, 7)] * 2)
    assert all(
        row.state is State.ENQUEUED
        for row in world.rows()
        if row.scheduled_for <= world.clock.now()
    )


def test_closed_minutes_behind_an_open_row_do_not_carry_the_watermark_over_it() -> None:
    world = World()
    stuck = world.add(Timing("at(2026-03-09T12:01:00)"))
    world.scan()
    world.store.take_stream()
    world.clock.advance(30 * MINUTE)
    for _ in range(3):
        report = world.scan()[world.shard_map.group_of(stuck.shard)]
        assert report.oldest == stuck.scheduled_for
        world.clock.advance(MINUTE)


def test_an_unreadable_row_hides_no_other_and_is_not_passed_over() -> None:
    world = World()
    rows = [world.add(EVERY_MINUTE) for _ in range(8)]
    damaged = replace(rows[0].key, sort="20260309T120000Z#damaged")

    class Damaged:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def page(self, bucket: str, shard: int, **options: Any) -> Any:
            page = world.timeline.page(bucket, shard, **options)
            here = (bucket, shard) == (damaged.bucket, damaged.shard)
            return replace(page, unreadable=(damaged,)) if here else page

    timeline: Any = Damaged()
    plane = replace(world.plane, timeline=timeline)
    group = world.shard_map.group_of(damaged.shard)
    for _ in range(10):
        report = run_pass(
            replace(world.scanner, plane=plane),
            GroupWork(group, world.clock.now()),
            holder="m1",
        )
        world.relay_stream()
        world.clock.advance(MINUTE)
        assert report.unreadable == 1
    mine = [r for r in world.rows(State.ENQUEUED) if r.shard % 2 == group]
    assert max(times(mine)) > START + 11 * MINUTE
    assert report.oldest == rows[0].scheduled_for


def test_a_version_that_cannot_be_read_stops_only_its_own_rows() -> None:
    world = World()
    rows = [world.add(EVERY_MINUTE) for _ in range(6)]

    class Damaged:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def versions(self, refs: Any, *, consistent: bool) -> Any:
            wanted = list(refs)
            if any(ref.schedule_id == rows[0].schedule_id for ref in wanted):
                raise Permanent(code="unreadable_item")
            return world.schedules.versions(wanted, consistent=consistent)

    schedules: Any = Damaged()
    plane = replace(world.plane, schedules=schedules)
    tally = advance(plane, rows, START)
    assert (tally.faulty, tally.scheduled) == (1, 15)
    report = relay_rows(
        replace(world.outbox, schedules=schedules),
        [*world.store.take_stream(), replace(rows[0], state=State.SCHEDULED)],
    )
    assert len(report.deliveries) == 15
    assert report.unsettled == (rows[0].key,)
    assert world.store.row(rows[0].key) == rows[0]


def test_a_version_in_a_zone_that_is_gone_stops_only_its_own_rows() -> None:
    world = World()
    rows = [world.add(EVERY_MINUTE) for _ in range(6)]
    ref = VersionRef(rows[0].schedule_id, 1)
    version = world.store.versions[ref]
    gone = replace(version.definition, timing=Timing("* * * * *", "US/Pacific-New"))
    world.store.versions[ref] = replace(version, definition=gone)
    tally = advance(world.plane, rows, START)
    assert (tally.faulty, tally.scheduled) == (1, 15)


def test_whatever_ends_a_pass_its_lease_is_given_back() -> None:
    world = World()
    world.add(EVERY_MINUTE)

    class Broken:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.timeline, name)

        def page(self, *_: Any, **__: Any) -> Any:
            raise RuntimeError

    timeline: Any = Broken()
    with pytest.raises(RuntimeError):
        run_pass(
            replace(world.scanner, plane=replace(world.plane, timeline=timeline)),
            GroupWork(0, START),
            holder="m1",
        )
    assert world.groups.acquire(0, "m2", now=START, duration=LEASE_DURATION)


class Ticking:
    """A timeline each of whose calls takes a while."""

    def __init__(self, world: World, seconds: float) -> None:
        self._world = world
        self._took = timedelta(seconds=seconds)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._world.timeline, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._world.clock.advance(self._took)
            return method(*args, **kwargs)

        return call


def test_a_pass_stops_at_its_deadline_in_the_middle_of_a_chain() -> None:
    world = World()
    row = world.add(Timing("rate(1 minute)", anchor=START))
    timeline: Any = Ticking(world, 3)
    started = world.clock.now()
    deadline = started + timedelta(seconds=20)
    report = run_pass(
        replace(world.scanner, plane=replace(world.plane, timeline=timeline)),
        GroupWork(world.shard_map.group_of(row.shard), started),
        holder="m1",
        deadline=deadline,
    )
    assert not report.finished
    assert report.kept
    # The step that was under way is finished, and the next one is not begun.
    assert world.clock.now() <= deadline + 9 * SECOND
    due = [r for r in world.rows() if r.scheduled_for <= started + 180 * SECOND]
    assert [r.state for r in due[-2:]] == [State.SCHEDULED, State.PLANNED]


def test_work_that_is_on_time_does_not_wait_for_a_backlog() -> None:
    world = World()
    old = world.add(Timing("rate(1 minute)", anchor=START))
    world.clock.advance(timedelta(days=3))
    due = world.clock.now() + 2 * MINUTE
    fresh = world.add(Timing(f"at({due:%Y-%m-%dT%H:%M:%S})"))
    while world.shard_map.group_of(fresh.shard) != world.shard_map.group_of(old.shard):
        fresh = world.add(Timing(f"at({due:%Y-%m-%dT%H:%M:%S})"))
    timeline: Any = Ticking(world, 0.05)
    started = world.clock.now()
    run_pass(
        replace(world.scanner, plane=replace(world.plane, timeline=timeline)),
        GroupWork(world.shard_map.group_of(old.shard), started),
        holder="m1",
        deadline=started + timedelta(seconds=20),
    )
    scheduled = world.store.row(fresh.key)
    assert scheduled is not None
    assert scheduled.state is State.SCHEDULED


def test_a_dispatch_row_with_a_lasting_fault_stops_nothing_else() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    other = world.add(EVERY_MINUTE)
    due = ceil_second(START)
    dispatch = Dispatch(
        DispatchKind.HANDOVER, row.schedule_id, 2, "acme", due, row.shard, START
    )
    world.store.put_dispatch(dispatch)

    class Damaged:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def versions(self, refs: Any, *, consistent: bool) -> Any:
            wanted = list(refs)
            if any(ref.version == 2 for ref in wanted):
                raise Permanent(code="unreadable_item")
            return world.schedules.versions(wanted, consistent=consistent)

    world.clock.advance(MINUTE)
    schedules: Any = Damaged()
    plane = replace(world.plane, schedules=schedules)
    reports = [
        run_pass(
            replace(world.scanner, plane=plane),
            GroupWork(group, world.clock.now()),
            holder="m1",
        )
        for group in range(2)
    ]
    assert sum(report.faulty for report in reports) == 1
    assert any(r.schedule_id == other.schedule_id for r in world.rows(State.SCHEDULED))
