"""Update a schedule to what its owner wants, or foresee what that would do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import Definition, Schedule, ScheduleState, Tracking
from hourbell.domain.errors import (
    Conflict,
    InvalidInput,
    PreconditionFailed,
    Transient,
)
from hourbell.domain.occurrence import TRANSITIONS, Occurrence, State, Transition
from hourbell.domain.schedule import anchored, validate
from hourbell.usecases.admission import admission_findings
from hourbell.usecases.change_schedule import Changed, Changes, edit, find_current
from hourbell.usecases.expected import Expected
from hourbell.usecases.handover import earlier_ahead, rows_ahead
from hourbell.usecases.identify import Caller
from hourbell.usecases.preview import PreviewTime, preview

SHOWN: Final = 10
"""How many times a dry run shows."""

# How often a change that any revision will do for is tried when others are first.
ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """A schedule as it shall be.

    Attributes:
        definition: its timing without a rate's anchor.
    """

    definition: Definition
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an update would do.

    Attributes:
        schedule: as it would be.
        changes: whether anything would change.
        times: the next times of the definition that would be in force.
        canceled: ids of planned occurrences that would be canceled.
        already_dispatched: ids of those that would run all the same.
        complete: True when no more times come after these.
    """

    schedule: Schedule
    changes: bool
    times: tuple[PreviewTime, ...]
    canceled: tuple[str, ...]
    already_dispatched: tuple[str, ...]

    @property
    def complete(self) -> bool:
        """Whether no more times come after these."""
        return len(self.times) < SHOWN


Rewrite = Callable[[Schedule], Wanted]


def update_schedule(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    rewrite: Rewrite,
    now: datetime,
    *,
    expected: Expected,
) -> Changed:
    """Rewrite one of the tenant's schedules.

    Args:
        changes: the ports.
        caller: on whose behalf.
        schedule_id: which.
        rewrite: says from the schedule as it is how it shall be.
        now: the current instant.
        expected: which revisions this is meant for.

    Raises:
        NotFound: there is none with this id, or it is another tenant's.
        InvalidInput: the tenant may not have it like that.
        Conflict: the schedule is canceled (`schedule_canceled`).
        PreconditionFailed: the stored revision is another one.
        Transient: a store did not answer.
    """
    for _ in range(ATTEMPTS):
        schedule = _changeable(changes, caller, schedule_id)
        revision = expected.check(schedule.revision)
        try:
            wanted = _admitted(changes, caller, schedule, rewrite(schedule), now)
            return _edit(changes, caller, schedule, wanted, now)
        except PreconditionFailed:
            if revision is not None:
                raise
    raise Transient(f"{schedule_id} is changed by others all the time")


def foresee_update(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    rewrite: Rewrite,
    now: datetime,
    *,
    expected: Expected,
) -> Forecast:
    """Say what an update would do; nothing is stored.

    Raises:
        NotFound, InvalidInput, Conflict, PreconditionFailed, Transient: as
            `update_schedule`.
    """
    schedule = _changeable(changes, caller, schedule_id)
    expected.check(schedule.revision)
    wanted = _admitted(changes, caller, schedule, rewrite(schedule), now)
    labels = (wanted.description, dict(wanted.tags))
    renewed = wanted.definition != schedule.definition
    changed = renewed or labels != (schedule.description, schedule.tags)
    after = replace(
        schedule,
        definition=wanted.definition,
        description=wanted.description,
        tags=dict(wanted.tags),
        version=schedule.version + renewed,
        revision=schedule.revision + changed,
        updated_at=now if changed else schedule.updated_at,
    )
    canceled, standing = _walk(changes, schedule, now) if renewed else ((), ())
    since = max((now, *(row.scheduled_for for row in standing)))
    times = preview(wanted.definition.timing, since, SHOWN)
    return Forecast(
        after,
        changed,
        tuple(times),
        tuple(row.occurrence_id for row in canceled),
        tuple(row.occurrence_id for row in standing),
    )


def _changeable(changes: Changes, caller: Caller, schedule_id: str) -> Schedule:
    schedule = find_current(changes, caller.tenant.tenant_id, schedule_id)
    if schedule.state is ScheduleState.CANCELED:
        raise Conflict("The schedule is canceled.", code="schedule_canceled")
    return schedule


def _edit(
    changes: Changes, caller: Caller, schedule: Schedule, wanted: Wanted, now: datetime
) -> Changed:
    return edit(
        changes,
        caller,
        schedule,
        wanted.definition,
        now,
        description=wanted.description,
        tags=wanted.tags,
    )


def _admitted(
    changes: Changes, caller: Caller, schedule: Schedule, wanted: Wanted, now: datetime
) -> Wanted:
    """Return what is wanted, a rate counting on from where it counts now.

    Raises:
        InvalidInput: the tenant may not have it.
    """
    before, timing = schedule.definition, wanted.definition.timing
    if timing.expression == before.timing.expression:
        timing = replace(timing, anchor=before.timing.anchor)
    if timing != before.timing:
        validate(timing, now)
    definition = replace(wanted.definition, timing=anchored(timing, now))
    findings = admission_findings(
        changes.plane.directory, caller.tenant, definition, now, before=before
    )
    if findings:
        raise InvalidInput(findings=findings)
    return replace(wanted, definition=definition)


def _walk(
    changes: Changes, schedule: Schedule, now: datetime
) -> tuple[tuple[Occurrence, ...], tuple[Occurrence, ...]]:
    """Return the rows ahead that a new version would cancel, and those that stand."""
    found = changes.plane.schedules.versions([schedule.ref], consistent=True)
    version = found.get(schedule.ref)
    if version is None:
        return (), ()
    ended = replace(version, ends_at=now)
    ahead = rows_ahead(changes.plane, ended, now).values()
    rows = [row for row in ahead if row.state is not State.CANCELED]
    tracked = schedule.definition.tracking is Tracking.TRACKED
    transition = Transition.RECALL if tracked else Transition.WITHDRAW
    kept = len(rows)
    while kept and rows[kept - 1].state in TRANSITIONS[transition].sources:
        kept -= 1
    standing = [*earlier_ahead(changes.plane, ended), *rows[:kept]]
    return tuple(rows[kept:]), tuple(standing)
