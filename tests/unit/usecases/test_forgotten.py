"""What was left undecided for so long that what ran since has been deleted."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import VersionRef
from hourbell.domain.errors import Transient
from hourbell.domain.misfire import Misfire, MisfirePolicy, MissReason
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import edit
from hourbell.usecases.handover import finish_handover
from hourbell.usecases.materialize import advance
from hourbell.usecases.occurrences import cancel_occurrence

from tests.unit.usecases.test_change_schedule import caller, current, version
from tests.unit.usecases.world import EVERYTHING, MINUTE, START, World

DAY = timedelta(days=1)
WEEKS = 16 * DAY
# What is as old as this is certain to have its row still, if it ran.
REMEMBERED = timedelta(days=14, hours=23)
SKIP = Misfire(MisfirePolicy.SKIP)


def at_once(world: World, row: Occurrence) -> Occurrence | None:
    """Take all rows through their steps; return a row as it is then."""
    before: list[Occurrence] = []
    while world.rows() != before:
        before = world.rows()
        advance(world.plane, before, world.clock.now())
    found = [each for each in before if each.occurrence_id == row.occurrence_id]
    return found[0] if found else None


def put_back(world: World, row: Occurrence) -> None:
    """Let a row be as when its step out of PLANNED had been interrupted."""
    world.store.put_row(row)


def forget(world: World, *kept: Occurrence) -> None:
    """Delete all rows but some, as if they had expired."""
    keys = {row.key for row in kept}
    for row in world.rows():
        if row.key not in keys:
            del world.store.rows[row.key.partition][row.key.sort]


def test_what_ran_and_was_deleted_does_not_run_again() -> None:
    world = World()
    timing = Timing("* * * * *", max_occurrences=2)
    first = world.add(timing, misfire=EVERYTHING)
    at_once(world, first)
    (second,) = [row for row in world.rows() if row.key != first.key]
    assert second.state is State.SCHEDULED
    put_back(world, first)
    forget(world, first)
    world.clock.set(START + WEEKS)

    found = at_once(world, second)

    assert found is not None
    assert (found.state, found.reason) == (State.MISSED, MissReason.TOO_LATE)
    assert at_once(world, first) == replace(
        first,
        state=State.MISSED,
        misfire=True,
        reason=MissReason.TOO_LATE,
        finished_at=START + WEEKS,
        expires_at=START + WEEKS + 15 * DAY,
    )


@pytest.mark.parametrize("expression", ["at(2026-03-09T12:01:00)", "0 0 1 4 *"])
def test_a_single_time_that_nobody_came_to_for_weeks_runs(expression: str) -> None:
    world = World()
    row = world.add(Timing(expression))
    world.clock.set(row.scheduled_for + WEEKS)

    found = at_once(world, row)

    assert found is not None
    assert (found.state, found.misfire) == (State.SCHEDULED, True)


def test_a_row_that_was_put_weeks_after_its_time_does_not_run() -> None:
    """A handover that is finished weeks later may put its first row once more."""
    world = World()
    row = world.add(Timing("at(2026-03-09T12:01:00)"))
    world.clock.set(row.scheduled_for + REMEMBERED + timedelta(seconds=1))
    late = replace(row, planned_at=world.clock.now())
    put_back(world, late)

    found = at_once(world, row)

    assert found is not None
    assert (found.state, found.reason) == (State.MISSED, MissReason.TOO_LATE)


def test_of_a_decision_of_long_ago_nothing_runs_that_may_have_run_before() -> None:
    world = World()
    first = world.add(Timing("* * * * *"), misfire=Misfire(MisfirePolicy.CATCH_UP, 3))
    world.clock.set(START + 20 * MINUTE)
    at_once(world, first)
    (gap,) = [row for row in world.rows() if row.decision is not None]
    ran = [row for row in world.rows() if row.misfire and row.state is State.SCHEDULED]
    assert len(ran) == 3
    # The gap row's own step was lost; what it lets run has run and expired.
    gap = replace(gap, state=State.PLANNED, reason=None, misfire=False)
    put_back(world, replace(gap, finished_at=None, expires_at=None))
    forget(world, gap)
    world.clock.set(START + WEEKS)

    assert at_once(world, first) is None

    ids = {row.occurrence_id for row in ran}
    again = [row for row in world.rows() if row.occurrence_id in ids]
    assert len(again) == 3
    # Whether they ran, nobody can tell; so each has an account at least.
    assert {(row.state, row.reason) for row in again} == {
        (State.MISSED, MissReason.TOO_LATE)
    }


def test_a_cancel_of_what_nobody_came_to_for_weeks_lets_nothing_run_twice() -> None:
    world = World()
    timing = Timing("* * * * *", max_occurrences=2)
    first = world.add(timing, misfire=EVERYTHING)
    at_once(world, first)
    (second,) = [row for row in world.rows() if row.key != first.key]
    put_back(world, first)
    forget(world, first)
    world.clock.set(START + WEEKS)

    cancel_occurrence(world.workplace, "acme", first.occurrence_id)
    found = at_once(world, second)

    assert found is not None
    assert (found.state, found.reason) == (State.MISSED, MissReason.TOO_LATE)


def test_a_cancel_of_one_overdue_time_leaves_the_policy_to_the_others() -> None:
    world = World()
    first = world.add(Timing("* * * * *"), misfire=SKIP)
    world.clock.set(START + 20 * MINUTE)

    cancel_occurrence(world.workplace, "acme", first.occurrence_id)
    at_once(world, first)

    overdue = [row for row in world.rows() if row.scheduled_for < START + 19 * MINUTE]
    assert {row.state for row in overdue} == {State.CANCELED, State.MISSED}
    (gap,) = [row for row in overdue if row.decision is not None]
    assert gap.scheduled_for == START + 2 * MINUTE
    assert gap.covers(START + 18 * MINUTE)


def test_a_change_that_is_finished_weeks_later_counts_the_times_before_it() -> None:
    world = World()
    first = world.add(Timing("48 * * * *", max_occurrences=5))
    cancel_occurrence(world.workplace, "acme", first.occurrence_id)
    (second,) = world.rows(State.PLANNED)

    class Silent:
        def __getattr__(self, name: str) -> Any:
            return getattr(world.schedules, name)

        def take_over(self, *_: Any) -> Any:
            raise Transient

    schedules: Any = Silent()
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    schedule = current(world, first)
    definition = replace(schedule.definition, payload_json="2")
    now = world.clock.now()
    edit(changes, caller(world), schedule, definition, now, description="", tags={})
    # The row of the time that was canceled expires before the change is finished.
    put_back(world, second)
    forget(world, second)
    world.clock.set(START + WEEKS)

    finish_handover(world.plane, VersionRef(first.schedule_id, 2), world.clock)

    assert version(world, first, 2).base_sequence == 0
    rows = [row for row in world.rows() if row.version == 2]
    assert (rows[0].scheduled_for, rows[0].sequence) == (first.scheduled_for, 1)
    # All five times have their account: the first, and a gap row of the others.
    last = first.scheduled_for + timedelta(hours=4)
    assert [row.covers(last) for row in rows] == [False, True]
    assert not rows[1].covers(last + timedelta(hours=1))
