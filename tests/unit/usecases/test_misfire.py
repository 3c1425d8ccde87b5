"""Outages, and what each misfire policy makes of them, on in-memory adapters."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Tenant, Tier
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import pause, resume
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import Plane, advance

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.world import MINUTE, SECOND, START, World, times

EVERY_MINUTE = Timing("* * * * *")
SKIP = Misfire(MisfirePolicy.SKIP)
ONCE = Misfire(MisfirePolicy.FIRE_ONCE)
POLICIES = {
    "skip": SKIP,
    "once": ONCE,
    "three": Misfire(MisfirePolicy.CATCH_UP, 3),
    "all": Misfire(MisfirePolicy.CATCH_UP, 1_000),
    "recent": Misfire(MisfirePolicy.CATCH_UP, 1_000, 200),
}
ANN = Caller(Tenant("acme", Tier.STANDARD), "1:user/ann", "arn:aws:iam::1:user/ann")
# The first pass after the outage; 12:01 to 12:10 are over a minute late then.
BACK = START + timedelta(minutes=11, seconds=30)


def minute(n: int) -> datetime:
    return START + n * MINUTE


def fates(world: World, first: int, last: int) -> str:
    """Return a letter for each minute: what its row, or a gap row, says of it.

    `m` missed by its own row, `g` missed by a gap row, `c` in the catch-up lane, `s` in
    its own lane, `p` planned, `x` canceled. Nothing or two things are a failure.
    """
    rows = {}
    for row in world.rows():
        assert row.scheduled_for not in rows, "two rows for one time"
        rows[row.scheduled_for] = row
    gaps = [row for row in rows.values() if row.decision is not None]
    return "".join(
        _letter(rows.get(minute(n)), [g for g in gaps if g.covers(minute(n))])
        for n in range(first, last + 1)
    )


def _letter(row: Occurrence | None, gaps: list[Occurrence]) -> str:
    if row is None:
        assert len(gaps) == 1, "a time without a row lies in one gap"
        return {"MISSED": "g", "CANCELED": "x"}.get(gaps[0].state, "g")
    if row.lane is Lane.CATCHUP:
        return "c"
    letters = {State.MISSED: "m", State.PLANNED: "p", State.CANCELED: "x"}
    return letters.get(row.state, "s")


TABLE = {
    # 12:01 to 12:10 overdue, 12:11 to 12:14 on time within the horizon, 12:15 planned.
    "skip": "mmggggggggssssp",
    "once": "mmgggggggcssssp",
    "three": "mmgggggcccssssp",
    "all": "ccccccccccssssp",
    # At 12:11:30 what is of 12:08:10 or later is at most 200 s late.
    "recent": "mmggggggccssssp",
}


@pytest.mark.parametrize("name", POLICIES)
def test_ten_minutes_out_end_as_the_policy_says(name: str) -> None:
    world = World()
    world.add(EVERY_MINUTE, misfire=POLICIES[name])
    world.clock.set(BACK)

    world.scan()
    world.relay_stream()

    assert fates(world, 1, 15) == TABLE[name]
    late = [row for row in world.rows(State.ENQUEUED) if row.misfire]
    assert {row.queue for row in late} <= {"standard-catchup"}
    # Ten a second, which is the tenant's 600 a minute, oldest first.
    assert [row.available_at for row in late] == [
        BACK + n // 10 * SECOND for n in range(len(late))
    ]
    gaps = [row for row in world.rows() if row.decision is not None]
    assert [row.scheduled_for for row in gaps] == [minute(2)]
    assert gaps[0].decision is not None
    assert (gaps[0].decision.last, gaps[0].decision.count) == (minute(10), 9)


@pytest.mark.parametrize("name", POLICIES)
def test_a_day_out_ends_as_the_policy_says(name: str) -> None:
    world = World()
    world.add(EVERY_MINUTE, misfire=POLICIES[name])
    world.clock.set(BACK + timedelta(days=1))

    world.scan()
    world.relay_stream()

    overdue = 1_450
    run = {"skip": 0, "once": 1, "three": 3, "all": 1_000, "recent": 2}[name]
    expected = "mm" + "g" * (overdue - 2 - run) + "c" * run + "ssss" + "p"
    assert fates(world, 1, overdue + 5) == expected


def test_an_hourly_schedule_after_a_day_has_24_missed_times() -> None:
    world = World()
    world.add(Timing("30 * * * *"), misfire=Misfire(MisfirePolicy.CATCH_UP, 5))
    world.clock.set(START + timedelta(days=1))

    world.scan()

    runs = [row for row in world.rows(State.SCHEDULED) if row.misfire]
    assert times(runs) == [
        START + timedelta(hours=hour, minutes=30) for hour in range(19, 24)
    ]
    assert times(world.rows(State.PLANNED)) == [START + timedelta(hours=24.5)]


def test_a_one_time_schedule_is_decided_alone() -> None:
    for misfire, state in ((SKIP, State.MISSED), (ONCE, State.SCHEDULED)):
        world = World()
        row = world.add(Timing("at(2026-03-09T12:30:00)"), misfire=misfire)
        world.clock.set(row.scheduled_for + timedelta(hours=3))

        world.scan()

        assert [each.state for each in world.rows()] == [state]


def test_a_far_place_in_the_line_is_deferred() -> None:
    """At ten a second the thousandth waits 99 s; at ten a minute over an hour."""
    world = World()
    tenant = world.store.tenants["acme"]
    quotas = replace(tenant.quotas, catch_up_per_minute=10)
    world.store.tenants["acme"] = replace(tenant, quotas=quotas)
    world.add(EVERY_MINUTE, misfire=POLICIES["all"])
    world.clock.set(BACK + timedelta(minutes=190))

    world.scan()

    deferred = world.rows(State.DEFERRED)
    assert deferred[-1].available_at == world.clock.now() + 199 * 6 * SECOND
    sent = 0
    for _ in range(30):
        world.relay_stream()
        world.scan(holder="m2")
        world.clock.advance(MINUTE)
    world.relay_stream()
    caught_up = [r for r in world.rows(State.ENQUEUED) if r.lane is Lane.CATCHUP]
    sent = len(caught_up)
    assert sent == 200
    assert all(r.visible_at and r.available_at for r in caught_up)
    assert all(
        r.visible_at >= r.available_at
        for r in caught_up
        if r.visible_at and r.available_at
    )
    assert not [d for d in world.store.all_dispatches() if d.is_open]


def crashing(world: World, moment: Moment) -> Plane:
    return replace(
        world.plane,
        timeline=moment.wrap(world.timeline),
        schedules=moment.wrap(world.schedules),
        directory=moment.wrap(world.directory),
    )


def raise_crash() -> None:
    raise Crash


@pytest.mark.parametrize("name", POLICIES)
def test_a_crash_at_any_call_changes_no_fate(name: str) -> None:
    moments = 0
    for nth in range(1, 60):
        for after in (False, True):
            world = World()
            world.add(EVERY_MINUTE, misfire=POLICIES[name])
            world.clock.set(BACK)
            moment = Moment(nth, after, raise_crash)
            plane = crashing(world, moment)
            try:
                advance(plane, world.rows(), world.clock.now())
            except Crash:
                moments += 1
            for _ in range(3):
                world.clock.advance(5 * SECOND)
                world.scan()
            world.relay_stream()
            assert fates(world, 1, 15) == TABLE[name], (nth, after)
    assert moments >= 20
    assert not moment.reached


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("edge", [1, 2, 3])
def test_two_machines_on_both_sides_of_the_threshold_agree(
    name: str, edge: int
) -> None:
    """One judges two seconds before, the other two after a time becomes overdue.

    Wherever the second comes in between, no time has two rows, none is lost, and there
    is one chain.
    """
    threshold = minute(edge) + MINUTE
    for first in (-2, 2):
        moments = 0
        for nth in range(1, 40):
            for after in (False, True):
                world = World()
                world.add(EVERY_MINUTE, misfire=POLICIES[name])
                moments += _interleave(world, threshold, first, nth, after=after)
                told, where = fates(world, 1, edge + 4), (first, nth, after)
                assert told[edge:] == "ssss", (where, told)
                chain = times(world.rows(State.PLANNED))
                assert chain == [minute(edge + 5)], where
                _assert_policy(told[:edge], POLICIES[name], (where, told))
        assert moments >= 10


def _interleave(
    world: World, threshold: datetime, first: int, nth: int, *, after: bool
) -> int:
    mine = threshold + first * SECOND
    other = threshold - first * SECOND

    def meanwhile() -> None:
        for _ in range(2):
            advance(world.plane, world.rows(), other)

    moment = Moment(nth, after, meanwhile)
    advance(crashing(world, moment), world.rows(), mine)
    for _ in range(2):
        advance(world.plane, world.rows(), threshold + 2 * SECOND)
    return int(moment.reached)


def _assert_policy(late: str, misfire: Misfire, where: Any) -> None:
    """What is late ran as often as the policy lets it, or once more at the edge.

    The time at the edge is on time to one machine and late to the other. Whoever gets
    to it first decides it apart from those before, which were decided without it.
    """
    ran = late.count("c") + late.count("s")
    assert late.count("s") <= 1, where
    assert min(misfire.runs, len(late)) <= ran + late.count("s"), where
    assert ran <= misfire.runs + 1, where
    if not misfire.runs:
        assert "c" not in late, where


def test_a_pause_reaches_a_gap_that_is_not_worked_off() -> None:
    world = World()
    row = world.add(EVERY_MINUTE, misfire=POLICIES["all"])
    world.clock.set(BACK)
    moment = Moment(1, after=False, action=raise_crash)
    timeline: Any = Only("move", moment.wrap(world.timeline), world.timeline)
    with pytest.raises(Crash):
        advance(replace(world.plane, timeline=timeline), [row], world.clock.now())
    assert [r.decision is not None for r in world.rows()] == [False, True]

    pause(world.changes, ANN, row.schedule_id, world.clock.now())
    world.clock.advance(MINUTE)
    resume(world.changes, ANN, row.schedule_id, world.clock.now())
    for _ in range(3):
        world.scan()
    world.relay_stream()

    old = [r for r in world.rows() if r.version == 1]
    assert {r.state for r in old} == {State.CANCELED}
    sent = world.rows(State.ENQUEUED)
    assert {r.version for r in sent} == {3}
    assert min(times(sent)) > world.clock.now()
