"""Changes of a schedule, with everybody else acting in the middle of them.

Each case stops one side before or after one of its port calls and lets the other side
run: passes and relays inside a change, a change inside a pass or a relay, a crash
of the change. Then the world goes on until all is settled, and a plain model says what
must be there.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise, product
from typing import Any

import pytest
from hourbell.adapters.memory import FixedClock
from hourbell.domain.definition import ScheduleState, Tracking, Version
from hourbell.domain.errors import PreconditionFailed, Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import (
    Changes,
    cancel,
    edit,
    find_current,
    pause,
    resume,
)
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.relay import relay_rows
from hourbell.usecases.scan import run_pass

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")
EVERY_OTHER = Timing("*/2 * * * *")
SKEWS = (-2 * SECOND, timedelta(0), 2 * SECOND)
CALLS = range(1, 17)


@dataclass
class Case:
    """A world with one minutely schedule in full swing, and a change to make."""

    name: str
    tracking: Tracking
    skew: timedelta

    def __post_init__(self) -> None:
        self.world = World()
        self.row = self.world.add(EVERY_MINUTE, tracking=self.tracking)
        for _ in range(3):
            self.world.scan()
            self.world.relay_stream()
            self.world.clock.advance(MINUTE)
        # A pass is due: the next row is planned and within the horizon.
        self.world.clock.advance(7 * SECOND)

    @property
    def changes(self) -> Changes:
        clock = FixedClock(self.world.clock.now() + self.skew)
        return replace(self.world.changes, clock=clock)

    def make(self, changes: Changes) -> None:
        """Make the change through these ports."""
        who, now = caller(self.world), changes.clock.now()
        schedule_id = self.row.schedule_id
        if self.name == "pause":
            pause(changes, who, schedule_id, now)
        elif self.name == "cancel":
            cancel(changes, who, schedule_id, now)
        elif self.name == "pause and resume":
            pause(changes, who, schedule_id, now)
            resume(changes, who, schedule_id, now)
        else:
            timing = EVERY_OTHER if self.name == "retime" else EVERY_MINUTE
            schedule = find_current(changes, "acme", schedule_id)
            definition = replace(
                schedule.definition, timing=timing, payload_json='"new"'
            )
            edit(changes, who, schedule, definition, now, description="", tags={})

    def others(self) -> None:
        """Let passes, relays and a worker act."""
        self.world.scan(holder="other")
        self.world.relay_stream()
        self.claim()

    def claim(self) -> None:
        """Claim as a worker would: what is enqueued and not canceled."""
        if self.tracking is Tracking.UNTRACKED:
            return
        now = self.world.clock.now() + 3 * MINUTE
        for row in self.world.rows(State.ENQUEUED):
            if row.scheduled_for <= now:
                self.world.store.put_row(replace(row, state=State.RUNNING))

    def settle(self) -> None:
        """Let the world go on until nothing is left over from the change."""
        self.world.sweep_queue.take()
        for _ in range(8):
            self.world.clock.advance(MINUTE)
            self.world.scan(holder="later")
            self.world.relay_stream()
            self.world.relay_sweep()

    def log(self) -> list[Version]:
        return list(reversed(self.world.schedules.version_log(self.row.schedule_id)))


def check(case: Case, excused: Collection[datetime] = ()) -> None:
    """Compare what is there with what must be.

    Args:
        case: when all is settled.
        excused: due times that may be without a live row.
    """
    log = case.log()
    assert not find_current(case.world.changes, "acme", case.row.schedule_id).handover
    for ended, heir in pairwise(log):
        assert ended.effective_to == heir.effective_from is not None
    rows = case.world.rows()
    live = [row for row in rows if row.state is not State.CANCELED]
    by_time: dict[datetime, list[Occurrence]] = {}
    for row in live:
        by_time.setdefault(row.scheduled_for, []).append(row)
    assert all(len(same) == 1 for same in by_time.values()), "one id for one time"
    until = case.world.clock.now()
    found = {t for t in by_time if t <= until}
    assert found.difference(excused) == set(due(log, until)).difference(excused)
    for row in live:
        if row.scheduled_for <= until:
            assert row.state in {State.ENQUEUED, State.RUNNING}, row
    sent: dict[str, set[str]] = {}
    for message in case.world.queues.accepted:
        occurrence = message.entry.body.split('"id":"')[1].split('"')[0]
        sent.setdefault(occurrence.rsplit(".", 1)[1], set()).add(occurrence)
    if case.tracking is Tracking.UNTRACKED:
        assert all(len(ids) == 1 for ids in sent.values()), "one id sent for one time"


def due(log: list[Version], until: datetime) -> Iterator[datetime]:
    """Yield the times that the log makes due, minute by minute."""
    minute = START + MINUTE
    while minute <= until:
        owner = next(v for v in log if v.owns(minute))
        step = 2 if owner.definition.timing == EVERY_OTHER else 1
        if owner.state is ScheduleState.ACTIVE and minute.minute % step == 0:
            yield minute
        minute += MINUTE


CHANGES = ("payload", "retime", "pause", "cancel", "pause and resume")
# Equal clocks in the fast set; skewed ones in the whole.
CASES = [
    pytest.param(*case, marks=[] if case[2] == timedelta(0) else [pytest.mark.slow])
    for case in product(CHANGES, Tracking, SKEWS)
]


def watched(changes: Changes, moment: Moment) -> Changes:
    plane = changes.plane
    plane = replace(
        plane,
        schedules=moment.wrap(plane.schedules),
        timeline=moment.wrap(plane.timeline),
    )
    return replace(changes, plane=plane)


def each_moment(
    action: Callable[[Case], None],
    run: Callable[[Case, Moment], None],
    name: str,
    tracking: Tracking,
    skew: timedelta,
) -> int:
    """Run a case once per moment of its life; return how many there were."""
    reached = 0
    for nth, after in product(CALLS, (False, True)):
        case = Case(name, tracking, skew)
        moment = Moment(nth, after, partial(action, case))
        run(case, moment)
        if not moment.reached:
            continue
        reached += 1
        case.settle()
        check(case)
    return reached


def tolerant(make: Callable[[], Any]) -> None:
    """Try again as a client does when the answer asks for it."""
    for _ in range(3):
        try:
            make()
        except (Transient, PreconditionFailed):
            continue
        return
    raise AssertionError("the change never went through")


@pytest.mark.parametrize(("name", "tracking", "skew"), CASES)
def test_passes_relays_and_claims_inside_a_change(
    name: str, tracking: Tracking, skew: timedelta
) -> None:
    def run(case: Case, moment: Moment) -> None:
        tolerant(lambda: case.make(watched(case.changes, moment)))

    assert each_moment(Case.others, run, name, tracking, skew) >= 10


@pytest.mark.parametrize(("name", "tracking", "skew"), CASES)
def test_a_change_inside_a_pass(name: str, tracking: Tracking, skew: timedelta) -> None:
    def act(case: Case) -> None:
        case.make(case.changes)

    def run(case: Case, moment: Moment) -> None:
        world = case.world
        plane = replace(
            world.plane,
            schedules=moment.wrap(world.schedules),
            timeline=moment.wrap(world.timeline),
        )
        group = world.shard_map.group_of(case.row.shard)
        work = GroupWork(group, world.clock.now())
        run_pass(replace(world.scanner, plane=plane), work, holder="slow")
        world.relay_stream()

    assert each_moment(act, run, name, tracking, skew) >= 10


@pytest.mark.parametrize(("name", "tracking", "skew"), CASES)
def test_a_change_inside_a_relay(
    name: str, tracking: Tracking, skew: timedelta
) -> None:
    def act(case: Case) -> None:
        case.make(case.changes)

    def run(case: Case, moment: Moment) -> None:
        world = case.world
        world.scan()
        outbox = replace(
            world.outbox,
            schedules=moment.wrap(world.schedules),
            timeline=moment.wrap(world.timeline),
            queues=moment.wrap(world.queues),
        )
        relay_rows(outbox, world.store.take_stream())
        case.claim()

    assert each_moment(act, run, name, tracking, skew) >= 6


@pytest.mark.parametrize(("name", "tracking", "skew"), CASES)
def test_a_change_whose_process_dies_is_finished_by_a_pass(
    name: str, tracking: Tracking, skew: timedelta
) -> None:
    def die(_: Case) -> None:
        raise Crash

    def run(case: Case, moment: Moment) -> None:
        try:
            case.make(watched(case.changes, moment))
        except Crash:
            case.others()

    assert each_moment(die, run, name, tracking, skew) >= 10


@pytest.mark.parametrize(("name", "tracking"), list(product(CHANGES, Tracking)))
def test_a_pass_that_read_the_old_version_before_the_change_does_no_harm(
    name: str, tracking: Tracking
) -> None:
    case = Case(name, tracking, timedelta(0))
    old = dict(case.world.store.versions)

    class Stale:
        """An eventually consistent read that is one change behind."""

        def __getattr__(self, attribute: str) -> Any:
            return getattr(case.world.schedules, attribute)

        def versions(self, refs: Any, *, consistent: bool) -> Any:
            if consistent:
                return case.world.schedules.versions(refs, consistent=True)
            return {ref: old[ref] for ref in refs if ref in old}

    case.make(case.changes)
    schedules: Any = Stale()
    plane = replace(case.world.plane, schedules=schedules)
    advance(plane, case.world.rows(), case.world.clock.now())
    case.world.relay_stream()
    case.settle()
    check(case)
