"""Schedules as commands name them: by id; of a name, where its id is found."""

import shlex
from typing import Annotated, Final

import typer

from hourbell.domain.names import is_schedule_id

METAVAR: Final = "SCHEDULE_ID"


def checked_id(text: str | None) -> str | None:
    """Return a schedule's id, if one is given.

    Raises:
        BadParameter: it cannot be one; most likely it is the schedule's name.
    """
    if text is None or is_schedule_id(text):
        return text
    search = f"hourbell schedules list --prefix={shlex.quote(text)}"
    raise typer.BadParameter(
        f"{text!r} is no schedule id, which begins with sch; "
        f"to find it by the schedule's name: {search}"
    )


ScheduleId = Annotated[str, typer.Argument(metavar=METAVAR, callback=checked_id)]
