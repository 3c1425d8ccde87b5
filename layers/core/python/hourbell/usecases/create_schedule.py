"""Create a schedule, and materialize it at once when it is due soon."""

from dataclasses import dataclass, replace
from datetime import datetime

from hourbell.domain.definition import (
    Definition,
    NewSchedule,
    Schedule,
    ScheduleState,
    Version,
    VersionRef,
    derived_schedule_id,
)
from hourbell.domain.errors import (
    Conflict,
    Finding,
    InvalidInput,
    QuotaExceeded,
    Transient,
)
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.schedule import anchored, next_planned, validate
from hourbell.domain.zones import TICK, TZDB_VERSION, release_at_hand
from hourbell.usecases.admission import admission_findings, handler_findings
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import Plane, advance
from hourbell.usecases.ports import Creation, Ids, ShardGroups
from hourbell.usecases.scanned import have_scanned

__all__ = [
    "Created",
    "NewSchedule",
    "Registry",
    "Rehearsal",
    "create_schedule",
    "definition_of",
    "rehearse_create",
]

FIRST_VERSION = 1


@dataclass(frozen=True, slots=True)
class Registry:
    """What creating needs.

    Attributes:
        plane: stores and shards, and the materializing of what is due soon.
    """

    plane: Plane
    groups: ShardGroups
    ids: Ids


@dataclass(frozen=True, slots=True)
class Created:
    """The schedule as it was created.

    Attributes:
        first: its first occurrence as it was planned.
        replayed: True when an earlier call with this key had created it.
        materialized: False when what is due within the horizon could not be
            materialized in the call; the next pass does it.
    """

    schedule: Schedule
    version: Version
    first: Occurrence
    replayed: bool = False
    materialized: bool = True


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a create would do.

    Attributes:
        schedule: as it would be; its id holds only for a request with a key.
        refusals: why it would not be created; empty when it would.
    """

    schedule: Schedule
    version: Version
    first: Occurrence
    refusals: tuple[Finding, ...]


def create_schedule(
    registry: Registry, caller: Caller, request: NewSchedule, now: datetime
) -> Created:
    """Store definition, version 1 and first occurrence; materialize what is near.

    With an idempotency key, the id follows from tenant and key: the same request
    gets the original answer, however much later and whatever became of the schedule.

    Args:
        registry: the ports.
        caller: on whose behalf.
        request: what to create.
        now: the current instant; the schedule's times lie strictly after it.

    Raises:
        InvalidInput: the timing is not valid or never fires, or the tenant may not
            have such a schedule (see `admission`).
        Conflict: the key was used for another request (`idempotency_key_reused`), or
            the tenant has a schedule of this name (`name_taken`).
        QuotaExceeded: the tenant has as many schedules as it may.
        Transient: a store did not answer; nothing or everything is stored.
    """
    schedule_id = _schedule_id(registry, caller, request)
    findings = _findings(registry, caller, request, now)
    if findings:
        # Judged today, a repeated request may be wrong that once was right.
        original = _original(registry, schedule_id, request)
        if original is not None:
            return _replay(registry, request, original, now)
        raise InvalidInput(findings=findings)
    version = _first_version(schedule_id, caller, request, now)
    schedule = _schedule(version, request)
    first = _first_occurrence(registry, version)
    group = registry.plane.shard_map.group_of(first.shard)
    have_scanned(registry.groups, group, now)
    quota = caller.tenant.quotas.schedules
    answer = registry.plane.schedules.create(schedule, version, first, quota=quota)
    if answer is Creation.CREATED:
        near = _materialize(registry, first, now)
        return Created(schedule, version, first, materialized=near)
    if answer is Creation.NAME_TAKEN:
        raise _name_taken(registry, caller, request.name)
    if answer is Creation.QUOTA_FULL:
        raise _quota_full(registry, caller)
    stored = _stored(registry, schedule_id)
    if stored is None:
        raise Transient(f"{schedule_id} was taken and is not there")
    return _replay(registry, request, _checked(stored, request), now)


def rehearse_create(
    registry: Registry,
    caller: Caller,
    request: NewSchedule,
    now: datetime,
    *,
    pending: int = 0,
) -> Rehearsal:
    """Say what a create would do; nothing is stored.

    A request that was done before would get its original answer, and is not refused.
    `pending` creates count as if they were done before it.

    Raises:
        InvalidInput: the timing is not valid or never fires.
        Conflict: the key was used for another request (`idempotency_key_reused`).
        Transient: a store did not answer.
    """
    schedule_id = _schedule_id(registry, caller, request)
    original = _original(registry, schedule_id, request)
    if original is None:
        validate(request.timing, now)
        version = _first_version(schedule_id, caller, request, now)
        refusals = _refusals(registry, caller, request, now, pending)
    else:
        version, refusals = original, ()
    first = _first_occurrence(registry, version)
    return Rehearsal(_schedule(version, request), version, first, refusals)


def _refusals(
    registry: Registry,
    caller: Caller,
    request: NewSchedule,
    now: datetime,
    pending: int,
) -> tuple[Finding, ...]:
    """Return why a create with a valid timing would be refused now."""
    refusals = _findings(registry, caller, request, now)
    schedules, tenant_id = registry.plane.schedules, caller.tenant.tenant_id
    if schedules.find_by_name(tenant_id, request.name) is not None:
        taken = _name_taken(registry, caller, request.name)
        refusals += (Finding("name", taken.code, taken.message, request.name),)
    if schedules.count(tenant_id) + pending >= caller.tenant.quotas.schedules:
        full = _quota_full(registry, caller)
        refusals += (Finding("", full.code, full.message),)
    return refusals


def _schedule_id(registry: Registry, caller: Caller, request: NewSchedule) -> str:
    if request.idempotency_key is None:
        return registry.ids.schedule_id()
    return derived_schedule_id(caller.tenant.tenant_id, request.idempotency_key)


def _findings(
    registry: Registry, caller: Caller, request: NewSchedule, now: datetime
) -> tuple[Finding, ...]:
    """Return what is wrong with a request, all at once."""
    directory, tenant = registry.plane.directory, caller.tenant
    try:
        validate(request.timing, now)
    except InvalidInput as error:
        handler = handler_findings(directory, tenant, request.handler)
        return (*error.findings, *handler)
    return admission_findings(directory, tenant, definition_of(request), now)


def _name_taken(registry: Registry, caller: Caller, name: str) -> Conflict:
    """Return the error that tells which schedule has a name: the tenant's own."""
    tenant_id = caller.tenant.tenant_id
    holder = registry.plane.schedules.find_by_name(tenant_id, name)
    return Conflict(
        f"The name {name!r} is that of the schedule {holder}.",
        code="name_taken",
        members={"field": "name", "schedule_id": holder},
    )


def _quota_full(registry: Registry, caller: Caller) -> QuotaExceeded:
    allowed = caller.tenant.quotas.schedules
    used = registry.plane.schedules.count(caller.tenant.tenant_id)
    return QuotaExceeded(
        f"The tenant has {used} schedules; its quota is {allowed}.",
        members={"quota": "schedules", "used": used, "allowed": allowed},
    )


def definition_of(request: NewSchedule) -> Definition:
    """Return the definition that a request asks for, without a rate's anchor."""
    return Definition(
        timing=request.timing,
        handler=request.handler,
        payload_json=request.payload_json,
        tracking=request.tracking,
        flexible_window_seconds=request.flexible_window_seconds,
        misfire=request.misfire,
        overlap=request.overlap,
        retry=request.retry,
    )


def _first_version(
    schedule_id: str, caller: Caller, request: NewSchedule, now: datetime
) -> Version:
    definition = definition_of(request)
    timing = anchored(request.timing, now)
    return Version(
        schedule_id=schedule_id,
        version=FIRST_VERSION,
        tenant_id=caller.tenant.tenant_id,
        name=request.name,
        definition=replace(definition, timing=timing),
        # Just after now: a time at this very instant is past.
        effective_from=now + TICK,
        tzdb=TZDB_VERSION,
        created_at=now,
        created_by=caller.arn,
        source=caller.source,
        body_hash=request.body_hash,
    )


def _schedule(version: Version, request: NewSchedule) -> Schedule:
    """Return the schedule as it is at its creation.

    What the version log does not keep comes from the request, which for a repeated
    one is the original's too.
    """
    return Schedule(
        schedule_id=version.schedule_id,
        tenant_id=version.tenant_id,
        name=version.name,
        definition=version.definition,
        state=ScheduleState.ACTIVE,
        version=version.version,
        revision=1,
        created_at=version.created_at,
        updated_at=version.created_at,
        description=request.description,
        tags=dict(request.tags),
    )


def _first_occurrence(registry: Registry, version: Version) -> Occurrence:
    """Return the row of a version's first time.

    Raises:
        Transient: there is none although the timing was found to fire.
    """
    planned = next_planned(version.timing, version.created_at, 0)
    if planned is None:
        raise Transient(f"{version.schedule_id} has no first time")
    instant, sequence = planned
    return Occurrence(
        schedule_id=version.schedule_id,
        version=version.version,
        scheduled_for=instant,
        shard=registry.plane.shard_map.shard_of(version.schedule_id, instant),
        tenant_id=version.tenant_id,
        sequence=sequence,
        tzdb=release_at_hand(version.tzdb),
        planned_at=version.created_at,
    )


def _materialize(registry: Registry, first: Occurrence, now: datetime) -> bool:
    """Take the first row through the steps if it is near; tell whether all went."""
    plane = registry.plane
    # A create that is repeated may come long after the first one.
    is_behind = plane.shard_map.is_crossed(first.scheduled_for, now)
    try:
        return advance(plane, [first], now, is_behind=is_behind).unknown == 0
    except Transient:
        # Stored it is, and the next pass finds it: no error to the caller.
        return False


def _stored(registry: Registry, schedule_id: str) -> Version | None:
    ref = VersionRef(schedule_id, FIRST_VERSION)
    return registry.plane.schedules.versions([ref], consistent=True).get(ref)


def _original(
    registry: Registry, schedule_id: str, request: NewSchedule
) -> Version | None:
    """Return what an earlier call with the same key and request created."""
    if request.idempotency_key is None:
        return None
    stored = _stored(registry, schedule_id)
    return None if stored is None else _checked(stored, request)


def _checked(stored: Version, request: NewSchedule) -> Version:
    """Return a stored version if this request is the one that created it."""
    if stored.body_hash == request.body_hash:
        return stored
    raise Conflict(
        "This Idempotency-Key was used for a request with another body.",
        code="idempotency_key_reused",
    )


def _replay(
    registry: Registry, request: NewSchedule, version: Version, now: datetime
) -> Created:
    """Answer as the original call did, and finish its work if it was cut short."""
    first = _first_occurrence(registry, version)
    row = registry.plane.timeline.read([first.key]).get(first.key)
    near = True if row is None else _materialize(registry, row, now)
    schedule = _schedule(version, request)
    return Created(schedule, version, first, replayed=True, materialized=near)
