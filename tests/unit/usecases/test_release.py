"""Letting deferred occurrences go: near or far, sent or not, clear or not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.usecases.ports import Write
from hourbell.usecases.release import ReleaseReport, release

from tests.unit.usecases.deferring import (
    HORIZON,
    available,
    deferred,
    releases,
    stored,
)
from tests.unit.usecases.faults import UnclearTimeline
from tests.unit.usecases.test_interrupted_changes import Wrapped
from tests.unit.usecases.world import MINUTE, SECOND, START, World

WAITING = {State.DEFERRED, State.RETRY_WAIT, State.WAITING_OVERLAP}
UNSENT = {State.PLANNED, State.SCHEDULED} | WAITING


def go(world: World, now: datetime | None = None, **ports: Any) -> ReleaseReport:
    """Work off all dispatch rows there are."""
    plane = replace(world.plane, **ports)
    dispatches = world.store.all_dispatches()
    return release(plane, dispatches, world.clock.now() if now is None else now)


def near(world: World, row: Occurrence) -> None:
    """Let it be as late as a row may at the latest be left alone."""
    world.clock.set(available(row) - HORIZON)


def in_state(world: World, row: Occurrence, state: State) -> None:
    world.store.put_row(replace(stored(world, row), state=state))


def test_what_is_beyond_the_horizon_is_left_alone() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    world.clock.advance(-timedelta(microseconds=1))
    assert go(world) == ReleaseReport()
    assert stored(world, row) == row


def test_what_is_within_the_horizon_becomes_an_outbox_record() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    assert go(world) == ReleaseReport(released=1)
    expected = replace(row, state=State.SCHEDULED, scheduled_at=world.clock.now())
    assert stored(world, row) == expected
    assert world.store.take_stream() == [expected]
    (dispatch,) = releases(world)
    assert dispatch.is_open, "nothing was sent yet"


def test_a_record_that_was_not_sent_keeps_its_dispatch_row_and_is_swept() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    go(world)
    assert go(world) == ReleaseReport()
    world.clock.set(available(row) - timedelta(seconds=90))
    assert go(world) == ReleaseReport(stuck=(row.key,))
    assert releases(world)[0].is_open


def test_a_stuck_record_comes_up_less_and_less_often() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    go(world)
    eligible = available(row) - timedelta(seconds=90)
    taken, previous = [], None
    for minute in range(40):
        now = eligible + minute * MINUTE
        report = release(world.plane, releases(world), now, previous=previous)
        taken += [minute] if report.stuck else []
        assert report.settled == 0
        previous = now
    assert taken == [0, 1, 3, 7, 15, 31]


@pytest.mark.parametrize("state", sorted(set(State) - UNSENT))
def test_a_dispatch_row_is_done_once_its_occurrence_was_sent_or_ended(
    state: State,
) -> None:
    world = World()
    row = deferred(world)
    in_state(world, row, state)
    near(world, row)
    assert go(world) == ReleaseReport(settled=1)
    (dispatch,) = releases(world)
    assert dispatch.state is DispatchState.DONE
    assert dispatch.expires_at == world.clock.now() + timedelta(days=15)
    assert stored(world, row).state is state
    assert go(world) == ReleaseReport()


def test_a_planned_row_whose_dispatch_row_is_there_is_left_to_materializing() -> None:
    world = World()
    row = deferred(world)
    in_state(world, row, State.PLANNED)
    near(world, row)
    assert go(world) == ReleaseReport()
    assert stored(world, row).state is State.PLANNED
    assert releases(world)[0].is_open


def test_a_row_that_is_not_there_is_counted_and_not_given_up() -> None:
    world = World()
    row = deferred(world)
    del world.store.rows[row.key.partition][row.key.sort]
    near(world, row)
    assert go(world) == ReleaseReport(faulty=1)
    assert releases(world)[0].is_open


def test_a_version_that_cannot_be_read_stops_only_its_own_row() -> None:
    world = World()
    rows = [deferred(world) for _ in range(4)]

    def versions(refs: Any, *, consistent: bool) -> Any:
        wanted = list(refs)
        if any(ref.schedule_id == rows[1].schedule_id for ref in wanted):
            raise Permanent(code="unreadable_item")
        return world.schedules.versions(wanted, consistent=consistent)

    world.clock.set(max(map(available, rows)))
    report = go(world, schedules=Wrapped(world.schedules, versions=versions))
    assert report == ReleaseReport(released=3, faulty=1)
    assert stored(world, rows[1]).state is State.DEFERRED
    assert all(each.is_open for each in releases(world, rows[1]))


@pytest.mark.parametrize("call", ["read", "versions"])
def test_a_store_that_does_not_answer_leaves_everything_as_it_is(call: str) -> None:
    world = World()
    row = deferred(world)
    near(world, row)

    def fail(*_: Any, **__: Any) -> Any:
        raise Transient

    ports: dict[str, Any] = {
        "timeline": Wrapped(
            world.timeline, **({"read": fail} if call == "read" else {})
        ),
        "schedules": Wrapped(
            world.schedules, **({"versions": fail} if call == "versions" else {})
        ),
    }
    with pytest.raises(Transient):
        go(world, **ports)
    assert stored(world, row) == row
    assert releases(world)[0].is_open


@pytest.mark.parametrize("applied", [False, True])
def test_a_move_without_a_clear_answer_comes_up_again(applied: bool) -> None:
    world = World()
    rows = [deferred(world) for _ in range(3)]
    world.clock.set(max(map(available, rows)))
    unclear = UnclearTimeline(
        world.timeline, lambda name, at: (name, at) == ("move", 1), applied=applied
    )
    assert go(world, timeline=unclear) == ReleaseReport(released=2, unclear=1)
    assert all(each.is_open for each in releases(world))
    assert go(world).released == int(not applied)
    assert len(world.rows(State.SCHEDULED)) >= 3


@pytest.mark.parametrize("applied", [False, True])
def test_a_cancel_without_a_clear_answer_is_settled_by_the_next_pass(
    applied: bool,
) -> None:
    world = World()
    row = deferred(world)
    world.store.versions.clear()
    near(world, row)
    unclear = UnclearTimeline(
        world.timeline, lambda name, _: name == "move", applied=applied
    )
    assert go(world, timeline=unclear) == ReleaseReport(unclear=1)
    assert releases(world)[0].is_open
    again = go(world)
    assert (again.settled, again.canceled) == (1, int(not applied))
    assert not releases(world)[0].is_open


@pytest.mark.parametrize("applied", [False, True])
def test_settling_without_a_clear_answer_is_done_again(applied: bool) -> None:
    world = World()
    row = deferred(world)
    in_state(world, row, State.ENQUEUED)
    near(world, row)
    unclear = UnclearTimeline(
        world.timeline, lambda name, _: name == "settle", applied=applied
    )
    assert go(world, timeline=unclear) == ReleaseReport(unclear=1)
    assert go(world) == ReleaseReport(settled=int(not applied))
    assert not releases(world)[0].is_open


def test_two_dispatch_rows_of_one_occurrence_release_it_once_and_both_end() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    (first,) = releases(world)
    second = replace(first, due=first.due - SECOND)
    world.store.put_dispatch(second)
    assert go(world) == ReleaseReport(released=1)
    assert go(world) == ReleaseReport()
    in_state(world, row, State.ENQUEUED)
    assert go(world).settled + go(world).settled == 2
    assert [each.is_open for each in releases(world)] == [False, False]


def test_a_pass_that_comes_second_changes_nothing() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    before: list[Occurrence] = []

    def move(changes: Any) -> Any:
        """Let another pass, and the relay after it, be first."""
        assert go(world).released == 1
        world.relay_stream()
        before.extend(world.store.all_rows())
        return world.timeline.move(changes)

    report = go(world, timeline=Wrapped(world.timeline, move=move))
    assert report == ReleaseReport()
    assert world.store.all_rows() == before
    assert stored(world, row).state is State.ENQUEUED
    assert len(world.queues.accepted) == 1
    assert go(world).settled == 1


def test_a_dispatch_row_read_before_it_was_settled_is_not_settled_anew() -> None:
    world = World()
    row = deferred(world)
    in_state(world, row, State.ENQUEUED)
    near(world, row)
    stale = releases(world)
    go(world)
    (done,) = releases(world)
    world.clock.advance(MINUTE)
    release(world.plane, stale, world.clock.now())
    assert releases(world) == [done]


def test_other_kinds_and_what_is_done_are_not_taken() -> None:
    world = World()
    row = deferred(world)
    near(world, row)
    (pending,) = releases(world)
    done = replace(pending, state=DispatchState.DONE)
    handover = Dispatch(
        DispatchKind.HANDOVER, row.schedule_id, 2, "acme", START, row.shard, START
    )

    def read(_: Any) -> Any:
        raise AssertionError("nothing is to be read")

    plane = replace(world.plane, timeline=Wrapped(world.timeline, read=read))
    now = world.clock.now()
    assert release(plane, [done, handover], now) == ReleaseReport()


def test_the_soonest_goes_first() -> None:
    world = World()
    rows = [deferred(world) for _ in range(5)]
    world.clock.set(max(map(available, rows)))
    moved: list[datetime] = []

    def move(changes: Any) -> Any:
        moved.extend(available(change.row) for change in changes)
        return world.timeline.move(changes)

    go(world, timeline=Wrapped(world.timeline, move=move))
    assert moved == sorted(map(available, rows))


def test_an_occurrence_without_a_version_is_canceled_as_orphaned() -> None:
    world = World()
    row = deferred(world)
    world.store.versions.clear()
    near(world, row)
    assert go(world) == ReleaseReport(canceled=1, settled=1)
    canceled = stored(world, row)
    assert (canceled.state, canceled.reason) == (State.CANCELED, "ORPHANED")
    assert canceled.finished_at == world.clock.now()
    assert canceled.expires_at == world.clock.now() + timedelta(days=15)


def test_an_occurrence_that_its_version_does_not_own_is_superseded() -> None:
    world = World()
    row = deferred(world)
    ref = VersionRef(row.schedule_id, 1)
    version = world.store.versions[ref]
    world.store.versions[ref] = replace(version, effective_to=row.scheduled_for)
    near(world, row)
    assert go(world) == ReleaseReport(canceled=1, settled=1)
    assert stored(world, row).reason == "SUPERSEDED"


def as_run(row: Occurrence) -> Occurrence:
    return replace(row, run="00c0ffee00c0ffee")


def as_backfill(row: Occurrence) -> Occurrence:
    """Return a backfilled time, of long before its version's interval."""
    earlier = row.scheduled_for - timedelta(days=30)
    return replace(row, scheduled_for=earlier, backfilled_at=row.planned_at)


@pytest.mark.parametrize("make", [as_run, as_backfill])
def test_what_was_asked_for_by_hand_is_released_under_its_own_key(
    make: Callable[[Occurrence], Occurrence],
) -> None:
    world = World()
    row = deferred(world)
    (dispatch,) = releases(world)
    asked = make(row)
    asked = replace(asked, shard=world.shard_map.shard_of(asked.schedule_id, START))
    world.store.put_row(asked)
    near(world, row)
    own = replace(dispatch, scheduled_for=asked.scheduled_for, run=asked.run)
    report = release(world.plane, [own], world.clock.now())
    assert report == ReleaseReport(released=1)
    assert stored(world, asked).state is State.SCHEDULED
    assert stored(world, row) == row


def test_an_answer_of_lost_is_no_release() -> None:
    world = World()
    row = deferred(world)
    near(world, row)

    def move(changes: Any) -> Any:
        return [Write.LOST] * len(changes)

    report = go(world, timeline=Wrapped(world.timeline, move=move))
    assert report == ReleaseReport()
    assert releases(world)[0].is_open
