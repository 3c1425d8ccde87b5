"""The reminders of the `Jobs` port."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.job import JobState, Progress
from hourbell.domain.reminder import Reminder
from hourbell.usecases.ports import Write

from tests.conformance.samples import MINUTE, NOW
from tests.conformance.test_jobs import ids, job, results, stored
from tests.conformance.worlds import World

LATER = NOW + timedelta(days=1)
TICK = timedelta(microseconds=1)


def due(world: World, limit: int = 9) -> list[str]:
    """Return the jobs that have reminders a day later."""
    return [each.job_id for each in world.jobs.reminders(LATER, limit=limit)]


def test_a_job_that_is_stored_has_a_reminder(world: World) -> None:
    made = stored(world, job())
    due_at = NOW + 5 * MINUTE
    reminder = Reminder(due_at, made.job_id, 0, made.expires_at)
    assert world.jobs.reminders(due_at - TICK, limit=9) == ()
    assert world.jobs.reminders(due_at, limit=9) == (reminder,)


def test_a_job_whose_id_is_taken_has_no_second_one(world: World) -> None:
    made = stored(world, job())
    other = job(updated_at=NOW + MINUTE)
    assert world.jobs.create(other, ids(1)) is Write.EXISTS
    assert due(world) == [made.job_id]


def test_the_oldest_reminders_come_first(world: World) -> None:
    made = [stored(world, job(str(n), updated_at=NOW + n * MINUTE)) for n in (2, 0, 1)]
    wanted = [made[1].job_id, made[2].job_id, made[0].job_id]
    assert due(world) == wanted
    assert due(world, limit=2) == wanted[:2]


def test_progress_makes_no_reminder_and_a_resume_makes_one(world: World) -> None:
    before = stored(world, job())
    running = replace(
        before, state=JobState.RUNNING, step=1, updated_at=NOW + MINUTE,
        progress=Progress(2, 1),
    )  # fmt: skip
    assert world.jobs.advance(running, results(0, 1), before=before) is Write.APPLIED
    assert due(world) == [before.job_id]
    waiting = replace(running, state=JobState.PENDING, step=2)
    assert world.jobs.advance(waiting, (), before=before) is Write.LOST
    assert due(world) == [before.job_id]
    assert world.jobs.advance(waiting, (), before=running) is Write.APPLIED
    second = Reminder(NOW + 6 * MINUTE, before.job_id, 2, before.expires_at)
    assert world.jobs.reminders(LATER, limit=9)[1:] == (second,)


def test_a_resume_at_the_same_instant_has_a_reminder_of_its_own(world: World) -> None:
    before = stored(world, job())
    waiting = replace(before, step=1)
    assert world.jobs.advance(waiting, (), before=before) is Write.APPLIED
    assert due(world) == [before.job_id] * 2


@pytest.mark.parametrize("tries", [0, 3])
def test_a_later_one_comes_in_the_place_of_a_reminder(world: World, tries: int) -> None:
    stored(world, job())
    (first,) = world.jobs.reminders(LATER, limit=9)
    second = replace(first, due_at=first.due_at + TICK, tries=tries)
    assert world.jobs.replace_reminder(first, second) is Write.APPLIED
    assert world.jobs.reminders(LATER, limit=9) == (second,)
    assert world.jobs.replace_reminder(first, second) is Write.LOST
    third = replace(second, due_at=second.due_at + MINUTE)
    assert world.jobs.replace_reminder(first, third) is Write.LOST
    assert world.jobs.reminders(LATER, limit=9) == (second,)


def test_a_reminder_can_go_without_another(world: World) -> None:
    stored(world, job())
    (first,) = world.jobs.reminders(LATER, limit=9)
    assert world.jobs.replace_reminder(first, None) is Write.APPLIED
    assert world.jobs.reminders(LATER, limit=9) == ()
    assert world.jobs.replace_reminder(first, None) is Write.LOST
