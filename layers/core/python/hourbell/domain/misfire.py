"""What becomes of due times that are reached too late.

A decision about the past depends on the clock, so it is taken once and recorded: the
row under the first time that it covers carries it, and whoever finds it there obeys.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile
from typing import Final

from hourbell.domain.instants import ceil_second
from hourbell.domain.retention import REMEMBERED
from hourbell.domain.schedule import Timing, upcoming
from hourbell.domain.zones import TICK

MAX_CATCH_UP: Final = 1_000
"""The largest limit of CATCH_UP."""

MAX_COVERED: Final = 100_000
"""The most times that one decision covers; a longer past takes several."""


class MisfirePolicy(StrEnum):
    """Which of the times that were reached too late run after all.

    SKIP: none. FIRE_ONCE: the latest one. CATCH_UP: the latest `limit`, oldest first.
    """

    SKIP = "SKIP"
    FIRE_ONCE = "FIRE_ONCE"
    CATCH_UP = "CATCH_UP"


class MissReason(StrEnum):
    """Why an occurrence is MISSED."""

    SKIPPED = "MISFIRE_SKIPPED"
    LATER_ONE_RUNS = "MISFIRE_LATER_ONE_RUNS"
    BEYOND_LIMIT = "MISFIRE_BEYOND_LIMIT"
    TOO_LATE = "MISFIRE_TOO_LATE"


@dataclass(frozen=True, slots=True)
class Misfire:
    """A schedule's misfire policy.

    Attributes:
        limit: how many times run under CATCH_UP; nothing else looks at it.
        max_lateness_seconds: what is later than this never runs; None for no bound.
    """

    policy: MisfirePolicy = MisfirePolicy.FIRE_ONCE
    limit: int | None = None
    max_lateness_seconds: int | None = None

    @property
    def runs(self) -> int:
        """How many of the latest times may run."""
        if self.policy is MisfirePolicy.CATCH_UP:
            return self.limit or 1
        return int(self.policy is MisfirePolicy.FIRE_ONCE)

    def oldest(self, now: datetime) -> datetime | None:
        """Return the earliest time that is not too late now; None for no bound."""
        if self.max_lateness_seconds is None:
            return None
        return now - timedelta(seconds=self.max_lateness_seconds)

    def reason(self, instant: datetime, as_of: datetime) -> MissReason:
        """Return why a time did not run by a decision of `as_of`."""
        oldest = self.oldest(as_of)
        bound = as_of - REMEMBERED
        if instant < (bound if oldest is None else max(oldest, bound)):
            return MissReason.TOO_LATE
        if self.policy is MisfirePolicy.SKIP:
            return MissReason.SKIPPED
        if self.policy is MisfirePolicy.FIRE_ONCE:
            return MissReason.LATER_ONE_RUNS
        return MissReason.BEYOND_LIMIT


USUAL_MISFIRE: Final = Misfire()
"""What schedules have that name no policy."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of an overdue time, and of the overdue ones that follow it.

    Attributes:
        as_of: the instant that "overdue" was judged by.
        last: the last time covered; the undecided one itself when none follows.
        count: how many times after the undecided one are covered.
        sequence: of the last time covered; what follows counts on from it.
        runs_from: the first of all these times that runs; None when none does.
        runs: how many of the times covered run.
        following: the first time that is not covered; None when there is none.
        per_minute: how many of them a minute may run.
    """

    as_of: datetime
    last: datetime
    count: int
    sequence: int
    runs_from: datetime | None
    runs: int
    following: datetime | None
    per_minute: int

    def lets_run(self, instant: datetime) -> bool:
        """Whether a time that it speaks of runs."""
        return self.runs_from is not None and instant >= self.runs_from

    def available_at(self, place: int) -> datetime:
        """Return when the run of this place, from 0, may be received."""
        spaced = place * 60 // self.per_minute
        return ceil_second(self.as_of) + timedelta(seconds=spaced)

    def run_times(self, timing: Timing, after: datetime) -> Iterator[datetime]:
        """Yield the covered times after an instant that run, in order."""
        if self.runs_from is None:
            return iter(())
        start = max(after, self.runs_from - TICK)
        return takewhile(lambda each: each <= self.last, upcoming(timing, start))


@dataclass(frozen=True, slots=True)
class Overdue:
    """An overdue time, and by when others are too.

    Attributes:
        instant: the time; `sequence` is its count.
        now: by which clock.
        before: times before this are overdue too.
        owned_until: its version owns no time from here on; None for no bound.
        is_certain: whether it cannot have run: it was planned while the row of what
            ran would have been there still.
    """

    instant: datetime
    sequence: int
    now: datetime
    before: datetime
    owned_until: datetime | None = None
    is_certain: bool = True


def decide(
    timing: Timing, misfire: Misfire, overdue: Overdue, per_minute: int
) -> Decision:
    """Decide what becomes of an overdue time and of those that follow it.

    Work and memory are bounded by MAX_COVERED and the policy's limit: of a longer past
    the oldest part is covered, of which nothing runs, and the first time after it is
    `following`, overdue itself.

    Of times that are not REMEMBERED, one may have run, expired and been deleted. So
    none of them runs, unless it is the only one that would and is certain not to have.

    Raises:
        InvalidInput: the timing makes no sense to this release.
    """
    latest = deque([overdue.instant], maxlen=max(misfire.runs, 1))
    last, count, following = overdue.instant, 0, None
    cut: tuple[datetime, int] | None = None
    beyond: datetime | None = None
    for instant in _owned(timing, overdue):
        if instant >= overdue.before:
            following = instant
            break
        if count == MAX_COVERED:
            cut, beyond = (last, count), instant
        last, count = instant, count + 1
        latest.append(instant)
        if cut is not None and count == MAX_COVERED + max(misfire.runs, 1):
            return _decision(overdue, cut, [], beyond, per_minute)
    run = _running(misfire, overdue, latest)
    return _decision(overdue, (last, count), run, following, per_minute)


def _running(
    misfire: Misfire, overdue: Overdue, latest: Iterable[datetime]
) -> list[datetime]:
    """Return which of the latest overdue times run."""
    if not misfire.runs:
        return []
    oldest = misfire.oldest(overdue.now)
    run = [each for each in latest if oldest is None or each >= oldest]
    remembered = [each for each in run if each >= overdue.now - REMEMBERED]
    forgotten = run[: len(run) - len(remembered)]
    is_sure = forgotten == [overdue.instant] and overdue.is_certain
    return run if is_sure else remembered


def _owned(timing: Timing, overdue: Overdue) -> Iterator[datetime]:
    """Yield the times after an overdue one that its version owns and may still run."""
    allowed = timing.max_occurrences
    sequence = overdue.sequence
    for instant in upcoming(timing, overdue.instant):
        if overdue.owned_until is not None and instant >= overdue.owned_until:
            return
        if allowed is not None and sequence >= allowed:
            return
        sequence += 1
        yield instant


def _decision(
    overdue: Overdue,
    covered: tuple[datetime, int],
    run: Sequence[datetime],
    following: datetime | None,
    per_minute: int,
) -> Decision:
    last, count = covered
    return Decision(
        as_of=overdue.now,
        last=last,
        count=count,
        sequence=overdue.sequence + count,
        runs_from=run[0] if run else None,
        runs=len(run) - (overdue.instant in run[:1]),
        following=following,
        per_minute=per_minute,
    )
