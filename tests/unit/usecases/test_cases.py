"""What went wrong in other schedulers when definitions changed must not go wrong here.

Each test is named by the report that it answers.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hourbell.adapters.memory import MemorySchedules
from hourbell.domain.definition import (
    Handler,
    Schedule,
    Tier,
    Version,
    VersionRef,
    derived_schedule_id,
)
from hourbell.domain.occurrence import Lane, Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.by_name import Condition, put_schedule
from hourbell.usecases.change_schedule import edit, find_current, pause, resume
from hourbell.usecases.create_schedule import (
    Created,
    NewSchedule,
    Registry,
    create_schedule,
)
from hourbell.usecases.identify import Caller
from hourbell.usecases.ports import Creation
from hourbell.usecases.relay import relay_rows
from hourbell.usecases.run_now import run_now

from tests.unit.usecases.world import MINUTE, START, World, times

HOUR = timedelta(hours=1)
NINE_IN_BERLIN = Timing("0 9 * * *", "Europe/Berlin")


def caller(world: World, tenant: str = "acme") -> Caller:
    found = world.directory.find_tenant(tenant)
    assert found is not None
    return Caller(found, f"1:user/{tenant}", f"arn:aws:iam::1:user/{tenant}")


def change(world: World, row: Occurrence, **members: Any) -> None:
    """Edit some members of a schedule's definition."""
    schedule = find_current(world.changes, row.tenant_id, row.schedule_id)
    edit(
        world.changes,
        caller(world),
        schedule,
        replace(schedule.definition, **members),
        world.clock.now(),
        description=schedule.description,
        tags=schedule.tags,
    )


def live(world: World, span: timedelta) -> None:
    """Let passes and relays run each minute."""
    end = world.clock.now() + span
    while world.clock.now() < end:
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)


def sent(world: World) -> list[datetime]:
    return times(world.rows(State.ENQUEUED))


@pytest.mark.parametrize(
    "zone",
    ["America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Pago_Pago"],
)
def test_case_15_another_zone_releases_no_flood_of_missed_runs(zone: str) -> None:
    """django-celery-beat#82: changing the zone ran all that seemed missed."""
    world = World()
    row = world.add(NINE_IN_BERLIN)
    live(world, 5 * MINUTE)
    changed_at = world.clock.now()
    change(world, row, timing=Timing("0 9 * * *", zone))
    live(world, 10 * MINUTE)
    assert sent(world) == []
    (planned,) = world.rows(State.PLANNED)
    assert changed_at < planned.scheduled_for <= changed_at + timedelta(days=1)
    assert planned.version == 2
    world.clock.set(planned.scheduled_for - 5 * MINUTE)
    live(world, 10 * MINUTE)
    assert sent(world) == [planned.scheduled_for]
    assert not world.rows(State.MISSED)


def test_case_16_a_pause_is_made_up_for_by_nothing_after_the_resume() -> None:
    """quartz#308: told to do nothing about misfires, a resume fired them all."""
    world = World()
    row = world.add(Timing("*/10 * * * *"))
    who = caller(world)
    pause(world.changes, who, row.schedule_id, world.clock.now())
    live(world, 3 * HOUR)
    assert sent(world) == []
    resumed_at = world.clock.now() + 5 * MINUTE
    world.clock.set(resumed_at)
    resume(world.changes, who, row.schedule_id, resumed_at)
    live(world, 20 * MINUTE)
    assert sent(world) == [resumed_at + 5 * MINUTE, resumed_at + 15 * MINUTE]
    assert not any(found.misfire for found in world.rows())


class Rival(MemorySchedules):
    """Schedules, between whose look at a name and the create somebody else puts it."""

    def __init__(self, world: World) -> None:
        super().__init__(world.store)
        self.puts: list[Any] = []

    def create(
        self, schedule: Schedule, version: Version, first: Occurrence, *, quota: int
    ) -> Creation:
        for put in self.puts:
            put()
        return super().create(schedule, version, first, quota=quota)


def test_case_23_upserts_at_once_make_one_schedule_and_one_occurrence() -> None:
    """bullmq#2876: concurrent upserts made duplicates."""
    world = World()
    request = NewSchedule("bell", Timing("0 13 * * *"), "ring", "h1")

    def put(**ports: Any) -> object:
        plane = replace(world.plane, **ports)
        registry = Registry(plane, world.groups, world.ids)
        changes = replace(world.changes, plane=plane)
        now, anyhow = world.clock.now(), Condition()
        return put_schedule(
            registry, changes, caller(world), request, now, condition=anyhow
        )

    rival = Rival(world)
    won: list[object] = []
    rival.puts = [lambda: won.append(put())]
    lost = put(schedules=rival)
    assert isinstance(won[0], Created)
    assert not isinstance(lost, Created)
    assert len(world.store.schedules) == 1
    (row,) = world.rows()
    assert (row.version, row.scheduled_for) == (1, START + HOUR)


def test_case_24_after_an_update_the_old_payload_is_never_sent() -> None:
    """bullmq#3095: an update ran the old payload."""
    world = World()
    row = world.add(Timing("0 * * * *"))
    change(world, row, payload_json='{"n":2}')
    # A relay that still holds the old version's record, as if it had been scheduled.
    stale = replace(
        row,
        state=State.SCHEDULED,
        available_at=row.scheduled_for,
        lane=Lane.STRICT,
        queue="standard-strict",
        scheduled_at=world.clock.now(),
    )
    world.clock.set(row.scheduled_for - MINUTE)
    report = relay_rows(world.outbox, [stale])
    assert not report.deliveries
    live(world, 5 * MINUTE)
    (message,) = world.queues.accepted
    assert '"payload":{"n":2}' in message.entry.body
    (enqueued,) = world.rows(State.ENQUEUED)
    assert (enqueued.version, enqueued.scheduled_for) == (2, row.scheduled_for)


def test_case_25_an_idempotency_key_is_its_tenants_own() -> None:
    """trigger.dev#3150: deduplication keys were shared across environments."""
    world = World()
    world.add_tenant("zenith", Tier.PREMIUM)
    world.directory.register_handler(Handler("zenith", "ring"))
    registry = Registry(world.plane, world.groups, world.ids)
    request = NewSchedule(
        "bell", Timing("0 13 * * *"), "ring", "h1", idempotency_key="k1"
    )
    made = [
        create_schedule(registry, caller(world, tenant), request, world.clock.now())
        for tenant in ("acme", "zenith")
    ]
    assert not any(created.replayed for created in made)
    ids = [created.schedule.schedule_id for created in made]
    assert ids == [derived_schedule_id(tenant, "k1") for tenant in ("acme", "zenith")]
    assert len(set(ids)) == 2
    for tenant, schedule_id in zip(("acme", "zenith"), ids, strict=True):
        entry = world.store.versions[VersionRef(schedule_id, 1)]
        assert entry.tenant_id == tenant


def test_case_25_a_runs_key_is_its_schedules_own() -> None:
    """trigger.dev#3150, for runs by hand."""
    world = World()
    rows = [world.add(Timing("0 13 * * *")) for _ in range(2)]
    started = [
        run_now(
            world.changes, caller(world), row.schedule_id, world.clock.now(), key="k1"
        )
        for row in (*rows, rows[0])
    ]
    assert [each.replayed for each in started] == [False, False, True]
    first, second, again = (each.occurrence.occurrence_id for each in started)
    assert first == again
    assert first != second
