"""Asking for a try while a pass is at it, and while others change the row."""

from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.errors import NotFound, Transient
from hourbell.domain.parking import ParkedRow
from hourbell.domain.shards import ShardMap
from hourbell.usecases.parked import Yard, ask_for_try, parked_id
from hourbell.usecases.ports import GroupWork, Write
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.poison import POISONS, PoisonedWorld
from tests.unit.usecases.test_interrupted_changes import Wrapped
from tests.unit.usecases.test_parking import is_caught_up, only, poisoned
from tests.unit.usecases.test_parking_crashes import watching
from tests.unit.usecases.world import MINUTE


def yard(world: PoisonedWorld, **methods: Any) -> Yard:
    parking: Any = Wrapped(world.parking, **methods)
    return Yard(parking, world.plane)


def parked_world() -> tuple[PoisonedWorld, ParkedRow]:
    """Return a world whose tenant is gone, and the row that is parked for it."""
    world, _ = poisoned(POISONS["tenant gone"], shards=ShardMap.constant(1, 1))
    world.minutes(40)
    return world, only(world)


def test_a_try_that_was_asked_for_comes_with_the_next_pass() -> None:
    world, row = parked_world()
    waiting = world.minutes(1)
    assert [report.unparked for report in waiting] == [0]
    world.store.tenants["zeta"] = replace(world.store.tenants["acme"], tenant_id="zeta")
    asked = ask_for_try(yard(world), parked_id(row), world.clock.now())
    assert asked == replace(
        row, asked_at=world.clock.now(), next_try_at=world.clock.now()
    )
    world.minutes(3)
    assert world.store.parked == {}
    is_caught_up(world)


def test_a_try_in_vain_keeps_what_was_asked_and_waits_longer() -> None:
    world, row = parked_world()
    now = world.clock.now()
    ask_for_try(yard(world), parked_id(row), now)
    world.minutes(1)
    tried = only(world)
    assert (tried.tries, tried.asked_at) == (row.tries + 1, now)
    assert tried.next_try_at > now


def test_at_whatever_moment_of_a_pass_a_try_is_asked_for_it_comes() -> None:
    number = 2
    while True:
        nth, after = divmod(number, 2)
        world, row = parked_world()
        # Its own turn has come, and the pass tries it in vain.
        world.clock.set(row.next_try_at)

        def ask(world: PoisonedWorld = world, row: ParkedRow = row) -> None:
            """Repair the cause, and ask for a try."""
            world.store.tenants["zeta"] = replace(
                world.store.tenants["acme"], tenant_id="zeta"
            )
            ask_for_try(yard(world), parked_id(row), world.clock.now())

        moment = Moment(nth, bool(after), ask)
        work = GroupWork(0, world.clock.now())
        run_pass(watching(world, moment), work, holder="slow")
        if moment.calls < nth:
            assert nth > 7
            return
        # Whatever the pass made of it, the next ones are through with the row.
        world.clock.advance(MINUTE)
        world.minutes(3)
        assert world.store.parked == {}, (nth, after)
        is_caught_up(world)
        number += 1


def test_a_row_that_is_let_go_meanwhile_is_not_parked() -> None:
    world, row = parked_world()

    def lose(_row: ParkedRow) -> Write:
        world.store.parked.clear()
        return Write.LOST

    with pytest.raises(NotFound):
        ask_for_try(yard(world, ask=lose), parked_id(row), world.clock.now())


def test_a_row_that_others_keep_changing_is_asked_for_again() -> None:
    world, row = parked_world()
    with pytest.raises(Transient):
        ask_for_try(
            yard(world, ask=lambda _: Write.LOST), parked_id(row), world.clock.now()
        )
    assert only(world) == row
