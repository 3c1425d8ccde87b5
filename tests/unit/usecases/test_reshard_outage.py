"""A group that was down when an epoch began, beside others that were not."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.ports import Change, GroupWork, Write
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.resharding import ReshardingWorld
from tests.unit.usecases.test_reshard_interrupted import DeathError
from tests.unit.usecases.world import EVERYTHING, MINUTE

FIVE_PAST = Timing("5 * * * *")


class DyingTimeline:
    """A timeline whose caller dies after its first changes in shard 2 or 3.

    What follows there lies in shards of groups 2 and 3.
    """

    def __init__(self, timeline: Any) -> None:
        self._timeline = timeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._timeline, name)

    def move(self, changes: Sequence[Change]) -> list[Write]:
        answers: list[Write] = self._timeline.move(changes)
        if any(change.row.shard in {2, 3} for change in changes):
            raise DeathError
        return answers


def scan(world: ReshardingWorld, *groups: int) -> None:
    for group in groups:
        run_pass(world.scanner, GroupWork(group, world.clock.now()), holder="m1")
    world.relay_all()
    world.work_off()
    world.clock.advance(MINUTE)


def outage_over_the_beginning_of_an_epoch() -> ReshardingWorld:
    """Groups 0 and 1 are down from noon to 13:50; the epoch begins at 12:11."""
    world = ReshardingWorld(shard_map=ShardMap.constant(4, 2))
    for _ in range(8):
        world.add(FIVE_PAST, misfire=EVERYTHING)
    world.reshard(16, 4)
    for _ in range(110):
        scan(world, 2, 3)
    return world


def sent(world: ReshardingWorld) -> list[str]:
    found = [
        f"{row.scheduled_for:%H:%M}"
        for row in world.store.all_rows()
        if row.state is State.ENQUEUED and row.scheduled_for.hour < 15
    ]
    return sorted(found)


ALL = ["12:05"] * 8 + ["13:05"] * 8 + ["14:05"] * 8


def test_what_was_missed_on_both_sides_of_the_beginning_is_made_up_for() -> None:
    world = outage_over_the_beginning_of_an_epoch()
    for _ in range(30):
        scan(world, 0, 1, 2, 3)
    assert sent(world) == ALL
    assert (world.astray(), world.twice()) == ([], [])


def test_a_pass_that_dies_on_its_way_over_the_beginning_loses_nothing() -> None:
    world = outage_over_the_beginning_of_an_epoch()
    dying = replace(world.plane, timeline=DyingTimeline(world.plane.timeline))
    for group in (0, 1):
        with pytest.raises(DeathError):
            run_pass(
                replace(world.scanner, plane=dying),
                GroupWork(group, world.clock.now()),
                holder="m2",
            )
    world.clock.advance(timedelta(minutes=1))
    for _ in range(30):
        scan(world, 0, 1, 2, 3)
    assert sent(world) == ALL
