"""Change a schedule: edit, pause, resume, cancel."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from hourbell.domain.definition import (
    Definition,
    Schedule,
    ScheduleState,
    Version,
    VersionRef,
)
from hourbell.domain.dispatch import Dispatch, DispatchKind, handover_due
from hourbell.domain.errors import (
    Conflict,
    NotFound,
    PreconditionFailed,
    Transient,
)
from hourbell.domain.policies import CLOCK_SKEW
from hourbell.domain.schedule import anchored, validate
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.earlier_ahead import earlier_ahead
from hourbell.usecases.handover import finish_handover, settle
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import Plane
from hourbell.usecases.ports import Clock, ShardGroups, Succession, Write
from hourbell.usecases.revisions import stale
from hourbell.usecases.scanned import have_scanned

# How often a change without If-Match is tried again when another one was first.
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Changes:
    """What changing needs."""

    plane: Plane
    groups: ShardGroups
    clock: Clock


@dataclass(frozen=True, slots=True)
class Changed:
    """A schedule after a change.

    Attributes:
        changed: False when it was like that already.
        already_dispatched: ids of occurrences after the change that run all the same.
        finished: False when the change is stored and the next pass finishes its
            handover; then `already_dispatched` is not known.
    """

    schedule: Schedule
    changed: bool = True
    already_dispatched: tuple[str, ...] = ()
    finished: bool = True


def find_current(changes: Changes, tenant_id: str, schedule_id: str) -> Schedule:
    """Return one of the tenant's schedules, by a consistent read.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
    """
    schedule = changes.plane.schedules.find(schedule_id)
    if schedule is None or schedule.tenant_id != tenant_id:
        raise NotFound
    return schedule


def edit(
    changes: Changes,
    caller: Caller,
    schedule: Schedule,
    definition: Definition,
    now: datetime,
    *,
    description: str,
    tags: Mapping[str, str],
    reason: str | None = None,
) -> Changed:
    """Give a schedule another definition, description or tags.

    A new definition makes a new version, whose times lie after `now`; description
    and tags alone touch no occurrence. A rate keeps its anchor while its expression
    stays.

    Args:
        changes: the ports.
        caller: on whose behalf.
        schedule: as it was read; its revision must still be the stored one.
        definition: as it shall be, its timing without anchor.
        now: the current instant.
        description: as it shall be.
        tags: as they shall be.
        reason: for the version log.

    Raises:
        Conflict: the schedule is over (`schedule_canceled`, `schedule_completed`).
        InvalidInput: the new timing is not valid or never fires.
        PreconditionFailed: another change was first.
        Transient: a store did not answer.
    """
    refuse_ended(schedule)
    timing = definition.timing
    if timing.expression == schedule.definition.timing.expression:
        timing = replace(timing, anchor=schedule.definition.timing.anchor)
    definition = replace(definition, timing=anchored(timing, now))
    labeled = replace(
        schedule,
        description=description,
        tags=dict(tags),
        revision=schedule.revision + 1,
        updated_at=now,
    )
    if definition == schedule.definition:
        return _relabel(changes, schedule, labeled, now)
    if definition.timing != schedule.definition.timing:
        validate(definition.timing, now)
    edited = replace(labeled, definition=definition)
    return succeed(changes, caller, schedule, edited, now, reason=reason)


def pause(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    now: datetime,
    *,
    revision: int | None = None,
    reason: str | None = None,
) -> Changed:
    """Stop a schedule until it is resumed; its times meanwhile are not made up for.

    Raises:
        NotFound, Conflict, PreconditionFailed, Transient: as `edit`.
    """
    return _become(
        changes,
        caller,
        schedule_id,
        now,
        ScheduleState.PAUSED,
        revision=revision,
        reason=reason,
    )


def resume(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    now: datetime,
    *,
    revision: int | None = None,
    reason: str | None = None,
) -> Changed:
    """Let a paused schedule go on with its next time after now.

    Raises:
        NotFound, Conflict, PreconditionFailed, Transient: as `edit`.
    """
    return _become(
        changes,
        caller,
        schedule_id,
        now,
        ScheduleState.ACTIVE,
        revision=revision,
        reason=reason,
    )


def cancel(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    now: datetime,
    *,
    revision: int | None = None,
    reason: str | None = None,
) -> Changed:
    """End a schedule for good; its definition and log are kept, its name is free.

    A completed one is over already, and stays completed.

    Raises:
        NotFound, PreconditionFailed, Transient: as `edit`.
    """
    return _become(
        changes,
        caller,
        schedule_id,
        now,
        ScheduleState.CANCELED,
        revision=revision,
        reason=reason,
    )


def _become(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    now: datetime,
    state: ScheduleState,
    *,
    revision: int | None,
    reason: str | None,
) -> Changed:
    """Bring a schedule into a state, unless it is in it."""
    for _ in range(ATTEMPTS):
        schedule = find_current(changes, caller.tenant.tenant_id, schedule_id)
        if revision is not None and schedule.revision != revision:
            raise stale(schedule.revision)
        if is_so(schedule, state):
            return _unchanged(changes, schedule, now)
        refuse_ended(schedule)
        wanted = replace(
            schedule, state=state, revision=schedule.revision + 1, updated_at=now
        )
        try:
            return succeed(changes, caller, schedule, wanted, now, reason=reason)
        except PreconditionFailed:
            # Another change was first: judge again by what it left.
            continue
    raise Transient(f"{schedule_id} is changed by others all the time")


def is_so(schedule: Schedule, state: ScheduleState) -> bool:
    """Whether a schedule need not be changed to be in a state.

    Canceling one that is completed changes nothing: it is over already.
    """
    over = schedule.state is ScheduleState.COMPLETED
    return schedule.state is state or (over and state is ScheduleState.CANCELED)


def _unchanged(changes: Changes, schedule: Schedule, now: datetime) -> Changed:
    """Answer what is like that already, perhaps by a call whose answer was lost.

    As long as something can stand of a change, it is told again, and the change is
    finished if it was interrupted; an open one is not called finished.
    """
    like_that = Changed(schedule, changed=False, finished=not schedule.handover)
    lately = schedule.updated_at + changes.plane.horizon + 2 * CLOCK_SKEW
    if not schedule.handover and now > lately:
        return like_that
    before = VersionRef(schedule.schedule_id, schedule.version - 1)
    try:
        ended = changes.plane.schedules.versions([before], consistent=True).get(before)
        if ended is None:
            return like_that
        return _finished(changes, like_that, ended)
    except Transient:
        return like_that


def refuse_ended(schedule: Schedule) -> None:
    """Refuse to change a schedule that is over.

    Raises:
        Conflict: it is canceled (`schedule_canceled`) or completed
            (`schedule_completed`).
    """
    if schedule.state is ScheduleState.CANCELED:
        raise Conflict("The schedule is canceled.", code="schedule_canceled")
    if schedule.state is ScheduleState.COMPLETED:
        message = "The schedule is completed: it has no further time. Create another."
        raise Conflict(message, code="schedule_completed")


def _relabel(
    changes: Changes, schedule: Schedule, labeled: Schedule, now: datetime
) -> Changed:
    """Store description and tags where they differ."""
    same = (schedule.description, schedule.tags) == (labeled.description, labeled.tags)
    if same:
        return _unchanged(changes, schedule, now)
    answer = changes.plane.schedules.relabel(labeled, revision=schedule.revision)
    if answer is Write.APPLIED:
        return Changed(labeled)
    raise _overtaken(changes, schedule)


def _overtaken(changes: Changes, schedule: Schedule) -> PreconditionFailed:
    current = find_current(changes, schedule.tenant_id, schedule.schedule_id)
    return stale(current.revision)


def succeed(
    changes: Changes,
    caller: Caller,
    schedule: Schedule,
    wanted: Schedule,
    now: datetime,
    *,
    reason: str | None,
    as_of: datetime | None = None,
) -> Changed:
    """Make a new version of a schedule, and hand over to it.

    Args:
        changes: the ports.
        caller: on whose behalf.
        schedule: as it was read.
        wanted: as it shall be, with the next revision.
        now: the current instant.
        reason: for the version log.
        as_of: of a replan: times up to it stay with the version in force. Later ones
            go by the present release of the zone database.

    Raises:
        PreconditionFailed: the stored revision is no longer `schedule`'s.
        Transient: a store did not answer; the change may be stored, then a pass
            finishes it.
    """
    if schedule.handover:
        finish_handover(changes.plane, schedule.ref, changes.clock)
    change = _succession(changes, caller, schedule, wanted, now, reason)
    if as_of is not None:
        change = replace(
            change,
            version=replace(change.version, tzdb=TZDB_VERSION),
            ended=replace(change.ended, ends_at=as_of),
        )
    group = changes.plane.shard_map.group_of(change.dispatch.shard)
    have_scanned(changes.groups, group, now)
    if changes.plane.schedules.succeed(change) is not Write.APPLIED:
        current = find_current(changes, schedule.tenant_id, schedule.schedule_id)
        if current.revision == schedule.revision:
            raise Transient(f"a handover of {schedule.schedule_id} is under way")
        raise stale(current.revision)
    return _finish(changes, change)


def _finish(changes: Changes, change: Succession) -> Changed:
    """Finish the handover of a change that is stored, if the stores let us."""
    stored = Changed(change.schedule, finished=False)
    try:
        done = _finished(changes, stored, change.ended)
        if done.finished:
            settle(changes.plane, change.dispatch, changes.clock.now())
    except Transient:
        return stored
    return done


def _finished(changes: Changes, stored: Changed, ended: Version) -> Changed:
    """Return a change as it is when its handover is finished.

    Raises:
        Transient: the stores did not answer clearly.
    """
    done = finish_handover(changes.plane, stored.schedule.ref, changes.clock)
    if done is None:
        return stored
    standing = (*earlier_ahead(changes.plane, ended), *done.standing)
    return Changed(
        replace(stored.schedule, handover=False),
        stored.changed,
        tuple(row.occurrence_id for row in standing),
    )


def release_after(current: Version, wanted: Schedule) -> str:
    """Return the zone database's release for the version after the one in force.

    It is the present one, unless an edit leaves the timing of what is running: then
    it leaves the times, too. Where two releases are apart today, a time could else be
    lost, or come twice; moving them is a replan's, which knows of that.
    """
    goes_on = current.state is wanted.state is ScheduleState.ACTIVE
    if goes_on and current.definition.timing == wanted.definition.timing:
        return current.tzdb
    return TZDB_VERSION


def _succession(
    changes: Changes,
    caller: Caller,
    schedule: Schedule,
    wanted: Schedule,
    now: datetime,
    reason: str | None,
) -> Succession:
    """Describe the change from the version in force to the next."""
    versions = changes.plane.schedules.versions([schedule.ref], consistent=True)
    current = versions.get(schedule.ref)
    if current is None:
        raise Transient(f"{schedule.ref} has no log entry")
    heir = VersionRef(schedule.schedule_id, schedule.version + 1)
    due = handover_due(now)
    return Succession(
        schedule=replace(wanted, version=heir.version, handover=True),
        version=Version(
            schedule_id=heir.schedule_id,
            version=heir.version,
            tenant_id=schedule.tenant_id,
            name=schedule.name,
            definition=wanted.definition,
            effective_from=None,
            tzdb=release_after(current, wanted),
            created_at=now,
            created_by=caller.arn,
            source=caller.source,
            reason=reason,
            state=wanted.state,
        ),
        ended=replace(current, ends_at=now, ends_as=wanted.state),
        dispatch=Dispatch(
            DispatchKind.HANDOVER,
            heir.schedule_id,
            heir.version,
            schedule.tenant_id,
            due,
            changes.plane.shard_map.shard_of(heir.schedule_id, due),
            now,
        ),
        revision=schedule.revision,
    )
