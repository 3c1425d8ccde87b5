"""Parked rows, and groups whose shards begin later, while the shards change."""

from datetime import timedelta

import pytest
from hourbell.domain.occurrence import State
from hourbell.domain.parking import ParkReason
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Phase
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.poison import EVERY_TEN
from tests.unit.usecases.resharding import ReshardingWorld
from tests.unit.usecases.world import EVERYTHING, MINUTE, START


@pytest.mark.parametrize("parked_first", [True, False])
@pytest.mark.parametrize("groups", [2, 8])
def test_a_parked_row_is_repaired_after_the_groups_have_grown(
    groups: int, *, parked_first: bool
) -> None:
    world = ReshardingWorld()
    row = world.add(EVERY_TEN, misfire=EVERYTHING)
    ours = world.store.tenants.pop("acme")
    if parked_first:
        world.pass_minutes(30)
    world.reshard(16, groups)
    world.pass_minutes(30)
    assert world.phase is Phase.SETTLED
    (parked,) = world.store.parked.values()
    assert (parked.key, parked.reason) == (row.key, ParkReason.TENANT_GONE)
    assert parked.group == row.shard % 2
    world.store.tenants["acme"] = ours
    world.pass_minutes(60)
    assert world.store.parked == {}
    assert (world.astray(), world.twice()) == ([], [])
    minutes = (world.clock.now() - START) // MINUTE
    found = {
        each.scheduled_for for each in world.rows() if each.state is State.ENQUEUED
    }
    due = {START + n * MINUTE for n in range(10, minutes, 10)}
    assert due <= found


def test_a_group_without_a_shard_yet_is_neither_late_nor_behind() -> None:
    """Its first bucket lies hours ahead; a watermark there is no age."""
    world = ReshardingWorld()
    world.add(Timing("0 0 1 1 *"))
    world.reshard(16, 8, since=START + timedelta(hours=5))
    for _ in range(3):
        now = world.clock.now()
        for report in world.scan_all():
            assert report.leased
            assert report.oldest is not None
            assert now - 3 * MINUTE <= report.oldest <= now
            assert (report.pending_since, report.drain) == (None, timedelta(0))
        world.work_off()
        world.clock.advance(EPOCH_LAG)
    assert world.phase is Phase.SETTLED


def test_a_group_without_a_shard_yet_that_has_no_time_has_nothing_to_drain() -> None:
    world = ReshardingWorld()
    world.reshard(16, 8, since=START + timedelta(hours=5))
    now = world.clock.now()
    report = run_pass(world.scanner, GroupWork(5, now), holder="m1", deadline=now)
    assert (report.oldest, report.pending_since) == (now, None)
    assert report.drain in {None, timedelta(0)}
    assert not report.continued
