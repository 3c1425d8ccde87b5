"""Faults that the simulation's consumers found, each as the shortest course."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.dispatch import DispatchKind
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Epoch, ShardMap
from hourbell.usecases.occurrences import cancel_occurrence
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.work_ports import Deed
from hourbell.usecases.work_values import Answer, Beat, Outcome

from tests.unit.usecases.faults import UnclearTimeline
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import START, World


class Delayed:
    """A timeline that gives no clear answer to a move, and makes it later."""

    def __init__(self, shop: Shop) -> None:
        self.target = shop.world.timeline
        self.waiting: list[Sequence[Change]] = []
        self.is_slow = True

    def __getattr__(self, name: str) -> object:
        return getattr(self.target, name)

    def move(self, changes: Sequence[Change]) -> list[Write]:
        if not self.is_slow:
            return self.target.move(changes)
        self.waiting.append(changes)
        return [Write.UNKNOWN for _ in changes]


def test_a_heartbeat_that_takes_effect_late_does_not_shorten_a_lease() -> None:
    shop = Shop()
    name = shop.due()
    token = shop.run(name, seconds=20)
    slow = Delayed(shop)
    shop.world.timeline = slow  # type: ignore[assignment]
    unclear = shop.beat(name, token, seconds=20)
    slow.is_slow = False
    shop.world.clock.set(shop.now + timedelta(seconds=5))
    told = shop.beat(name, token, seconds=20)

    for changes in slow.waiting:
        slow.target.move(changes)

    assert unclear.outcome is Outcome.UNAVAILABLE
    assert told.outcome is Outcome.OK
    assert shop.row(name).lease_expires_at == told.lease_expires_at


def test_a_heartbeat_that_another_one_overtakes_is_still_heard() -> None:
    shop = Shop()
    name = shop.due()
    token = shop.run(name, seconds=20)
    target, rounds = shop.world.timeline, iter(range(1))

    class Overtaken(Delayed):
        def move(self, changes: Sequence[Change]) -> list[Write]:
            if next(rounds, None) is not None:
                shop.world.timeline = target
                shop.beat(name, token, seconds=40)
            return target.move(changes)

    shop.world.timeline = Overtaken(shop)  # type: ignore[assignment]
    told = shop.beat(name, token, seconds=20)

    assert told.outcome is Outcome.OK
    assert told.lease_expires_at == shop.now + timedelta(seconds=40)


class Interrupted:
    """A ledger before whose first deed something else happens."""

    def __init__(self, shop: Shop, meanwhile: Callable[[], object]) -> None:
        self.target = shop.world.ledger
        self.meanwhile: Callable[[], object] | None = meanwhile

    def __getattr__(self, name: str) -> object:
        return getattr(self.target, name)

    def do(self, deed: Deed) -> Write:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return self.target.do(deed)


def test_a_heartbeat_of_the_moment_in_which_a_lease_is_ended_is_not_passed_over() -> (
    None
):
    shop = Shop()
    name = shop.due()
    token = shop.run(name, seconds=20)
    shop.world.clock.set(shop.now + timedelta(minutes=1))
    told: list[Beat] = []

    def meanwhile() -> None:
        told.append(shop.beat(name, token, seconds=300))

    shop.world.ledger = Interrupted(shop, meanwhile)  # type: ignore[assignment]
    shop.tick()

    assert [each.outcome for each in told] == [Outcome.OK]
    assert shop.row(name).state is State.RUNNING
    assert shop.complete(name, token).state is State.SUCCEEDED


def interrupted(shop: Shop, name: str) -> None:
    """Let the next deed be overtaken by the cancel of an occurrence."""
    place = shop.world.workplace

    def meanwhile() -> None:
        cancel_occurrence(place, "acme", name)

    shop.world.ledger = Interrupted(shop, meanwhile)  # type: ignore[assignment]


def test_a_worker_that_takes_over_finds_a_cancel_of_the_same_moment() -> None:
    shop = Shop()
    name = shop.due()
    shop.run(name, seconds=20)
    shop.world.clock.set(shop.now + timedelta(seconds=25))
    interrupted(shop, name)

    (answer,) = shop.claim(name)

    assert answer.answer is Answer.SKIP
    assert shop.row(name).state is State.CANCELED
    assert shop.row(name).attempt == 1


def test_a_failure_is_no_retry_after_a_cancel_of_the_same_moment() -> None:
    shop = Shop()
    name = shop.due()
    token = shop.run(name)
    interrupted(shop, name)

    told = shop.fail(name, token)

    assert told.state is State.CANCELED
    assert shop.row(name).state is State.CANCELED


def crossed() -> tuple[World, Occurrence]:
    """Return a world hours after a row of 12:05, and the row; 12:30 began an epoch."""
    epochs = (Epoch(None, 4, 2), Epoch(START + timedelta(minutes=30), 16, 4))
    world = World(shard_map=ShardMap(epochs))
    row = world.add(Timing("5 * * * *"))
    world.clock.set(START + timedelta(hours=3))
    return world, row


def test_a_cancel_announces_the_time_that_follows_behind_the_scan() -> None:
    world, row = crossed()

    told = cancel_occurrence(world.workplace, "acme", row.occurrence_id)

    (follow,) = world.store.all_dispatches()
    assert told.state is State.CANCELED
    assert (follow.kind, follow.is_open) == (DispatchKind.FOLLOW, True)
    assert follow.scheduled_for == row.scheduled_for + timedelta(hours=1)


def test_a_cancel_without_a_clear_answer_about_what_follows_plans_nothing() -> None:
    world, row = crossed()
    unclear = UnclearTimeline(world.timeline, lambda name, _: name == "post")
    place = replace(world.workplace, timeline=unclear)

    with pytest.raises(Transient):
        cancel_occurrence(place, "acme", row.occurrence_id)

    assert world.rows() == [row]
