"""Fairness of a pass: turns by weight, caps, and what it is worth to a neighbour."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Tier
from hourbell.domain.misfire import Decision
from hourbell.domain.occurrence import Lane, Occurrence, RowKey, State
from hourbell.domain.policies import PASS_CAP
from hourbell.domain.schedule import Timing
from hourbell.domain.shards import ShardMap
from hourbell.usecases.materialize import advance
from hourbell.usecases.ports import Change, GroupWork, Write
from hourbell.usecases.scan import PassReport, run_pass
from hourbell.usecases.turns import Turns

from tests.unit.usecases.deferring import available
from tests.unit.usecases.limiting import once
from tests.unit.usecases.test_catch_up_rate import overdue
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World

DUE = START + 3 * MINUTE


@dataclass
class Slow:
    """A timeline on which every row that is written takes a while.

    Attributes:
        written: when each row left PLANNED, or was inserted in another state.
    """

    world: World
    each: timedelta
    written: dict[RowKey, datetime] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.world.timeline, name)

    def plan(self, rows: Sequence[Occurrence]) -> list[Write]:
        self._note(row for row in rows if row.state is not State.PLANNED)
        self.world.clock.advance(len(rows) * self.each)
        return self.world.timeline.plan(rows)

    def move(self, changes: Sequence[Change]) -> list[Write]:
        # The last one is answered when all are.
        self.world.clock.advance(len(changes) * self.each)
        self._note(change.row for change in changes)
        return self.world.timeline.move(changes)

    def _note(self, rows: Iterable[Occurrence]) -> None:
        for row in rows:
            self.written.setdefault(row.key, self.world.clock.now())


def small_world(*tenants: str) -> World:
    """Return a world of one shard group, with tenants besides acme."""
    world = World(shard_map=ShardMap.constant(2, 1))
    for tenant in tenants:
        world.add_tenant(tenant, Tier.STANDARD)
    return world


def weigh(world: World, tenant: str, weight: int) -> None:
    world.store.tenants[tenant] = replace(world.store.tenants[tenant], weight=weight)


def passes(world: World, timeline: Slow, count: int) -> list[PassReport]:
    """Let a pass begin with each minute; none works for more than 45 s."""
    begin, reports = world.clock.now(), []
    for number in range(count):
        world.clock.set(max(begin + number * MINUTE, world.clock.now()))
        now = world.clock.now()
        plane = replace(world.plane, timeline=timeline)
        reports.append(
            run_pass(
                replace(world.scanner, plane=plane),
                GroupWork(0, now),
                holder=f"m{number}",
                deadline=now + 45 * SECOND,
            )
        )
    return reports


def leads(world: World, timeline: Slow, tenant: str) -> list[timedelta]:
    """Return how long before its time each of a tenant's strict rows was written."""
    return [
        available(row) - timeline.written[row.key]
        for row in world.rows()
        if row.tenant_id == tenant and row.lane is Lane.STRICT
    ]


@pytest.mark.slow
@pytest.mark.long
def test_a_batch_of_20000_of_one_tenant_leaves_a_tenant_of_20_a_positive_lead() -> None:
    """The 20 lie behind the 20,000 in their bucket, which take four minutes."""
    world = small_world("small")
    once(world, DUE, 20_000)
    once(world, DUE + 30 * SECOND, 20, "small")
    timeline = Slow(world, timedelta(milliseconds=12))

    world.clock.set(DUE - timedelta(seconds=150))
    reports = passes(world, timeline, 2)

    small = leads(world, timeline, "small")
    assert len(small) == 20
    assert min(small) > timedelta(seconds=120)
    assert not any(report.finished for report in reports)
    # Time that nobody else needs is the large tenant's, beyond its cap too.
    assert len(leads(world, timeline, "acme")) > 3 * PASS_CAP


def storm(*, catching_up: int) -> tuple[World, Slow]:
    """Return a world after an outage of 1,010 minutes, and three passes."""
    world = small_world("small")
    for _ in range(catching_up):
        world.add(Timing("* * * * *"), misfire=EVERYTHING)
    for _ in range(5):
        world.add(Timing("* * * * *"), tenant="small")
    world.clock.set(START + 1_010 * MINUTE + 2 * SECOND)
    timeline = Slow(world, timedelta(milliseconds=1))
    passes(world, timeline, 3)
    return world, timeline


@pytest.mark.slow
@pytest.mark.long
def test_in_a_storm_of_50000_another_tenants_lead_keeps_80_percent() -> None:
    calm, storming = storm(catching_up=0), storm(catching_up=50)

    before, during = leads(*calm, "small"), leads(*storming, "small")
    assert len(during) == len(before) == 5 * 6
    for calm_lead, lead in zip(before, during, strict=True):
        assert lead >= 0.8 * calm_lead or calm_lead < timedelta(0)
    rows = overdue(storming[0])
    # And some more, whose times came when the backlog had not let their turn come.
    assert 50_000 <= len(rows) < 50_200
    states = [row.state for row in rows]
    assert states.count(State.DEFERRED) > 40_000
    # The relay gets to all of it in the order of its times, and the small tenant's
    # messages become receivable when they should.
    world = storming[0]
    coming = world.clock.now()
    world.relay_stream()
    lags = sorted(
        row.visible_at - available(row)
        for row in world.rows("ENQUEUED")
        if row.tenant_id == "small"
        and row.visible_at is not None
        and available(row) >= coming
    )
    assert len(lags) >= 5
    assert lags[len(lags) * 99 // 100] <= timedelta(seconds=1.5)
    assert lags[0] >= timedelta(0)


def rows_of(world: World, tenant: str, count: int, due: datetime) -> list[Occurrence]:
    once(world, due, count, tenant)
    return [row for row in world.rows() if row.tenant_id == tenant][-count:]


def tenants(rows: Sequence[Occurrence]) -> str:
    return "".join(row.tenant_id[0] for row in rows)


def test_within_a_bucket_tenants_take_turns_by_their_weights() -> None:
    world = small_world("big", "small")
    weigh(world, "big", 3)
    rows = [
        *rows_of(world, "big", 7, DUE),
        *rows_of(world, "small", 2, DUE + 5 * SECOND),
        *rows_of(world, "acme", 3, DUE + 9 * SECOND),
    ]
    ordered = Turns(world.directory, cap=None).admit(rows)
    assert tenants(ordered) == "bbbsa" + "bbbsa" + "ba"


def test_an_earlier_bucket_goes_before_any_turn() -> None:
    world = small_world("big", "small")
    rows = [
        *rows_of(world, "small", 1, DUE),
        *rows_of(world, "big", 3, DUE - MINUTE),
        *rows_of(world, "big", 2, DUE),
    ]
    assert tenants(Turns(world.directory, cap=None).admit(rows)) == "bbb" + "sb" + "b"


@pytest.mark.parametrize("weight", [1, 2])
def test_beyond_its_cap_a_tenant_is_kept_for_the_end(weight: int) -> None:
    world = small_world("big", "small")
    weigh(world, "big", weight)
    turns = Turns(world.directory, cap=3)
    rows = rows_of(world, "big", 8, DUE)
    assert turns.admit(rows[:2]) == rows[:2]
    more = [*rows[2:], *rows_of(world, "small", 1, DUE)]
    admitted = turns.admit(more)
    assert tenants(admitted).count("b") == 3 * weight - 2
    assert tenants(admitted).count("s") == 1
    assert turns.later == rows[3 * weight :]


def test_a_gap_row_counts_for_what_it_lets_run() -> None:
    world = small_world()
    first, second, third = rows_of(world, "acme", 3, DUE)
    decision = Decision(START, DUE, 9, 9, DUE, 9, None, 600)
    gap = replace(first, decision=decision)
    turns = Turns(world.directory, cap=5)
    assert turns.admit([gap]) == [gap]
    assert turns.admit([second, third]) == []
    assert turns.later == [second, third]


def test_gap_rows_that_let_others_run_come_last() -> None:
    world = small_world()
    first, second = rows_of(world, "acme", 2, DUE)
    decision = Decision(START, DUE, 9, 9, DUE, 9, None, 600)
    early = first.scheduled_for - 9 * MINUTE
    gap = replace(first, decision=decision, scheduled_for=early)
    empty = replace(gap, decision=replace(decision, runs=0))
    for cap in (None, 5):
        turns = Turns(world.directory, cap=cap)
        assert turns.admit([gap, second, empty]) == [empty, second, gap]


def test_a_tenant_that_is_not_there_has_weight_one() -> None:
    world = small_world()
    (row,) = rows_of(world, "acme", 1, DUE)
    stray = replace(row, tenant_id="ghost")
    turns = Turns(world.directory, cap=1)
    assert turns.admit([stray, stray, row]) == [stray, row]


def test_what_is_kept_in_mind_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourbell.usecases.turns.MAX_LATER", 2)
    world = small_world()
    rows = rows_of(world, "acme", 5, DUE)
    turns = Turns(world.directory, cap=1)
    turns.admit(rows)
    assert turns.later == rows[1:3]


def test_a_pass_that_has_time_takes_what_was_beyond_the_caps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hourbell.usecases.scanning.MAX_ROWS", 4)
    monkeypatch.setattr(
        "hourbell.usecases.scanning.Turns", lambda port: Turns(port, cap=3)
    )
    world = small_world("small")
    once(world, DUE, 12)
    once(world, DUE + 30 * SECOND, 2, "small")
    world.clock.advance(MINUTE)
    timeline = Slow(world, SECOND)
    (report,) = passes(world, timeline, 1)
    assert (report.finished, report.tally.scheduled) == (True, 14)
    latest_small = DUE + 30 * SECOND - min(leads(world, timeline, "small"))
    beyond = [DUE - lead > latest_small for lead in leads(world, timeline, "acme")]
    assert beyond.count(True) >= 8


def test_the_end_of_a_pass_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hourbell.usecases.scanning.MAX_ROWS", 4)
    monkeypatch.setattr(
        "hourbell.usecases.scanning.Turns", lambda port: Turns(port, cap=3)
    )
    world = small_world()
    once(world, DUE, 12)
    reports = passes(world, Slow(world, 7 * SECOND), 3)
    # 21 s for the first three, and 28 s for the next four, by when the 45 s are over.
    assert [report.tally.scheduled for report in reports] == [7, 5, 0]
    assert [report.finished for report in reports] == [False, True, True]


def test_without_a_pass_nothing_is_kept_back() -> None:
    world = small_world()
    once(world, DUE, PASS_CAP + 5)
    assert advance(world.plane, world.rows(), START).scheduled == PASS_CAP + 5
