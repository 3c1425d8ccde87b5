"""What follows a row across the beginning of an epoch is not left behind the scan."""

from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchKind, follow_of
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.parking import ParkReason
from hourbell.domain.policies import SECOND_LOOK
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Epoch, Phase, ShardMap
from hourbell.usecases.change_schedule import pause, resume
from hourbell.usecases.create_schedule import NewSchedule, Registry, create_schedule
from hourbell.usecases.follow import FollowReport, follow
from hourbell.usecases.following import post_follows
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import Schedules, Timeline, Write

from tests.unit.usecases.faults import UnclearTimeline
from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World

HOURLY = Timing("5 * * * *")
SINCE = START + timedelta(minutes=30)
LATER = START + timedelta(hours=3)


def two_epochs(phase: Phase = Phase.SETTLED) -> ShardMap:
    return ShardMap((Epoch(None, 4, 2), Epoch(SINCE, 16, 4, phase)))


@pytest.fixture
def world() -> World:
    """Three hours after a row of 12:05 was planned; the epoch began at 12:30."""
    world = World(shard_map=two_epochs())
    world.clock.set(LATER)
    return world


def planned(world: World) -> Occurrence:
    world.clock.set(START)
    row = world.add(HOURLY, misfire=EVERYTHING)
    world.clock.set(LATER)
    return row


def follows(world: World) -> list[Dispatch]:
    return [
        each
        for each in world.store.all_dispatches()
        if each.kind is DispatchKind.FOLLOW
    ]


@pytest.mark.parametrize(
    ("minutes", "now", "phase", "crossed"),
    [
        (5, LATER, Phase.SETTLED, True),
        (29, LATER, Phase.SETTLED, True),
        (30, LATER, Phase.SETTLED, False),
        (5, SINCE - SECOND, Phase.SETTLED, False),
        (30, LATER, Phase.MOVING, True),
    ],
)
def test_what_follows_may_be_behind_once_an_epoch_has_begun_after_a_row(
    minutes: int, now: object, phase: Phase, crossed: object
) -> None:
    shard_map = two_epochs(phase)
    assert shard_map.is_crossed(START + minutes * MINUTE, now) is crossed  # type: ignore[arg-type]
    assert not ShardMap.constant(4, 2).is_crossed(START, LATER)


def test_a_row_that_is_planned_behind_the_scan_is_announced_first(
    world: World,
) -> None:
    row = planned(world)
    seen: list[list[DispatchKind]] = []

    def look() -> None:
        seen.append([each.kind for each in world.store.all_dispatches()])

    # Just before the first insert of a planned row.
    watched = Moment(1, False, look)
    timeline = watched.wrap(world.timeline)

    only = Only("plan", timeline, world.timeline)
    plane = replace(world.plane, timeline=cast("Timeline", only))
    advance(plane, [row], LATER, is_behind=True)
    assert seen == [[DispatchKind.FOLLOW]]
    assert {each.due for each in follows(world)} == {LATER}


def test_within_an_epoch_nothing_is_announced() -> None:
    world = World()
    row = planned(world)
    advance(world.plane, [row], LATER)
    assert follows(world) == []


def test_what_is_not_overdue_needs_no_follow(world: World) -> None:
    row = planned(world)
    ahead = replace(row, scheduled_for=LATER - 30 * SECOND)
    assert post_follows(world.timeline, world.shard_map, [ahead], LATER) == set()
    deferred = replace(row, state=State.DEFERRED)
    assert post_follows(world.timeline, world.shard_map, [deferred], LATER) == set()
    assert follows(world) == []


def test_without_a_clear_answer_about_the_follow_nothing_else_is_written(
    world: World,
) -> None:
    row = planned(world)
    unclear = UnclearTimeline(world.timeline, lambda name, _: name == "post")
    tally = advance(
        replace(world.plane, timeline=unclear), [row], LATER, is_behind=True
    )
    assert tally.unknown > 0
    assert world.rows() == [row]


def lost(world: World) -> Occurrence:
    """Leave the row of 13:05 and its follow, as a pass that died there does."""
    row = planned(world)
    instant = START + timedelta(minutes=65)
    shard = world.shard_map.shard_of(row.schedule_id, instant)
    behind = replace(row, scheduled_for=instant, shard=shard, sequence=2)
    post_follows(world.timeline, world.shard_map, [behind], LATER)
    assert world.timeline.plan([behind]) == [Write.APPLIED]
    return behind


def test_a_row_behind_the_scan_is_taken_on_with_all_that_follows(world: World) -> None:
    behind = lost(world)
    follow(world.plane, follows(world), LATER)
    sent = [row for row in world.rows("SCHEDULED") if row.sequence > 1]
    assert [f"{row.scheduled_for:%H:%M}" for row in sent] == ["13:05", "14:05"]
    # The next one was announced as well, in case that this pass had died.
    assert {each.scheduled_for for each in follows(world)} >= {
        behind.scheduled_for,
        START + timedelta(minutes=125),
    }


def test_a_follow_stays_until_its_row_was_sent(world: World) -> None:
    behind = lost(world)
    follow(world.plane, follows(world), LATER)
    now = world.clock.advance(MINUTE)
    report = follow(world.plane, follows(world), now)
    assert behind.key in report.stuck
    assert (report.settled, {t.reason for t in report.troubles}) == (
        0,
        {ParkReason.UNSENT},
    )
    world.relay_stream()
    report = follow(world.plane, follows(world), now)
    assert report.settled == 2
    assert not any(each.is_open for each in follows(world))
    assert follow(world.plane, follows(world), now) == FollowReport()


def test_a_follow_whose_row_never_came_is_settled_when_its_writer_is_dead(
    world: World,
) -> None:
    row = planned(world)
    post_follows(world.timeline, world.shard_map, [row], LATER)
    del world.store.rows[row.key.partition][row.key.sort]
    early = LATER + SECOND_LOOK - SECOND
    assert follow(world.plane, follows(world), early).settled == 0
    assert follow(world.plane, follows(world), LATER + SECOND_LOOK).settled == 1


def test_a_follow_whose_row_lies_in_neither_place_does_not_hold_up_an_epoch() -> None:
    world = World(shard_map=two_epochs(Phase.MOVING))
    rows = [planned(world) for _ in range(8)]
    late = [replace(row, scheduled_for=START + 65 * MINUTE) for row in rows]
    keyed = [
        replace(row, shard=world.shard_map.shard_of(row.schedule_id, row.scheduled_for))
        for row in late
    ]
    twins = {row.key: world.shard_map.twin(row.key) for row in keyed}
    apart = [row for row in keyed if twins[row.key] is not None]
    assert len(apart) > 1
    post_follows(world.timeline, world.shard_map, apart, LATER)
    # One of them lies in its other place.
    there = apart[0]
    twin = twins[there.key]
    assert twin is not None
    world.store.put_row(replace(there, shard=twin.shard))
    now = LATER + SECOND_LOOK
    assert follow(world.plane, follows(world), now).settled == len(apart) - 1


def test_a_handover_that_is_finished_late_announces_its_first_row(
    world: World,
) -> None:
    row = planned(world)
    world.clock.set(START + 10 * MINUTE)
    who = caller(world)
    pause(world.changes, who, row.schedule_id, world.clock.now())

    class CrashError(Exception):
        """The caller of the resume dies."""

    def die() -> None:
        raise CrashError

    moment = Moment(1, False, die)
    only = Only("take_over", moment.wrap(world.schedules), world.schedules)
    dying = cast("Schedules", only)

    plane = replace(world.plane, schedules=dying)
    changes = replace(world.changes, plane=plane)
    with pytest.raises(CrashError):
        resume(changes, who, row.schedule_id, world.clock.now())
    world.clock.set(LATER)
    world.scan()
    assert START + timedelta(minutes=65) in {
        each.scheduled_for for each in follows(world)
    }


def test_a_follow_is_due_in_a_whole_second(world: World) -> None:
    row = planned(world)
    made = follow_of(row, world.shard_map, LATER + timedelta(milliseconds=500))
    assert made.due == LATER
    assert made.key.sort.endswith("#follow#20260309T120500Z")


def test_a_create_that_is_repeated_late_announces_what_follows(world: World) -> None:
    """It takes the first row on, which an outage has left where it was."""
    world.clock.set(START)
    request = NewSchedule(
        name="bell", timing=HOURLY, handler="ring", body_hash="", misfire=EVERYTHING
    )
    keyed = replace(request, idempotency_key="once")
    registry = Registry(world.plane, world.groups, world.ids)
    create_schedule(registry, caller(world), keyed, START)
    world.clock.set(LATER)
    assert create_schedule(registry, caller(world), keyed, LATER).replayed
    assert START + timedelta(minutes=65) in {
        each.scheduled_for for each in follows(world)
    }
