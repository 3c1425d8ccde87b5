"""Bring a schedule under the present release of the zone database."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import Schedule, ScheduleState, Version, VersionRef
from hourbell.domain.errors import PreconditionFailed, Transient
from hourbell.domain.policies import CLOCK_SKEW
from hourbell.domain.replanning import Replan, Shift, moved_times, replan
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.change_schedule import (
    ATTEMPTS,
    Changes,
    find_current,
    succeed,
)
from hourbell.usecases.identify import Caller

SYSTEM: Final = "system"
"""Who makes a version that nobody asked for."""


@dataclass(frozen=True, slots=True)
class Replanned:
    """A schedule after a replan, or after the attempt to foresee one.

    Attributes:
        shifts: the first times that move; none when it stays as it is.
    """

    schedule: Schedule
    shifts: tuple[Shift, ...] = ()


def replan_schedule(
    changes: Changes, caller: Caller, schedule_id: str, now: datetime
) -> Replanned:
    """Make a version under the present release if that moves times to come.

    The definition stays. What may be on its way is left to the version in force, and
    so is a local time that would otherwise be lost or come twice. A schedule that is
    not ACTIVE stays as it is: a resume makes its version under the present release.
    Doing it again tells the same for the same `caller.source`, and changes nothing.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
        InvalidInput: the present release does not have its zone.
        Transient: a store did not answer.
    """
    for _ in range(ATTEMPTS):
        schedule = find_current(changes, caller.tenant.tenant_id, schedule_id)
        version = _version(changes, schedule.ref)
        if version.source == caller.source and version.created_by == SYSTEM:
            return Replanned(schedule, _told_again(changes, version))
        plan = _plan(changes, schedule, version, now)
        if plan is None:
            return Replanned(schedule)
        wanted = replace(schedule, revision=schedule.revision + 1, updated_at=now)
        try:
            done = succeed(
                changes,
                replace(caller, arn=SYSTEM),
                schedule,
                wanted,
                now,
                reason=f"Release {TZDB_VERSION} of the zone database moves times that "
                f"were computed by {version.tzdb}.",
                as_of=plan.as_of,
            )
        except PreconditionFailed:
            # Another change was first: judge again by what it left.
            continue
        return Replanned(done.schedule, plan.shifts)
    raise Transient(f"{schedule_id} is changed by others all the time")


def foresee_replan(
    changes: Changes, caller: Caller, schedule_id: str, now: datetime
) -> Replanned:
    """Say what a replan would do; nothing is stored.

    Raises:
        NotFound, InvalidInput, Transient: as `replan_schedule`.
    """
    schedule = find_current(changes, caller.tenant.tenant_id, schedule_id)
    version = _version(changes, schedule.ref)
    plan = _plan(changes, schedule, version, now)
    return Replanned(schedule, () if plan is None else plan.shifts)


def _plan(
    changes: Changes, schedule: Schedule, version: Version, now: datetime
) -> Replan | None:
    if schedule.state is not ScheduleState.ACTIVE:
        return None
    # The clock of whoever materializes may be ahead, and so may that of its reader.
    reach = now + changes.plane.horizon + 2 * CLOCK_SKEW
    return replan(version.definition.timing, version.tzdb, now, reach)


def _told_again(changes: Changes, version: Version) -> tuple[Shift, ...]:
    """Return what an interrupted replan, which made this version, moved."""
    ended = _version(changes, VersionRef(version.schedule_id, version.version - 1))
    return moved_times(
        ended.timing, version.timing, ended.ends_at or version.created_at
    )


def _version(changes: Changes, ref: VersionRef) -> Version:
    found = changes.plane.schedules.versions([ref], consistent=True).get(ref)
    if found is None:
        raise Transient(f"{ref} has no log entry")
    return found
