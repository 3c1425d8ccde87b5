"""What the API answers: definitions, times and occurrences as JSON.

Instants are written in UTC (`...Z`); those that people plan by also in the
schedule's zone with its offset.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict

from hourbell.domain.definition import Schedule
from hourbell.domain.instants import format_instant
from hourbell.domain.occurrence import Occurrence
from hourbell.domain.zones import TZDB_VERSION, zone
from hourbell.usecases.create_schedule import Created
from hourbell.usecases.get_schedule import Due, ScheduleView
from hourbell.usecases.preview import PreviewTime


class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True)

    @property
    def text(self) -> str:
        """The answer as JSON text."""
        return self.model_dump_json()


class OccurrenceAnswer(_Answer):
    """A time that was due, and what became of it.

    `state` is NONE while a time has no row yet, EXPIRED when it has none any more.
    """

    occurrence_id: str
    scheduled_for: str
    scheduled_for_local: str
    state: str
    available_at: str | None = None
    scheduled_at: str | None = None
    enqueued_at: str | None = None
    visible_at: str | None = None
    finished_at: str | None = None
    misfire: bool = False
    reason: str | None = None
    sends: int = 0


class ScheduleAnswer(_Answer):
    """A schedule.

    `version` grows with timing, policy, handler and payload; `revision` with every
    change, and is the ETag. `tzdb` is the release of the zone database by which the
    version was created.
    """

    schedule_id: str
    name: str
    description: str
    tags: dict[str, str]
    state: str
    version: int
    revision: int
    expression: str
    zone: str
    dst: dict[str, str]
    start_at: str | None
    end_at: str | None
    max_occurrences: int | None
    exclude: list[Any]
    anchor: str | None
    handler: str
    payload: Any
    tracking: str
    flexible_window_seconds: int
    tzdb: str
    created_at: str
    updated_at: str
    next_run_at: str | None
    next_run_at_local: str | None
    last_occurrences: list[OccurrenceAnswer]


class PreviewTimeAnswer(_Answer):
    """One time of a preview, with what is unusual about it."""

    utc: str
    local: str
    weekday: str
    offset: str
    notes: list[str]


class PreviewAnswer(_Answer):
    """The next times; `complete` says that no more come after them."""

    tzdb: str
    times: list[PreviewTimeAnswer]
    complete: bool


def created_answer(created: Created) -> ScheduleAnswer:
    """Return the answer to a create."""
    first = created.first.scheduled_for
    return _schedule(created.schedule, created.version.tzdb, first, ())


def view_answer(view: ScheduleView) -> ScheduleAnswer:
    """Return the answer to a get."""
    return _schedule(view.schedule, view.version.tzdb, view.next_run_at, view.latest)


def preview_answer(times: Sequence[PreviewTime], *, wanted: int) -> PreviewAnswer:
    """Return the answer to a preview.

    Args:
        times: the times that there are.
        wanted: how many were asked for.
    """
    shown = [
        PreviewTimeAnswer(
            utc=format_instant(each.utc),
            local=each.local.isoformat(),
            weekday=each.weekday,
            offset=each.offset,
            notes=list(each.notes),
        )
        for each in times
    ]
    return PreviewAnswer(tzdb=TZDB_VERSION, times=shown, complete=len(shown) < wanted)


def _schedule(
    schedule: Schedule, tzdb: str, next_run_at: datetime | None, latest: Sequence[Due]
) -> ScheduleAnswer:
    definition = schedule.definition
    timing: dict[str, Any] = {
        "start_at": None,
        "end_at": None,
        "max_occurrences": None,
        "exclude": [],
        "anchor": None,
        **definition.timing.to_dict(),
    }
    zone_name = definition.timing.zone
    return ScheduleAnswer(
        schedule_id=schedule.schedule_id,
        name=schedule.name,
        description=schedule.description,
        tags=schedule.tags,
        state=schedule.state,
        version=schedule.version,
        revision=schedule.revision,
        **timing,
        handler=definition.handler,
        payload=json.loads(definition.payload_json),
        tracking=definition.tracking,
        flexible_window_seconds=definition.flexible_window_seconds,
        tzdb=tzdb,
        created_at=format_instant(schedule.created_at),
        updated_at=format_instant(schedule.updated_at),
        next_run_at=_utc(next_run_at),
        next_run_at_local=next_run_at and local_text(next_run_at, zone_name),
        last_occurrences=[_occurrence(due, zone_name) for due in latest],
    )


def _occurrence(due: Due, zone_name: str) -> OccurrenceAnswer:
    return OccurrenceAnswer(
        occurrence_id=due.occurrence_id,
        scheduled_for=format_instant(due.scheduled_for),
        scheduled_for_local=local_text(due.scheduled_for, zone_name),
        state=due.state,
        **(_row(due.row) if due.row is not None else {}),
    )


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


def local_text(instant: datetime, zone_name: str) -> str:
    """Write an instant as local time with its offset."""
    return instant.astimezone(zone(zone_name)).isoformat()
