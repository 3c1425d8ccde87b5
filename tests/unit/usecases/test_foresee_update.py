"""What a dry run of an update foresees is what the update then does."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Schedule, Tracking
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import pause, resume
from hourbell.usecases.expected import ANY
from hourbell.usecases.update_schedule import (
    SHOWN,
    Forecast,
    Wanted,
    foresee_update,
    update_schedule,
)

from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, START, World, times

EVERY_MINUTE = Timing("* * * * *")


def payload_and(timing: Callable[[Timing], Timing]) -> Callable[[Schedule], Wanted]:
    """Rewrite the payload, so that there is a new version, and the timing."""

    def rewrite(schedule: Schedule) -> Wanted:
        before = schedule.definition
        after = replace(before, payload_json="2", timing=timing(before.timing))
        return Wanted(after, schedule.description, schedule.tags)

    return rewrite


def same(timing: Timing) -> Timing:
    return timing


def limited_to(limit: int | None) -> Callable[[Timing], Timing]:
    return lambda timing: replace(timing, max_occurrences=limit)


def nothing(schedule: Schedule) -> Wanted:
    return Wanted(schedule.definition, schedule.description, schedule.tags)


def running(limit: int, minutes: int, tracking: Tracking) -> tuple[World, str]:
    """Return a world in which a schedule ran for some minutes."""
    world = World()
    timing = replace(EVERY_MINUTE, max_occurrences=limit)
    row = world.add(timing, tracking=tracking)
    for _ in range(minutes):
        go_on(world)
    return world, row.schedule_id


def go_on(world: World) -> None:
    world.scan()
    world.relay_stream()
    world.clock.advance(MINUTE)


def foresee(world: World, schedule_id: str, rewrite: Any) -> Forecast:
    now = world.clock.now()
    return foresee_update(
        world.changes, caller(world), schedule_id, rewrite, now, expected=ANY
    )


def update(world: World, schedule_id: str, rewrite: Any) -> Any:
    now = world.clock.now()
    return update_schedule(
        world.changes, caller(world), schedule_id, rewrite, now, expected=ANY
    )


def later_times(world: World, version: int) -> list[datetime]:
    """Let time pass, and return the times that a version made rows of."""
    for _ in range(SHOWN + 8):
        go_on(world)
    return times([row for row in world.rows() if row.version == version])


def utc(forecast: Forecast) -> list[datetime]:
    return [time.utc for time in forecast.times]


def ids(rows: list[Occurrence]) -> tuple[str, ...]:
    return tuple(row.occurrence_id for row in rows)


@pytest.mark.parametrize("tracking", Tracking)
@pytest.mark.parametrize("minutes", [0, 1, 4])
@pytest.mark.parametrize(
    "rewrite",
    [
        payload_and(same),
        payload_and(lambda timing: replace(timing, expression="*/2 * * * *")),
        payload_and(limited_to(3)),
        payload_and(limited_to(None)),
    ],
    ids=["as limited", "as limited, slower", "limited anew", "no longer limited"],
)
def test_the_times_foreseen_become_rows(
    tracking: Tracking, minutes: int, rewrite: Callable[[Schedule], Wanted]
) -> None:
    world, schedule_id = running(9, minutes, tracking)
    before = {row.occurrence_id: row.state for row in world.rows()}
    forecast = foresee(world, schedule_id, rewrite)
    assert {row.occurrence_id: row.state for row in world.rows()} == before
    changed = update(world, schedule_id, rewrite)
    assert forecast.already_dispatched == changed.already_dispatched
    assert set(forecast.canceled) == set(ids(world.rows(State.CANCELED)))
    happened = later_times(world, 2)
    assert utc(forecast) == happened[:SHOWN]
    assert forecast.complete == (len(happened) <= SHOWN)


def test_what_stands_and_what_ran_counts_towards_an_unchanged_limit() -> None:
    world, schedule_id = running(9, 1, Tracking.UNTRACKED)
    forecast = foresee(world, schedule_id, payload_and(same))
    # At 12:01, 12:01 to 12:03 were sent or are on their way: six of nine are left.
    assert utc(forecast) == [START + n * MINUTE for n in range(4, 10)]
    assert forecast.complete


def test_a_limit_that_is_used_up_leaves_no_time() -> None:
    world, schedule_id = running(2, 2, Tracking.UNTRACKED)
    forecast = foresee(world, schedule_id, payload_and(same))
    assert (forecast.times, forecast.complete) == ((), True)
    update(world, schedule_id, payload_and(same))
    assert later_times(world, 2) == []


def test_an_update_that_changes_nothing_shows_what_is_left() -> None:
    world, schedule_id = running(9, 4, Tracking.UNTRACKED)
    forecast = foresee(world, schedule_id, nothing)
    assert not forecast.changes
    assert utc(forecast) == [START + n * MINUTE for n in range(5, 10)]


def test_a_pause_does_not_forget_what_was_counted() -> None:
    world, schedule_id = running(9, 4, Tracking.TRACKED)
    who, now = caller(world), world.clock.now()
    pause(world.changes, who, schedule_id, now)
    world.clock.advance(timedelta(minutes=30))
    forecast = foresee(world, schedule_id, payload_and(same))
    update(world, schedule_id, payload_and(same))
    resume(world.changes, who, schedule_id, world.clock.now())
    assert later_times(world, 4) == utc(forecast)


def test_a_change_that_was_cut_short_counts_as_it_will_be_finished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, schedule_id = running(9, 1, Tracking.UNTRACKED)
    with monkeypatch.context() as patched:
        patched.setattr(world.timeline, "read", _unanswered)
        assert not update(world, schedule_id, payload_and(same)).finished
    again = payload_and(lambda timing: replace(timing, expression="*/2 * * * *"))
    forecast = foresee(world, schedule_id, again)
    # 12:01 to 12:03 stand; six are left.
    assert utc(forecast) == [START + n * MINUTE for n in range(4, 15, 2)]


def _unanswered(_keys: object) -> None:
    raise Transient("no answer")
