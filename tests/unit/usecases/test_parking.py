"""A row that nothing can be done about is parked, and is in nobody's way."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.parking import ParkedRow, ParkReason
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.parking import MAX_PARKED

from tests.unit.usecases.poison import (
    EVERY_TEN,
    POISONS,
    UNDECIDED,
    Poison,
    PoisonedWorld,
)
from tests.unit.usecases.world import MINUTE, START, times

HOUR = timedelta(hours=1)
ONCE = Misfire(MisfirePolicy.FIRE_ONCE)


def poisoned(
    poison: Poison, shards: ShardMap | None = None
) -> tuple[PoisonedWorld, Occurrence]:
    """Return a world with one spoiled row, due at 12:10, of every ten minutes."""
    world = PoisonedWorld(shard_map=shards or ShardMap.constant(4, 2))
    row = world.add(EVERY_TEN, tenant="zeta", misfire=ONCE)
    poison.spoil(world, row)
    return world, row


def only(world: PoisonedWorld) -> ParkedRow:
    (parked,) = world.store.parked.values()
    return parked


def of(world: PoisonedWorld, row: Occurrence) -> list[Occurrence]:
    return [each for each in world.rows() if each.schedule_id == row.schedule_id]


@pytest.mark.parametrize("name", POISONS)
def test_a_poisoned_row_is_parked_with_its_reason_and_the_watermark_moves_on(
    name: str,
) -> None:
    poison = POISONS[name]
    world, row = poisoned(poison)
    group = world.shard_map.group_of(row.shard)
    until = 10 + poison.patience
    world.minutes(until)
    assert world.store.parked == {}
    oldest = world.store.groups[group].watermarks[row.shard]
    assert oldest == row.scheduled_for
    reports = world.minutes(3)
    parked = only(world)
    assert (parked.group, parked.reason) == (group, poison.reason)
    assert (parked.key.bucket, parked.key.shard) == (row.key.bucket, row.key.shard)
    known = None if name == "row unreadable" else "zeta"
    assert parked.tenant_id == known
    # What cannot be read is taken for due when its minute is over.
    late = int(poison.reason is ParkReason.ROW_UNREADABLE)
    # It was tried when it had lasted that long, and is parked by the next pass.
    assert parked.since == START + (until + late + 1) * MINUTE
    assert sum(report.parked for report in reports) == 1
    assert reports[-2 + group].parked_rows == 1
    # Two minutes behind the last pass, as without poison.
    assert world.store.groups[group].watermarks[row.shard] == (
        world.clock.now() - 3 * MINUTE
    )


@pytest.mark.parametrize("name", POISONS)
def test_poison_among_a_thousand_good_rows_slows_none_of_them(name: str) -> None:
    poison = POISONS[name]
    world = PoisonedWorld()
    good = [world.add(Timing(f"{n % 60} * * * *")) for n in range(1, 1_001)]
    # From 12:19 on, each pass also looks at a bucket that is 20 minutes old.
    world.minutes(25)
    world.pages()
    world.minutes(1)
    usual = world.pages()
    row = world.add(EVERY_TEN, tenant="zeta")
    poison.spoil(world, row)
    most = 0
    for _ in range(173):
        world.minutes(1)
        most = max(most, world.pages())
    assert only(world).reason is poison.reason
    ids = {each.schedule_id for each in good}
    due = [r for r in world.rows() if r.scheduled_for <= START + 180 * MINUTE]
    mine = [r for r in due if r.schedule_id in ids]
    assert len(mine) == 3_000
    # All were sent before their time: the poison made none of them late.
    assert all(r.enqueued_at and r.enqueued_at <= r.scheduled_for for r in mine)
    # While it waits to be parked, one shard's pages grow by one a minute; then never.
    assert most <= usual + poison.patience + 1
    world.minutes(1)
    assert world.pages() == usual


@pytest.mark.parametrize("name", UNDECIDED)
def test_when_the_cause_is_repaired_the_row_is_decided_by_its_policy(name: str) -> None:
    world, row = poisoned(POISONS[name])
    world.minutes(120)
    assert only(world).key == row.key
    POISONS[name].repair(world, row)
    # Parked at 12:26 or 12:27, tried after 15, 45 and 105 minutes: at 14:12 at last.
    world.minutes(20)
    assert world.store.parked == {}
    found = of(world, row)
    accounted = accounted_for(found)
    ten = 10 * MINUTE
    assert accounted == [START + n * ten for n in range(1, len(accounted) + 1)]
    # FIRE_ONCE: the last time that was missed by then, and no other. At 14:11, that of
    # 14:10 is not late enough to be missed; at 14:12 it is.
    last = START + 2 * HOUR + (ten if name == "row unreadable" else timedelta(0))
    ran = [r for r in found if r.lane is Lane.CATCHUP]
    assert times(ran) == [last]
    assert {r.state for r in ran} == {State.ENQUEUED}
    states = {r.state for r in found if r.scheduled_for < last}
    assert states == {State.MISSED}
    is_caught_up(world)


def accounted_for(rows: list[Occurrence]) -> list[datetime]:
    """Return every time that a row or a gap row speaks for, in order."""
    found = set()
    for row in rows:
        instant = row.scheduled_for
        last = instant if row.decision is None else row.decision.last
        while instant <= last:
            found.add(instant)
            instant += 10 * MINUTE
    return sorted(found)


def is_caught_up(world: PoisonedWorld) -> None:
    """Assert that nothing open lies behind, and that every watermark is on time."""
    now = world.clock.now()
    behind = [r for r in world.rows() if r.is_open and r.scheduled_for < now - MINUTE]
    assert behind == []
    for lease in world.store.groups.values():
        assert set(lease.watermarks.values()) == {now - 3 * MINUTE}


def test_a_queue_that_is_back_gets_its_record_and_the_row_is_let_go() -> None:
    world, row = poisoned(POISONS["queue deleted"])
    world.minutes(200)
    assert only(world).key == row.key
    POISONS["queue deleted"].repair(world, row)
    world.minutes(125)
    assert world.store.parked == {}
    sent = world.store.row(row.key)
    assert sent is not None
    assert sent.state is State.ENQUEUED
    assert [r.state for r in of(world, row) if r.scheduled_for < START + 5 * HOUR] == (
        [State.ENQUEUED] * 29
    )
    is_caught_up(world)


def test_a_dispatch_row_that_can_be_worked_off_again_is_let_go() -> None:
    world, row = poisoned(POISONS["handover faulty"])
    world.minutes(60)
    assert only(world).reason is ParkReason.DISPATCH_FAULTY
    POISONS["handover faulty"].repair(world, row)
    world.minutes(120)
    assert world.store.parked == {}
    assert not any(dispatch.is_open for dispatch in world.store.all_dispatches())
    is_caught_up(world)


def test_a_row_that_was_canceled_meanwhile_is_let_go_and_nothing_is_read_again() -> (
    None
):
    world, row = poisoned(POISONS["zone gone"])
    world.minutes(60)
    canceled = replace(row, state=State.CANCELED, reason="CANCELED")
    world.store.put_row(canceled)
    world.minutes(1)
    world.pages()
    world.minutes(1)
    usual = world.pages()
    most = 0
    for _ in range(80):
        world.minutes(1)
        most = max(most, world.pages())
    assert world.store.parked == {}
    assert most == usual


def test_a_deleted_row_is_let_go() -> None:
    world, row = poisoned(POISONS["row unreadable"])
    world.minutes(60)
    del world.store.rows[row.key.partition]
    world.minutes(80)
    assert world.store.parked == {}
    is_caught_up(world)


def test_a_parked_row_is_tried_less_and_less_and_counts_its_tries() -> None:
    world, _ = poisoned(POISONS["tenant gone"])
    world.damaged_timeline.calls.clear()
    world.minutes(24 * 60)
    # After 15, 45, 105, 225 and 465 minutes, then every six hours.
    assert only(world).tries == 7
    assert world.damaged_timeline.calls["look_up"] == 2 * 7
    assert only(world).next_try_at - world.clock.now() <= 6 * HOUR


def test_thousands_of_poisoned_rows_are_parked_over_some_passes() -> None:
    world = PoisonedWorld()
    count = 2 * MAX_PARKED + 100
    for _ in range(count):
        world.add(Timing("at(2026-03-09T12:01:00)"), tenant="zeta")
    del world.store.tenants["zeta"]
    world.clock.advance(HOUR)
    world.minutes(1)
    assert world.store.parked == {}
    fewest = []
    for _ in range(4):
        reports = world.minutes(1)
        fewest.append(max(report.parked for report in reports))
    assert fewest[0] == MAX_PARKED
    assert max(fewest) == MAX_PARKED
    assert len(world.store.parked) == count
    world.minutes(2)
    assert {
        mark
        for lease in world.store.groups.values()
        for mark in lease.watermarks.values()
    } == {world.clock.now() - 3 * MINUTE}


def test_an_outbox_record_that_was_unreadable_goes_its_usual_way() -> None:
    world, row = poisoned(POISONS["queue deleted"])
    world.minutes(9)
    stored = world.store.row(row.key)
    assert stored is not None
    assert stored.state is State.SCHEDULED
    world.damaged_timeline.rows_lost.add(row.key)
    world.minutes(60)
    assert only(world).reason is ParkReason.ROW_UNREADABLE
    world.damaged_timeline.rows_lost.clear()
    # Found again as an outbox record, it is parked once more, as unsent.
    world.minutes(120)
    assert only(world).reason is ParkReason.UNSENT
    world.answers.clear()
    world.minutes(130)
    assert world.store.parked == {}
    is_caught_up(world)
