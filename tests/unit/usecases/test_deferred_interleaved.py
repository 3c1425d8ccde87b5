"""Changes in the middle of passes, relays and releases of a wide flexible window.

As `test_handover_interleaved`, but most rows are DEFERRED: with a window of a day
nearly all, with a shorter one every other, so that rows stand behind others. Each case
stops one side before or after one of its calls and lets the other side run. Then the
windows end, and a plain model says what may and what must have been sent.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise, product
from typing import Any

import pytest
from hourbell.domain.definition import ScheduleState, Tracking, Version
from hourbell.domain.occurrence import State
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.change_schedule import (
    Changes,
    cancel,
    edit,
    find_current,
    pause,
    resume,
)
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.relay import relay_rows
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.deferring import DAY, releases, unspoken_for
from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.test_handover_interleaved import tolerant, watched
from tests.unit.usecases.world import MINUTE, SECOND, START, World

LAST = START + 8 * MINUTE
EVERY_MINUTE = Timing("* * * * *", end_at=LAST + MINUTE)
EVERY_OTHER = replace(EVERY_MINUTE, expression="*/2 * * * *")
SHORT = 1_800
ID = re.compile(r'"id":"(sch\w{26}\.v(\d+)\.20260309T12(\d\d)00Z)"')
CALLS = range(1, 25)


@dataclass
class Case:
    """A schedule in full swing at 12:03:07, and a change to make.

    Attributes:
        never: ids that a stop found waiting, so that they must never be sent.
    """

    name: str
    tracking: Tracking
    window: int
    world: World = field(
        default_factory=lambda: World(shard_map=ShardMap.constant(1, 1))
    )
    never: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.row = self.world.add(
            EVERY_MINUTE, window=self.window, tracking=self.tracking
        )
        for _ in range(3):
            self.world.scan()
            self.world.relay_stream()
            self.world.clock.advance(MINUTE)
        self.world.clock.advance(7 * SECOND)

    def make(self, changes: Changes) -> None:
        """Make the change through these ports."""
        for step in self.name.split(" and "):
            self._step(changes, step)

    def _step(self, changes: Changes, step: str) -> None:
        who, now = caller(self.world), changes.clock.now()
        schedule_id = self.row.schedule_id
        stop = {"pause": pause, "cancel": cancel}.get(step)
        if stop is not None:
            done = stop(changes, who, schedule_id, now)
            if done.finished:
                waiting = self.world.rows(State.DEFERRED)
                self.never |= {row.occurrence_id for row in waiting}
        elif step == "resume":
            resume(changes, who, schedule_id, now)
        else:
            self._edit(changes, step)

    def _edit(self, changes: Changes, step: str) -> None:
        schedule = find_current(changes, "acme", self.row.schedule_id)
        timing = EVERY_OTHER if step == "retime" else EVERY_MINUTE
        payload = '"new"' if step in {"payload", "retime"} else '{"n":1}'
        edit(
            changes,
            caller(self.world),
            schedule,
            replace(schedule.definition, timing=timing, payload_json=payload),
            changes.clock.now(),
            description=step,
            tags={},
        )

    def others(self) -> None:
        """Let passes, relays and a worker act."""
        self.world.scan(holder="other")
        self.world.relay_stream()
        self.claim()

    def claim(self) -> None:
        """Claim as a worker would: what is enqueued and not canceled."""
        if self.tracking is Tracking.TRACKED:
            for row in self.world.rows(State.ENQUEUED):
                self.world.store.put_row(replace(row, state=State.RUNNING))

    def end(self) -> None:
        """Let the rest of the times come, then the end of all windows."""
        window = timedelta(seconds=self.window)
        for ahead in (2 * MINUTE, 3 * MINUTE, window, MINUTE, MINUTE, MINUTE):
            assert unspoken_for(self.world) == []
            self.world.clock.advance(ahead)
            self.world.scan(holder="later")
            self.world.relay_stream()
            self.world.relay_sweep()
            self.claim()

    def log(self) -> list[Version]:
        return list(reversed(self.world.schedules.version_log(self.row.schedule_id)))


def check(case: Case) -> None:
    """Compare what was sent with what may and must have been."""
    world, log = case.world, case.log()
    assert not find_current(world.changes, "acme", case.row.schedule_id).handover
    for ended, heir in pairwise(log):
        assert ended.effective_to == heir.effective_from is not None
    sent: dict[datetime, set[str]] = {}
    rows = {row.occurrence_id: row for row in world.rows()}
    for message in world.queues.accepted:
        found = ID.search(message.entry.body)
        assert found is not None
        sent.setdefault(START + int(found[3]) * MINUTE, set()).add(found[1])
        available_at = rows[found[1]].available_at
        assert available_at is not None
        assert message.visible_at >= available_at
    every = {each for ids in sent.values() for each in ids}
    assert not every & case.never
    over = {State.ENQUEUED, State.RUNNING, State.CANCELED}
    assert {row.state for row in rows.values()} <= over
    assert not any(each.is_open for each in releases(world))
    live = {row.scheduled_for for row in rows.values() if row.state != "CANCELED"}
    due = set(owned(log))
    if case.tracking is Tracking.UNTRACKED:
        assert all(len(ids) == 1 for ids in sent.values()), "one id sent for one time"
        assert set(sent) == live
    assert live <= due
    assert due - live <= set(stopped(log)), "only a stop cuts off"


def owned(log: list[Version]) -> Iterator[datetime]:
    """Yield the times that the log makes due."""
    for minute in (START + n * MINUTE for n in range(1, 9)):
        owner = next(version for version in log if version.owns(minute))
        step = 2 if owner.definition.timing.expression.startswith("*/2") else 1
        if owner.state is ScheduleState.ACTIVE and minute.minute % step == 0:
            yield minute


def stopped(log: list[Version]) -> Iterator[datetime]:
    """Yield the times of versions that a later change stopped."""
    for minute in owned(log):
        place = next(at for at, version in enumerate(log) if version.owns(minute))
        if any(version.is_stopped for version in log[place:]):
            yield minute


CHANGES = (
    "describe",
    "payload",
    "retime",
    "pause",
    "cancel",
    "pause and resume",
    "retime and pause",
    "payload and cancel",
)
FAST = {
    ("pause and resume", Tracking.UNTRACKED, SHORT),
    ("retime and pause", Tracking.UNTRACKED, SHORT),
    ("retime", Tracking.UNTRACKED, SHORT),
}
EVERY = list(product(CHANGES, Tracking, (SHORT, DAY)))


def marked(cases: list[Any]) -> list[Any]:
    """Leave all but a few to the whole set."""
    return [pytest.param(case, marks=[] if case in FAST else LONG) for case in cases]


LONG = [pytest.mark.slow, pytest.mark.long]
CASES = marked(EVERY)
# When dispatch rows are due, no time is left that another timing could have.
LATE_CASES = marked([case for case in EVERY if "retime" not in case[0]])
Parameters = tuple[str, Tracking, int]


def each_moment(
    action: Callable[[Case], None],
    run: Callable[[Case, Moment], None],
    parameters: Parameters,
) -> int:
    """Run a case once per moment of its life; return how many there were."""
    reached = 0
    for nth, after in product(CALLS, (False, True)):
        case = Case(*parameters)
        moment = Moment(nth, after, partial(action, case))
        run(case, moment)
        if not moment.reached:
            break
        reached += 1
        case.end()
        check(case)
    return reached


def watched_pass(case: Case, moment: Moment) -> None:
    world = case.world
    plane = replace(
        world.plane,
        schedules=moment.wrap(world.schedules),
        timeline=moment.wrap(world.timeline),
    )
    work = GroupWork(0, world.clock.now())
    run_pass(replace(world.scanner, plane=plane), work, holder="slow")


def act(case: Case) -> None:
    case.make(case.world.changes)


@pytest.mark.parametrize("parameters", CASES)
def test_passes_relays_and_claims_inside_a_change(parameters: Parameters) -> None:
    def run(case: Case, moment: Moment) -> None:
        tolerant(lambda: case.make(watched(case.world.changes, moment)))

    assert each_moment(Case.others, run, parameters) >= 2


@pytest.mark.parametrize("parameters", CASES)
def test_a_change_inside_a_pass(parameters: Parameters) -> None:
    def run(case: Case, moment: Moment) -> None:
        watched_pass(case, moment)
        case.world.relay_stream()

    assert each_moment(act, run, parameters) >= 10


@pytest.mark.parametrize("parameters", LATE_CASES)
def test_a_change_inside_a_pass_that_releases(parameters: Parameters) -> None:
    def run(case: Case, moment: Moment) -> None:
        """Go on to where the first dispatch rows are due."""
        world = case.world
        world.clock.set(min(each.due for each in releases(world)) - 2 * MINUTE)
        watched_pass(case, moment)
        world.relay_stream()

    assert each_moment(act, run, parameters) >= 10


@pytest.mark.parametrize("parameters", LATE_CASES)
def test_a_change_inside_a_relay(parameters: Parameters) -> None:
    def run(case: Case, moment: Moment) -> None:
        world = case.world
        world.clock.set(min(each.due for each in releases(world)) - 2 * MINUTE)
        world.scan()
        outbox: Any = replace(
            world.outbox,
            schedules=moment.wrap(world.schedules),
            timeline=moment.wrap(world.timeline),
            queues=moment.wrap(world.queues),
        )
        relay_rows(outbox, world.store.take_stream())
        case.claim()

    assert each_moment(act, run, parameters) >= 4


@pytest.mark.parametrize("parameters", CASES)
def test_a_change_whose_process_dies_is_finished_by_a_pass(
    parameters: Parameters,
) -> None:
    def die(_: Case) -> None:
        raise Crash

    def run(case: Case, moment: Moment) -> None:
        try:
            case.make(watched(case.world.changes, moment))
        except Crash:
            case.others()

    assert each_moment(die, run, parameters) >= 2
