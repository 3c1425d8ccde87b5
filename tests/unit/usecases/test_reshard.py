"""Changing the shard count: announced, moved, settled; nothing lost, nothing twice."""

import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.errors import Conflict, InvalidInput, Transient
from hourbell.domain.occurrence import State
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Epoch, Phase, ShardMap
from hourbell.usecases.ports import Write
from hourbell.usecases.reshard import (
    MAX_EPOCHS,
    MIN_LEAD,
    Mover,
    Plan,
    announce,
    describe,
    establish,
    move,
    resume,
)
from hourbell.usecases.shard_ports import Epochs, MoveOrder

from tests.unit.usecases.resharding import OPERATOR, ReshardingWorld
from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")
YEARLY = Timing("0 0 1 1 *")
EARLIEST = START + MIN_LEAD + MINUTE


@pytest.fixture
def world() -> ReshardingWorld:
    return ReshardingWorld()


def sent(world: World) -> Counter[str]:
    return Counter(json.loads(each.entry.body)["id"] for each in world.queues.accepted)


def minutely_ids(world: ReshardingWorld, schedule_ids: list[str]) -> Counter[str]:
    """Return the ids of every minute after the start, by hand."""
    minutes = (world.clock.now() - START) // MINUTE
    return Counter(
        f"{schedule_id}.v1.{START + number * MINUTE:%Y%m%dT%H%M%SZ}"
        for schedule_id in schedule_ids
        # The last pass was a minute ago, and three minutes ahead.
        for number in range(1, minutes + 3)
    )


def test_the_settings_hold_until_a_list_is_stored_and_never_after(
    world: ReshardingWorld,
) -> None:
    assert describe(world.mover).shard_map == world.shard_map
    establish(world.book, world.shard_map, START)
    changed = replace(world.mover, initial=ShardMap.constant(64, 8))
    establish(world.book, changed.initial, START)
    assert describe(changed).shard_map == world.shard_map


def test_an_announced_epoch_begins_after_the_least_lead(world: ReshardingWorld) -> None:
    announced = world.reshard(16)
    assert announced.shard_map.epochs == (
        Epoch(None, 4, 2),
        Epoch(EARLIEST, 16, 2, Phase.ANNOUNCED),
    )
    assert announced.requested_by == OPERATOR
    assert world.epochs == announced
    assert world.take_orders() == [MoveOrder(EARLIEST)]


def test_all_groups_have_records_before_an_epoch_is_announced(
    world: ReshardingWorld,
) -> None:
    world.reshard(16, 8)
    floor = START.replace(second=0) - timedelta(minutes=2)
    assert {g: r.floor for g, r in world.store.groups.items()} == dict.fromkeys(
        range(8), floor
    )


@pytest.mark.parametrize(
    ("shards", "groups", "since", "field"),
    [
        (0, None, None, "shards"),
        (4097, None, None, "shards"),
        (16, 1, None, "groups"),
        (16, 17, None, "groups"),
        (16, None, START + 9 * MINUTE, "since"),
        (16, None, EARLIEST + SECOND, "since"),
        (16, None, START + timedelta(days=31), "since"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(
    world: ReshardingWorld, shards: int, groups: int | None, since: object, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.reshard(shards, groups, since=since)
    assert field in {finding.field for finding in refused.value.findings}
    assert world.store.groups == {}


def with_epochs(world: ReshardingWorld, *later: Epoch) -> Mover:
    """Return a mover of a deployment whose shard count has changed before."""
    shard_map = ShardMap((Epoch(None, 4, 2), *later))
    establish(world.book, shard_map, START)
    return replace(world.mover, initial=shard_map)


@pytest.mark.parametrize(
    ("since", "is_late_enough"),
    [(MINUTE, True), (timedelta(0), False), (-MINUTE, False)],
)
def test_an_epoch_begins_after_the_one_before(
    world: ReshardingWorld, since: timedelta, *, is_late_enough: bool
) -> None:
    last = EARLIEST + 2 * MINUTE
    mover = with_epochs(world, Epoch(last, 8, 2, Phase.SETTLED))
    plan = Plan(16, since=last + since)
    if is_late_enough:
        epochs = announce(mover, plan, requested_by=OPERATOR)
        assert epochs.shard_map.last.since == last + MINUTE
        return
    with pytest.raises(InvalidInput) as refused:
        announce(mover, plan, requested_by=OPERATOR)
    assert {finding.field for finding in refused.value.findings} == {"since"}


def test_one_that_says_no_minute_begins_after_the_one_before(
    world: ReshardingWorld,
) -> None:
    last = EARLIEST + 2 * MINUTE
    mover = with_epochs(world, Epoch(last, 8, 2, Phase.SETTLED))
    assert (
        announce(mover, Plan(16), requested_by=OPERATOR).shard_map.last.since
        == last + MINUTE
    )


def test_there_is_an_end_to_epochs(world: ReshardingWorld) -> None:
    later = [
        Epoch(START - number * MINUTE, 4 + number % 2, 2, Phase.SETTLED)
        for number in reversed(range(MAX_EPOCHS - 1))
    ]
    mover = with_epochs(world, *later)
    with pytest.raises(InvalidInput) as refused:
        announce(mover, Plan(16), requested_by=OPERATOR)
    assert [each.code for each in refused.value.findings] == ["too_many_epochs"]


def test_one_epoch_at_a_time(world: ReshardingWorld) -> None:
    announced = world.reshard(16)
    with pytest.raises(Conflict) as refused:
        world.reshard(64)
    assert refused.value.code == "resharding_under_way"
    # The same again is the same, and orders the moving anew.
    assert world.reshard(16) == announced
    assert world.take_orders() == [MoveOrder(EARLIEST)] * 2


def test_the_count_that_holds_is_no_change(world: ReshardingWorld) -> None:
    with pytest.raises(Conflict) as refused:
        world.reshard(4)
    assert refused.value.code == "shards_unchanged"


def test_of_two_that_announce_at_once_one_is_asked_to_come_again(
    world: ReshardingWorld,
) -> None:
    class Overtaken:
        def read(self) -> Epochs | None:
            return world.book.read()

        def store(self, _: Epochs) -> Write:
            return Write.LOST

    establish(world.book, world.shard_map, START)
    with pytest.raises(Transient):
        announce(
            replace(world.mover, book=Overtaken()), Plan(16), requested_by=OPERATOR
        )


def test_each_phase_waits_until_all_know_of_the_one_before(
    world: ReshardingWorld,
) -> None:
    world.add(YEARLY)
    world.reshard(16)
    seen = []
    for wait in (timedelta(0), EPOCH_LAG - SECOND, SECOND, EPOCH_LAG - SECOND, SECOND):
        world.clock.advance(wait)
        world.work_off()
        seen.append((world.phase, world.epochs.progress.round))
    assert seen == [
        (Phase.ANNOUNCED, 0),
        (Phase.ANNOUNCED, 0),
        (Phase.MOVING, 0),
        (Phase.MOVING, 0),
        (Phase.SETTLED, 1),
    ]
    assert world.astray() == []


@pytest.mark.parametrize(("shards", "groups"), [(16, 2), (16, 8), (3, 2), (1, 1)])
def test_a_change_under_load_loses_and_doubles_nothing(
    shards: int, groups: int
) -> None:
    world = ReshardingWorld(shard_map=ShardMap.constant(4, min(2, groups)))
    ids = [world.add(EVERY_MINUTE).schedule_id for _ in range(20)]
    for _ in range(20):
        world.add(YEARLY)
    world.pass_minutes(3)
    world.reshard(shards, groups)
    world.pass_minutes(30)
    assert world.phase is Phase.SETTLED
    assert world.epochs.progress.moved > 0
    assert world.astray() == []
    assert world.twice() == []
    assert sent(world) == minutely_ids(world, ids)
    # And no watermark is held back by shards that are not there any more.
    world.clock.advance(MINUTE)
    for report in world.scan_all():
        assert report.oldest is not None
        assert world.clock.now() - report.oldest <= timedelta(minutes=4)


def test_one_change_after_the_other(world: ReshardingWorld) -> None:
    ids = [world.add(EVERY_MINUTE).schedule_id for _ in range(10)]
    world.add(YEARLY)
    for shards in (16, 4, 7):
        world.reshard(shards)
        world.pass_minutes(25)
        assert world.phase is Phase.SETTLED
    assert len(world.epochs.shard_map.epochs) == 4
    assert world.astray() == []
    assert sent(world) == minutely_ids(world, ids)


def test_orders_that_come_twice_or_late_do_nothing_more(
    world: ReshardingWorld,
) -> None:
    for _ in range(30):
        world.add(YEARLY)
    world.reshard(16)
    seen: list[MoveOrder] = []
    for _ in range(20):
        for order in world.take_orders():
            seen.append(order)
            for _ in range(2):
                move(world.mover, order, deadline=world.clock.now())
        world.clock.advance(MINUTE)
    assert world.phase is Phase.SETTLED
    settled = world.epochs
    for order in seen:
        move(world.mover, order, deadline=world.clock.now())
    assert world.epochs == settled
    assert world.astray() == []


def test_a_lost_order_is_made_up_for_by_a_resume(world: ReshardingWorld) -> None:
    world.add(YEARLY)
    world.reshard(16)
    world.move_queue.orders.clear()
    world.clock.advance(timedelta(hours=1))
    assert resume(world.mover) == world.epochs
    world.pass_minutes(10)
    assert world.phase is Phase.SETTLED


def test_a_worker_that_dies_after_the_last_part_leaves_an_epoch_to_be_settled(
    world: ReshardingWorld,
) -> None:
    world.add(YEARLY)
    world.reshard(16)
    while not world.epochs.progress.round:
        world.clock.advance(MINUTE)
        for order in world.take_orders():
            move(world.mover, order, deadline=world.clock.now())
    orders = world.take_orders()
    assert len(orders) == world.epochs.progress.segments == 4

    class Dying:
        """Stores progress, but does not live to settle the epoch."""

        def read(self) -> Epochs | None:
            return world.book.read()

        def store(self, epochs: Epochs) -> Write:
            if epochs.shard_map.unsettled is None:
                raise Transient
            return world.book.store(epochs)

    dying = replace(world.mover, book=Dying())
    last = orders[-1]
    for order in orders[:-1]:
        move(dying, order, deadline=world.clock.now())
    with pytest.raises(Transient):
        move(dying, last, deadline=world.clock.now())
    assert world.epochs.shard_map.unsettled is not None
    # SQS brings the order again.
    move(world.mover, last, deadline=world.clock.now())
    assert world.epochs.shard_map.unsettled is None


def test_what_the_relay_has_in_hand_is_moved_later(world: ReshardingWorld) -> None:
    """The epoch begins before its rows are moved, as when the mover was down."""
    world.add(EVERY_MINUTE)
    world.reshard(16)
    world.move_queue.orders.clear()
    world.pass_minutes(15)
    resume(world.mover)
    for _ in range(8):
        # The relay is down, so that rows stay SCHEDULED.
        world.scan_all()
        world.work_off()
        world.clock.advance(MINUTE)
    assert world.epochs.progress.left > 0
    left = {row.state for row in world.astray()}
    assert left == {State.SCHEDULED}
    world.pass_minutes(10)
    assert world.phase is Phase.SETTLED
    assert world.astray() == []


def test_an_overdue_row_is_worked_off_where_it_lies(world: ReshardingWorld) -> None:
    ids = [world.add(EVERY_MINUTE).schedule_id for _ in range(6)]
    world.reshard(16)
    world.clock.advance(timedelta(minutes=5))
    world.work_off()
    # Neither passes nor the mover for half an hour: rows are overdue in old shards.
    world.clock.advance(timedelta(minutes=30))
    world.work_off()
    world.clock.advance(timedelta(minutes=5))
    world.work_off()
    world.pass_minutes(10)
    assert world.phase is Phase.SETTLED
    assert world.astray() == []
    assert world.twice() == []
    assert {row.schedule_id for row in world.rows("ENQUEUED")} == set(ids)
