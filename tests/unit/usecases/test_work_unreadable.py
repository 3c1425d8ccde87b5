"""What this release cannot read is not taken for gone: another one may read it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hourbell.domain.errors import NotFound, Transient
from hourbell.domain.overlap import Overlap
from hourbell.domain.retry import Retry
from hourbell.usecases.occurrences import (
    cancel_occurrence,
    replay_occurrence,
    tell,
)
from hourbell.usecases.redrive import GivenUp, redrive
from hourbell.usecases.work_values import Answer, ClaimFault, Outcome, SkipReason

from tests.unit.usecases.poison import PoisonedWorld
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE


def shop_of(overlap: Overlap = Overlap.ALLOW, attempts: int = 5) -> Shop:
    retry = Retry(max_attempts=attempts)
    return Shop(overlap=overlap, retry=retry, world=PoisonedWorld())


@contextmanager
def unreadable(shop: Shop, name: str) -> Iterator[None]:
    lost = shop.world.timeline.rows_lost  # type: ignore[attr-defined]
    key = shop.row(name).key
    lost.add(key)
    yield
    lost.remove(key)


def test_a_claim_leaves_its_message_and_takes_the_others() -> None:
    shop = shop_of()
    shop.due(3)
    first, second, third, *_ = shop.names()
    row = shop.row(second)
    with unreadable(shop, second):
        answers = shop.claim(first, second, third)
    assert [each.answer for each in answers] == [Answer.RUN, Answer.ERROR, Answer.RUN]
    assert answers[1].reason == ClaimFault.UNAVAILABLE
    assert shop.row(second) == row
    shop.run(second)


def test_another_tenants_answers_like_what_is_not_there() -> None:
    shop = shop_of()
    shop.due(2)
    first, second, *_ = shop.names()
    gone = second.replace(".v1.", ".v2.")
    calls = shop.world.timeline.calls  # type: ignore[attr-defined]
    looks = []
    for name in (gone, first):
        calls.clear()
        tenant = "acme" if name == gone else "zeta"
        found = shop.world.workplace.look(tenant, [name])
        assert (found.rows, found.unclear) == ({}, frozenset())
        looks.append(calls["look_up"])
    assert looks == [1, 1]
    assert shop.claim(gone)[0].reason == SkipReason.EXPIRED


def test_a_worker_is_told_to_say_it_again() -> None:
    shop = shop_of()
    name = shop.due()
    token = shop.run(name)
    with unreadable(shop, name):
        answers = (
            shop.beat(name, token).outcome,
            shop.complete(name, token).outcome,
            shop.fail(name, token).outcome,
        )
    assert set(answers) == {Outcome.UNAVAILABLE}
    assert shop.complete(name, token).outcome is Outcome.OK


def test_nobody_runs_beside_a_holder_that_cannot_be_read() -> None:
    shop = shop_of(Overlap.SKIP_IF_RUNNING)
    shop.due(2)
    first, second, *_ = shop.names()
    token = shop.run(first)
    with unreadable(shop, first):
        assert shop.claim(second)[0].answer is Answer.ERROR
    shop.complete(first, token)
    shop.run(second)


def test_one_that_waits_and_cannot_be_read_keeps_nobody_from_an_end() -> None:
    shop = shop_of(Overlap.QUEUE_ONE)
    shop.due(2)
    first, second, *_ = shop.names()
    token = shop.run(first)
    shop.claim(second)
    with unreadable(shop, second):
        assert shop.complete(first, token).outcome is Outcome.OK
    shop.after(16 * MINUTE)
    shop.run(second)


def test_single_occurrences_are_not_said_to_be_gone() -> None:
    shop = shop_of()
    name = shop.due()
    place = shop.world.workplace
    with unreadable(shop, name):
        for act in (tell, cancel_occurrence, replay_occurrence):
            with pytest.raises(Transient):
                act(shop.world.workplace, "acme", name)
            with pytest.raises(NotFound):
                act(place, "zeta", name.replace(".v1.", ".v2."))


def test_its_message_of_a_redrive_queue_comes_again() -> None:
    shop = shop_of()
    name = shop.due()
    with unreadable(shop, name), pytest.raises(Transient):
        redrive(shop.world.workplace, GivenUp("acme", name, 1, "ring"))
