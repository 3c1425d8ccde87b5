"""Reading a schedule whose latest times a gap row covers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.misfire import Misfire, MisfirePolicy, MissReason
from hourbell.domain.occurrence import CancelReason, Occurrence, State
from hourbell.domain.retention import RETENTION
from hourbell.domain.schedule import Timing
from hourbell.usecases import gaps
from hourbell.usecases.change_schedule import pause
from hourbell.usecases.gaps import NEAR, SPREAD, Search, covering, told_by
from hourbell.usecases.get_schedule import NONE, Due, Library, get_schedule
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import advance

from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")
SKIP = Misfire(MisfirePolicy.SKIP)
FIRE_ONCE = Misfire()
THREE = Misfire(MisfirePolicy.CATCH_UP, 3)
HOUR = 60 * MINUTE
DAY = 24 * HOUR


def add(world: World, misfire: Misfire, timing: Timing = EVERY_MINUTE) -> Occurrence:
    """Create a schedule with a misfire policy at START; return its first row."""
    first = world.add(timing)
    schedule = world.store.schedules[first.schedule_id]
    definition = replace(schedule.definition, misfire=misfire)
    version = world.store.versions[schedule.ref]
    world.store.versions[schedule.ref] = replace(version, definition=definition)
    world.store.schedules[first.schedule_id] = replace(schedule, definition=definition)
    return first


def latest(world: World, row: Occurrence) -> tuple[Due, ...]:
    library = Library(world.schedules, world.timeline, world.shard_map)
    now = world.clock.now()
    return get_schedule(library, "acme", row.schedule_id, now).latest


def told(world: World, row: Occurrence) -> list[tuple[str, str | None]]:
    """Return states and reasons, the latest first; of a row its own."""
    return [
        (due.state, due.reason if due.row is None else due.row.reason)
        for due in latest(world, row)
    ]


def outage(world: World, length: timedelta) -> None:
    """Let time pass without a pass, and work off what it left, two seconds later."""
    world.clock.advance(length + 2 * SECOND)
    world.scan()
    world.relay_stream()
    world.clock.advance(timedelta(minutes=1) - 2 * SECOND)


def run(world: World, minutes: int) -> None:
    for _ in range(minutes):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)


def put(world: World, row: Occurrence, **fields: Any) -> Occurrence:
    """Store a row as something else left it."""
    changed = replace(row, **fields)
    world.store.rows.setdefault(row.key.partition, {})[row.key.sort] = changed
    return changed


def gap_row(world: World) -> Occurrence:
    (found,) = [row for row in world.rows() if row.decision is not None]
    return found


@pytest.mark.parametrize("length", [10 * MINUTE, HOUR, 8 * HOUR])
@pytest.mark.parametrize(
    ("misfire", "reason", "runs"),
    [
        (SKIP, MissReason.SKIPPED, 0),
        (FIRE_ONCE, MissReason.LATER_ONE_RUNS, 1),
        (THREE, MissReason.BEYOND_LIMIT, 3),
    ],
)
def test_the_gap_row_is_found_however_long_the_gap(
    misfire: Misfire, reason: MissReason, runs: int, length: timedelta
) -> None:
    world = World()
    first = add(world, misfire)
    world.clock.advance(length + 2 * SECOND)
    world.scan()
    world.relay_stream()
    # The latest one is two seconds late, which is on time.
    on_time, missed = (State.ENQUEUED, None), (State.MISSED, reason)
    expected = [on_time, *[(State.ENQUEUED, None)] * runs, *[missed] * (4 - runs)]
    assert told(world, first) == expected
    gap = gap_row(world)
    assert [due.gap for due in latest(world, first) if due.row is None] == [gap] * (
        # Under SKIP all four have none: the gap begins at the second overdue time.
        4 - runs
    )


def test_a_time_that_is_too_late_says_so() -> None:
    world = World()
    first = add(world, Misfire(MisfirePolicy.CATCH_UP, 9, max_lateness_seconds=150))
    world.clock.advance(HOUR + 2 * SECOND)
    world.scan()
    # 12:59 and 12:58 are 62 and 122 s late, 12:57 is 182 s late.
    states = [each[0] for each in told(world, first)]
    assert states == ["SCHEDULED"] * 3 + ["MISSED"] * 2
    assert told(world, first)[3] == (State.MISSED, MissReason.TOO_LATE)


def test_until_it_is_worked_off_the_times_are_planned() -> None:
    world = World()
    first = add(world, FIRE_ONCE)
    world.clock.advance(HOUR)
    advance(world.plane, world.rows(), world.clock.now(), is_over=lambda: True)
    assert gap_row(world).state is State.PLANNED
    # 13:00 and 12:59 are on time and not planned yet: after the gap.
    assert told(world, first) == [(NONE, None)] * 2 + [(State.PLANNED, None)] * 3
    world.scan()
    states = [state for state, _ in told(world, first)]
    assert states == ["SCHEDULED"] * 3 + ["MISSED"] * 2


def test_a_gap_that_a_pause_reached_is_canceled() -> None:
    world = World()
    first = add(world, FIRE_ONCE)
    world.clock.advance(HOUR)
    advance(world.plane, world.rows(), world.clock.now(), is_over=lambda: True)
    tenant = world.directory.find_tenant("acme")
    assert tenant is not None
    caller = Caller(tenant, "1:user/ann", "arn:ann", "api")
    pause(world.changes, caller, first.schedule_id, world.clock.now())
    world.scan()
    # The decision's own, and what it left for later.
    gaps = [row.state for row in world.rows() if row.decision is not None]
    assert gaps == [State.CANCELED] * 2
    canceled = (State.CANCELED, CancelReason.PAUSED)
    assert told(world, first)[2:] == [canceled] * 3


def test_a_gap_whose_first_time_was_replanned_was_worked_off() -> None:
    world = World()
    first = add(world, FIRE_ONCE)
    outage(world, HOUR)
    put(world, gap_row(world), state=State.CANCELED, reason=CancelReason.REPLANNED)
    missed = (State.MISSED, MissReason.LATER_ONE_RUNS)
    assert told(world, first)[-1] == missed


def test_a_backfilled_gap_row_still_tells_of_the_others() -> None:
    world = World()
    first = add(world, SKIP)
    outage(world, HOUR)
    canceled = {"state": State.CANCELED, "reason": CancelReason.PAUSED}
    put(world, gap_row(world), backfilled_at=world.clock.now(), **canceled)
    assert told(world, first)[-1] == (State.MISSED, MissReason.SKIPPED)


def test_what_a_backfill_made_within_a_gap_does_not_hide_it() -> None:
    world = World()
    first = add(world, SKIP)
    outage(world, HOUR)
    gap = gap_row(world)
    instant = START + 56 * MINUTE
    shard = world.shard_map.shard_of(first.schedule_id, instant)
    backfilled = replace(gap, scheduled_for=instant, shard=shard, decision=None)
    state = {"state": State.DEFERRED, "reason": None, "backfilled_at": START + DAY}
    put(world, backfilled, **state)
    # By now it is 13:01: 13:01 to 12:57.
    assert [state for state, _ in told(world, first)][-2:] == ["MISSED", "MISSED"]
    world.clock.set(START + HOUR)
    states = [state for state, _ in told(world, first)]
    assert states == ["ENQUEUED", "MISSED", "MISSED", "MISSED", "DEFERRED"]


def test_a_run_whose_row_is_gone_is_not_called_missed() -> None:
    world = World()
    first = add(world, THREE)
    outage(world, HOUR)
    ran = next(row for row in world.rows() if row.scheduled_for == START + 57 * MINUTE)
    del world.store.rows[ran.key.partition][ran.key.sort]
    shown = {due.scheduled_for: due for due in latest(world, first)}
    assert shown[ran.scheduled_for].state == NONE
    assert shown[ran.scheduled_for].gap is None


def test_a_row_that_is_no_gap_row_tells_nothing() -> None:
    world = World()
    first = add(world, SKIP)
    (version,) = world.store.versions.values()
    assert told_by(first, version, first.scheduled_for) is None


def test_in_an_outage_what_was_not_reached_is_not_missed() -> None:
    world = World()
    first = add(world, SKIP)
    run(world, 2)
    world.clock.advance(DAY)
    assert told(world, first) == [(NONE, None)] * 5


def test_the_gap_of_another_outage_tells_nothing_of_this_one() -> None:
    world = World()
    first = add(world, SKIP)
    outage(world, HOUR)
    run(world, 3)
    world.clock.advance(HOUR)
    assert told(world, first) == [(NONE, None)] * 5


class Reads:
    """The rows of a world's only schedule, and how often they are asked for."""

    def __init__(self, world: World) -> None:
        self.rows = {row.scheduled_for: row for row in world.rows()}
        self.asked: list[int] = []

    def __call__(self, instants: Sequence[datetime]) -> Mapping[datetime, Occurrence]:
        self.asked.append(len(instants))
        return {each: self.rows[each] for each in instants if each in self.rows}


def search_of(world: World, row: Occurrence, reads: Reads) -> Search:
    schedule = world.store.schedules[row.schedule_id]
    version = world.store.versions[schedule.ref]
    return Search(version, reads, world.clock.now() - RETENTION)


def outages(*minutes: int) -> Callable[[World], None]:
    """Return a history: minutes of outage and of work, in turn."""

    def happen(world: World) -> None:
        for place, each in enumerate(minutes):
            if place % 2:
                run(world, each)
            else:
                outage(world, each * MINUTE)

    return happen


HISTORIES = {
    "one hour": outages(60),
    "an hour, long ago": outages(60, 70),
    "twice, close by": outages(90, 4, 60),
    "thrice, close by": outages(400, 4, 300, 4, 200),
    "a long one, then a short one": outages(3_000, 10, 40),
    "a short one, then a long one": outages(40, 10, 3_000),
    "with work between": outages(500, 200, 500),
}


@pytest.mark.parametrize("history", HISTORIES.values(), ids=HISTORIES)
def test_the_search_finds_what_walking_back_finds(
    history: Callable[[World], None],
) -> None:
    world = World()
    first = add(world, SKIP)
    history(world)
    reads = Reads(world)
    found_by_walking: dict[datetime, Occurrence] = {}
    gap: Occurrence | None = None
    rowless = []
    for number in range(1, (world.clock.now() - START) // MINUTE):
        instant = START + number * MINUTE
        row = reads.rows.get(instant)
        gap = row if row is not None and row.decision is not None else gap
        if row is None:
            assert gap is not None
            rowless.append(instant)
            found_by_walking[instant] = gap
    for instant in rowless[:: max(1, len(rowless) // 40)]:
        found = covering(search_of(world, first, reads), [instant])
        assert found == {instant: found_by_walking[instant]}
    most = NEAR + SPREAD
    assert max(reads.asked) <= most


def test_a_search_reads_little_and_once_for_all_times_of_a_gap() -> None:
    world = World()
    first = add(world, SKIP)
    outage(world, 3 * DAY)
    reads = Reads(world)
    instants = [START + 3 * DAY - n * MINUTE for n in (1, 2, 3, 4)]
    found = covering(search_of(world, first, reads), instants)
    assert list(found) == instants
    # 4,320 times: twenty near ones and each 72nd, then those between two of these.
    assert len(reads.asked) == 2
    assert max(reads.asked) <= NEAR + SPREAD


def test_a_search_gives_up_where_there_is_no_row() -> None:
    world = World()
    first = add(world, SKIP)
    world.store.rows.clear()
    world.clock.advance(30 * DAY)
    reads = Reads(world)
    instants = [world.clock.now() - n * MINUTE for n in (1, 2, 3)]
    assert covering(search_of(world, first, reads), instants) == {}
    assert len(reads.asked) <= gaps._ROUNDS
