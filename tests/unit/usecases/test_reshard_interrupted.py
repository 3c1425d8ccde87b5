"""The mover dies, or somebody else acts, at any moment: nothing lost, nothing twice."""

from dataclasses import replace

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Phase
from hourbell.usecases.change_schedule import Changes, cancel, pause, resume
from hourbell.usecases.reshard import Mover, Plan, announce, move
from hourbell.usecases.reshard import resume as resume_moving

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.resharding import OPERATOR, AgingMaps, ReshardingWorld
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import EVERYTHING, MINUTE, START

YEARLY = Timing("0 0 1 1 *")
HOURLY = Timing("0 * * * *")


class DeathError(Exception):
    """The function was stopped."""


def die() -> None:
    raise DeathError


def watched(mover: Mover, moment: Moment) -> Mover:
    return replace(
        mover,
        book=moment.wrap(mover.book),
        groups=moment.wrap(mover.groups),
        relocation=moment.wrap(mover.relocation),
        queue=moment.wrap(mover.queue),
    )


def settle(world: ReshardingWorld, mover: Mover) -> list[int]:
    """Work off orders like SQS, that brings one again whose worker died.

    Returns:
        how many rows there were after each order.
    """
    counts: list[int] = []
    for _ in range(12):
        orders = world.take_orders()
        while orders:
            order = orders.pop(0)
            try:
                move(mover, order, deadline=world.clock.now())
            except DeathError:
                orders.append(order)
            counts.append(len(world.store.all_rows()))
            orders += world.take_orders()
        world.clock.advance(MINUTE)
    return counts


def dies_at(nth: int, *, after: bool) -> bool:
    """Let the mover die at its n-th call; return whether there is such a call."""
    world = ReshardingWorld()
    rows = [world.add(YEARLY) for _ in range(12)]
    world.reshard(16)
    moment = Moment(nth, after, die)
    counts = settle(world, watched(world.mover, moment))
    assert set(counts) == {len(rows)}, nth
    assert world.phase is Phase.SETTLED, nth
    assert (world.astray(), world.twice()) == ([], []), nth
    found = {row.occurrence_id: row for row in world.store.all_rows()}
    for row in rows:
        moved = found[row.occurrence_id]
        assert replace(moved, shard=row.shard) == row
    return moment.reached


@pytest.mark.parametrize("page", [2, 100])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_mover_that_dies_at_any_call_is_made_up_for_by_its_order(
    monkeypatch: pytest.MonkeyPatch, *, after: bool, page: int
) -> None:
    monkeypatch.setattr("hourbell.adapters.memory.shards.PAGE", page)
    nth = 1
    while dies_at(nth, after=after):
        nth += 1
    assert nth > (60 if page == 2 else 25)


@pytest.mark.parametrize("nth", range(1, 9))
def test_an_announcement_that_dies_is_made_again(nth: int) -> None:
    world = ReshardingWorld()
    world.add(YEARLY)
    moment = Moment(nth, after=True, action=die)
    usual = world.mover
    from_now_on = watched(usual, moment)
    try:
        announce(from_now_on, Plan(16), requested_by=OPERATOR)
    except DeathError:
        announce(usual, Plan(16), requested_by=OPERATOR)
    settle(world, usual)
    assert len(world.epochs.shard_map.epochs) == 2
    assert (world.phase, world.astray()) == (Phase.SETTLED, [])


def test_each_lost_order_is_made_up_for_by_a_resume() -> None:
    """Whichever it is: of those that a change takes, one is lost, then none."""
    lost = 0
    while True:
        world = ReshardingWorld()
        for _ in range(12):
            world.add(YEARLY)
        world.reshard(16)
        seen = 0
        is_lost = False
        for _ in range(12):
            for order in world.take_orders():
                if seen != lost:
                    move(world.mover, order, deadline=world.clock.now())
                is_lost |= seen == lost
                seen += 1
            world.clock.advance(MINUTE)
        if not is_lost:
            break
        assert world.phase is not Phase.SETTLED, lost
        resume_moving(world.mover)
        settle(world, world.mover)
        assert (world.phase, world.astray()) == (Phase.SETTLED, []), lost
        lost += 1
    # Announced, moving, the walk, its four parts; and those that were put off.
    assert lost >= 7


def acts_at(nth: int, act: str, *, after: bool) -> bool:
    """Change all schedules between two calls of the mover, and once more later."""
    world = ReshardingWorld()
    hourly = [world.add(HOURLY, misfire=EVERYTHING) for _ in range(4)]
    world.reshard(16)
    world.pass_minutes(4)
    world.clock.advance(EPOCH_LAG)
    changes = Changes(world.plane_of(AgingMaps(world)), world.groups, world.clock)
    who = caller(world)

    def change() -> None:
        for row in hourly:
            (cancel if act == "cancel" else pause)(
                changes, who, row.schedule_id, world.clock.now()
            )
        if act == "pause and resume":
            for row in hourly:
                resume(changes, who, row.schedule_id, world.clock.now())

    moment = Moment(nth, after, change)
    settle(world, watched(world.mover, moment))
    # Nothing is due before the hour.
    world.clock.set(START + 56 * MINUTE)
    world.pass_minutes(6)
    assert world.phase is Phase.SETTLED, nth
    assert (world.astray(), world.twice()) == ([], []), nth
    if moment.reached:
        noon = [r for r in world.rows() if r.scheduled_for == START + 60 * MINUTE]
        sent = [row.schedule_id for row in noon if row.state is State.ENQUEUED]
        expected = act == "pause and resume"
        wanted = sorted(row.schedule_id for row in hourly) if expected else []
        assert sorted(sent) == wanted, nth
    return moment.reached


@pytest.mark.parametrize(
    "act",
    ["cancel", "pause and resume", pytest.param("pause", marks=pytest.mark.long)],
)
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_change_at_any_moment_of_the_mover_holds(act: str, *, after: bool) -> None:
    nth = 1
    while acts_at(nth, act, after=after):
        nth += 1
    assert nth > 15


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (DispatchState.PENDING, DispatchState.PENDING),
        (DispatchState.DONE, DispatchState.PENDING),
        (DispatchState.DONE, DispatchState.DONE),
    ],
)
def test_a_dispatch_row_in_both_places_does_not_hold_up_an_epoch(
    here: DispatchState, there: DispatchState
) -> None:
    """One pass put it in the old place and died, the next one in the new place."""
    world = ReshardingWorld()
    row = world.add(YEARLY)
    world.reshard(16)
    stray, like = in_both_places(world, row)
    world.store.put_dispatch(replace(stray, state=here))
    world.store.put_dispatch(replace(like, state=there))
    settle(world, world.mover)
    assert world.phase is Phase.SETTLED
    assert world.store.all_dispatches() == [replace(like, state=there)]


def in_both_places(
    world: ReshardingWorld, row: Occurrence
) -> tuple[Dispatch, Dispatch]:
    """Return a release of a row as it lies in its old place, and in its new one."""
    shard_map = world.epochs.shard_map
    since = shard_map.last.since
    assert since is not None
    for _ in range(99):
        due = since
        stray = Dispatch(
            DispatchKind.RELEASE,
            row.schedule_id,
            1,
            row.tenant_id,
            due,
            shard_map.shard_of(row.schedule_id, due),
            world.clock.now(),
            scheduled_for=row.scheduled_for,
        )
        twin = shard_map.twin(stray.key)
        row = world.add(YEARLY)
        if twin is not None:
            return stray, replace(stray, shard=twin.shard)
    raise AssertionError("it has one place only")
