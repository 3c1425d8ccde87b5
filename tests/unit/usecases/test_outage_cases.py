"""What went wrong in other schedulers after outages must not go wrong here.

Each test is named by the report that it answers.
"""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.materialize import advance

from tests.unit.usecases.world import EVERYTHING, MINUTE, SECOND, START, World, times

HOUR = timedelta(hours=1)
WEEK = timedelta(days=7)
EVERY_MINUTE = Timing("* * * * *")


@pytest.mark.parametrize("policy", MisfirePolicy)
def test_case_14_more_than_100_missed_times_block_nothing(
    policy: MisfirePolicy,
) -> None:
    """kubernetes#42649: with over 100 missed starts a job never ran again."""
    world = World()
    world.add(EVERY_MINUTE, misfire=Misfire(policy, 5))
    world.clock.advance(timedelta(hours=10))

    for _ in range(5):
        world.scan()
        world.relay_stream()
        world.clock.advance(MINUTE)

    on_time = [r for r in world.rows(State.ENQUEUED) if r.lane is Lane.STRICT]
    # What the create had sent, and from the first pass after the outage on.
    back = START + 10 * HOUR
    again = [t for t in times(on_time) if t > START + 5 * MINUTE]
    assert again == [back - MINUTE + n * MINUTE for n in range(len(again))]
    assert len(again) == 9


def test_case_17_after_a_misfire_the_nominal_time_is_kept() -> None:
    """quartz#49: the time that was missed could no longer be told."""
    world = World()
    world.add(Timing("0 * * * *"), misfire=EVERYTHING)
    world.clock.advance(timedelta(hours=3, minutes=20))

    world.scan()
    world.relay_stream()

    events = [json.loads(each.entry.body) for each in world.queues.accepted]
    told = [(each["time"], each["data"]["misfire"]) for each in events]
    assert told == [(f"2026-03-09T{hour}:00:00Z", True) for hour in (13, 14, 15)]
    ids = [each["id"][-16:] for each in events]
    assert ids == [f"20260309T{hour}0000Z" for hour in (13, 14, 15)]


def test_case_18_a_backlog_is_spaced_and_not_let_loose_at_once() -> None:
    """digdag#929: unpausing ran the whole backlog in parallel.

    Nothing is made up for after a pause; after an outage, what runs is spaced.
    """
    world = World()
    tenant = world.store.tenants["acme"]
    quotas = replace(tenant.quotas, catch_up_per_minute=6)
    world.store.tenants["acme"] = replace(tenant, quotas=quotas)
    world.add(EVERY_MINUTE, misfire=EVERYTHING)
    world.clock.advance(timedelta(minutes=12, seconds=30))

    world.scan()

    late = [row.available_at for row in world.rows() if row.lane is Lane.CATCHUP]
    now = world.clock.now()
    assert late == [now + n * 10 * SECOND for n in range(11)]


def test_case_19_a_weekly_time_survives_restarts_that_are_more_frequent() -> None:
    """river#791: each restart counted the week anew.

    The cursor is a stored row: whoever comes next finds it, however often.
    """
    world = World()
    row = world.add(Timing("0 12 * * MON"))
    assert row.scheduled_for == START + WEEK
    for day in range(7):
        # Each day another process, which knows nothing of the one before.
        for _ in range(3):
            world.scan(holder=f"process-{day}")
            world.clock.advance(MINUTE)
        world.clock.set(START + timedelta(days=day + 1) - 2 * MINUTE)

    world.scan(holder="the-last")
    world.relay_stream()

    assert times(world.rows(State.ENQUEUED)) == [START + WEEK]
    assert not world.rows(State.ENQUEUED)[0].misfire


def test_case_20_a_stale_leader_inserts_no_second_row() -> None:
    """oban#1488: two leaders inserted each job twice, for 19 days.

    Uniqueness is the key's: any number of passes by anybody make one row a time.
    """
    world = World()
    world.add(EVERY_MINUTE)
    for _ in range(10):
        stale = world.rows()
        advance(world.plane, stale, world.clock.now())
        world.scan(holder="the-leader")
        # The stale one goes on with what it had read before the leader's pass.
        advance(world.plane, stale, world.clock.now() + 2 * SECOND)
        world.relay_stream()
        world.clock.advance(MINUTE)

    sent = [each.entry.body for each in world.queues.accepted]
    ids = [json.loads(body)["id"] for body in sent]
    assert len(ids) == len(set(ids)) == 12
    assert len(world.rows()) == len(set(times(world.rows())))
