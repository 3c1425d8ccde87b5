"""The list of a tenant's dead letters."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database, DynamoLedger
from hourbell.domain.errors import InvalidInput
from hourbell.domain.work import DeadLetter
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed

from tests.conformance import samples
from tests.conformance.samples import MINUTE, NOW
from tests.conformance.work_samples import letter
from tests.conformance.worlds import World, dynamo_world

LABELS = ["a", "b", "c", "d", "e", "f"]


def store(world: World, *letters: DeadLetter) -> None:
    assert world.ledger.do(Deed((), letters=letters)) is Write.APPLIED


def told(world: World, limit: int = 100, **wanted: Any) -> list[DeadLetter]:
    """Return the dead letters of all pages."""
    letters: list[DeadLetter] = []
    after: str | None = None
    while True:
        page, after = world.ledger.letters("acme", after=after, limit=limit, **wanted)
        assert len(page) <= limit
        letters += page
        if after is None:
            return letters


def as_set(letters: Sequence[DeadLetter]) -> set[DeadLetter]:
    assert len(set(letters)) == len(letters)
    return set(letters)


def minute(number: int) -> datetime:
    return NOW + number * MINUTE


@pytest.mark.parametrize("limit", [1, 2, 5, 100])
def test_each_dead_letter_of_the_tenant_is_told_once(world: World, limit: int) -> None:
    letters = [letter(label, n) for label in LABELS for n in (0, 1, 2)]
    store(world, *letters, replace(letter("a"), tenant_id="acme2"))

    assert as_set(told(world, limit)) == set(letters)


def test_the_letters_of_one_schedule_come_in_order_of_time(world: World) -> None:
    own = [letter("a", n) for n in (11, 2, 0, 1, -9)]
    again = replace(own[0], attempt=12)
    store(world, *own, again, *(letter(label) for label in LABELS[1:]))

    found = told(world, 2, schedule_id=samples.schedule_id("a"))

    assert as_set(found) == {*own, again}
    times = [each.died_at for each in found]
    assert times == sorted(times)


def test_a_range_has_its_first_instant_and_not_its_last(world: World) -> None:
    letters = [letter(label, n) for label in ("a", "b") for n in range(6)]
    store(world, *letters)

    def among(**wanted: datetime) -> set[DeadLetter]:
        both = as_set(told(world, 2, **wanted))
        own = told(world, 2, schedule_id=samples.schedule_id("a"), **wanted)
        assert as_set(own) == {
            each for each in both if each.occurrence_id == letter("a").occurrence_id
        }
        return both

    def of(*minutes: int) -> set[DeadLetter]:
        return {letter(label, n) for label in ("a", "b") for n in minutes}

    assert among(since=minute(2), until=minute(4)) == of(2, 3)
    assert among(since=minute(4)) == of(4, 5)
    assert among(until=minute(1)) == of(0)
    assert among(since=minute(3), until=minute(3)) == set()
    assert among(since=minute(4), until=minute(2)) == set()


def test_what_is_put_and_forgotten_meanwhile_hides_no_other(world: World) -> None:
    letters = [letter(label, 5) for label in LABELS]
    store(world, *letters)
    page, after = world.ledger.letters("acme", after=None, limit=3)
    assert after is not None
    earlier = letter(LABELS[0], 4)
    deed = Deed((), letters=(earlier,), forgets=tuple(page))
    assert world.ledger.do(deed) is Write.APPLIED

    rest: list[DeadLetter] = []
    while after is not None:
        found, after = world.ledger.letters("acme", after=after, limit=3)
        rest += found

    assert as_set([*page, *rest]) - {earlier} == set(letters)


def test_putting_one_again_and_forgetting_what_is_gone_do_nothing(
    world: World,
) -> None:
    store(world, letter("a"))
    store(world, letter("a"))
    assert told(world) == [letter("a")]

    for _ in range(2):
        deed = Deed((), forgets=(letter("a"),))
        assert world.ledger.do(deed) is Write.APPLIED
        assert told(world) == []


@pytest.mark.parametrize("after", ["", "x", "e30", "eyJ2IjoxfQ", "é", "A" * 3_000])
def test_what_is_no_cursor_is_refused(world: World, after: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        world.ledger.letters("acme", after=after, limit=5)
    assert raised.value.findings[0].code == "invalid_cursor"


def test_a_cursor_of_another_schedules_list_is_refused(moto_database: Database) -> None:
    world = dynamo_world(moto_database)
    store(world, letter("a"), letter("a", 1))
    own = samples.schedule_id("a")
    _, after = world.ledger.letters("acme", schedule_id=own, after=None, limit=1)
    assert after is not None
    # Of 64 schedules, some are in other list shards.
    refused = 0
    for number in range(64):
        try:
            DynamoLedger(moto_database).letters(
                "acme",
                schedule_id=samples.schedule_id(number),
                after=after,
                limit=1,
            )
        except InvalidInput:
            refused += 1
    assert 40 < refused < 64
