"""Make up for past times: create what nobody ran, once, at a pace.

Each time is judged by the version that owns it and written by one transaction of its
own, so that a call that is cut short leaves only whole things, and repeating it makes
nothing twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import chain, islice

from hourbell.domain.definition import Schedule, ScheduleState, Version
from hourbell.domain.dispatch import Dispatch
from hourbell.domain.errors import Conflict, NotFound, Transient
from hourbell.domain.instants import ceil_second
from hourbell.domain.occurrence import (
    Lane,
    Occurrence,
    RowKey,
    State,
    Transition,
    row_key,
)
from hourbell.domain.occurrence import occurrence_id as id_of
from hourbell.domain.rates import Rate, usual_rates
from hourbell.domain.retention import REMEMBERED
from hourbell.domain.routing import queue_key
from hourbell.domain.zones import release_at_hand
from hourbell.usecases.backfill_values import (
    EXPIRED,
    Backfilled,
    BackfillItem,
    BackfillRequest,
    Outcome,
    SkipReason,
)
from hourbell.usecases.change_schedule import Changes, find_current
from hourbell.usecases.gaps import Read, Search, covering, told_by
from hourbell.usecases.handover import finish_handover
from hourbell.usecases.identify import Caller
from hourbell.usecases.materialize import release_at
from hourbell.usecases.ownership import Stretch, stretches
from hourbell.usecases.pacing import pace
from hourbell.usecases.ports import Backfill, Change, Write
from hourbell.usecases.release import release
from hourbell.usecases.scanned import have_scanned

# How long one call writes. The function that runs it is ended after 15 s, and what is
# written must then be released and answered.
BUDGET = timedelta(seconds=8)

# A change that began before a time may come to own it for so long: as long as the
# function that makes it can run, and some difference of clocks.
SETTLED_AFTER = timedelta(seconds=20)

# How many of the new occurrences the call itself releases; passes release the others.
RELEASED_AT_ONCE = 100


def backfill(
    changes: Changes,
    caller: Caller,
    schedule_id: str,
    request: BackfillRequest,
    now: datetime,
) -> Backfilled:
    """Create occurrences of a schedule's past times that never were, or were missed.

    Args:
        changes: the ports.
        caller: on whose behalf.
        schedule_id: which schedule; a paused one may be backfilled too.
        request: range, bounds and pace.
        now: the current instant.

    Raises:
        InvalidInput: the range does not lie in the past (`out_of_range`,
            `reversed_range`), or what is UNTRACKED shall have another overlap policy
            than ALLOW (`overlap_needs_tracking`).
        NotFound: there is no such schedule of the tenant, or no handler of it.
        Conflict: the schedule is canceled (`schedule_canceled`).
        Transient: a store did not answer, or a change is under way; what is created
            stays, and repeating the call goes on.
    """
    last = request.checked(now)
    schedule = _find_settled(changes, caller, schedule_id, dry_run=request.dry_run)
    edge = ceil_second(now - REMEMBERED)
    first = max(request.first, edge)
    parts: tuple[Stretch, ...] = ()
    if first < last:
        parts = stretches(changes.plane.schedules, schedule, first, last)
    work = _Work(changes, caller, schedule, request, now)
    taken = list(islice(_times_of(parts, schedule, now), request.limit + 1))
    items = work.run(taken[: request.limit])
    left = taken[len(items) :]
    return Backfilled(
        items=tuple(items),
        last=last,
        next_from=left[0].instant if left else None,
        pace_from=work.available_at(),
        skipped_before=edge if request.first < edge else None,
    )


def _find_settled(
    changes: Changes, caller: Caller, schedule_id: str, *, dry_run: bool
) -> Schedule:
    """Return the schedule when it is clear which version owns which times.

    A handover under way is finished first, but not for a dry run.
    """
    tenant_id = caller.tenant.tenant_id
    schedule = find_current(changes, tenant_id, schedule_id)
    if schedule.handover and not dry_run:
        finish_handover(changes.plane, schedule.ref, changes.clock)
        schedule = find_current(changes, tenant_id, schedule_id)
    if schedule.state is ScheduleState.CANCELED:
        raise _canceled()
    if schedule.handover:
        raise Transient(f"a handover of {schedule_id} is under way")
    return schedule


def _canceled() -> Conflict:
    return Conflict("The schedule is canceled.", code="schedule_canceled")


@dataclass(frozen=True, slots=True)
class _Time:
    """A time of the range, and how it is to be judged.

    Attributes:
        is_settled: False when a change that is under way may come to own it.
    """

    instant: datetime
    version: Version
    is_owned: bool
    is_settled: bool


def _times_of(
    parts: Sequence[Stretch], schedule: Schedule, now: datetime
) -> Iterator[_Time]:
    """Yield the times of a range, in order."""
    return chain.from_iterable(_times_in(part, schedule, now) for part in parts)


def _times_in(part: Stretch, schedule: Schedule, now: datetime) -> Iterator[_Time]:
    is_paused = schedule.state is not ScheduleState.ACTIVE
    paused_from = part.version.effective_from if is_paused else None
    for instant in part.times():
        is_open = paused_from is not None and instant >= paused_from
        is_recent = is_open and instant > now - SETTLED_AFTER
        is_settled = part.is_owned or not is_recent
        yield _Time(instant, part.version, part.is_owned, is_settled)


@dataclass(frozen=True, slots=True)
class _Found:
    """What there is of a time.

    Attributes:
        key: where its row lies, or would lie.
        occurrence_id: which it is, or would be.
        row: None when there is none.
        was_backfilled: whether an earlier call created it.
        told: what a gap row says of a time without a row; None when none does.
    """

    key: RowKey
    occurrence_id: str
    row: Occurrence | None
    was_backfilled: bool
    told: State | None = None


@dataclass(slots=True)
class _Work:
    """One call at work."""

    changes: Changes
    caller: Caller
    schedule: Schedule
    request: BackfillRequest
    now: datetime
    created: int = 0
    releases: list[Dispatch] = field(default_factory=list)
    queues: dict[str, str] = field(default_factory=dict)
    rates: dict[str, tuple[Rate, ...]] = field(default_factory=dict)
    groups: set[int] = field(default_factory=set)

    def run(self, times: Sequence[_Time]) -> list[BackfillItem]:
        """Judge and create, until all is done or the budget is used up.

        One time is taken in any case, so that repeating the call comes to an end.
        """
        if not times:
            return []
        found = self._find(times)
        self._route([each for each in times if _settled(each, found) is None])
        items: list[BackfillItem] = []
        for time in times:
            item = _settled(time, found)
            if item is None and items and self._is_over():
                break
            items.append(item or self._create(time, found[time.instant]))
        self._release()
        return items

    def available_at(self) -> datetime:
        """Return when the next occurrence may be received, by the pace."""
        begin = ceil_second(max(self.request.pace_from or self.now, self.now))
        return begin + timedelta(seconds=self.created * 60 // self.request.per_minute)

    def _is_over(self) -> bool:
        return self.changes.clock.now() >= self.now + BUDGET

    def _find(self, times: Sequence[_Time]) -> dict[datetime, _Found]:
        """Look up what there is of the times, by consistent reads."""
        plane, schedule_id = self.changes.plane, self.schedule.schedule_id
        first, last = times[0].instant, times[-1].instant
        earlier = {
            each.scheduled_for: each.version
            for each in plane.schedules.backfills(schedule_id, first, last)
        }
        numbers = {
            time.instant: earlier.get(time.instant, time.version.version)
            for time in times
        }
        keys = {
            instant: row_key(
                schedule_id,
                number,
                instant,
                plane.shard_map.shard_of(schedule_id, instant),
            )
            for instant, number in numbers.items()
        }
        rows = plane.timeline.read(keys.values())
        bare = [time for time in times if time.is_owned and _is_bare(time, keys, rows)]
        told = self._told([time for time in bare if time.instant not in earlier])
        return {
            instant: _Found(
                key=key,
                occurrence_id=id_of(schedule_id, numbers[instant], instant),
                row=rows.get(key),
                was_backfilled=instant in earlier,
                told=told.get(instant),
            )
            for instant, key in keys.items()
        }

    def _told(self, times: Sequence[_Time]) -> dict[datetime, State]:
        """Return what gap rows say of times without a row of their own."""
        told: dict[datetime, State] = {}
        for version in {time.version.ref: time.version for time in times}.values():
            search = Search(version, self._reader(version), self.now - REMEMBERED)
            own = [time.instant for time in times if time.version is version]
            for instant, gap in covering(search, own[::-1]).items():
                answer = told_by(gap, version, instant)
                if answer is not None:
                    told[instant] = answer[0]
        return told

    def _reader(self, version: Version) -> Read:
        """Return how rows of a version's times are read."""
        plane = self.changes.plane

        def read(instants: Sequence[datetime]) -> Mapping[datetime, Occurrence]:
            keys = {
                row_key(
                    version.schedule_id,
                    version.version,
                    instant,
                    plane.shard_map.shard_of(version.schedule_id, instant),
                )
                for instant in instants
            }
            found = plane.timeline.read(keys)
            return {row.scheduled_for: row for row in found.values()}

        return read

    def _route(self, times: Sequence[_Time]) -> None:
        """Find the queues of what is to be created, before anything is stored.

        Raises:
            InvalidInput: `overlap_needs_tracking`.
            NotFound: a handler is gone.
        """
        self.request.check_overlap(time.version.definition for time in times)
        tenant = self.caller.tenant
        names = {time.version.definition.handler for time in times}
        refs = [(tenant.tenant_id, name) for name in sorted(names)]
        handlers = self.changes.plane.directory.named_handlers(refs) if refs else {}
        for ref in refs:
            if ref not in handlers:
                raise NotFound(f"The handler {ref[1]!r} is not registered.")
            queue = queue_key(tenant.tier, handlers[ref], Lane.CATCHUP)
            self.queues[ref[1]] = queue
            self.rates[ref[1]] = usual_rates(tenant, handlers[ref])

    def _create(self, time: _Time, found: _Found) -> BackfillItem:
        """Create one occurrence, or tell what somebody else made of it."""
        row = self._row(time, found)
        if self.request.dry_run:
            self.created += 1
            state = None if found.row is None else found.row.state
            return _item(row, Outcome.WOULD_CREATE, state)
        row = self._paced(row, time)
        dispatch = release_at(self.changes.plane, row, self.now)
        self._ensure(dispatch)
        answer = self._write(row, found, dispatch)
        if answer is Write.APPLIED:
            self.created += 1
            self.releases.append(dispatch)
            return _item(row, Outcome.CREATED, row.state)
        if answer is Write.LOST and found.row is None:
            raise _canceled()
        # Somebody else was first.
        item = _settled(time, self._find([time]))
        if item is None:
            raise Transient(f"{row.occurrence_id} is taken and not there")
        return item

    def _row(self, time: _Time, found: _Found) -> Occurrence:
        """Return the row as it shall be."""
        row = found.row or Occurrence(
            schedule_id=self.schedule.schedule_id,
            version=time.version.version,
            scheduled_for=time.instant,
            shard=found.key.shard,
            tenant_id=self.schedule.tenant_id,
            sequence=0,
            tzdb=release_at_hand(time.version.tzdb),
            planned_at=self.now,
        )
        return replace(
            row,
            state=State.DEFERRED,
            backfilled_at=self.now,
            overlap=self.request.overlap_of(time.version.definition),
            available_at=self.available_at(),
            lane=Lane.CATCHUP,
            queue=self.queues[time.version.definition.handler],
            reason=None,
            finished_at=None,
            expires_at=None,
        )

    def _paced(self, row: Occurrence, time: _Time) -> Occurrence:
        """Return the row with its place, where a rate bounds its handler or tenant.

        Raises:
            Transient: no place was to be had.
        """
        rates = self.rates[time.version.definition.handler]
        paced = pace(self.changes.plane.rates, [(row, rates)], self.now)
        if paced.waiting:
            raise Transient(f"a rate of {row.occurrence_id} did not answer")
        place = paced.rows.get(row.key, row).available_at
        return replace(row, available_at=place)

    def _ensure(self, dispatch: Dispatch) -> None:
        """Have the dispatch row's group scanned from before it is written."""
        group = self.changes.plane.shard_map.group_of(dispatch.shard)
        if group not in self.groups:
            have_scanned(self.changes.groups, group, self.now)
            self.groups.add(group)

    def _write(self, row: Occurrence, found: _Found, dispatch: Dispatch) -> Write:
        plane = self.changes.plane
        if found.row is not None:
            change = Change(row, Transition.BACKFILL)
            return plane.timeline.reopen(change, dispatch)
        record = Backfill(
            schedule_id=row.schedule_id,
            scheduled_for=row.scheduled_for,
            version=row.version,
            requested_at=self.now,
            requested_by=self.caller.arn,
            reason=self.request.reason,
        )
        twin = plane.shard_map.twin(row.key)
        return plane.schedules.record_backfill(record, row, dispatch, twin=twin)

    def _release(self) -> None:
        """Release what is due first, so that it need not wait for a pass."""
        near = self.releases[:RELEASED_AT_ONCE]
        try:
            release(self.changes.plane, near, self.changes.clock.now())
        except Transient:
            # The dispatch rows are there, and the next pass finds them.
            return


def _settled(time: _Time, found: Mapping[datetime, _Found]) -> BackfillItem | None:
    """Return what is to be said of a time; None when it is to be created."""
    there = found[time.instant]
    if there.row is not None:
        missed = there.row.state is State.MISSED
        return None if missed else _item(there.row, Outcome.EXISTS, there.row.state)
    known = there.occurrence_id
    if there.was_backfilled:
        return BackfillItem(time.instant, Outcome.EXISTS, known, EXPIRED)
    if time.is_owned:
        return _settled_by_gap(time, there)
    return None if time.is_settled else _skipped(time, SkipReason.NOT_SETTLED, None)


def _settled_by_gap(time: _Time, there: _Found) -> BackfillItem | None:
    """Return what is to be said of an owned time without a row of its own.

    Unless its version's own chain has gone past it, a row under its key would become
    a link of that chain, and break it.
    """
    if there.told is State.MISSED:
        return None
    if there.told is State.CANCELED:
        known = there.occurrence_id
        return BackfillItem(time.instant, Outcome.EXISTS, known, there.told)
    return _skipped(time, SkipReason.NOT_REACHED, there.occurrence_id)


def _is_bare(
    time: _Time, keys: Mapping[datetime, RowKey], rows: Mapping[RowKey, Occurrence]
) -> bool:
    return keys[time.instant] not in rows


def _skipped(time: _Time, reason: SkipReason, known: str | None) -> BackfillItem:
    return BackfillItem(time.instant, Outcome.SKIPPED, known, reason=reason)


def _item(row: Occurrence, outcome: Outcome, state: State | None) -> BackfillItem:
    return BackfillItem(
        row.scheduled_for, outcome, row.occurrence_id, state, row.available_at
    )
