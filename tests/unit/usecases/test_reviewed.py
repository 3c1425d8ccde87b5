"""Faults that a review found in how parts meet, each with its case."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

import pytest
from hourbell.adapters.memory import FixedClock
from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Epoch, ShardMap
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import advance
from hourbell.usecases.parked import Yard, ask_for_try, parked_id
from hourbell.usecases.ports import GroupWork, Schedules
from hourbell.usecases.replan_schedule import replan_schedule
from hourbell.usecases.scan import run_pass
from hourbell.usecases.turns import Turns

from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.test_replan import ASUNCION, utc
from tests.unit.usecases.world import EVERYTHING, MINUTE, World

MINUTELY = Timing("* * * * *")
TWICE_A_DAY = Timing("0 9,12 * * *", ASUNCION)


class DeathError(Exception):
    """The process ends here."""


def die() -> None:
    raise DeathError


def test_a_request_for_a_try_is_not_used_up_by_a_pass_beyond_the_tenants_cap(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Turns.__init__, "__defaults__", (20,))
    world = World(shard_map=ShardMap.constant(1, 1))
    row = world.add(Timing("5 12 * * *"), misfire=EVERYTHING)
    gone = world.store.tenants.pop("acme")
    for _ in range(25):
        world.scan()
        world.clock.advance(MINUTE)
    (parked,) = world.store.parked.values()
    # Its tenant is back, and has more to do than its cap.
    world.store.tenants["acme"] = gone
    for _ in range(40):
        world.add(MINUTELY)
    ask_for_try(Yard(world.parking, world.plane), parked_id(parked), world.clock.now())
    world.scan()
    assert [each.tries for each in world.store.parked.values()] == [parked.tries]
    stored = world.store.row(row.key)
    assert stored is not None
    assert stored.state is State.SCHEDULED
    world.relay_stream()
    world.clock.advance(MINUTE)
    world.scan()
    assert world.store.parked == {}


def test_the_futures_of_all_gaps_come_first_in_whatever_round_these_are_found() -> None:
    world = World()
    rows = [world.add(MINUTELY, misfire=EVERYTHING) for _ in range(18)]
    world.clock.advance(110 * MINUTE)
    # Half of them are gap rows by then, as a pass died after it had planned them.
    moment = Moment(1, True, die)
    dying = Only("move", moment.wrap(world.timeline), world.timeline)
    with pytest.raises(DeathError):
        advance(
            replace(world.plane, timeline=cast("Any", dying)),
            rows[:9],
            world.clock.now(),
        )
    inserted: list[Occurrence] = []

    class Noting:
        def __getattr__(self, name: str) -> Callable[..., Any]:
            method: Callable[..., Any] = getattr(world.timeline, name)
            if name != "plan":
                return method

            def plan(planned: list[Occurrence]) -> Any:
                inserted.extend(planned)
                return method(planned)

            return plan

    noting = replace(world.plane, timeline=cast("Any", Noting()))
    advance(noting, world.rows("PLANNED"), world.clock.now())
    now = world.clock.now()
    futures = [
        place
        for place, row in enumerate(inserted)
        if not row.misfire and row.decision is None and row.scheduled_for >= now
    ]
    firsts = {
        inserted[place].schedule_id: place for place in reversed(futures)
    }.values()
    expanded = next(place for place, row in enumerate(inserted) if row.misfire)
    assert len(firsts) == 18
    assert max(firsts) < expanded


def replanned_world(since: datetime) -> World:
    """Replan at 12:30 with a turn at 13:00, and let nobody finish it until 16:00."""
    shard_map = ShardMap((Epoch(None, 4, 2), Epoch(since, 16, 4)))
    world = World(clock=FixedClock(utc(4, 10, 12, 20)), shard_map=shard_map)
    rows = [world.add(TWICE_A_DAY, tzdb="2024b", misfire=EVERYTHING) for _ in range(8)]
    world.clock.set(utc(4, 10, 12, 30))
    for row in rows:
        caller = Caller(world.store.tenants["acme"], "1:role/p", "x", "job1")
        changes = replace(
            world.changes,
            plane=replace(
                world.plane, schedules=dying_at_take_over(world, after=False)
            ),
        )
        with suppress(DeathError):
            replan_schedule(changes, caller, row.schedule_id, world.clock.now())
    while world.clock.now() < utc(4, 10, 16):
        world.clock.advance(MINUTE)
        for group in (2, 3):
            run_pass(world.scanner, GroupWork(group, world.clock.now()), holder="m")
        world.relay_stream()
        world.relay_sweep()
    return world


def dying_at_take_over(world: World, *, after: bool) -> Schedules:
    watched = Moment(1, after, die).wrap(world.schedules)
    return cast("Schedules", Only("take_over", watched, world.schedules))


def test_a_replan_ahead_of_an_epochs_beginning_is_followed_across_it() -> None:
    world = replanned_world(utc(4, 10, 12, 45))
    for turn in range(12):
        for group in (0, 1):
            plane = replace(
                world.plane, schedules=dying_at_take_over(world, after=True)
            )
            with suppress(DeathError):
                run_pass(
                    replace(world.scanner, plane=plane),
                    GroupWork(group, world.clock.now()),
                    holder=f"d{turn}",
                )
        world.clock.advance(MINUTE)
    assert any(
        each.kind is DispatchKind.FOLLOW for each in world.store.all_dispatches()
    )
    for _ in range(30):
        world.scan()
        world.relay_stream()
        world.relay_sweep()
        world.clock.advance(MINUTE)
    late = world.clock.now() - 10 * MINUTE
    left = [row for row in world.rows() if row.is_open and row.scheduled_for < late]
    assert left == []
