"""What previews and dry runs answer: the times to come, and what would be done."""

from collections.abc import Sequence
from typing import Any

from hourbell.api.answers import ScheduleAnswer, schedule_answer
from hourbell.api.documents import Answer, Instant
from hourbell.domain.definition import ScheduleState
from hourbell.domain.instants import format_instant
from hourbell.domain.zones import TZDB_VERSION
from hourbell.usecases.create_schedule import Rehearsal
from hourbell.usecases.preview import PreviewTime
from hourbell.usecases.update_schedule import Forecast


class PreviewTimeAnswer(Answer):
    """One time of a preview, with what is unusual about it."""

    utc: Instant
    local: str
    weekday: str
    offset: str
    notes: list[str]


class RehearsedTimeAnswer(PreviewTimeAnswer):
    """One time of a dry run.

    `load`: how many times the average minute of a day this minute carries, by what the
    same minute carried in the last day and a week before; null when that is not known.
    """

    load: float | None


class PreviewAnswer(Answer):
    """The next times; `complete` says that no more come after them."""

    tzdb: str
    times: list[PreviewTimeAnswer]
    complete: bool


class RehearsalAnswer(Answer):
    """The next times, with their loads; `complete` says that no more come after."""

    tzdb: str
    times: list[RehearsedTimeAnswer]
    complete: bool
    dry_run: bool = True


class RefusalAnswer(Answer):
    """Why a create would be refused."""

    field: str
    code: str
    message: str


class CreateRehearsalAnswer(RehearsalAnswer):
    """What a create would do; `accepted` says whether it would be done."""

    accepted: bool
    refusals: list[RefusalAnswer]
    schedule: ScheduleAnswer


class UpdateRehearsalAnswer(RehearsalAnswer):
    """What an update would do: ids that it would cancel, and those that would run."""

    changes: bool
    schedule: ScheduleAnswer
    canceled: list[str]
    already_dispatched: list[str]


def create_rehearsal_answer(
    rehearsal: Rehearsal,
    times: Sequence[PreviewTime],
    loads: Sequence[float | None],
    *,
    complete: bool,
    named: bool,
) -> CreateRehearsalAnswer:
    """Return the answer to the dry run of a create.

    Args:
        rehearsal: what it would do.
        times: the next times.
        loads: of each of the times.
        complete: whether no more come after them.
        named: whether a key decides the id already.
    """
    first = rehearsal.first.scheduled_for
    schedule = schedule_answer(rehearsal.schedule, rehearsal.version.tzdb, first, ())
    if not named:
        schedule = schedule.model_copy(update={"schedule_id": None})
    refusals = [
        RefusalAnswer(field=each.field, code=each.code, message=each.message)
        for each in rehearsal.refusals
    ]
    return CreateRehearsalAnswer(
        **_rehearsed(times, loads, complete=complete),
        accepted=not refusals,
        refusals=refusals,
        schedule=schedule,
    )


def update_rehearsal_answer(
    forecast: Forecast, loads: Sequence[float | None]
) -> UpdateRehearsalAnswer:
    """Return the answer to the dry run of an update, with the load of each time."""
    schedule = forecast.schedule
    active = schedule.state is ScheduleState.ACTIVE
    following = forecast.times[0].utc if active and forecast.times else None
    return UpdateRehearsalAnswer(
        **_rehearsed(forecast.times, loads, complete=forecast.complete)
        | {"tzdb": forecast.tzdb},
        changes=forecast.changes,
        schedule=schedule_answer(schedule, forecast.tzdb, following, ()),
        canceled=list(forecast.canceled),
        already_dispatched=list(forecast.already_dispatched),
    )


def preview_answer(times: Sequence[PreviewTime], *, complete: bool) -> PreviewAnswer:
    """Return the answer to a preview; `complete`: whether no more times come."""
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
    return PreviewAnswer(tzdb=TZDB_VERSION, times=shown, complete=complete)


def _rehearsed(
    times: Sequence[PreviewTime], loads: Sequence[float | None], *, complete: bool
) -> dict[str, Any]:
    """Return the members of a preview, with the load of each time."""
    shown = preview_answer(times, complete=complete)
    loaded = [
        RehearsedTimeAnswer(**dict(time), load=load)
        for time, load in zip(shown.times, loads, strict=True)
    ]
    return dict(shown) | {"times": loaded}
