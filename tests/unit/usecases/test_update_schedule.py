"""Updating by a rewrite, putting by name, and what is done when others are faster."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.definition import Schedule, Tenant, Tier
from hourbell.domain.errors import (
    Conflict,
    NotFound,
    PreconditionFailed,
    Transient,
)
from hourbell.domain.schedule import Timing
from hourbell.usecases.by_name import Condition, put_schedule
from hourbell.usecases.change_schedule import Changed, Changes, cancel
from hourbell.usecases.create_schedule import Created, NewSchedule, Registry
from hourbell.usecases.expected import ANY, Expected
from hourbell.usecases.identify import Caller
from hourbell.usecases.ports import Write
from hourbell.usecases.update_schedule import (
    Rewrite,
    Wanted,
    foresee_update,
    update_schedule,
)

from tests.unit.usecases.world import START, World

ANN = Caller(Tenant("acme", Tier.STANDARD), "1:user/ann", "arn:ann")
DAILY = Timing("0 9 * * *")


@pytest.fixture
def world() -> World:
    return World()


def paying(payload: str) -> Rewrite:
    """Rewrite the payload and keep the rest."""

    def rewrite(schedule: Schedule) -> Wanted:
        definition = replace(schedule.definition, payload_json=payload)
        return Wanted(definition, schedule.description, schedule.tags)

    return rewrite


def describing(text: str) -> Rewrite:
    return lambda schedule: Wanted(schedule.definition, text, schedule.tags)


def update(
    changes: Changes, schedule_id: str, rewrite: Rewrite, expected: Expected = ANY
) -> Changed:
    return update_schedule(changes, ANN, schedule_id, rewrite, START, expected=expected)


class Overtaken:
    """Schedules: before each of the first changes somebody else changes it."""

    def __init__(self, world: World, rival: Callable[[], object], times: int) -> None:
        self._port = world.schedules
        self._rival = rival
        self._left = times

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def succeed(self, change: Any) -> Write:
        if self._left:
            self._left -= 1
            self._rival()
        return self._port.succeed(change)


def overtaken(world: World, schedule_id: str, times: int) -> Changes:
    texts = iter(map(str, range(99)))

    def rival() -> None:
        update(world.changes, schedule_id, describing(next(texts)))

    schedules = Overtaken(world, rival, times)
    return replace(world.changes, plane=replace(world.plane, schedules=schedules))


def test_what_fits_any_revision_is_done_after_the_other(world: World) -> None:
    schedule_id = world.add(DAILY).schedule_id
    changed = update(overtaken(world, schedule_id, 2), schedule_id, paying("2"))
    assert changed.schedule.revision == 4
    assert changed.schedule.definition.payload_json == "2"
    # The rewrite began again from what the other left.
    assert changed.schedule.description == "1"


def test_what_is_for_one_revision_is_refused_after_the_other(world: World) -> None:
    schedule_id = world.add(DAILY).schedule_id
    expected = Expected(frozenset({1}))
    with pytest.raises(PreconditionFailed) as caught:
        update(overtaken(world, schedule_id, 1), schedule_id, paying("2"), expected)
    assert caught.value.members == {"revision": 2}


def test_who_is_always_overtaken_gives_up(world: World) -> None:
    schedule_id = world.add(DAILY).schedule_id
    with pytest.raises(Transient, match="others"):
        update(overtaken(world, schedule_id, 99), schedule_id, paying("2"))


def test_another_tenants_schedule_is_not_found(world: World) -> None:
    zenith = world.add_tenant("zenith", Tier.PREMIUM)
    schedule_id = world.add(DAILY, tenant=zenith.tenant_id).schedule_id
    for call in (update_schedule, foresee_update):
        with pytest.raises(NotFound):
            call(world.changes, ANN, schedule_id, paying("2"), START, expected=ANY)


def test_a_canceled_one_is_said_to_be_that_first(world: World) -> None:
    schedule_id = world.add(DAILY).schedule_id
    cancel(world.changes, ANN, schedule_id, START)
    for call in (update_schedule, foresee_update):
        with pytest.raises(Conflict):
            call(
                world.changes,
                ANN,
                schedule_id,
                paying("2"),
                START,
                expected=Expected(frozenset({9})),
            )


class TestPut:
    REQUEST = NewSchedule("bell", DAILY, "ring", "h1")

    def put(self, world: World, **condition: Any) -> Created | Changed:
        registry = Registry(world.plane, world.groups, world.ids)
        return put_schedule(
            registry,
            world.changes,
            ANN,
            self.REQUEST,
            START,
            condition=Condition(**condition),
        )

    def test_it_creates_once(self, world: World) -> None:
        first, again = self.put(world), self.put(world)
        assert isinstance(first, Created)
        assert isinstance(again, Changed)
        assert not again.changed
        assert again.schedule == first.schedule

    def test_what_is_canceled_between_look_and_change_is_created(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = self.put(world)
        schedule_id = first.schedule.schedule_id
        cancel(world.changes, ANN, schedule_id, START)
        answers = iter([schedule_id])
        find = world.schedules.find_by_name
        monkeypatch.setattr(
            world.schedules,
            "find_by_name",
            lambda *names: next(answers, None) or find(*names),
        )
        again = self.put(world)
        assert isinstance(again, Created)
        assert again.schedule.schedule_id != schedule_id

    def test_conditions_are_judged_before_anything_is_done(self, world: World) -> None:
        with pytest.raises(PreconditionFailed):
            self.put(world, expected=ANY)
        assert not world.store.schedules
        self.put(world, absent=True)
        with pytest.raises(PreconditionFailed):
            self.put(world, absent=True)
