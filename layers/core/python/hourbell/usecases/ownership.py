"""Tell which version decides over which part of a past range."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile

from hourbell.domain.definition import Schedule, ScheduleState, Version
from hourbell.domain.errors import Transient
from hourbell.domain.schedule import upcoming
from hourbell.domain.zones import TICK
from hourbell.usecases.ports import Schedules

# Versions that are read at once; few schedules have more in a fortnight.
PAGE = 50


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a range over which one version decides.

    Attributes:
        start: the first instant, included.
        end: the last, excluded.
        version: whose times they are, and under whose number they run.
        is_owned: True where this version owns the times; False where no ACTIVE
            version did, and the definition in force stands in.
    """

    start: datetime
    end: datetime
    version: Version
    is_owned: bool

    def times(self) -> Iterator[datetime]:
        """Yield the version's times in the stretch, in order.

        Raises:
            InvalidInput: its rules make no sense to this release.
        """
        times = upcoming(self.version.timing, self.start - TICK)
        return takewhile(lambda instant: instant < self.end, times)


def stretches(
    schedules: Schedules, schedule: Schedule, first: datetime, last: datetime
) -> tuple[Stretch, ...]:
    """Split the range [first, last) by who decides over its times, in order.

    In the interval of a version that was ACTIVE its own times count. Before the first
    version, and while the schedule was paused, it is the definition in force.

    Args:
        schedules: the version log; only versions that reach into the range are read.
        schedule: as it is, with no handover under way.
        first: where the range begins.
        last: where it ends; not after now.

    Raises:
        Transient: the log did not answer, or the schedule was changed meanwhile.
    """
    log = _log_back_to(schedules, schedule, first)
    current = log[0] if log and log[0].version == schedule.version else None
    if current is None or current.effective_from is None:
        raise Transient(f"{schedule.ref} is not in the log, or owns no times yet")
    found: list[Stretch] = []
    reached = first
    for version in reversed(log):
        begin = min(max(version.effective_from or last, reached), last)
        end = min(max(version.effective_to or last, begin), last)
        is_active = version.state is ScheduleState.ACTIVE
        owner = version if is_active else current
        found.append(Stretch(reached, begin, current, is_owned=False))
        found.append(Stretch(begin, end, owner, is_owned=is_active))
        reached = end
    if reached < last:
        raise Transient(f"{schedule.schedule_id} was changed in the meantime")
    return tuple(each for each in found if each.start < each.end)


def _log_back_to(
    schedules: Schedules, schedule: Schedule, first: datetime
) -> list[Version]:
    """Return the versions from the one in force back to the one that owns `first`."""
    log: list[Version] = []
    before = schedule.version + 1
    while True:
        page = schedules.version_log(schedule.schedule_id, before=before, limit=PAGE)
        for version in page:
            log.append(version)
            begin = version.effective_from
            if begin is not None and begin <= first:
                return log
        if not page:
            return log
        before = page[-1].version
