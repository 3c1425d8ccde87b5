"""Parking while passes end anywhere, and while two believe that they have the lease."""

import contextlib
import functools
import itertools
from dataclasses import replace

import pytest
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, RowKey, minute_of
from hourbell.domain.parking import ParkReason
from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import Scanner, run_pass

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.poison import POISONS, Act, PoisonedWorld
from tests.unit.usecases.test_parking import (
    accounted_for,
    is_caught_up,
    of,
    only,
    poisoned,
)
from tests.unit.usecases.world import MINUTE, START, World

NAMES = ["tenant gone", "row unreadable", "queue deleted", "handover faulty"]


def watching(world: World, moment: Moment, *, pages: bool = False) -> Scanner:
    """Return the ports of a pass, watched; reads of buckets only if wanted."""
    scanner = world.scanner
    timeline = moment.wrap(scanner.plane.timeline)
    if not pages:
        timeline.page = scanner.plane.timeline.page
    plane = replace(
        scanner.plane,
        schedules=moment.wrap(scanner.plane.schedules),
        timeline=timeline,
        directory=moment.wrap(scanner.plane.directory),
    )
    return replace(
        scanner,
        plane=plane,
        groups=moment.wrap(scanner.groups),
        parking=moment.wrap(scanner.parking),
        sweep_queue=moment.wrap(scanner.sweep_queue),
    )


def assert_nothing_is_lost(world: PoisonedWorld) -> None:
    """Whatever is open behind a watermark is parked, or follows from what is parked."""
    parked = {key for _, key in world.store.parked}
    ids = {key.sort.split("#")[1] for key in parked}
    keys = [row.key for row in world.store.all_rows() if row.is_open]
    keys += [each.key for each in world.store.all_dispatches() if each.is_open]
    for key in keys:
        assert not _is_passed(world, key) or key.sort.split("#")[1] in ids
    for key in set(keys) - parked:
        if _is_passed(world, key):
            # An own successor, written by a try that ended there: its parked row is
            # tried again, and sets the watermark back.
            assert any(each.bucket < key.bucket for each in parked)


def _is_passed(world: PoisonedWorld, key: RowKey) -> bool:
    lease = world.store.groups[world.shard_map.group_of(key.shard)]
    return minute_of(key.bucket) < lease.watermarks.get(key.shard, lease.floor)


def before_the_pass(name: str, *, parked: bool) -> tuple[PoisonedWorld, Occurrence]:
    """Return a world whose next pass parks its row, or tries it anew, repaired."""
    poison = POISONS[name]
    world, row = poisoned(poison, shards=ShardMap.constant(1, 1))
    world.minutes(11)
    # What cannot be read is taken for due when its bucket is over.
    unreadable = poison.reason is ParkReason.ROW_UNREADABLE
    world.clock.advance((poison.patience - 1 + unreadable) * MINUTE)
    # It is tried, and by the next pass parked.
    world.minutes(1)
    if parked:
        world.minutes(1)
        world.clock.set(only(world).next_try_at)
        # In vain, so that what follows the row is too old for second looks by then.
        world.minutes(1)
        assert only(world).tries == 1
        world.clock.set(only(world).next_try_at - MINUTE)
        world.minutes(1)
        poison.repair(world, row)
    return world, row


def at_every_moment(name: str, act: Act, *, parked: bool) -> None:
    """Let something happen before and after every port call of one pass.

    Args:
        name: of the poison; it is taken away in the end.
        act: what happens; it may end the pass.
        parked: whether the pass is one that tries the row again.
    """
    for number in itertools.count(2):
        nth, after = divmod(number, 2)
        world, row = before_the_pass(name, parked=parked)
        moment = Moment(nth, bool(after), functools.partial(act, world, row))
        group = world.shard_map.group_of(row.shard)
        work = GroupWork(group, world.clock.now())
        with contextlib.suppress(Crash, Transient):
            run_pass(watching(world, moment), work, holder="slow")
        assert_nothing_is_lost(world)
        POISONS[name].repair(world, row)
        for _ in range(5):
            world.clock.advance(14 * MINUTE)
            world.minutes(1)
            assert_nothing_is_lost(world)
        world.minutes(3)
        assert world.store.parked == {}
        is_caught_up(world)
        accounted = accounted_for(of(world, row))
        expected = [START + n * 10 * MINUTE for n in range(1, len(accounted) + 1)]
        assert accounted == expected
        if moment.calls < nth:
            assert nth > (7 if parked else 4)
            return


def crash(world: PoisonedWorld, row: Occurrence) -> None:
    del world, row
    raise Crash


def fail(world: PoisonedWorld, row: Occurrence) -> None:
    """Let a store not answer, so that the pass gives its lease back."""
    del world, row
    raise Transient


def overtake(world: PoisonedWorld, row: Occurrence) -> None:
    """Let the lease run out, and another holder do its pass."""
    world.clock.advance(MINUTE)
    group = world.shard_map.group_of(row.shard)
    run_pass(world.scanner, GroupWork(group, world.clock.now()), holder="other")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parked", [False, True])
@pytest.mark.parametrize("end", [crash, fail])
def test_a_pass_may_end_at_any_port_call(name: str, parked: bool, end: Act) -> None:
    at_every_moment(name, end, parked=parked)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parked", [False, True])
def test_a_lease_may_be_lost_at_any_port_call(name: str, parked: bool) -> None:
    at_every_moment(name, overtake, parked=parked)
