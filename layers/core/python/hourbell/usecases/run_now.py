"""Run a schedule once, now, beside its own times."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

from hourbell.domain.definition import Schedule, ScheduleState
from hourbell.domain.errors import Conflict, NotFound, Transient
from hourbell.domain.occurrence import Occurrence, RowKey, State, row_key
from hourbell.domain.rates import usual_rates
from hourbell.domain.routing import queue_key
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.change_schedule import Changes, find_current
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import release_at
from hourbell.usecases.pacing import pace
from hourbell.usecases.ports import Run, Write
from hourbell.usecases.scanned import have_scanned


@dataclass(frozen=True, slots=True)
class Started:
    """A manual run.

    Attributes:
        occurrence: as it was written, or as it is by now when `replayed`.
        zone: of the schedule, for local times.
        replayed: True when an earlier call with this key had started it.
    """

    occurrence: Occurrence
    zone: str
    replayed: bool = False


def run_now(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    now: datetime,
    *,
    key: str,
    reason: str | None = None,
) -> Started:
    """Make an occurrence of the version in force that is due now.

    It is an outbox record at once, and like any other one the stream brings it to the
    relay; where a rate is used up for so long that the queue's delay does not reach, it
    is deferred. A paused schedule can be run too. The schedule's own times do not
    change.

    Args:
        changes: the ports.
        caller: on whose behalf.
        schedule_id: which schedule.
        now: the current instant; `scheduled_for` is its second.
        key: names the request, so that repeating it runs once.
        reason: kept with the run.

    Raises:
        NotFound: there is no such schedule of the tenant.
        Conflict: the schedule is canceled (`schedule_canceled`).
        Transient: a store did not answer; the run is stored or not.
    """
    schedule = find_current(changes, caller.tenant.tenant_id, schedule_id)
    key_hash = _hash(schedule, key)
    earlier = changes.plane.schedules.find_run(schedule_id, key_hash[:16])
    if earlier is not None:
        return _replay(changes, schedule, earlier)
    if schedule.state is ScheduleState.CANCELED:
        raise Conflict("The schedule is canceled.", code="schedule_canceled")
    second = now.replace(microsecond=0)
    run = Run(schedule_id, key_hash, schedule.version, second, caller.arn, reason)
    return _start(changes, caller, schedule, run, now)


def _start(
    changes: Changes, caller: Caller, schedule: Schedule, run: Run, now: datetime
) -> Started:
    """Store a run and its row, unless somebody else was first."""
    row = _row(changes, schedule, caller, run, now)
    dispatch = None
    if row.state is State.DEFERRED:
        dispatch = release_at(changes.plane, row, now)
    for shard in {row.shard, row.shard if dispatch is None else dispatch.shard}:
        group = changes.plane.shard_map.group_of(shard)
        have_scanned(changes.groups, group, now)
    answer = changes.plane.schedules.record_run(run, row, dispatch)
    if answer is Write.APPLIED:
        return Started(row, schedule.definition.timing.zone)
    if answer is Write.LOST:
        raise Conflict("The schedule is canceled.", code="schedule_canceled")
    earlier = changes.plane.schedules.find_run(run.schedule_id, run.run)
    if earlier is None:
        raise Transient(f"a run of {run.schedule_id} is taken and not there")
    return _replay(changes, schedule, earlier)


def _hash(schedule: Schedule, key: str) -> str:
    text = f"{schedule.tenant_id}\n{schedule.schedule_id}\n{key}"
    return hashlib.sha256(text.encode()).hexdigest()


def _row(
    changes: Changes, schedule: Schedule, caller: Caller, run: Run, now: datetime
) -> Occurrence:
    """Return the run's row: an outbox record, available when its rates have room.

    Raises:
        NotFound: the handler is gone.
        Transient: no place was to be had.
    """
    definition = schedule.definition
    ref = (schedule.tenant_id, definition.handler)
    handler = changes.plane.directory.named_handlers([ref]).get(ref)
    if handler is None:
        raise NotFound(f"The handler {definition.handler!r} is not registered.")
    key = _key(changes, run)
    row = Occurrence(
        schedule_id=run.schedule_id,
        version=run.version,
        scheduled_for=run.scheduled_for,
        shard=key.shard,
        tenant_id=schedule.tenant_id,
        sequence=0,
        tzdb=TZDB_VERSION,
        planned_at=now,
        state=State.SCHEDULED,
        available_at=run.scheduled_for,
        lane=definition.lane,
        queue=queue_key(caller.tenant.tier, handler, definition.lane),
        scheduled_at=now,
        run=run.run,
    )
    paced = pace(changes.plane.rates, [(row, usual_rates(caller.tenant, handler))], now)
    if paced.waiting:
        raise Transient(f"a rate of the handler {handler.name} did not answer")
    return paced.rows.get(key, row)


def _key(changes: Changes, run: Run) -> RowKey:
    shard = changes.plane.shard_map.shard_of(run.schedule_id, run.scheduled_for)
    return row_key(run.schedule_id, run.version, run.scheduled_for, shard, run.run)


def _replay(changes: Changes, schedule: Schedule, run: Run) -> Started:
    """Return the run that an earlier call started, as it is by now."""
    key = _key(changes, run)
    row = changes.plane.timeline.read([key]).get(key)
    if row is None:
        raise NotFound(
            f"The run of {schedule.schedule_id} under this key has expired.",
            code="run_expired",
        )
    return Started(row, schedule.definition.timing.zone, replayed=True)
