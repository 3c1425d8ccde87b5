"""Create a schedule or update it to a definition, by its name."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hourbell.domain.errors import Conflict, NotFound, PreconditionFailed, Transient
from hourbell.usecases.change_schedule import Changed, Changes
from hourbell.usecases.create_schedule import (
    Created,
    NewSchedule,
    Registry,
    create_schedule,
    definition_of,
)
from hourbell.usecases.expected import ANY, Expected
from hourbell.usecases.identify import Caller
from hourbell.usecases.update_schedule import Wanted, update_schedule

# How often it is tried when others create and cancel the name meanwhile.
ATTEMPTS: Final = 3


# What is told when somebody else took or freed the name meanwhile.
_OVERTAKEN: Final = frozenset(
    {
        *("name_taken", "schedule_canceled", "schedule_completed"),
        NotFound.default_code,
    }
)


@dataclass(frozen=True, slots=True)
class Condition:
    """What must be stored under the name.

    Attributes:
        expected: revisions, one of which must be there; None to create as well.
        absent: True when there must be none.
    """

    expected: Expected | None = None
    absent: bool = False


def put_schedule(
    registry: Registry,
    changes: Changes,
    caller: Caller,
    request: NewSchedule,
    now: datetime,
    *,
    condition: Condition,
) -> Created | Changed:
    """Let the tenant have a schedule of this name and definition.

    Repeating it changes nothing. A paused schedule stays paused.

    Raises:
        InvalidInput: the tenant may not have it like that.
        PreconditionFailed: what is stored is not what `condition` says.
        QuotaExceeded: it would be one schedule too many.
        Transient: a store did not answer, or others keep changing the name.
    """
    for _ in range(ATTEMPTS):
        done = _attempt(registry, changes, caller, request, now, condition)
        if done is not None:
            return done
    raise Transient(f"{request.name!r} is changed by others all the time")


def _attempt(
    registry: Registry,
    changes: Changes,
    caller: Caller,
    request: NewSchedule,
    now: datetime,
    condition: Condition,
) -> Created | Changed | None:
    """Try once; None when somebody else took or freed the name meanwhile."""
    schedules = registry.plane.schedules
    schedule_id = schedules.find_by_name(caller.tenant.tenant_id, request.name)
    if schedule_id is not None and condition.absent:
        raise PreconditionFailed("There is a schedule of this name.")
    if schedule_id is None and condition.expected is not None:
        raise PreconditionFailed("There is no schedule of this name.")
    try:
        if schedule_id is None:
            return create_schedule(registry, caller, request, now)
        wanted = Wanted(definition_of(request), request.description, request.tags)
        return update_schedule(
            changes,
            caller,
            schedule_id,
            lambda _: wanted,
            now,
            expected=condition.expected or ANY,
        )
    except (Conflict, NotFound) as error:
        if error.code in _OVERTAKEN:
            return None
        raise
