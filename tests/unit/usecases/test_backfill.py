"""Backfill: past times that never were, or were missed, are made up for."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hourbell.domain.definition import Tier
from hourbell.domain.errors import Conflict, InvalidInput, NotFound
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.backfill import backfill
from hourbell.usecases.backfill_values import Backfilled, BackfillRequest, Outcome
from hourbell.usecases.change_schedule import cancel
from hourbell.usecases.materialize import advance

from tests.unit.usecases.faults import Crash
from tests.unit.usecases.hooks import Moment, Only
from tests.unit.usecases.test_change_schedule import EVERY_MINUTE, HOURLY, caller
from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World, times

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def at(hour: int, minute: int = 0, second: int = 0) -> datetime:
    """Return an instant of the day that worlds begin on, at noon."""
    return datetime(2026, 3, 9, hour, minute, second, tzinfo=UTC)


def fill(
    world: World,
    row: Occurrence,
    first: datetime,
    last: datetime | None = None,
    *,
    changes: Any = None,
    tenant: str = "acme",
    **wanted: Any,
) -> Backfilled:
    return backfill(
        changes or world.changes,
        caller(world, tenant),
        row.schedule_id,
        BackfillRequest(first, last, **wanted),
        world.clock.now(),
    )


def raise_crash() -> None:
    raise Crash


def go_on(world: World, minutes: int = 4) -> None:
    """Let passes and relays work for a while."""
    world.relay_stream()
    for _ in range(minutes):
        world.clock.advance(MINUTE)
        world.scan()
        world.relay_stream()
        world.relay_sweep()


def sent(world: World) -> dict[str, Any]:
    """Return the payloads that were sent, by the end of their occurrences' ids."""
    events = [json.loads(each.entry.body) for each in world.queues.accepted]
    return {event["id"].split(".", 1)[1]: event["data"]["payload"] for event in events}


def outcomes(done: Backfilled) -> list[tuple[str, str | None, str]]:
    """Return the version and time of each item, its state or reason, and outcome."""
    return [
        (
            "?" if item.occurrence_id is None else item.occurrence_id.split(".", 1)[1],
            item.reason or item.state,
            item.outcome,
        )
        for item in done.items
    ]


def test_times_before_the_schedule_was_are_created_at_a_pace() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.advance(SECOND / 2)
    done = fill(world, row, at(9), at(12), reason="first month")
    assert outcomes(done) == [
        ("v1.20260309T090000Z", "DEFERRED", "created"),
        ("v1.20260309T100000Z", "DEFERRED", "created"),
        ("v1.20260309T110000Z", "DEFERRED", "created"),
    ]
    paced = [at(12, 0, second) for second in (1, 2, 3)]
    assert [item.available_at for item in done.items] == paced
    assert (done.next_from, done.skipped_before) == (None, None)
    (record, *_) = world.schedules.backfills(row.schedule_id, at(9), at(11))
    assert record.requested_by == caller(world).arn
    assert (record.reason, record.requested_at) == ("first month", START + SECOND / 2)


def test_what_is_created_goes_to_the_catchup_queue_at_once() -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(9), at(12), per_minute=30)
    world.relay_stream()
    messages = world.queues.accepted
    assert {each.queue for each in messages} == {"standard-catchup"}
    assert [each.entry.delay_seconds for each in messages] == [0, 2, 4]
    assert list(sent(world)) == [f"v1.20260309T{hour}0000Z" for hour in ("09", 10, 11)]
    assert {row.lane for row in world.rows(State.ENQUEUED)} == {Lane.CATCHUP}
    go_on(world)
    assert len(world.queues.accepted) == 3
    assert not any(each.is_open for each in world.store.all_dispatches())


def test_a_group_without_a_record_is_scanned_from_before_the_dispatch_row() -> None:
    world = World()
    row = world.add(HOURLY)
    world.store.groups.clear()
    fill(world, row, at(11), at(12), pace_from=START + 10 * MINUTE)
    (lease,) = world.store.groups.values()
    assert lease.floor == START - 2 * MINUTE
    go_on(world, 10)
    assert list(sent(world)) == ["v1.20260309T110000Z"]


def test_what_is_beyond_the_horizon_is_released_by_a_pass() -> None:
    world = World()
    row = world.add(HOURLY)
    done = fill(world, row, at(8), at(12), per_minute=1, pace_from=START + 30 * MINUTE)
    assert done.pace_from == START + 34 * MINUTE
    go_on(world, 26)
    assert sent(world) == {}
    assert len(world.rows(State.DEFERRED)) == 4
    go_on(world, 6)
    assert len(world.rows(State.DEFERRED)) == 0
    available = {row.available_at: row.visible_at for row in world.rows("ENQUEUED")}
    assert len(available) == 4
    assert all(seen >= due for due, seen in available.items() if due and seen)


def test_the_schedules_own_times_do_not_change() -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(9), at(12))
    assert times(world.rows(State.PLANNED)) == [row.scheduled_for]
    go_on(world, 190)
    own = [each for each in world.rows() if each.scheduled_for > START]
    assert times(own) == [at(13), at(14), at(15), at(16)]


def test_repeating_a_backfill_creates_nothing_twice() -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(10), at(12))
    go_on(world)
    again = fill(world, row, at(9), at(12))
    assert outcomes(again) == [
        ("v1.20260309T090000Z", "DEFERRED", "created"),
        ("v1.20260309T100000Z", "ENQUEUED", "exists"),
        ("v1.20260309T110000Z", "ENQUEUED", "exists"),
    ]
    go_on(world)
    assert len(world.queues.accepted) == 3


def test_only_what_is_created_counts_for_the_pace() -> None:
    world = World()
    row = world.add(Timing("*/10 * * * *"))
    fill(world, row, at(11, 10), at(11, 30))
    done = fill(world, row, at(11), at(12), per_minute=90)
    waits = [item.available_at and item.available_at - START for item in done.items]
    created = [item.outcome is Outcome.CREATED for item in done.items]
    assert created == [True, False, False, True, True, True]
    # Of 90 a minute, the first four go in the seconds 0, 0, 1 and 2.
    assert [w for w, c in zip(waits, created, strict=True) if c] == [
        seconds * SECOND for seconds in (0, 0, 1, 2)
    ]


def test_a_long_range_is_taken_in_parts_whose_pace_goes_on() -> None:
    world = World()
    row = world.add(Timing("*/10 * * * *"))
    first = fill(world, row, at(11), at(12), limit=4, per_minute=60)
    assert len(first.items) == 4
    assert first.next_from == at(11, 40)
    second = fill(world, row, at(11, 40), first.last, pace_from=first.pace_from)
    available = [item.available_at for item in (*first.items, *second.items)]
    assert available == [START + place * SECOND for place in range(6)]
    assert second.next_from is None


def test_a_time_that_its_version_has_not_reached_is_left_to_it() -> None:
    world = World()
    row = world.add(HOURLY, misfire=EVERYTHING)
    world.clock.advance(3.5 * HOUR)
    done = fill(world, row, at(12, 30))
    assert outcomes(done) == [
        ("v1.20260309T130000Z", "PLANNED", "exists"),
        ("v1.20260309T140000Z", "not_reached", "skipped"),
        ("v1.20260309T150000Z", "not_reached", "skipped"),
    ]
    go_on(world)
    assert [key[-16:] for key in sent(world)] == [
        f"20260309T{hour}0000Z" for hour in (13, 14, 15)
    ]


def test_what_a_gap_row_accounts_for_runs_after_all() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.advance(5.5 * HOUR)
    go_on(world)
    assert [key[-16:] for key in sent(world)] == ["20260309T170000Z"]

    done = fill(world, row, at(12, 30))

    assert outcomes(done) == [
        ("v1.20260309T130000Z", "DEFERRED", "created"),
        ("v1.20260309T140000Z", "DEFERRED", "created"),
        ("v1.20260309T150000Z", "DEFERRED", "created"),
        ("v1.20260309T160000Z", "DEFERRED", "created"),
        ("v1.20260309T170000Z", "ENQUEUED", "exists"),
    ]
    go_on(world)
    assert sorted(key[-16:] for key in sent(world)) == [
        f"20260309T{hour}0000Z" for hour in range(13, 18)
    ]
    again = fill(world, row, at(12, 30))
    assert {item[2] for item in outcomes(again)} == {"exists"}
    # The chain goes on as if nothing had been.
    assert [r.scheduled_for for r in world.rows(State.PLANNED)] == [at(18)]


def test_a_gap_that_is_not_worked_off_or_was_canceled_is_left_alone() -> None:
    for verdict, expected in ((None, "not_reached"), (State.CANCELED, "CANCELED")):
        world = World()
        row = world.add(HOURLY)
        world.clock.advance(5.5 * HOUR)
        moves = Moment(1, after=False, action=raise_crash).wrap(world.timeline)
        timeline: Any = Only("move", moves, world.timeline)
        with pytest.raises(Crash):
            advance(replace(world.plane, timeline=timeline), [row], world.clock.now())
        if verdict is not None:
            (gap,) = [each for each in world.rows() if each.decision is not None]
            world.store.put_row(replace(gap, state=verdict, reason="PAUSED"))

        done = fill(world, row, at(14, 30))

        assert [item[1] for item in outcomes(done)] == [expected] * 3


def test_a_missed_time_runs_after_all() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.advance(HOUR)
    world.scan()
    world.store.take_stream()
    miss(world, row)
    world.clock.advance(2 * HOUR)
    done = fill(world, row, at(12, 30), at(13, 30))
    assert outcomes(done) == [("v1.20260309T130000Z", "DEFERRED", "created")]
    reopened = world.store.row(row.key)
    assert reopened is not None
    assert reopened.expires_at is None
    go_on(world, 1)
    stored = world.store.row(row.key)
    assert stored is not None
    assert stored.state is State.ENQUEUED
    assert (stored.reason, stored.finished_at) == (None, None)
    assert (stored.sequence, stored.lane) == (1, Lane.CATCHUP)
    assert stored.backfilled_at == at(15)
    assert "v1.20260309T130000Z" in sent(world)
    again = fill(world, row, at(12, 30), at(13, 30))
    assert outcomes(again) == [("v1.20260309T130000Z", "ENQUEUED", "exists")]


def miss(world: World, row: Occurrence) -> None:
    """Let a row be missed, as a policy would."""
    stored = world.store.row(row.key)
    assert stored is not None
    now = world.clock.now()
    missed = replace(
        stored,
        state=State.MISSED,
        reason="TOO_LATE",
        finished_at=now,
        expires_at=now + 15 * DAY,
    )
    world.store.put_row(missed)
    world.store.take_stream()


def test_a_dry_run_tells_and_stores_nothing() -> None:
    world = World()
    row = world.add(HOURLY)
    world.clock.advance(2 * HOUR)
    miss(world, row)
    before = (world.rows(), world.store.all_dispatches(), dict(world.store.backfills))
    done = fill(world, row, at(11), at(13, 30), dry_run=True)
    assert outcomes(done) == [
        ("v1.20260309T110000Z", None, "would_create"),
        ("v1.20260309T120000Z", None, "would_create"),
        ("v1.20260309T130000Z", "MISSED", "would_create"),
    ]
    after = (world.rows(), world.store.all_dispatches(), dict(world.store.backfills))
    assert after == before
    assert world.store.take_stream() == []


def test_what_is_too_old_is_named_and_not_counted_out() -> None:
    world = World()
    row = world.add(EVERY_MINUTE)
    world.clock.advance(SECOND / 4)
    done = fill(world, row, START - 3000 * DAY, START, limit=2)
    old = timedelta(days=14, hours=23)
    edge = START + SECOND - old
    assert done.skipped_before == edge
    assert [item.scheduled_for for item in done.items] == [
        START + MINUTE - old,
        START + 2 * MINUTE - old,
    ]
    nothing = fill(world, row, START - 3000 * DAY, START - 16 * DAY)
    assert (nothing.items, nothing.next_from) == ((), None)
    assert nothing.skipped_before == edge


def test_a_rate_has_no_times_before_its_anchor() -> None:
    world = World()
    row = world.add(Timing("rate(5 minutes)", anchor=START - 20 * MINUTE))
    done = fill(world, row, START - DAY, START)
    assert [item.scheduled_for for item in done.items] == [
        START - minutes * MINUTE for minutes in (15, 10, 5)
    ]


@pytest.mark.parametrize(
    ("first", "last", "wrong"),
    [
        (at(12, 0, 1), None, {"from": "out_of_range"}),
        (at(9), at(12, 0, 1), {"to": "out_of_range"}),
        (at(9), at(9), {"from": "reversed_range"}),
        (START, None, {"from": "reversed_range"}),
    ],
)
def test_a_range_must_lie_in_the_past(
    first: datetime, last: datetime | None, wrong: dict[str, str]
) -> None:
    world = World()
    row = world.add(HOURLY)
    with pytest.raises(InvalidInput) as refusal:
        fill(world, row, first, last)
    findings = refusal.value.findings
    assert {each.field: each.code for each in findings} == wrong
    assert all(each.found for each in findings)


def test_a_pace_begins_within_a_fortnight() -> None:
    world = World()
    row = world.add(HOURLY)
    with pytest.raises(InvalidInput) as refusal:
        fill(world, row, at(9), pace_from=START + 16 * DAY)
    assert refusal.value.findings[0].field == "pace_from"
    earlier = fill(world, row, at(9), at(10), pace_from=at(8))
    assert earlier.items[0].available_at == START


def test_a_canceled_schedule_and_another_tenants_are_refused() -> None:
    world = World()
    row = world.add(HOURLY)
    world.add_tenant("bolt", Tier.BASIC)
    with pytest.raises(NotFound):
        fill(world, row, at(9), tenant="bolt")
    cancel(world.changes, caller(world), row.schedule_id, START)
    with pytest.raises(Conflict) as refusal:
        fill(world, row, at(9))
    assert refusal.value.code == "schedule_canceled"
    assert world.store.backfills == {}


def test_without_its_handler_nothing_is_created() -> None:
    world = World()
    row = world.add(HOURLY)
    world.store.handlers.clear()
    with pytest.raises(NotFound):
        fill(world, row, at(9))
    assert world.store.backfills == {}


def test_what_was_created_and_is_deleted_by_now_still_exists() -> None:
    world = World()
    row = world.add(HOURLY)
    fill(world, row, at(11), at(12))
    world.store.rows.clear()
    done = fill(world, row, at(11), at(12))
    assert outcomes(done) == [("v1.20260309T110000Z", "EXPIRED", "exists")]
