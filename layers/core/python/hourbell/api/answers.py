"""What the API answers: definitions and occurrences as JSON.

Instants are written in UTC (`...Z`); those that people plan by also in the
schedule's zone with its offset.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import WithJsonSchema

from hourbell.api.documents import Answer, Instant, one_of
from hourbell.api.json_text import read_json
from hourbell.api.misfire_models import MisfireAnswer, misfire_answer
from hourbell.api.paging import fitting
from hourbell.api.requests import EXCLUDED
from hourbell.api.retry_models import RetryAnswer, retry_answer
from hourbell.domain.definition import (
    Definition,
    Schedule,
    ScheduleState,
    Tracking,
    Version,
)
from hourbell.domain.instants import format_instant
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.overlap import Overlap
from hourbell.domain.zones import TZDB_VERSION, Fold, Gap, zone
from hourbell.usecases.change_schedule import Changed
from hourbell.usecases.create_schedule import Created
from hourbell.usecases.get_schedule import EXPIRED, NONE, Due, ScheduleView
from hourbell.usecases.ports import Listing
from hourbell.usecases.run_now import Started

Excluded = Annotated[list[Any], WithJsonSchema(EXCLUDED)]


class OccurrenceAnswer(Answer):
    """A time that was due, and what became of it.

    `state` is NONE while a time has no row yet, EXPIRED when it has none any more. What
    an outage left behind has no rows of its own: its state is what was decided then.
    """

    occurrence_id: str
    scheduled_for: Instant
    scheduled_for_local: Instant
    state: Annotated[str, one_of(State, (NONE, EXPIRED))]
    available_at: Instant | None = None
    scheduled_at: Instant | None = None
    enqueued_at: Instant | None = None
    visible_at: Instant | None = None
    finished_at: Instant | None = None
    misfire: bool = False
    reason: str | None = None
    sends: int = 0


class DstAnswer(Answer):
    """What happens when the clocks change."""

    gap: Annotated[str, one_of(Gap)]
    fold: Annotated[str, one_of(Fold)]


class DefinitionAnswer(Answer):
    """What a version decides."""

    expression: str
    zone: str
    dst: DstAnswer
    start_at: Instant | None
    end_at: Instant | None
    max_occurrences: int | None
    exclude: Excluded
    anchor: Instant | None
    handler: str
    payload: Any
    tracking: Annotated[str, one_of(Tracking)]
    flexible_window_seconds: int
    misfire: MisfireAnswer
    overlap: Annotated[str, one_of(Overlap)]
    retry: RetryAnswer | None


class ScheduleAnswer(Answer):
    """A schedule.

    `schedule_id` is null only in a dry run, when it is not known yet. `version` grows
    with timing, policy, handler and payload; `revision` with every change, and the ETag
    begins with it. `tzdb` is the release of the zone database by which the version was
    created.
    """

    schedule_id: str | None
    name: str
    description: str
    tags: dict[str, str]
    state: Annotated[str, one_of(ScheduleState)]
    version: int
    revision: int
    expression: str
    zone: str
    dst: DstAnswer
    start_at: Instant | None
    end_at: Instant | None
    max_occurrences: int | None
    exclude: Excluded
    anchor: Instant | None
    handler: str
    payload: Any
    tracking: Annotated[str, one_of(Tracking)]
    flexible_window_seconds: int
    misfire: MisfireAnswer
    overlap: Annotated[str, one_of(Overlap)]
    retry: RetryAnswer | None
    tzdb: str
    created_at: Instant
    updated_at: Instant
    next_run_at: Instant | None
    next_run_at_local: Instant | None
    last_occurrences: list[OccurrenceAnswer]


class RunAnswer(OccurrenceAnswer):
    """A manual run, as it stands."""

    schedule_id: str
    version: int
    queue: str | None


class ChangeAnswer(ScheduleAnswer):
    """A schedule after a change, and what the change came too late for.

    `already_dispatched`: ids of occurrences after the change that run all the same;
    not known yet while `finished` is false: then the next pass finishes the change.
    """

    already_dispatched: list[str]
    finished: bool


class EntryAnswer(Answer):
    """A schedule as lists show it."""

    schedule_id: str
    name: str
    state: Annotated[str, one_of(ScheduleState)]
    version: int
    revision: int
    tags: dict[str, str]
    created_at: Instant
    updated_at: Instant


class ListAnswer(Answer):
    """A page of schedules; `cursor` asks for the next one, null at the end."""

    schedules: list[EntryAnswer]
    cursor: str | None


class VersionAnswer(Answer):
    """An entry of the version log.

    It owns the times in [`effective_from`, `effective_to`); null while that is not
    settled, or while it is in force.
    """

    version: int
    state: Annotated[str, one_of(ScheduleState)]
    definition: DefinitionAnswer
    effective_from: Instant | None
    effective_to: Instant | None
    tzdb: str
    created_at: Instant
    created_by: str
    source: str
    reason: str | None


class VersionsAnswer(Answer):
    """A page of the version log; `before` asks for the next one, null at the end."""

    versions: list[VersionAnswer]
    before: int | None


def created_answer(created: Created) -> ScheduleAnswer:
    """Return the answer to a create."""
    first = created.first.scheduled_for
    return schedule_answer(created.schedule, created.version.tzdb, first, ())


def view_answer(view: ScheduleView) -> ScheduleAnswer:
    """Return the answer to a get."""
    return schedule_answer(
        view.schedule,
        view.version.tzdb,
        view.next_run_at,
        view.latest,
        next_tzdb=view.next_tzdb,
    )


def change_answer(view: ScheduleView, changed: Changed) -> ChangeAnswer:
    """Return the answer to a change."""
    return ChangeAnswer(
        **dict(view_answer(view)),
        already_dispatched=list(changed.already_dispatched),
        finished=changed.finished,
    )


def run_answer(started: Started, zone_name: str) -> RunAnswer:
    """Describe a manual run."""
    row = started.occurrence
    return RunAnswer(
        occurrence_id=row.occurrence_id,
        schedule_id=row.schedule_id,
        version=row.version,
        scheduled_for=format_instant(row.scheduled_for),
        scheduled_for_local=local_text(row.scheduled_for, zone_name),
        state=row.state,
        queue=row.queue,
        **_row(row),
    )


def list_answer(page: Listing) -> ListAnswer:
    """Return the answer to a list."""
    entries = [
        EntryAnswer(
            schedule_id=entry.schedule_id,
            name=entry.name,
            state=entry.state,
            version=entry.version,
            revision=entry.revision,
            tags=dict(entry.tags),
            created_at=format_instant(entry.created_at),
            updated_at=format_instant(entry.updated_at),
        )
        for entry in page.entries
    ]
    return ListAnswer(schedules=entries, cursor=page.after)


def versions_answer(log: Sequence[Version], *, more: bool) -> VersionsAnswer:
    """Return the answer to a list of versions.

    Where payloads are large, a page ends early, and `before` leads on.
    """
    shown = fitting(map(_version, log))
    is_last = len(shown) == len(log) and not more
    return VersionsAnswer(versions=shown, before=None if is_last else shown[-1].version)


def _version(version: Version) -> VersionAnswer:
    return VersionAnswer(
        version=version.version,
        state=version.state,
        definition=DefinitionAnswer(**_definition(version.definition)),
        effective_from=_utc(version.effective_from),
        effective_to=_utc(version.effective_to),
        tzdb=version.tzdb,
        created_at=format_instant(version.created_at),
        created_by=version.created_by,
        source=version.source,
        reason=version.reason,
    )


def schedule_answer(
    schedule: Schedule,
    tzdb: str,
    next_run_at: datetime | None,
    latest: Sequence[Due],
    *,
    next_tzdb: str | None = None,
) -> ScheduleAnswer:
    """Describe a schedule, with its next time and its latest ones.

    Local times are by the release whose times they are: an earlier version may still
    own the next one.
    """
    zone_name = schedule.definition.timing.zone
    return ScheduleAnswer(
        schedule_id=schedule.schedule_id,
        name=schedule.name,
        description=schedule.description,
        tags=schedule.tags,
        state=schedule.state,
        version=schedule.version,
        revision=schedule.revision,
        **_definition(schedule.definition),
        tzdb=tzdb,
        created_at=format_instant(schedule.created_at),
        updated_at=format_instant(schedule.updated_at),
        next_run_at=_utc(next_run_at),
        next_run_at_local=next_run_at
        and local_text(next_run_at, zone_name, next_tzdb or tzdb),
        last_occurrences=[_occurrence(due, zone_name) for due in latest],
    )


def _definition(definition: Definition) -> dict[str, Any]:
    """Return the members of a definition; what is left out is null."""
    tracked = definition.tracking is Tracking.TRACKED
    return {
        "start_at": None,
        "end_at": None,
        "max_occurrences": None,
        "exclude": [],
        "anchor": None,
        **definition.timing.to_dict(),
        "handler": definition.handler,
        "payload": read_json(definition.payload_json),
        "tracking": definition.tracking,
        "flexible_window_seconds": definition.flexible_window_seconds,
        "misfire": misfire_answer(definition.misfire),
        "overlap": definition.overlap,
        # Without tracking nothing is tried again, whatever the policy.
        "retry": retry_answer(definition.retry) if tracked else None,
    }


def _occurrence(due: Due, zone_name: str) -> OccurrenceAnswer:
    return OccurrenceAnswer(
        occurrence_id=due.occurrence_id,
        scheduled_for=format_instant(due.scheduled_for),
        scheduled_for_local=local_text(due.scheduled_for, zone_name, due.tzdb),
        state=due.state,
        **_told(due),
    )


def _told(due: Due) -> dict[str, Any]:
    """Return what a time's row says of it, or the gap row that covers it."""
    if due.row is not None:
        return _row(due.row)
    if due.gap is None:
        return {}
    finished_at = _utc(due.gap.finished_at)
    return {"misfire": True, "reason": due.reason, "finished_at": finished_at}


def _row(row: Occurrence) -> dict[str, Any]:
    return {
        "available_at": _utc(row.available_at),
        "scheduled_at": _utc(row.scheduled_at),
        "enqueued_at": _utc(row.enqueued_at),
        "visible_at": _utc(row.visible_at),
        "finished_at": _utc(row.finished_at),
        "misfire": row.misfire,
        "reason": row.reason,
        "sends": row.sends,
    }


def _utc(instant: datetime | None) -> str | None:
    return None if instant is None else format_instant(instant)


def local_text(instant: datetime, zone_name: str, release: str = TZDB_VERSION) -> str:
    """Write an instant as local time with its offset, by a release's rules."""
    return instant.astimezone(zone(zone_name, release=release)).isoformat()
