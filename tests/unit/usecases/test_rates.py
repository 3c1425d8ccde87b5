"""Rates of handlers and tenants: paced, never dropped, counted."""

from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from hourbell.domain.definition import Handler, Tier
from hourbell.domain.errors import Transient
from hourbell.domain.occurrence import State
from hourbell.domain.rates import Rate, RateKind
from hourbell.domain.schedule import Timing
from hourbell.usecases.backfill import backfill
from hourbell.usecases.backfill_values import BackfillRequest
from hourbell.usecases.materialize import Plane, advance
from hourbell.usecases.pacing import MAX_ROUNDS, Wish, reserve
from hourbell.usecases.ports import Write
from hourbell.usecases.rate_port import MAX_MINUTES
from hourbell.usecases.run_now import run_now
from hourbell.usecases.tally import Tally

from tests.unit.usecases.deferring import available, releases
from tests.unit.usecases.faults import Crash, UnclearTimeline
from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.limiting import fullest, going, limit, offsets, once
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.world import MINUTE, SECOND, START, World

DUE = START + 2 * MINUTE


def pass_over(world: World) -> Tally:
    return advance(world.plane, world.rows(), world.clock.now())


class Refusing:
    """Rates of which some do not answer, and which note what they are asked."""

    def __init__(self, port: Any, owner: str = "") -> None:
        self._port = port
        self._owner = owner
        self.asked: list[tuple[str, int]] = []

    def reserve(self, rate: Rate, wanted: Any) -> Any:
        self.asked.append((rate.name, len(wanted)))
        if self._owner and rate.owner.startswith(self._owner):
            raise Transient
        return self._port.reserve(rate, wanted)


def test_over_a_handlers_rate_later_seconds_are_taken_and_the_excess_counted() -> None:
    world = World()
    limit(world, a_second=2)
    once(world, DUE, 5)
    assert pass_over(world) == Tally(scheduled=5, paced=3)
    assert offsets(world, DUE) == [0, 0, 1, 1, 2]
    assert {row.scheduled_for for row in going(world)} == {DUE}
    world.relay_stream()
    assert [row.visible_at for row in going(world)] == [
        DUE + n * SECOND for n in (0, 0, 1, 1, 2)
    ]


def test_over_a_tenants_rate_later_minutes_are_taken_evenly() -> None:
    world = World()
    limit(world, a_minute=4)
    once(world, DUE, 7)
    assert pass_over(world) == Tally(scheduled=7, paced=3)
    assert offsets(world, DUE) == [0, 0, 0, 0, 60, 75, 90]


def test_what_a_step_asks_of_a_rate_it_asks_at_once() -> None:
    world = World()
    limit(world, a_second=50, a_minute=1_000)
    once(world, DUE, 9)
    rates = Refusing(world.rates)
    advance(replace(world.plane, rates=rates), world.rows(), START)
    assert rates.asked == [("triggers#acme", 9), ("dispatches#acme#ring", 9)]


def test_without_limits_nothing_is_asked() -> None:
    world = World()
    once(world, DUE, 3)
    rates = Refusing(world.rates)
    tally = advance(replace(world.plane, rates=rates), world.rows(), START)
    assert tally == Tally(scheduled=3)
    assert rates.asked == []


def test_beyond_the_queues_delay_a_paced_row_is_deferred_and_keeps_its_place() -> None:
    world = World()
    limit(world, a_minute=1)
    once(world, DUE, 20)
    # Places at 12:02, 12:03 ... 12:21; what is due after 12:14 is beyond 840 s.
    assert pass_over(world) == Tally(scheduled=13, deferred=7, paced=19)
    assert len(releases(world)) == 7
    before = {row.key: row.available_at for row in going(world)}
    taken = dict(world.store.taken)
    for _ in range(20):
        world.relay_stream()
        world.clock.advance(MINUTE)
        world.scan()
    world.relay_stream()
    sent = world.rows(State.ENQUEUED)
    assert {row.key: row.available_at for row in sent} == before
    assert [row.visible_at for row in sent] == [row.available_at for row in sent]
    assert world.store.taken == taken
    assert not [each for each in world.store.all_dispatches() if each.is_open]


def test_what_is_late_within_the_threshold_goes_now_at_the_earliest() -> None:
    world = World()
    limit(world, a_second=1)
    once(world, START + 10 * SECOND, 3)
    world.clock.set(START + timedelta(seconds=40.5))
    assert pass_over(world) == Tally(scheduled=3, paced=2)
    assert offsets(world, START) == [41, 42, 43]


@pytest.mark.parametrize("seed", range(6))
def test_all_rates_hold_together(seed: int) -> None:
    """Two handlers of one tenant, a limit on each of the three: none is exceeded."""
    random = Random(seed)
    world = World()
    limit(world, a_second=random.randint(1, 3), a_minute=random.randint(5, 90))
    bell = Handler("acme", "bell", dispatch_rate=random.randint(1, 3))
    world.directory.register_handler(bell)
    for _ in range(120):
        once(world, DUE + random.randint(0, 30) * SECOND, 1)
        _, version = world.store.versions.popitem()
        name = random.choice(["ring", "bell"])
        definition = replace(version.definition, handler=name)
        world.store.versions[version.ref] = replace(version, definition=definition)
    for _ in range(3):
        pass_over(world)
    rows = going(world)
    assert len(rows) == 120
    minute_limit = world.store.tenants["acme"].quotas.triggers_per_minute
    assert minute_limit is not None
    assert fullest(rows, MINUTE) <= minute_limit
    for name in ("ring", "bell"):
        rate = world.store.handlers[("acme", name)].dispatch_rate
        assert rate is not None
        own = [r for r in rows if handler_of(world, r.schedule_id) == name]
        assert fullest(own, SECOND) <= rate
    assert all(available(row) >= row.scheduled_for for row in rows)


def handler_of(world: World, schedule_id: str) -> str:
    versions = world.store.versions.values()
    (name,) = {v.definition.handler for v in versions if v.schedule_id == schedule_id}
    return name


def test_a_rate_that_does_not_answer_keeps_no_other_tenant_waiting() -> None:
    world = World()
    world.add_tenant("other", Tier.BASIC)
    for tenant in ("acme", "other"):
        limit(world, tenant=tenant, a_second=9)
        once(world, DUE, 2, tenant)
    plane = replace(world.plane, rates=Refusing(world.rates, "acme"))
    assert advance(plane, world.rows(), START) == Tally(scheduled=2, unknown=2)
    assert [row.tenant_id for row in world.rows(State.PLANNED)] == ["acme"] * 2
    assert pass_over(world) == Tally(scheduled=2)


def test_who_finds_no_place_within_reach_stays_planned_for_the_next_pass() -> None:
    world = World()
    limit(world, a_minute=1)
    once(world, DUE, MAX_MINUTES + 3)
    first = pass_over(world)
    assert first.scheduled + first.deferred == MAX_MINUTES
    assert first.unknown == len(world.rows(State.PLANNED)) == 3
    assert pass_over(world).deferred == 3
    assert fullest(going(world), MINUTE) == 1


def test_a_write_without_clear_answer_leaves_its_place_empty() -> None:
    world = World()
    limit(world, a_second=1)
    once(world, DUE, 2)
    timeline = UnclearTimeline(
        world.timeline, lambda name, place: name == "move" and place == 0
    )
    advance(replace(world.plane, timeline=timeline), world.rows(), START)
    pass_over(world)
    assert offsets(world, DUE) == [1, 2]


def test_a_row_that_is_written_keeps_its_instant() -> None:
    world = World()
    limit(world, a_second=1)
    once(world, DUE, 3)
    stale = world.rows()
    pass_over(world)
    before = going(world)
    assert advance(world.plane, stale, world.clock.now()) == Tally(lost=3)
    assert going(world) == before


def wrapped(world: World, moment: Moment) -> Plane:
    return replace(
        world.plane,
        timeline=moment.wrap(world.timeline),
        schedules=moment.wrap(world.schedules),
        directory=moment.wrap(world.directory),
        rates=moment.wrap(world.rates),
    )


def raise_crash() -> None:
    raise Crash


def test_a_crash_at_any_call_loses_nothing_and_exceeds_nothing() -> None:
    moments = 0
    for nth in range(1, 40):
        for after in (False, True):
            world = World()
            limit(world, a_second=1, a_minute=3)
            for _ in range(4):
                world.add(Timing("* * * * *"))
            moment = Moment(nth, after, raise_crash)
            try:
                advance(wrapped(world, moment), world.rows(), START)
            except Crash:
                moments += 1
            written = {row.key: row.available_at for row in going(world)}
            for _ in range(2):
                world.clock.advance(5 * SECOND)
                pass_over(world)
            rows = going(world)
            # 12:01, 12:02 and 12:03 of each of the four, and 12:04 planned.
            assert len(rows) == 12, (nth, after)
            assert len(world.rows(State.PLANNED)) == 4
            assert fullest(rows, SECOND) == 1, (nth, after)
            assert fullest(rows, MINUTE) <= 3, (nth, after)
            now = {row.key: row.available_at for row in rows}
            assert written.items() <= now.items(), (nth, after)
    assert moments >= 30
    assert not moment.reached


def test_a_rate_that_always_moves_is_given_up_for_now() -> None:
    class Moving:
        calls = 0

        def reserve(self, _rate: Rate, wanted: Any) -> list[datetime | None]:
            self.calls += 1
            return [instant + MINUTE for instant in wanted]

    port = Moving()
    both = (Rate(RateKind.TRIGGERS, "acme", 1), Rate(RateKind.DISPATCHES, "acme#x", 1))
    assert reserve(port, [Wish(DUE, both)]) == [None]
    assert port.calls == 2 * MAX_ROUNDS


def test_a_manual_run_takes_a_place() -> None:
    world = World()
    limit(world, a_second=1)
    row = world.add(Timing("0 0 1 1 *"))
    who = caller(world, "acme")
    for key in "abc":
        run_now(world.changes, who, row.schedule_id, START, key=key)
    assert offsets(world, START) == [0, 1, 2]
    assert not world.rows(State.DEFERRED)


def test_a_manual_run_beyond_the_queues_delay_is_deferred_and_released() -> None:
    world = World()
    limit(world, a_minute=1)
    row = world.add(Timing("0 0 1 1 *"))
    who = caller(world, "acme")
    for key in range(16):
        run_now(world.changes, who, row.schedule_id, START, key=str(key))
    late = START + 15 * MINUTE
    assert [r.available_at for r in world.rows(State.DEFERRED)] == [late]
    again = run_now(world.changes, who, row.schedule_id, START, key="15")
    assert (again.replayed, again.occurrence.state) == (True, State.DEFERRED)
    world.relay_stream()
    for _ in range(13):
        world.clock.advance(MINUTE)
        world.scan()
        world.relay_stream()
    sent = world.rows(State.ENQUEUED)
    assert len(sent) == 16
    assert max(r.visible_at for r in sent if r.visible_at) == late


def test_a_manual_run_whose_rate_does_not_answer_is_not_stored() -> None:
    world = World()
    limit(world, a_second=1)
    row = world.add(Timing("0 0 1 1 *"))
    plane = replace(world.plane, rates=Refusing(world.rates, "acme"))
    changes = replace(world.changes, plane=plane)
    who = caller(world, "acme")
    with pytest.raises(Transient):
        run_now(changes, who, row.schedule_id, START, key="k")
    assert world.rows() == [row]
    assert not world.store.runs


def test_a_backfill_takes_places_and_keeps_its_own_pace() -> None:
    world = World()
    limit(world, a_second=1)
    row = world.add(Timing("0 0 1 1 *"))
    once(world, START + 2 * SECOND, 1)
    pass_over(world)
    hourly = world.add(Timing("0 * * * *"))
    wanted = BackfillRequest(START - timedelta(hours=4), per_minute=60)
    changes, who = world.changes, caller(world, "acme")
    dry = replace(wanted, dry_run=True)
    backfill(changes, who, hourly.schedule_id, dry, START)
    backfill(changes, who, hourly.schedule_id, wanted, START)
    # Four at one a second, of which the third finds its second taken.
    assert offsets(world, START) == [0, 1, 2, 3, 4]
    assert row in world.rows()

    plane = replace(changes.plane, rates=Refusing(world.rates, "acme"))
    more = replace(wanted, first=START - timedelta(hours=5))
    with pytest.raises(Transient):
        backfill(replace(changes, plane=plane), who, hourly.schedule_id, more, START)
    assert len(going(world)) == 5


def test_a_run_that_somebody_else_stored_keeps_its_place() -> None:
    world = World()
    limit(world, a_second=1)
    row = world.add(Timing("0 0 1 1 *"))
    who = caller(world, "acme")

    class Late:
        def record_run(self, *arguments: Any) -> Write:
            world.schedules.record_run(*arguments)
            return Write.EXISTS

    schedules = Only("record_run", Late(), world.schedules)
    changes = replace(world.changes, plane=replace(world.plane, schedules=schedules))
    done = run_now(changes, who, row.schedule_id, START, key="k")
    assert done.replayed
    assert done.occurrence.available_at == START
