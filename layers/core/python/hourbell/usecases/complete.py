"""Complete a schedule that has no further time."""

from dataclasses import replace
from datetime import datetime

from hourbell.domain.definition import ScheduleState
from hourbell.domain.dispatch import Dispatch
from hourbell.usecases.handover import settle
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import Write


def complete(plane: Plane, dispatch: Dispatch, now: datetime) -> bool:
    """Set a schedule COMPLETED if the version that the dispatch row names is in force.

    Its name and its place in the quota are free then. Whatever came since, a change,
    a pause or a cancel, makes the dispatch row void.

    Returns:
        False when another writer was there first; the dispatch row comes up again.

    Raises:
        Transient: a store did not answer.
    """
    schedule = plane.schedules.find(dispatch.schedule_id)
    in_force = schedule is not None and schedule.version == dispatch.version
    if schedule is not None and in_force and schedule.state is ScheduleState.ACTIVE:
        completed = replace(
            schedule,
            state=ScheduleState.COMPLETED,
            revision=schedule.revision + 1,
            updated_at=now,
        )
        answer = plane.schedules.complete(completed, revision=schedule.revision)
        if answer is not Write.APPLIED:
            return False
    settle(plane, dispatch, now)
    return True
