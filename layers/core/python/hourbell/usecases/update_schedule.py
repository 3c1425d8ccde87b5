"""Update a schedule to what its owner wants, or foresee what that would do."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from hourbell.domain.definition import (
    Definition,
    Schedule,
    Version,
    VersionRef,
)
from hourbell.domain.errors import (
    InvalidInput,
    PreconditionFailed,
    Transient,
)
from hourbell.domain.json_values import is_same_json
from hourbell.domain.schedule import anchored, validate
from hourbell.domain.zones import TICK
from hourbell.usecases.admission import admission_findings
from hourbell.usecases.change_schedule import (
    Changed,
    Changes,
    edit,
    find_current,
    refuse_ended,
    release_after,
)
from hourbell.usecases.expected import Expected
from hourbell.usecases.handover import (
    Foreseen,
    counted_until_end,
    foresee_handover,
)
from hourbell.usecases.identify import Caller
from hourbell.usecases.preview import PreviewTime, is_complete, preview

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
        tzdb: release of the zone database by which the times are computed.
        complete: True when no more times come after these.
    """

    schedule: Schedule
    changes: bool
    times: tuple[PreviewTime, ...]
    canceled: tuple[str, ...]
    already_dispatched: tuple[str, ...]
    tzdb: str
    complete: bool


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
        Conflict: the schedule is over (`schedule_canceled`, `schedule_completed`).
        PreconditionFailed: the stored revision is another one.
        Transient: a store did not answer.
    """
    for _ in range(ATTEMPTS):
        schedule = _changeable(changes, caller, schedule_id)
        revision = expected.check(schedule.revision, schedule_id)
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
    expected.check(schedule.revision, schedule_id)
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
    foreseen = _foreseen(changes, after, now, renewed=renewed)
    heir = foreseen.heir
    since = now if heir.effective_from is None else heir.effective_from - TICK
    counted = heir.base_sequence
    times = preview(heir.timing, since, SHOWN, counted=counted)
    return Forecast(
        after,
        changed,
        tuple(times),
        tuple(row.occurrence_id for row in foreseen.canceled),
        tuple(row.occurrence_id for row in foreseen.standing),
        heir.tzdb,
        is_complete(heir.timing, since, SHOWN, times, counted=counted),
    )


def _changeable(changes: Changes, caller: Caller, schedule_id: str) -> Schedule:
    schedule = find_current(changes, caller.tenant.tenant_id, schedule_id)
    refuse_ended(schedule)
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
    if is_same_json(definition.payload_json, before.payload_json):
        # Another order of members is no other payload.
        definition = replace(definition, payload_json=before.payload_json)
    findings = admission_findings(
        changes.plane.directory, caller.tenant, definition, now, before=before
    )
    if findings:
        raise InvalidInput(findings=findings)
    return replace(wanted, definition=definition)


def _foreseen(
    changes: Changes, after: Schedule, now: datetime, *, renewed: bool
) -> Foreseen:
    """Return the version that would be in force, and what its handover would do.

    Its `effective_from` and `base_sequence` are where its times after now begin, and
    what is counted before them.
    """
    current = _in_force(changes, VersionRef(after.schedule_id, after.version - renewed))
    ended = replace(current, ends_at=now)
    if renewed:
        heir = replace(
            current,
            version=after.version,
            definition=after.definition,
            tzdb=release_after(current, after),
        )
        return foresee_handover(changes.plane, ended, heir, now)
    counted = counted_until_end(changes.plane, ended, now)
    begins = max(now + TICK, current.effective_from or now)
    heir = replace(current, effective_from=begins, base_sequence=counted)
    return Foreseen(heir, (), ())


def _in_force(changes: Changes, ref: VersionRef) -> Version:
    """Return a version as it is once its handover is finished.

    Raises:
        Transient: it has no log entry, which only a change under way explains.
    """
    before = VersionRef(ref.schedule_id, ref.version - 1)
    found = changes.plane.schedules.versions([before, ref], consistent=True)
    version, ended = found.get(ref), found.get(before)
    if version is None:
        raise Transient(f"{ref} has no log entry")
    if version.effective_from is None and ended is not None and ended.ends_at:
        plane, as_of = changes.plane, ended.ends_at
        version = foresee_handover(plane, ended, version, as_of).heir
    return version
