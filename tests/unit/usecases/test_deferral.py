"""Flexible windows beyond the queue's longest delay, whatever dies in between."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import GroupWork
from hourbell.usecases.relay import Outbox, relay_keys, relay_rows
from hourbell.usecases.scan import Scanner, run_pass
from hourbell.usecases.tally import Tally
from hourbell.usecases.workplace import Workplace

from tests.unit.usecases.deferring import (
    DAY,
    LONGEST,
    available,
    deferred,
    expected_time,
    releases,
    stored,
    unspoken_for,
)
from tests.unit.usecases.faults import Crash, UnclearTimeline
from tests.unit.usecases.hooks import Moment
from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")


@pytest.mark.parametrize("window", [0, 1, 300, 660, 841, 3_600, DAY])
def test_each_row_waits_in_the_queue_or_as_deferred_by_its_own_time(
    window: int,
) -> None:
    world = World()
    rows = [world.add(EVERY_MINUTE, window=window) for _ in range(40)]
    tally = advance(world.plane, rows, START)
    left = [row for row in world.rows() if row.state is not State.PLANNED]
    far = [row for row in left if expected_time(row, window) - START > LONGEST]
    assert [row for row in left if row.state is State.DEFERRED] == far
    assert tally == Tally(planned=120, scheduled=120 - len(far), deferred=len(far))
    assert {row.available_at == expected_time(row, window) for row in left} == {True}
    assert {row.scheduled_at for row in far} <= {None}
    assert {row.queue for row in left} == {
        "standard-flexible" if window else "standard-strict"
    }
    due = [(each.due, each.scheduled_for) for each in releases(world)]
    assert sorted(due) == sorted((available(row), row.scheduled_for) for row in far)


@pytest.mark.parametrize(("beyond", "state"), [(0, "SCHEDULED"), (1, "DEFERRED")])
def test_the_longest_delay_itself_is_still_the_queues(beyond: int, state: str) -> None:
    world = World()
    first = world.add(Timing("at(2026-03-09T13:00:00)"), window=DAY)
    now = expected_time(first, DAY) - LONGEST - timedelta(microseconds=beyond)
    advance(world.plane, [first], now)
    assert stored(world, first).state == state


def test_a_dispatch_row_lies_in_the_bucket_and_shard_of_its_own_time() -> None:
    world = World()
    row = deferred(world)
    (dispatch,) = releases(world)
    due = expected_time(row, DAY)
    assert dispatch.key.bucket == f"{due:%Y%m%dT%H%MZ}"
    assert dispatch.shard == world.shard_map.shard_of(row.schedule_id, due)
    assert dispatch.written_at == START


@pytest.mark.parametrize("applied", [False, True])
def test_a_row_is_not_deferred_before_its_dispatch_row_is_known_to_be_there(
    applied: bool,
) -> None:
    world = World()
    rows = [world.add(Timing("0 12 * * *"), window=DAY) for _ in range(6)]
    now = rows[0].scheduled_for
    far = [r for r in rows if expected_time(r, DAY) - now > LONGEST]
    unclear = UnclearTimeline(
        world.timeline, lambda name, at: (name, at) == ("post", 1), applied=applied
    )
    tally = advance(replace(world.plane, timeline=unclear), rows, now)
    assert (tally.unknown, tally.deferred) == (1, len(far) - 1)
    assert [r for r in world.rows(State.PLANNED) if r.scheduled_for == now] == [far[1]]
    again = advance(world.plane, world.rows(), now)
    assert (again.unknown, again.deferred) == (0, 1)
    assert unspoken_for(world) == []
    assert len(releases(world)) == len(far)


@pytest.mark.parametrize(("late", "misfire"), [(60, False), (61, True)])
@pytest.mark.parametrize("window", [0, 3_600, DAY])
def test_lateness_counts_from_the_end_of_the_window(
    window: int, late: int, misfire: bool
) -> None:
    world = World()
    first = world.add(EVERY_MINUTE, window=window)
    now = first.scheduled_for + timedelta(seconds=window + late)
    advance(world.plane, [first], now, is_over=lambda: True)
    assert stored(world, first).misfire is misfire


def test_within_a_window_of_a_day_nothing_is_late() -> None:
    world = World()
    first = world.add(Timing("0 13 * * *"), window=DAY)
    now = first.scheduled_for + 61 * SECOND
    tally = advance(world.plane, [first], now)
    assert (tally.deferred + tally.scheduled, tally.misfires) == (1, 0)


def oldest(world: World, row: Occurrence) -> datetime:
    """Return the watermark of a row's shard after the passes of now."""
    world.scan()
    group = world.shard_map.group_of(row.shard)
    lease = world.store.groups[group]
    return lease.watermarks.get(row.shard, lease.floor)


def test_a_deferred_row_holds_no_watermark_and_its_dispatch_row_does() -> None:
    world = World(shard_map=World().shard_map.constant(1, 1))
    row = deferred(world)
    bucket = available(row).replace(second=0)
    for _ in range(10):
        world.clock.advance(MINUTE)
        assert oldest(world, row) == min(world.clock.now() - 2 * MINUTE, bucket)
    # Released, but neither stream nor sweep gets through.
    world.clock.set(bucket + 30 * MINUTE)
    assert oldest(world, row) == bucket
    world.clock.advance(30 * MINUTE)
    assert oldest(world, row) == bucket
    world.sweep_queue.take()
    world.relay_stream()
    assert stored(world, row).state is State.ENQUEUED
    # One pass settles it, and the next one finds it settled.
    assert oldest(world, row) == bucket
    assert oldest(world, row) == world.clock.now() - 2 * MINUTE


class Quiet:
    """A port whose page reads a moment does not count.

    They change nothing, so what is before one is after the call before it.
    """

    def __init__(self, port: Any, moment: Moment) -> None:
        self._port = port
        self._watched = moment.wrap(port)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port if name == "page" else self._watched, name)


WINDOW = 3_600


@dataclass
class Life:
    """Two schedules of two times each, one with a window; and a process that dies."""

    moment: Moment
    stream: bool
    world: World = field(default_factory=World)

    def __post_init__(self) -> None:
        twice = replace(EVERY_MINUTE, max_occurrences=2)
        self.rows = [self.world.add(twice, window=w) for w in (WINDOW, 0)]

    def wrapped(self, port: Any) -> Any:
        return Quiet(port, self.moment)

    def scan(self) -> None:
        world = self.world
        plane = replace(
            world.plane,
            schedules=self.wrapped(world.schedules),
            timeline=self.wrapped(world.timeline),
            directory=self.wrapped(world.directory),
        )
        scanner = Scanner(
            plane,
            self.wrapped(world.groups),
            self.wrapped(world.parking),
            self.wrapped(world.sweep_queue),
            world.work_queue,
            world.clock,
            Workplace.of(plane, self.wrapped(world.ledger), world.ids, world.clock),
        )
        for group in range(world.shard_map.groups):
            work = GroupWork(group, world.clock.now())
            self.survive(partial(run_pass, scanner, work, holder="doomed"))

    def relay(self) -> None:
        world = self.world
        outbox = Outbox(
            self.wrapped(world.schedules),
            self.wrapped(world.timeline),
            self.wrapped(world.queues),
            world.clock,
            self.wrapped(world.ledger),
            world.directory,
            world.shard_map,
        )
        records = world.store.take_stream()
        if self.stream:
            self.survive(lambda: relay_rows(outbox, records))
        for keys in world.sweep_queue.take():
            self.survive(partial(relay_keys, outbox, keys))

    def survive(self, run: Callable[[], object]) -> None:
        try:
            run()
        except Crash:
            assert self.moment.reached
        assert unspoken_for(self.world) == []

    def live(self) -> None:
        """Let passes and relays come when there is something for them to do."""
        for instant in self.turns():
            self.world.clock.set(instant)
            self.scan()
            self.relay()

    def turns(self) -> Iterator[datetime]:
        """Yield the instants of passes, so that the way is short."""
        yield START
        yield START + MINUTE
        for row in self.flexible():
            near = max(available(row), self.world.clock.now() + 3 * MINUTE)
            yield near - 2 * MINUTE
            yield near - MINUTE
            yield near

    def flexible(self) -> list[Occurrence]:
        rows = [
            r for r in self.world.rows() if r.schedule_id == self.rows[0].schedule_id
        ]
        return sorted(rows, key=lambda row: expected_time(row, WINDOW))

    def settle(self) -> None:
        """Go on with processes that do not die until all is quiet."""
        for _ in range(20):
            self.world.clock.advance(MINUTE)
            self.scan()
            self.relay()


def check(life: Life) -> None:
    world = life.world
    flexible, strict = (row.schedule_id for row in life.rows)
    expected = {
        f"{schedule}.v1.20260309T120{minute}00Z"
        for schedule, minute in product((flexible, strict), (1, 2))
    }
    rows = {row.occurrence_id: row for row in world.rows()}
    assert set(rows) == expected
    assert {row.state for row in rows.values()} == {State.ENQUEUED}
    for row in rows.values():
        window = WINDOW if row.schedule_id == flexible else 0
        assert row.available_at == expected_time(row, window)
    told = set()
    for message in world.queues.accepted:
        (occurrence,) = (o for o in expected if f'"id":"{o}"' in message.entry.body)
        told.add(occurrence)
        assert message.visible_at >= available(rows[occurrence])
        text = f"{available(rows[occurrence]):%Y-%m-%dT%H:%M:%SZ}"
        assert f'"available_at":"{text}"' in message.entry.body
    assert told == expected
    assert not any(each.is_open for each in releases(world))
    marks = [m for g in world.store.groups.values() for m in g.watermarks.values()]
    assert set(marks) == {(world.clock.now() - 2 * MINUTE).replace(second=0)}


def die() -> None:
    raise Crash


def test_the_life_that_is_enumerated_has_deferred_and_near_occurrences() -> None:
    life = Life(Moment(0, after=False, action=die), stream=True)
    life.live()
    assert len(releases(life.world)) == 2
    assert life.moment.calls > 60
    # None is sent twice when nothing goes wrong.
    assert len(life.world.queues.accepted) == 4
    life.settle()
    check(life)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("stream", [True, False])
def test_whatever_call_a_process_dies_at_each_occurrence_is_sent_at_its_time(
    stream: bool,
) -> None:
    moments = 0
    while True:
        for after in (False, True):
            life = Life(Moment(moments + 1, after, die), stream)
            life.live()
            if not life.moment.reached:
                assert moments > 60
                return
            life.settle()
            check(life)
        moments += 1


def test_a_relay_that_died_another_holder_and_a_replay_keep_the_time() -> None:
    world = World()
    row = deferred(world)
    due = expected_time(row, DAY)
    world.clock.set(due - 2 * MINUTE)
    world.scan(holder="first")
    image = world.store.take_stream()

    class Dying:
        """Queues that accept, before the relay dies."""

        def send(self, queue: Any, entries: Any) -> Any:
            world.queues.send(queue, entries)
            raise Crash

    with pytest.raises(Crash):
        relay_rows(replace(world.outbox, queues=Dying()), image)
    # The lease's holder died too: another one takes over, and sweeps.
    world.clock.advance(61 * SECOND)
    world.scan(holder="second")
    world.relay_sweep()
    # The stream replays its batch.
    relay_rows(world.outbox, image)
    text = f'"available_at":"{due:%Y-%m-%dT%H:%M:%SZ}"'
    assert len(world.queues.accepted) == 2
    assert all(text in sent.entry.body for sent in world.queues.accepted)
    assert {sent.visible_at for sent in world.queues.accepted} == {due}
    assert stored(world, row).available_at == due
