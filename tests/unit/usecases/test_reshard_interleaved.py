"""Processes that know of an epoch sooner or later, in any order: seeded, and at once.

What must exist is recomputed here by plain arithmetic from the version log.
"""

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

import pytest
from hourbell.domain.definition import ScheduleState, Version
from hourbell.domain.errors import HourbellError, Transient
from hourbell.domain.occurrence import State
from hourbell.domain.policies import EPOCH_LAG
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import Phase, ShardMap
from hourbell.usecases.change_schedule import Changes, cancel, pause, resume
from hourbell.usecases.create_schedule import NewSchedule, Registry, create_schedule
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.resharding import AgingMaps, ReshardingWorld
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START

EVERY = (1, 3, 7, 30, 60)
"""Minutes between the times of a schedule, all of which divide an hour or never end."""


def every(minutes: int) -> Timing:
    return Timing("0 * * * *" if minutes == 60 else f"*/{minutes} * * * *")


def is_due(timing: Timing, instant: datetime) -> bool:
    """Whether a minute is one of a schedule's times, by arithmetic."""
    minute = timing.expression.split()[0]
    if minute == "0":
        return instant.minute == 0
    return instant.minute % (1 if minute == "*" else int(minute[2:])) == 0


def must_exist(version: Version, until: datetime) -> list[str]:
    """Return the ids of a version's times up to an instant."""
    start, end = version.effective_from, version.effective_to
    if version.state is not ScheduleState.ACTIVE or start is None:
        return []
    minutes = (until - START) // MINUTE
    return [
        f"{version.schedule_id}.v{version.version}.{instant:%Y%m%dT%H%M%SZ}"
        for instant in (START + number * MINUTE for number in range(minutes + 1))
        if start <= instant
        and (end is None or instant < end)
        and is_due(version.definition.timing, instant)
    ]


@dataclass
class Run:
    """One seeded run: two materializers, an API and a mover, each with its own maps."""

    seed: int
    world: ReshardingWorld
    random: Random = field(init=False)
    refused: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.materializers = [AgingMaps(self.world) for _ in range(2)]
        self.api = AgingMaps(self.world)
        self.ids: list[str] = []

    @property
    def changes(self) -> Changes:
        plane = self.world.plane_of(self.api)
        return Changes(plane, self.world.groups, self.world.clock)

    def create(self) -> None:
        world = self.world
        registry = Registry(world.plane_of(self.api), world.groups, world.ids)
        request = NewSchedule(
            name=f"bell-{len(self.ids)}",
            timing=every(self.random.choice(EVERY)),
            handler="ring",
            body_hash="",
            misfire=EVERYTHING,
        )
        created = create_schedule(registry, caller(world), request, world.clock.now())
        self.ids.append(created.schedule.schedule_id)

    def change(self) -> None:
        act = self.random.choice([pause, resume, resume, cancel])
        if act is cancel and self.random.random() < 0.7:
            act = resume
        schedule_id = self.random.choice(self.ids)
        try:
            act(self.changes, caller(self.world), schedule_id, self.world.clock.now())
        except Transient:
            self.refused += 1
        except HourbellError:
            # It is paused, active or canceled already.
            return

    def step(self) -> None:
        choice = self.random.random()
        if choice < 0.15:
            self.create()
        elif choice < 0.4:
            self.change()
        elif choice < 0.7:
            self.world.scan_all(self.random.choice(self.materializers))
        elif choice < 0.85:
            self.world.relay_all()
        else:
            self.world.work_off()
        self.world.clock.advance(self.random.randrange(25) * SECOND)

    def settle(self, maps: AgingMaps) -> None:
        for _ in range(6):
            self.world.clock.advance(MINUTE)
            self.world.scan_all(maps)
            self.world.relay_all()
            self.world.work_off()


@pytest.mark.parametrize(
    "seed",
    [*range(6), *(pytest.param(each, marks=pytest.mark.long) for each in range(6, 60))],
)
def test_whoever_knows_what_everything_due_is_there_once(seed: int) -> None:
    random = Random(seed)
    shards, groups = random.choice([(16, 2), (64, 8), (5, 2), (1, 1)])
    start = ShardMap.constant(4, min(2, groups))
    world = ReshardingWorld(shard_map=start)
    run = Run(seed, world)
    for _ in range(12):
        run.create()
    for _ in range(10):
        run.step()
    world.reshard(shards, groups)
    for _ in range(150):
        run.step()
    for _ in range(5):
        run.settle(run.materializers[0])
    assert world.phase is Phase.SETTLED
    run.settle(run.materializers[1])

    assert world.astray() == []
    assert world.twice() == []
    now = world.clock.now()
    rows = {row.occurrence_id: row for row in world.store.all_rows()}
    versions = list(world.store.versions.values())
    wanted = {each for version in versions for each in must_exist(version, now)}
    assert wanted <= set(rows)
    stopped = {State.CANCELED}
    sent = Counter(json.loads(each.entry.body)["id"] for each in world.queues.accepted)
    unsent = {each for each in wanted if sent[each] != 1}
    assert {rows[each].state for each in unsent} <= stopped
    assert not [each for each, count in sent.items() if count > 1]
    assert world.epochs.progress.moved > 0 or shards == 1


def at_moment(nth: int, *, after: bool) -> bool:
    """Let the mover run between two calls of a pause, a resume and four passes.

    Returns:
        whether there is such a moment.
    """
    world = ReshardingWorld()
    hourly = [world.add(every(60), misfire=EVERYTHING) for _ in range(4)]
    world.reshard(16)
    world.pass_minutes(4)
    world.clock.advance(EPOCH_LAG)
    assert world.phase is Phase.MOVING

    def work_off() -> None:
        world.work_off()

    moment = Moment(nth, after, work_off)
    plane = world.plane_of(AgingMaps(world))
    watched = replace(
        plane,
        schedules=moment.wrap(plane.schedules),
        # Reading one page more or less before the mover runs is all the same.
        timeline=Only("page", plane.timeline, moment.wrap(plane.timeline)),
    )
    changes = Changes(watched, world.groups, world.clock)
    who, schedule_id = caller(world), hourly[0].schedule_id
    world.clock.set(START + 57 * MINUTE)
    pause(changes, who, schedule_id, world.clock.now())
    resume(changes, who, schedule_id, world.clock.now())
    for _ in range(4):
        for group in range(world.epochs.shard_map.groups):
            scanner = replace(world.scanner, plane=watched)
            run_pass(scanner, GroupWork(group, world.clock.now()), holder="m1")
        world.clock.advance(MINUTE)
    world.pass_minutes(4)
    assert world.twice() == [], nth
    rows = {row.occurrence_id: row for row in world.store.all_rows()}
    wanted = {
        each
        for version in world.store.versions.values()
        for each in must_exist(version, START + 61 * MINUTE)
    }
    assert len(wanted) == 4
    assert {rows[each].state for each in wanted} == {State.ENQUEUED}, nth
    if moment.reached:
        assert world.epochs.shard_map.unsettled is None
    return moment.reached


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_mover_at_any_moment_of_a_pass_or_a_change_spoils_nothing(
    *, after: bool
) -> None:
    nth = 1
    while at_moment(nth, after=after):
        nth += 1
    assert nth > 20


@pytest.mark.parametrize("clock_ahead", [timedelta(0), EPOCH_LAG])
def test_a_time_is_planned_once_by_processes_of_neighbouring_phases(
    clock_ahead: timedelta,
) -> None:
    """One still puts rows in the old place, the other in the new one already."""
    world = ReshardingWorld()
    row = world.add(every(60))
    world.reshard(16)
    world.clock.advance(clock_ahead)
    behind, ahead = world.plane_of(AgingMaps(world)), world.plane_of(AgingMaps(world))
    assert behind.shard_map.unsettled is not None
    if not clock_ahead:
        world.clock.advance(EPOCH_LAG)
    world.work_off()
    assert world.phase is Phase.MOVING
    later = row.scheduled_for + timedelta(hours=5)
    old, new = (
        replace(
            row,
            scheduled_for=later,
            shard=plane.shards.current().shard_of(row.schedule_id, later),
        )
        for plane in (behind, ahead)
    )
    answers = [*behind.timeline.plan([old]), *ahead.timeline.plan([new])]
    assert sorted(answers) == ["APPLIED", "EXISTS"]
    assert world.twice() == []


def test_what_has_left_from_the_old_place_stands_after_a_pause_and_a_resume() -> None:
    world = ReshardingWorld()
    # Of so many, some lie elsewhere under the new count.
    hourly = [world.add(every(60), misfire=EVERYTHING) for _ in range(8)]
    world.reshard(16)
    world.pass_minutes(4)
    # The mover is down from here on.
    world.clock.set(START + 58 * MINUTE)
    world.scan_all()
    world.relay_all()
    assert world.phase is Phase.MOVING
    assert len(world.astray()) > 4
    world.clock.advance(MINUTE)
    who, changes = caller(world), world.changes
    for row in hourly:
        paused = pause(changes, who, row.schedule_id, world.clock.now())
        assert paused.already_dispatched == (row.occurrence_id,)
        resume(changes, who, row.schedule_id, world.clock.now() + 10 * SECOND)
    world.pass_minutes(5)
    noon = [r for r in world.rows() if r.scheduled_for == START + 60 * MINUTE]
    assert {(row.version, row.state) for row in noon} == {(1, State.ENQUEUED)}
    assert len(noon) == len(hourly)
