"""Attempts of an occurrence whose row has yet to follow them to another shard."""

from dataclasses import replace

import pytest
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.retry import Retry
from hourbell.domain.shards import Phase
from hourbell.usecases.occurrences import replay_occurrence, tell
from hourbell.usecases.work_values import Answer

from tests.unit.usecases.resharding import ReshardingWorld
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, SECOND

TWICE = Retry(max_attempts=2, base_seconds=1, cap_seconds=1, deadline_seconds=60)


def moving() -> Shop:
    """Return a shop whose rows lie in other places than their attempts are moved to."""
    world = ReshardingWorld()
    shop = Shop("0 13 * * *", retry=TWICE, world=world)
    world.reshard(16)
    while world.phase is not Phase.MOVING:
        world.clock.advance(MINUTE)
        world.work_off()
    shop.until(shop.first.scheduled_for)
    return shop


def found(shop: Shop, name: str) -> Occurrence:
    return shop.world.workplace.find("acme", [name])[name]


def moved_apart() -> tuple[Shop, str]:
    """Return an occurrence after its first attempt, whose item lies elsewhere."""
    for _ in range(20):
        shop = moving()
        key = shop.world.workplace.key_of(shop.first.occurrence_id)
        twin = shop.world.plane.shard_map.twin(key)
        if twin is None:
            continue
        name = shop.first.occurrence_id
        shop.fail(name, shop.run(name))
        row = found(shop, name)
        elsewhere = twin.shard if row.shard == key.shard else key.shard
        (attempt,) = shop.world.ledger.attempts(row.key)
        del shop.world.store.attempts[row.key.partition][attempt.sort]
        there = replace(attempt.key, shard=elsewhere)
        shop.world.store.put_attempt(replace(attempt, key=there))
        return shop, name
    pytest.fail("no row has two places")


def test_all_attempts_are_told_wherever_they_lie() -> None:
    shop, name = moved_apart()
    shop.after(2 * SECOND)
    shop.complete(name, shop.run(name))

    told = tell(shop.world.workplace, "acme", name)

    assert told.row.state is State.SUCCEEDED
    assert [each.number for each in told.earlier] == [1]


def test_a_replay_stores_no_attempt_twice() -> None:
    shop, name = moved_apart()
    # It dies of being claimed too late, after its attempt was stored.
    shop.after(2 * MINUTE)
    assert shop.claim(name)[0].answer is Answer.SKIP
    assert found(shop, name).state is State.DEAD

    replay_occurrence(shop.world.workplace, "acme", name)

    stored = [
        each.number
        for items in shop.world.store.attempts.values()
        for each in items.values()
    ]
    assert stored == [1]
