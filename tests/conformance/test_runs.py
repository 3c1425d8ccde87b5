"""The `Schedules` port: manual runs."""

from dataclasses import replace

import pytest
from hourbell.domain.definition import ScheduleState
from hourbell.domain.dispatch import release_of
from hourbell.domain.occurrence import Occurrence, State
from hourbell.usecases.ports import Run, Write

from tests.conformance import samples
from tests.conformance.samples import DUE, NOW, planned, succession
from tests.conformance.worlds import World

RUN = Run(
    samples.schedule_id("one"),
    "0123456789abcdef" * 4,
    1,
    DUE,
    "arn:aws:iam::123456789012:role/acme",
    "because",
)


def row(run: Run = RUN) -> Occurrence:
    return replace(planned(), state=State.SCHEDULED, sequence=0, run=run.run)


def create(world: World) -> None:
    world.schedules.create(
        samples.schedule(), samples.current(), samples.planned(), quota=9
    )


def test_a_run_and_its_row_are_stored_together_and_read_back(world: World) -> None:
    create(world)
    assert world.schedules.record_run(RUN, row()) is Write.APPLIED
    assert world.schedules.find_run(RUN.schedule_id, RUN.run) == RUN
    assert world.timeline.read([row().key]) == {row().key: row()}


def test_a_run_that_waits_is_stored_with_its_dispatch_row(world: World) -> None:
    create(world)
    late = replace(row(), state=State.DEFERRED, available_at=DUE + 20 * samples.MINUTE)
    release = release_of(late, late.shard, NOW)
    assert world.schedules.record_run(RUN, late, release) is Write.APPLIED
    assert world.timeline.read([late.key]) == {late.key: late}
    page = world.timeline.page(release.key.bucket, release.shard)
    assert page.dispatches == (release,)


def test_the_row_of_a_run_lies_beside_the_row_of_the_same_time(world: World) -> None:
    create(world)
    world.schedules.record_run(RUN, row())
    page = world.timeline.page(samples.BUCKET, samples.SHARD)
    assert [each.run for each in page.rows] == [None, RUN.run]


def test_a_run_that_is_there_stands(world: World) -> None:
    create(world)
    world.schedules.record_run(RUN, row())
    other = replace(RUN, reason=None)
    assert world.schedules.record_run(other, row()) is Write.EXISTS
    assert world.schedules.find_run(RUN.schedule_id, RUN.run) == RUN


def test_an_unknown_run_is_none(world: World) -> None:
    create(world)
    assert world.schedules.find_run(RUN.schedule_id, RUN.run) is None


@pytest.mark.parametrize("canceled", [True, False])
def test_a_canceled_or_missing_schedule_is_not_run(
    world: World, canceled: bool
) -> None:
    if canceled:
        create(world)
        change = succession(state=ScheduleState.CANCELED)
        assert world.schedules.succeed(change) is Write.APPLIED
    assert world.schedules.record_run(RUN, row()) is Write.LOST
    assert world.schedules.find_run(RUN.schedule_id, RUN.run) is None
    assert world.timeline.read([row().key]) == {}


def test_a_run_is_told_without_its_reason_too(world: World) -> None:
    create(world)
    plain = replace(RUN, reason=None, scheduled_for=NOW.replace(microsecond=0))
    world.schedules.record_run(plain, row(plain))
    assert world.schedules.find_run(RUN.schedule_id, RUN.run) == plain
