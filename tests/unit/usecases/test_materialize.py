"""Materializing: plan the next, then schedule this one."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Tier, VersionRef
from hourbell.domain.occurrence import Lane, Occurrence, State, jitter_seconds
from hourbell.domain.schedule import Timing
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import Write
from hourbell.usecases.tally import Tally
from hourbell.usecases.walk import MAX_ROWS, STEP_ROWS

from tests.unit.usecases.faults import Crash, Crashing, UnclearTimeline
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

EVERY_MINUTE = Timing("* * * * *")
HOURLY = Timing("0 * * * *")


def test_a_due_row_is_scheduled_and_its_next_time_planned() -> None:
    world = World()
    world.clock.set(START - 90 * SECOND)
    first = world.add(HOURLY)
    tally = advance(world.plane, [first], world.clock.now())
    assert tally == Tally(planned=1, scheduled=1)
    done, following = world.rows()
    assert done.state is State.SCHEDULED
    assert done.available_at == done.scheduled_for == START
    assert done.scheduled_at == START - 90 * SECOND
    assert done.queue == "standard-strict"
    assert done.lane is Lane.STRICT
    assert not done.misfire
    assert following.state is State.PLANNED
    assert following.scheduled_for == START + timedelta(hours=1)
    assert following.sequence == done.sequence + 1 == 2


def test_rows_beyond_the_horizon_are_left_alone() -> None:
    world = World()
    first = world.add(HOURLY)
    assert advance(world.plane, [first], START) == Tally()
    assert world.rows() == [first]


def test_the_horizon_itself_is_included() -> None:
    world = World()
    world.clock.set(START - 180 * SECOND)
    first = world.add(HOURLY)
    assert advance(world.plane, [first], world.clock.now()).scheduled == 1


def test_the_chain_is_followed_to_the_horizon() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    tally = advance(world.plane, [first], START)
    assert tally == Tally(planned=3, scheduled=3)
    assert times(world.rows(State.SCHEDULED)) == [START + n * MINUTE for n in (1, 2, 3)]
    assert times(world.rows(State.PLANNED)) == [START + 4 * MINUTE]


def test_a_one_time_schedule_has_no_next() -> None:
    world = World()
    first = world.add(Timing("at(2026-03-09T12:00:05)"))
    assert advance(world.plane, [first], START) == Tally(scheduled=1)
    assert [row.state for row in world.rows()] == [State.SCHEDULED]


def test_the_last_of_max_occurrences_has_no_next() -> None:
    world = World()
    first = world.add(replace(EVERY_MINUTE, max_occurrences=2))
    assert advance(world.plane, [first], START) == Tally(planned=1, scheduled=2)


def test_an_overdue_row_runs_once_and_says_so() -> None:
    world = World()
    first = world.add(HOURLY)
    world.clock.set(first.scheduled_for + 61 * SECOND)
    assert advance(world.plane, [first], world.clock.now()).misfires == 1
    late = world.rows(State.SCHEDULED)[0]
    assert late.misfire
    assert late.scheduled_for == first.scheduled_for
    assert late.available_at == world.clock.now()
    assert late.lane is Lane.CATCHUP
    assert late.queue == "standard-catchup"


def test_a_flexible_row_is_available_inside_its_window() -> None:
    world = World()
    first = world.add(EVERY_MINUTE, window=300)
    advance(world.plane, [first], START)
    for row in world.rows(State.SCHEDULED):
        jitter = timedelta(seconds=jitter_seconds(row.occurrence_id, 300))
        assert row.available_at == row.scheduled_for + jitter
        assert row.queue == "standard-flexible"


def test_the_queue_is_that_of_the_tenants_tier() -> None:
    world = World()
    world.add_tenant("gold", Tier.PREMIUM)
    advance(world.plane, [world.add(EVERY_MINUTE, tenant="gold")], START)
    assert world.rows(State.SCHEDULED)[0].queue == "premium-strict"


def test_a_repeated_pass_finds_its_own_rows() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    advance(world.plane, [first], START)
    before = world.rows()
    assert advance(world.plane, [first], START) == Tally(existed=1, lost=1)
    assert world.rows() == before


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", [1, 2, 3, 4, 5, 6])
def test_a_crash_at_any_write_leaves_nothing_undone_that_a_pass_does_not_find(
    nth: int, after: bool
) -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    crashing = Crashing(world.timeline, ("plan", "move"), nth=nth, after=after)
    with pytest.raises(Crash):
        advance(replace(world.plane, timeline=crashing), [first], START)
    assert world.rows(State.PLANNED), "the chain always has a planned row"
    for _ in range(3):
        advance(world.plane, world.rows(), START)
    assert times(world.rows(State.SCHEDULED)) == [START + n * MINUTE for n in (1, 2, 3)]
    assert times(world.rows(State.PLANNED)) == [START + 4 * MINUTE]


@pytest.mark.parametrize("applied", [False, True])
@pytest.mark.parametrize("write", ["plan", "move"])
def test_a_row_without_a_clear_answer_comes_up_again(write: str, applied: bool) -> None:
    world = World()
    rows = [world.add(HOURLY) for _ in range(4)]
    world.clock.set(rows[0].scheduled_for - MINUTE)
    now = world.clock.now()
    unclear = UnclearTimeline(
        world.timeline,
        lambda name, place: name == write and place == 2,
        applied=applied,
    )
    tally = advance(replace(world.plane, timeline=unclear), rows, now)
    assert tally.unknown == 1
    assert tally.scheduled == 3
    again = advance(world.plane, world.rows(), now)
    assert again.unknown == 0
    assert len(world.rows(State.SCHEDULED)) == 4
    assert len(world.rows(State.PLANNED)) == 4


def test_a_row_never_leaves_planned_before_its_next_row_stands() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    unclear = UnclearTimeline(world.timeline, lambda name, _: name == "plan")
    advance(replace(world.plane, timeline=unclear), [row], START)
    assert world.rows() == [row]


def test_a_row_that_its_version_no_longer_owns_is_canceled_as_superseded() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    ref = VersionRef(first.schedule_id, 1)
    ended = replace(world.store.versions[ref], effective_to=first.scheduled_for)
    world.store.versions[ref] = ended
    assert advance(world.plane, [first], START) == Tally(canceled=1)
    (row,) = world.rows()
    assert (row.state, row.reason) == (State.CANCELED, "SUPERSEDED")
    assert row.expires_at is not None


def test_a_row_that_its_rule_does_not_produce_is_canceled_but_followed() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    stray = replace(first, scheduled_for=first.scheduled_for + 7 * SECOND)
    world.timeline.plan([stray])
    assert advance(world.plane, [stray], START).canceled == 1
    states = {row.scheduled_for: row.state for row in world.rows()}
    assert states[stray.scheduled_for] is State.CANCELED
    assert START + 2 * MINUTE in states


def test_a_row_of_another_zone_release_is_not_judged_by_this_one() -> None:
    world = World()
    first = world.add(HOURLY)
    shifted = replace(
        first, tzdb="1999z", scheduled_for=first.scheduled_for - 7 * SECOND
    )
    world.timeline.plan([shifted])
    world.clock.set(first.scheduled_for - MINUTE)
    tally = advance(world.plane, [shifted], world.clock.now())
    assert (tally.canceled, tally.scheduled) == (0, 1)


def test_a_row_without_a_version_is_canceled_only_after_a_consistent_read() -> None:
    world = World()
    first = world.add(HOURLY)
    world.clock.set(first.scheduled_for - MINUTE)
    reads: list[bool] = []

    class Late:
        """An index that shows the version to consistent reads only."""

        def versions(self, refs: Any, *, consistent: Any) -> Any:
            reads.append(consistent)
            return world.schedules.versions(refs, consistent=True) if consistent else {}

    plane = replace(world.plane, schedules=Late())  # type: ignore[arg-type]
    assert advance(plane, [first], world.clock.now()).scheduled == 1
    assert reads == [False, True]


def test_an_orphan_is_canceled_with_its_reason() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    world.store.versions.clear()
    assert advance(world.plane, [first], START) == Tally(canceled=1)
    assert world.rows()[0].reason == "ORPHANED"


def test_a_row_whose_tenant_is_not_found_stays_planned() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    world.store.tenants.clear()
    assert advance(world.plane, [first], START) == Tally(unknown=1)
    assert world.rows() == [first]


def test_rows_in_other_states_are_not_touched() -> None:
    world = World()
    first = world.add(EVERY_MINUTE)
    rows = [replace(first, state=state) for state in State if state != State.PLANNED]
    assert advance(world.plane, rows, START) == Tally()


def test_one_call_takes_a_bounded_number_of_rows() -> None:
    world = World()
    first = world.add(Timing("at(2026-03-09T12:01:00)"))
    rows: list[Occurrence] = [first] * (MAX_ROWS + 5)
    taken: list[int] = []

    class Counting:
        def plan(self, rows: Any) -> Any:
            return []

        def post(self, dispatches: Any) -> Any:
            return [Write.APPLIED] * len(dispatches)

        def move(self, changes: Any) -> Any:
            taken.append(len(changes))
            return [None] * len(changes)

    plane = replace(world.plane, timeline=Counting())  # type: ignore[arg-type]
    advance(plane, rows, START)
    assert taken == [STEP_ROWS] * (MAX_ROWS // STEP_ROWS)
