"""Many workers at one occurrence, one lane and one slot at the same time."""

from collections import Counter
from dataclasses import replace

import pytest
from hourbell.adapters.dynamodb import Database
from hourbell.domain.occurrence import State
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed

from tests.conformance import samples
from tests.conformance.test_races import THREADS, all_at_once, contending
from tests.conformance.work_samples import claiming, enqueued
from tests.conformance.worlds import dynamo_world

pytestmark = pytest.mark.engine

LANE = OverlapLane(samples.schedule_id("one"))


def test_an_occurrence_is_claimed_once(engine_database: Database) -> None:
    world = dynamo_world(contending(engine_database))
    row = enqueued()
    world.seed([row])

    results = all_at_once(
        lambda number: world.ledger.do(Deed((claiming(row, f"{number:016}"),)))
    )

    assert Counter(results) == {Write.APPLIED: 1, Write.LOST: THREADS - 1}
    stored = world.timeline.read([row.key])[row.key]
    assert stored.lease_token == f"{results.index(Write.APPLIED):016}"


def test_a_lane_and_a_slot_have_one_holder(engine_database: Database) -> None:
    world = dynamo_world(contending(engine_database))
    rows = [replace(enqueued(), sequence=n, version=n + 1) for n in range(THREADS)]
    world.seed(rows)

    def claim(number: int) -> Write:
        row = rows[number]
        return world.ledger.do(
            Deed(
                (claiming(row),),
                lane=LANE.held_by(row.occurrence_id),
                takes=Slot("acme", 0, row.occurrence_id),
            )
        )

    results = all_at_once(claim)

    assert Counter(results) == {Write.APPLIED: 1, Write.LOST: THREADS - 1}
    winner = rows[results.index(Write.APPLIED)]
    assert world.ledger.lane(LANE.schedule_id).holder == winner.occurrence_id
    assert world.ledger.slots("acme")[0].holder == winner.occurrence_id
    stored = world.timeline.read(row.key for row in rows)
    running = [key for key, row in stored.items() if row.state is State.RUNNING]
    assert running == [winner.key]
