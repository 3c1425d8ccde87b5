"""A backlog does not wait for ticks: a pass that its deadline ended orders the next."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import State
from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import LEASE_DURATION, PassReport, run_pass

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_scan import EVERY_MINUTE
from tests.unit.usecases.test_scan_faults import Ticking
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, World

LIMIT = 45 * SECOND


def backlogged(hours: int = 3) -> World:
    """Return a world of one group whose rows of some hours are overdue."""
    world = World(shard_map=ShardMap.constant(4, 1))
    for _ in range(8):
        world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(hours=hours))
    return world


def take(world: World, order: GroupWork, holder: str, seconds: float) -> PassReport:
    """Let a materializer take an order, whose every call takes some time."""
    timeline: Any = Ticking(world, seconds)
    plane = replace(world.plane, timeline=timeline)
    report = run_pass(
        replace(world.scanner, plane=plane),
        order,
        holder=holder,
        deadline=world.clock.now() + LIMIT,
    )
    world.relay_stream()
    return report


def test_one_tick_is_enough_for_a_backlog_of_many_passes() -> None:
    world = backlogged()
    world.work_queue.put([GroupWork(0, world.clock.now())])
    started = world.clock.now()
    reports: list[PassReport] = []
    while world.work_queue.messages:
        (order,) = world.work_queue.take()
        reports.append(take(world, order, f"m{len(reports)}", 1))
    assert len(reports) >= 5
    assert [report.finished for report in reports] == (
        [False] * (len(reports) - 1) + [True]
    )
    assert [report.continued for report in reports] == (
        [True] * (len(reports) - 1) + [False]
    )
    # One after the other, without a pause.
    assert world.clock.now() - started <= len(reports) * (LIMIT + 5 * SECOND)
    behind = [
        row
        for row in world.rows(State.PLANNED)
        if row.scheduled_for < started + 2 * MINUTE
    ]
    assert behind == []


def test_the_order_goes_back_when_the_lease_is_free_again() -> None:
    world = backlogged()
    order = GroupWork(0, world.clock.now())

    class Asking:
        def put(self, work: Any) -> None:
            assert list(work) == [order]
            lease = world.groups.acquire(
                0, "next", now=world.clock.now(), duration=LEASE_DURATION
            )
            assert lease is not None

    timeline: Any = Ticking(world, 1)
    plane = replace(world.plane, timeline=timeline)
    report = run_pass(
        replace(world.scanner, plane=plane, work_queue=Asking()),
        order,
        holder="m1",
        deadline=world.clock.now() + LIMIT,
    )
    assert report.continued


def test_a_pass_that_got_nothing_done_orders_no_other() -> None:
    world = backlogged()
    order = GroupWork(0, world.clock.now())
    # One page takes all the time there is.
    report = take(world, order, "m1", 46)
    assert (report.leased, report.finished, report.continued) == (True, False, False)
    assert world.work_queue.messages == []


def test_of_two_orders_for_one_group_the_second_one_vanishes() -> None:
    world = backlogged()
    order = GroupWork(0, world.clock.now())
    seen = []

    def second() -> None:
        seen.append(take(world, order, "second", 0))

    for nth in (1, 5, 20):
        moment = Moment(nth, after=True, action=second)
        timeline: Any = Ticking(world, 1)
        plane = replace(world.plane, timeline=moment.wrap(timeline))
        run_pass(
            replace(world.scanner, plane=plane),
            order,
            holder="first",
            deadline=world.clock.now() + LIMIT,
        )
    assert [report.leased for report in seen] == [False] * 3
    # Each of the three passes that had the lease ordered one, and the others none.
    assert len(world.work_queue.messages) == 3


def test_orders_do_not_become_more_while_ticks_go_on() -> None:
    world = backlogged(hours=4)
    waiting = 0
    for minute in range(40):
        world.work_queue.put([GroupWork(0, world.clock.now())])
        tick = world.clock.now()
        while world.clock.now() < tick + MINUTE and world.work_queue.messages:
            order = world.work_queue.messages.pop(0)
            take(world, order, f"m{minute}-{world.clock.now()}", 0.25)
        waiting = max(waiting, len(world.work_queue.messages))
        world.clock.set(max(world.clock.now(), tick + MINUTE))
        if not world.work_queue.messages:
            break
    else:
        pytest.fail("the backlog is not drained")
    assert waiting <= minute + 1


def test_an_order_that_is_not_accepted_fails_the_pass_but_keeps_what_it_reached() -> (
    None
):
    world = backlogged()

    class Refusing:
        def put(self, work: Any) -> None:
            del work
            raise Transient

    timeline: Any = Ticking(world, 1)
    plane = replace(world.plane, timeline=timeline)
    with pytest.raises(Transient):
        run_pass(
            replace(world.scanner, plane=plane, work_queue=Refusing()),
            GroupWork(0, world.clock.now()),
            holder="m1",
            deadline=world.clock.now() + LIMIT,
        )
    assert len(world.rows(State.SCHEDULED)) > 0
    assert world.groups.acquire(0, "m2", now=world.clock.now(), duration=LEASE_DURATION)
