"""Reading a schedule: what comes next, and what became of the latest times."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hourbell.domain.definition import ScheduleState, Tenant, Tier
from hourbell.domain.errors import NotFound, Transient
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.change_schedule import edit, pause, resume
from hourbell.usecases.get_schedule import (
    EXPIRED,
    MAX_COUNTED,
    NONE,
    Library,
    ScheduleView,
    get_schedule,
    version_log,
)
from hourbell.usecases.identify import Caller

from tests.unit.usecases.world import MINUTE, SECOND, START, World

EVERY_MINUTE = Timing("* * * * *")


def add(world: World, timing: Timing) -> Occurrence:
    """Create a schedule, which owns the times strictly after now."""
    return world.add(timing)


def view(world: World, row: Occurrence, tenant: str = "acme") -> ScheduleView:
    library = Library(world.schedules, world.timeline, world.shard_map)
    return get_schedule(library, tenant, row.schedule_id, world.clock.now())


def run(world: World, minutes: int) -> None:
    """Let time pass, scanned and relayed each minute."""
    for _ in range(minutes):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)


def change(world: World, row: Occurrence, **fields: Any) -> None:
    schedules, versions = world.store.schedules, world.store.versions
    schedule = schedules[row.schedule_id]
    if "effective_to" in fields:
        version = versions[schedule.ref]
        versions[schedule.ref] = replace(version, **fields)
    else:
        schedules[row.schedule_id] = replace(schedule, **fields)


def test_a_new_schedule_shows_its_next_time_and_no_past() -> None:
    world = World()
    first = add(world, Timing("0 13 * * *"))
    seen = view(world, first)
    assert seen.schedule.schedule_id == first.schedule_id
    assert seen.version.ref == seen.schedule.ref
    assert seen.next_run_at == first.scheduled_for
    assert seen.latest == ()


def test_the_five_latest_times_come_with_their_rows() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 8)
    seen = view(world, first)
    assert [due.scheduled_for for due in seen.latest] == [
        START + n * MINUTE for n in (8, 7, 6, 5, 4)
    ]
    assert {due.state for due in seen.latest} == {State.ENQUEUED}
    latest = seen.latest[0]
    assert latest.row is not None
    assert latest.occurrence_id == latest.row.occurrence_id
    assert latest.row.visible_at is not None
    assert seen.next_run_at == START + 9 * MINUTE


def test_no_time_before_the_creation_is_shown() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 2)
    assert [due.scheduled_for for due in view(world, first).latest] == [
        START + 2 * MINUTE,
        START + MINUTE,
    ]


def test_times_that_nobody_reached_are_shown_without_a_row() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    world.clock.advance(3 * MINUTE)
    seen = view(world, first)
    assert [due.state for due in seen.latest] == [NONE, NONE, State.PLANNED]
    assert seen.next_run_at == START + 4 * MINUTE


def test_times_whose_rows_may_have_been_deleted_are_expired() -> None:
    world = World()
    first = add(world, Timing("0 0 1 * *"))
    world.store.rows.clear()
    world.clock.set(datetime(2026, 6, 15, 23, tzinfo=UTC))
    assert [due.state for due in view(world, first).latest] == [NONE, EXPIRED, EXPIRED]
    world.clock.advance(SECOND)
    assert view(world, first).latest[0].state == EXPIRED


def test_a_one_time_schedule_ends() -> None:
    world = World()
    first = add(world, Timing("at(2026-03-09T12:01:00)"))
    assert view(world, first).next_run_at == START + MINUTE
    run(world, 2)
    seen = view(world, first)
    assert seen.next_run_at is None
    assert [due.state for due in seen.latest] == [State.ENQUEUED]


def test_the_present_instant_counts_as_past() -> None:
    world = World()
    first = add(world, Timing("at(2026-03-09T12:01:00)"))
    world.clock.advance(MINUTE)
    assert view(world, first).next_run_at is None
    assert len(view(world, first).latest) == 1


@pytest.mark.parametrize(
    "state", [ScheduleState.PAUSED, ScheduleState.COMPLETED, ScheduleState.CANCELED]
)
def test_nothing_comes_next_unless_it_is_active(state: ScheduleState) -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 2)
    change(world, first, state=state)
    seen = view(world, first)
    assert seen.next_run_at is None
    assert len(seen.latest) == 2


def test_times_outside_the_versions_interval_are_not_its_own() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    run(world, 5)
    change(world, first, effective_to=START + 3 * MINUTE)
    seen = view(world, first)
    assert seen.next_run_at is None
    assert [due.scheduled_for for due in seen.latest] == [
        START + 2 * MINUTE,
        START + MINUTE,
    ]


def test_a_version_that_begins_later_runs_then() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    ref = world.store.schedules[first.schedule_id].ref
    later = START + 10 * MINUTE
    version = replace(world.store.versions[ref], effective_from=later)
    world.store.versions[ref] = version
    world.clock.advance(2 * MINUTE)
    seen = view(world, first)
    assert seen.next_run_at == later
    assert seen.latest == ()


@pytest.mark.parametrize(("passed", "more"), [(1, True), (2, True), (3, False)])
def test_max_occurrences_ends_it(passed: int, more: bool) -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=3))
    run(world, passed)
    seen = view(world, first)
    assert (seen.next_run_at is not None) is more
    assert len(seen.latest) == passed


def test_times_beyond_max_occurrences_were_never_due() -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=3))
    run(world, 6)
    assert [due.scheduled_for for due in view(world, first).latest] == [
        START + n * MINUTE for n in (3, 2, 1)
    ]
    assert view(world, first).next_run_at is None


@pytest.mark.parametrize(("passed", "more"), [(2, True), (3, False), (90, False)])
def test_without_rows_the_times_are_counted(passed: int, more: bool) -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=3))
    world.store.rows.clear()
    world.clock.advance(passed * MINUTE + SECOND)
    assert (view(world, first).next_run_at is not None) is more


def test_an_exhausted_timing_is_counted_to_its_end() -> None:
    world = World()
    end = START + 4 * MINUTE
    first = add(world, Timing("* * * * *", max_occurrences=2, end_at=end))
    world.store.rows.clear()
    world.clock.advance(60 * MINUTE)
    assert [due.scheduled_for for due in view(world, first).latest] == [
        START + 2 * MINUTE,
        START + MINUTE,
    ]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_long_after_its_end_a_schedule_is_still_ended(limit: int) -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=limit))
    world.store.rows.clear()
    world.clock.advance(MAX_COUNTED * 2 * MINUTE)
    seen = view(world, first)
    assert seen.next_run_at is None
    last = [START + n * MINUTE for n in range(limit, max(limit - 5, 0), -1)]
    assert [due.scheduled_for for due in seen.latest] == last


def test_too_many_times_to_count_are_not_counted() -> None:
    world = World()
    first = add(world, Timing("* * * * *", max_occurrences=MAX_COUNTED * 2))
    world.store.rows.clear()
    world.clock.advance((MAX_COUNTED + 10) * MINUTE)
    assert view(world, first).next_run_at == world.clock.now() + MINUTE


def test_another_tenants_schedule_is_not_found() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    with pytest.raises(NotFound) as theirs:
        view(world, first, tenant="zenith")
    with pytest.raises(NotFound) as missing:
        view(world, replace(first, schedule_id="sch" + "0" * 26))
    assert (theirs.value.code, theirs.value.message) == (
        missing.value.code,
        missing.value.message,
    )


@pytest.mark.parametrize(
    "schedule_id", ["", "sch", "x" * 4000, "sch" + "u" * 26, "DEF"]
)
def test_what_cannot_be_an_id_is_not_looked_up(schedule_id: str) -> None:
    world = World()
    first = replace(add(world, EVERY_MINUTE), schedule_id=schedule_id)
    world.store.schedules[schedule_id] = next(iter(world.store.schedules.values()))
    with pytest.raises(NotFound):
        view(world, first)


def test_a_definition_without_its_version_is_not_found() -> None:
    world = World()
    first = add(world, EVERY_MINUTE)
    world.store.versions.clear()
    with pytest.raises(NotFound):
        view(world, first)


class TestHandover:
    """Times on both sides of a change are those of the version that owns them."""

    ANN = Caller(Tenant("acme", Tier.STANDARD), "1:user/ann", "arn:ann")

    def update(self, world: World, row: Occurrence, **timing: Any) -> None:
        schedule = world.schedules.find(row.schedule_id)
        assert schedule is not None
        definition = replace(
            schedule.definition,
            timing=replace(schedule.definition.timing, **timing),
            payload_json='"new"',
        )
        edit(
            world.changes,
            self.ANN,
            schedule,
            definition,
            world.clock.now(),
            description="",
            tags={},
        )

    def test_what_stands_comes_next_and_then_the_new_version(self) -> None:
        world = World()
        row = add(world, EVERY_MINUTE)
        run(world, 1)
        self.update(world, row, expression="*/10 * * * *")
        seen = view(world, row)
        assert seen.version.version == 2
        # Planned three minutes ahead before the change.
        assert seen.next_run_at == START + 2 * MINUTE
        run(world, 10)
        seen = view(world, row)
        assert seen.next_run_at == START + 20 * MINUTE
        assert [due.occurrence_id.split(".")[1] for due in seen.latest] == [
            *("v2", "v1", "v1", "v1")
        ]
        assert seen.latest[0].scheduled_for == START + 10 * MINUTE

    def test_what_was_canceled_is_not_next(self) -> None:
        world = World()
        row = add(world, Timing("* * * * *", start_at=START + 30 * MINUTE))
        self.update(world, row, start_at=START + 60 * MINUTE)
        assert view(world, row).next_run_at == START + 60 * MINUTE

    def test_an_unfinished_change_shows_both_sides(self) -> None:
        world = World()
        row = add(world, EVERY_MINUTE)
        run(world, 3)
        broken = replace(world.plane, timeline=Unreadable(world))
        schedule = world.schedules.find(row.schedule_id)
        assert schedule is not None
        definition = replace(schedule.definition, timing=Timing("*/10 * * * *"))
        changed = edit(
            replace(world.changes, plane=broken),
            self.ANN,
            schedule,
            definition,
            world.clock.now(),
            description="",
            tags={},
        )
        assert not changed.finished
        seen = view(world, row)
        assert seen.version.effective_from is None
        assert seen.next_run_at == START + 10 * MINUTE
        assert [due.occurrence_id.split(".")[1] for due in seen.latest] == ["v1"] * 3

    def test_a_pause_leaves_the_past_and_hides_the_future(self) -> None:
        world = World()
        row = add(world, EVERY_MINUTE)
        run(world, 2)
        now = world.clock.now()
        pause(world.changes, self.ANN, row.schedule_id, now)
        run(world, 60)
        seen = view(world, row)
        assert seen.next_run_at is None
        # Two had been due, two were on their way; nothing of the hour after.
        assert seen.latest[0].scheduled_for <= now + 3 * MINUTE
        resume(world.changes, self.ANN, row.schedule_id, world.clock.now())
        assert view(world, row).next_run_at == world.clock.now() + MINUTE

    @pytest.mark.parametrize(("changes", "seen"), [(2, 5), (11, 5), (12, 0)])
    def test_many_changes_hide_neither_the_past_nor_what_comes_next(
        self, changes: int, seen: int
    ) -> None:
        world = World()
        row = add(world, EVERY_MINUTE)
        run(world, 10)
        now = world.clock.now()
        for _ in range(changes):
            pause(world.changes, self.ANN, row.schedule_id, now)
            resume(world.changes, self.ANN, row.schedule_id, now)
        found = view(world, row)
        assert found.version.version == 1 + 2 * changes
        latest = [due.occurrence_id.split(".")[1:] for due in found.latest]
        assert (
            latest == [["v1", f"20260309T12{n:02}00Z"] for n in range(10, 5, -1)][:seen]
        )
        if seen:
            # Sent by the first version, before all of the changes.
            assert found.next_run_at == now + MINUTE

    def test_max_occurrences_counts_on_over_a_change(self) -> None:
        world = World()
        row = add(world, Timing("* * * * *", max_occurrences=12))
        run(world, 5)
        self.update(world, row)
        run(world, 10)
        seen = view(world, row)
        assert seen.next_run_at is None
        assert seen.latest[0].scheduled_for == START + 12 * MINUTE


class Unreadable:
    """A timeline that cannot be read."""

    def __init__(self, world: World) -> None:
        self._port = world.timeline

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)

    def read(self, _: Any) -> Any:
        raise Transient


class TestVersionLog:
    def test_a_page_says_whether_there_is_more(self) -> None:
        world = World()
        row = add(world, EVERY_MINUTE)
        library = Library(world.schedules, world.timeline, world.shard_map)
        caller = TestHandover.ANN
        pause(world.changes, caller, row.schedule_id, START)
        log, more = version_log(library, "acme", row.schedule_id, before=None, limit=1)
        assert ([each.version for each in log], more) == ([2], True)
        log, more = version_log(library, "acme", row.schedule_id, before=2, limit=1)
        assert ([each.version for each in log], more) == ([1], False)

    def test_another_tenants_log_is_not_found(self) -> None:
        world = World()
        row = add(world, EVERY_MINUTE)
        library = Library(world.schedules, world.timeline, world.shard_map)
        with pytest.raises(NotFound):
            version_log(library, "zenith", row.schedule_id, before=None, limit=9)
