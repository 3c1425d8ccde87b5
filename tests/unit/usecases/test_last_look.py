"""Each bucket is looked at for the last time, days later, whatever happens."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from hourbell.domain.definition import Tracking, VersionRef
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.errors import Transient
from hourbell.domain.instants import ceil_second
from hourbell.domain.occurrence import Occurrence, RowKey, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.shards import NEVER, Epoch, Phase, ShardMap
from hourbell.usecases import last_look
from hourbell.usecases.change_schedule import cancel
from hourbell.usecases.last_look import LastLooks, look_last
from hourbell.usecases.ports import Lease, Page, Write

from tests.unit.usecases.leaping import (
    DAY,
    HOUR,
    KEPT,
    LOOKED,
    ONCE,
    checks,
    leap,
    one_time,
    passes,
    sent_at,
    unclaimed,
)
from tests.unit.usecases.poison import PoisonedWorld
from tests.unit.usecases.test_backfill import fill
from tests.unit.usecases.test_change_schedule import caller
from tests.unit.usecases.working import Shop
from tests.unit.usecases.world import MINUTE, SECOND, START, World

DUE = START + 2 * MINUTE
FLOOR = START - 2 * MINUTE


class Watched:
    """A timeline that tells of which buckets it was asked for what is unfinished."""

    def __init__(self, port: Any) -> None:
        self._port = port
        self.asked: list[tuple[str, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def unfinished(
        self, bucket: str, shard: int, *, after: RowKey | None = None
    ) -> Page:
        self.asked.append((bucket, shard))
        page: Page = self._port.unfinished(bucket, shard, after=after)
        return page


def watched(world: World) -> list[tuple[str, int]]:
    timeline: Any = Watched(world.timeline)
    world.timeline = timeline
    asked: list[tuple[str, int]] = timeline.asked
    return asked


def lease(world: World, group: int = 0) -> Lease:
    return world.store.groups[group]


def looked(
    world: World, *, oldest: datetime = NEVER, group: int = 0, **changes: Any
) -> LastLooks:
    """Make the last looks of one pass over a group."""
    record = replace(lease(world, group), **changes)
    return look_last(world.workplace, record, oldest, bool)


def two(kind: type[World] = World, overlap: Overlap = Overlap.ALLOW) -> Shop:
    """Return a shop in which two occurrences of 12:02 were sent, and both are lost."""
    world = kind(shard_map=ShardMap.constant(1, 1))
    shop = one_time(world=world, overlap=overlap)
    world.add(ONCE, tracking=Tracking.TRACKED, overlap=overlap)
    shop.due()
    return shop


def rows(shop: Shop) -> list[Occurrence]:
    """Return all rows in key order."""
    return sorted(shop.world.rows(), key=lambda row: row.key)


def states(shop: Shop) -> list[State]:
    return [row.state for row in rows(shop)]


def test_each_bucket_is_looked_at_once_when_it_is_old_enough() -> None:
    shop = one_time()
    shop.due()
    asked = watched(shop.world)
    leap(shop.world, FLOOR + LOOKED - MINUTE)
    for group, record in shop.world.store.groups.items():
        shop.world.store.groups[group] = replace(record, looked_until=None)
    passes(shop)
    assert asked == []

    passes(shop, 3)

    names = ["20260309T1158Z", "20260309T1159Z", "20260309T1200Z"]
    assert sorted(asked) == [(name, shard) for name in names for shard in range(4)]
    assert {lease(shop.world, group).looked_until for group in (0, 1)} == {
        START + MINUTE
    }


def test_buckets_whose_turn_came_while_no_pass_ran_are_looked_at_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = one_time()
    name = shop.due()
    asked = watched(shop.world)
    leap(shop.world, DUE + 10 * DAY)
    # Two shards a group: so many minutes a pass.
    monkeypatch.setattr(last_look, "MAX_LOOKS", 2 * 2)
    group = shop.world.shard_map.group_of(shop.first.shard)
    for each, record in shop.world.store.groups.items():
        shop.world.store.groups[each] = replace(record, looked_until=None)

    assert unclaimed(passes(shop, 2)) == 0
    assert lease(shop.world, group).looked_until == FLOOR + 4 * MINUTE
    assert unclaimed(passes(shop)) == 1

    assert shop.row(name).state is State.DEAD
    assert len(asked) == len(set(asked)) == 3 * 2 * 4


def test_who_looks_for_the_first_time_goes_back_as_far_as_rows_are_kept() -> None:
    shop = one_time()
    shop.due()
    asked = watched(shop.world)
    now = START + 400 * DAY
    leap(shop.world, now)
    looks = looked(shop.world, looked_until=None, floor=START)
    assert asked[0][0] == f"{now - LOOKED + MINUTE - 15 * DAY:%Y%m%dT%H%MZ}"
    assert looks.until == now - LOOKED + MINUTE - 15 * DAY + 500 * MINUTE


@pytest.mark.parametrize("looked_until", [None, FLOOR])
def test_nothing_is_stored_before_a_bucket_is_old_enough(
    looked_until: datetime | None,
) -> None:
    shop = one_time()
    shop.due()
    shop.world.clock.set(FLOOR + LOOKED - SECOND)
    assert looked(shop.world, looked_until=looked_until) == LastLooks()


def test_last_looks_do_not_pass_a_watermark_and_go_back_with_it() -> None:
    shop = one_time()
    shop.due()
    shop.world.clock.set(DUE + LOOKED + HOUR)
    assert looked(shop.world, oldest=DUE).until == DUE
    later = DUE + 30 * MINUTE
    assert looked(shop.world, oldest=DUE, looked_until=later).until == DUE
    assert looked(shop.world, oldest=FLOOR, looked_until=later).until == FLOOR


def test_rows_that_are_being_moved_are_left_for_later() -> None:
    shop = one_time()
    shop.due()
    shop.world.clock.set(DUE + LOOKED + HOUR)
    for phase, until in ((Phase.MOVING, DUE), (Phase.SETTLED, DUE + HOUR + MINUTE)):
        shop.world.shard_map = ShardMap((Epoch(None, 4, 2), Epoch(DUE, 8, 2, phase)))
        assert looked(shop.world).until == until


def test_a_pass_without_time_leaves_them_to_the_next() -> None:
    shop = one_time()
    name = shop.due()
    leap(shop.world, DUE + LOOKED)
    shop.world.scan(deadline=shop.now)
    assert shop.row(name).state is State.ENQUEUED
    assert unclaimed(passes(shop)) == 1


def test_a_bucket_that_is_too_much_for_one_pass_is_ended_by_the_next() -> None:
    shop = two()
    leap(shop.world, DUE + LOOKED)

    def is_over() -> bool:
        return State.DEAD in states(shop)

    looks = look_last(shop.world.workplace, lease(shop.world), NEVER, is_over)
    assert (looks.unclaimed, looks.until) == (1, DUE)
    assert sorted(states(shop)) == [State.DEAD, State.ENQUEUED]
    assert unclaimed(passes(shop)) == 1
    assert states(shop) == [State.DEAD, State.DEAD]


def test_a_version_that_is_gone_keeps_nothing_from_its_end() -> None:
    shop = two(overlap=Overlap.SKIP_IF_RUNNING)
    del shop.world.store.versions[VersionRef(shop.first.schedule_id, 1)]
    leap(shop.world, DUE + LOOKED)
    assert unclaimed(passes(shop)) == 2
    # What cannot be written any more is not tried for ever.
    passes(shop, 3)
    assert all(row.told_at for row in rows(shop))


@pytest.mark.parametrize("what", ["version", "lane"])
def test_one_that_cannot_be_read_stops_no_other_and_has_another_day(what: str) -> None:
    shop = two(PoisonedWorld, Overlap.QUEUE_ONE)
    world: Any = shop.world
    bad, good = rows(shop)
    ref = VersionRef(bad.schedule_id, 1)
    if what == "version":
        world.damaged_schedules.versions_lost.add(ref)
    else:
        world.damaged_ledger.lanes_lost.add(bad.schedule_id)
    leap(world, DUE + LOOKED)

    (report,) = [each for each in world.scan() if each.unclaimed]
    assert (report.unclaimed, report.faulty, report.parked) == (1, 1, 0)
    assert shop.row(good.occurrence_id).state is State.DEAD
    assert checks(shop) == [DUE + LOOKED + DAY]

    passes(shop, 5)
    leap(world, DUE + LOOKED + DAY)
    assert [report.faulty for report in world.scan() if report.faulty] == [1]
    assert checks(shop) == [DUE + LOOKED + 2 * DAY]

    world.damaged_schedules.versions_lost.clear()
    world.damaged_ledger.lanes_lost.clear()
    passes(shop, 5)
    leap(world, DUE + LOOKED + 2 * DAY)
    assert unclaimed(passes(shop)) == 1
    assert shop.row(bad.occurrence_id).state is State.DEAD


class Silent:
    """A port some calls of which get no answer."""

    def __init__(self, port: Any, *silent: str) -> None:
        self._port = port
        self.silent = set(silent)

    def __getattr__(self, name: str) -> Any:
        if name not in self.silent:
            return getattr(self._port, name)

        def call(*_: Any, **__: Any) -> Any:
            raise Transient(name)

        return call


def test_one_that_gets_no_answer_is_tried_again_in_a_minute() -> None:
    shop = one_time()
    name = shop.due()
    leap(shop.world, DUE + LOOKED)
    silent: Any = Silent(shop.world.ledger, "do")
    shop.world.ledger = silent
    assert unclaimed(passes(shop)) == 0
    assert checks(shop) == [DUE + LOOKED + MINUTE]
    # Now it is a dispatch row's: that one stays as long as it needs.
    assert unclaimed(passes(shop, 2)) == 0
    assert checks(shop) == [DUE + LOOKED + MINUTE]
    silent.silent.clear()
    assert unclaimed(passes(shop)) == 1
    assert (shop.row(name).state, checks(shop)) == (State.DEAD, [])


def test_a_timeline_that_does_not_answer_ends_no_pass_in_vain() -> None:
    shop = one_time()
    shop.due()
    leap(shop.world, DUE + LOOKED)
    silent: Any = Silent(shop.world.timeline, "unfinished")
    shop.world.timeline = silent
    assert all(report.finished and report.kept for report in passes(shop))
    silent.silent.clear()
    assert unclaimed(passes(shop)) == 1


def test_a_check_without_a_clear_answer_is_put_again() -> None:
    shop = one_time()
    name = shop.due()
    sent = shop.row(name)
    shop.world.store.put_row(replace(sent, visible_at=DUE + DAY))
    leap(shop.world, DUE + LOOKED)
    timeline: Any = shop.world.timeline

    class Unclear(Silent):
        def post(self, dispatches: Sequence[Dispatch]) -> list[Write]:
            return [Write.UNKNOWN] * len(dispatches)

    unclear: Any = Unclear(timeline)
    shop.world.timeline = unclear
    passes(shop, 2)
    record = lease(shop.world, shop.world.shard_map.group_of(sent.shard))
    assert (record.looked_until, checks(shop)) == (DUE, [])

    shop.world.timeline = timeline
    passes(shop)
    assert checks(shop) == [DUE + 5 * DAY + HOUR]

    shop.world.timeline = unclear
    shop.world.store.put_row(replace(sent, visible_at=DUE + 2 * DAY))
    leap(shop.world, DUE + 5 * DAY + HOUR)
    passes(shop, 2)
    assert checks(shop) == [DUE + 5 * DAY + HOUR]
    shop.world.timeline = timeline
    passes(shop)
    assert checks(shop) == [DUE + 6 * DAY + HOUR]


def test_many_rows_of_a_bucket_are_read_page_by_page(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shop = one_time(world=World(shard_map=ShardMap.constant(1, 1)))
    for _ in range(250):
        shop.world.add(ONCE, tracking=Tracking.TRACKED)
    shop.due()
    leap(shop.world, DUE + LOOKED)
    timeline = shop.world.timeline
    monkeypatch.setattr(timeline, "page", partial(timeline.page, limit=120))
    assert unclaimed(passes(shop)) == 251


def test_what_is_days_overdue_has_its_days_from_its_send_on() -> None:
    shop = one_time(world=World(shard_map=ShardMap.constant(1, 1)))
    name = shop.first.occurrence_id
    shop.world.clock.set(DUE + LOOKED + HOUR)

    passes(shop, 6)

    row = shop.row(name)
    assert (row.state, row.misfire) == (State.ENQUEUED, True)
    visible = sent_at(row)
    assert visible >= DUE + LOOKED + HOUR
    assert checks(shop) == [ceil_second(visible + KEPT)]
    leap(shop.world, checks(shop)[0])
    assert unclaimed(passes(shop)) == 1


def test_a_backfill_of_times_before_the_group_began_is_found_by_its_release() -> None:
    shop = Shop("0 * * * *", world=World(shard_map=ShardMap.constant(1, 1)))
    made = fill(shop.world, shop.first, START - 3 * HOUR, START - 2 * HOUR)
    (name,) = [item.occurrence_id for item in made.items]
    assert name is not None
    passes(shop, 2)
    place, row = shop.world.workplace, shop.row(name)
    assert (row.state, row.scheduled_for < FLOOR) == (State.ENQUEUED, True)
    cancel(shop.world.changes, caller(shop.world), row.schedule_id, shop.now)
    passes(shop, 5)

    leap(shop.world, sent_at(row) + LOOKED)

    assert unclaimed(passes(shop, 3)) == 1
    assert place.find("acme", [name])[name].state is State.DEAD


@pytest.mark.parametrize(
    ("kind", "late", "found"),
    [
        (DispatchKind.RELEASE, 5 * DAY, 1),
        (DispatchKind.FOLLOW, 5 * DAY, 1),
        (DispatchKind.WATCH, 5 * DAY, 0),
        # Its own bucket was looked at after that, and it was not over.
        (DispatchKind.RELEASE, 3 * DAY, 0),
    ],
)
def test_what_was_let_go_behind_the_scan_is_found_by_what_let_it_go(
    kind: DispatchKind, late: timedelta, found: int
) -> None:
    shop = one_time(world=World(shard_map=ShardMap.constant(1, 1)))
    row = shop.row(shop.due())
    passes(shop, 5)
    due = DUE + late
    check = Dispatch(kind, row.schedule_id, 1, "acme", due, 0, due, number=1)
    check = replace(check, scheduled_for=DUE, written_at=due).done(due)
    shop.world.store.put_dispatch(check)
    record = replace(lease(shop.world), looked_until=DUE + MINUTE)
    shop.world.store.groups[0] = record
    leap(shop.world, due + LOOKED)
    assert unclaimed(passes(shop)) == found
