"""Show a timing's next times, with what the zone's clocks do to them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Final

from hourbell.domain.cron import AtExpression, CronExpression, Expression, parse
from hourbell.domain.errors import InvalidInput
from hourbell.domain.instants import format_instant, to_utc
from hourbell.domain.schedule import Timing, anchored, next_time, upcoming
from hourbell.domain.zones import (
    Fold,
    Gap,
    Transition,
    TransitionKind,
    resolve,
    transitions,
)

MAX_COUNT: Final = 1_000
"""Most times in one preview."""

WEEKDAYS: Final = (
    *("Monday", "Tuesday", "Wednesday", "Thursday"),
    *("Friday", "Saturday", "Sunday"),
)

_SHOWN: Final = 3
"""Local times, dates or transitions that a note names before it only counts them."""

_MOST_WALLS: Final = 1_440

_EITHER_DAY: Final = (
    "runs on days that match day-of-month or day-of-week: either is enough, as in cron"
)


@dataclass(frozen=True, slots=True)
class PreviewTime:
    """One time of a preview.

    Attributes:
        utc: the instant.
        local: what a clock in the zone shows, naive.
        weekday: English name of the local weekday.
        offset: local time minus UTC, `-04:00`.
        notes: what is unusual about this time, or lay between the one before and it.
    """

    utc: datetime
    local: datetime
    weekday: str
    offset: str
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, object]:
        """Return the time as a JSON-ready object."""
        return {
            "utc": format_instant(self.utc),
            "local": self.local.isoformat(),
            "weekday": self.weekday,
            "offset": self.offset,
            "notes": list(self.notes),
        }


def preview(
    timing: Timing, after: datetime, count: int, *, counted: int = 0
) -> list[PreviewTime]:
    """Return the next times strictly after an instant, with notes.

    Notes name every transition of the zone that lies between two times, the local
    times that a gap or a fold takes away, excluded dates, and the rule that either
    of cron's two day fields is enough.

    Args:
        timing: what to preview; a rate without anchor counts from `after`.
        after: instant before the first time.
        count: how many times, 1 to 1,000; fewer come when they are used up.
        counted: how many times count towards `max_occurrences` already.

    Raises:
        InvalidInput: if the timing or the count is not valid.
    """
    timing = anchored(timing, after)
    shown: list[PreviewTime] = []
    before = to_utc(after)
    for instant in preview_times(timing, after, count, counted=counted):
        shown.append(_describe(timing, before, instant, first=not shown))
        before = instant
    return shown


def is_complete(
    timing: Timing,
    after: datetime,
    count: int,
    times: Sequence[PreviewTime],
    *,
    counted: int = 0,
) -> bool:
    """Tell whether no more times come after those of a preview, asked for the same."""
    most = timing.max_occurrences
    if len(times) < count or (most is not None and counted + count >= most):
        return True
    return next_time(anchored(timing, after), times[-1].utc) is None


def preview_times(
    timing: Timing, after: datetime, count: int, *, counted: int = 0
) -> list[datetime]:
    """Return the instants of a preview alone, which is many times faster.

    Raises:
        InvalidInput: if the timing or the count is not valid.
    """
    if not 1 <= count <= MAX_COUNT:
        shown = count if count.bit_length() < 64 else "a number of over 63 bits"
        message = f"count must lie between 1 and {MAX_COUNT:,}; found {shown}."
        raise InvalidInput.of("count", "out_of_range", message, found=shown)
    if timing.max_occurrences is not None:
        count = min(count, max(timing.max_occurrences - counted, 0))
    return list(islice(upcoming(anchored(timing, after), after), count))


def _describe(
    timing: Timing, before: datetime, instant: datetime, *, first: bool
) -> PreviewTime:
    local = instant.astimezone(timing.info)
    wall = local.replace(tzinfo=None)
    expression = parse(timing.expression)
    notes = []
    if first and isinstance(expression, CronExpression) and expression.either_day:
        notes.append(_EITHER_DAY)
    notes += _exclusion_notes(timing, before, instant)
    notes += _transition_notes(timing, expression, before, instant)
    if expression.kind != "rate":
        notes += _twice_notes(timing, wall, instant)
    offset = local.isoformat()[len(wall.isoformat()) :]
    return PreviewTime(instant, wall, WEEKDAYS[wall.weekday()], offset, tuple(notes))


def _twice_notes(timing: Timing, wall: datetime, instant: datetime) -> Iterator[str]:
    both = resolve(wall, timing.info, timing.gap, Fold.BOTH)
    if len(both) < 2:
        return
    which = "first" if instant == both[0] else "second"
    other = "second" if instant == both[0] else "first"
    text = f"{wall:%H:%M} comes twice on {wall:%Y-%m-%d}: this is the {which}"
    if timing.fold is Fold.BOTH:
        yield f"{text} of two runs"
    else:
        yield f"{text}, the {other} does not run"


def _transition_notes(
    timing: Timing, expression: Expression, before: datetime, instant: datetime
) -> Iterator[str]:
    crossed = transitions(timing.info, before, instant)
    plain = 0
    for transition in crossed:
        note = _effect(timing, expression, transition)
        if note is not None:
            yield note
        elif len(crossed) <= _SHOWN:
            yield f"{_clocks(transition)}: no time of the schedule is touched"
        else:
            plain += 1
    if plain:
        yield f"the clocks change {plain} times in between: no time is touched"


def _effect(
    timing: Timing, expression: Expression, transition: Transition
) -> str | None:
    """Say what a transition does to the schedule's own local times, if anything."""
    low, high = sorted((transition.wall_before, transition.wall_after))
    if expression.kind == "rate":
        return f"{_clocks(transition)}: a rate counts elapsed time"
    walls = _walls(expression, low, high)
    if not walls:
        return None
    named = _named([f"{wall:%H:%M}" for wall in walls])
    text = f"{_clocks(transition)}: {named} "
    if transition.kind is TransitionKind.GAP:
        missing = "does not exist" if len(walls) == 1 else "do not exist"
        if timing.gap is Gap.NEXT_VALID:
            moved = transition.wall_after
            return f"{text}{missing} that day, runs at {moved:%H:%M} instead"
        return f"{text}{missing} that day, skipped"
    comes = "comes" if len(walls) == 1 else "come"
    rule = {
        Fold.FIRST: "runs once, at the first instant",
        Fold.SECOND: "runs once, at the second instant",
        Fold.BOTH: "runs both times",
    }[timing.fold]
    return f"{text}{comes} twice, {rule}"


def _walls(
    expression: Expression, low: datetime, high: datetime
) -> tuple[datetime, ...]:
    if isinstance(expression, CronExpression):
        return expression.walls_between(low, high, _MOST_WALLS)
    if isinstance(expression, AtExpression) and low <= expression.wall < high:
        return (expression.wall,)
    return ()


def _exclusion_notes(
    timing: Timing, before: datetime, instant: datetime
) -> Iterator[str]:
    if not timing.exclude:
        return
    bare = replace(timing, exclude=())
    info = timing.info
    dates: list[str] = []
    left_out = next_time(bare, before)
    while left_out is not None and left_out < instant and len(dates) <= _SHOWN:
        local = left_out.astimezone(info)
        dates.append(f"{local:%Y-%m-%d}")
        day_end = local.replace(hour=23, minute=59, second=59)
        # In a repeated hour the day's end may read as an instant already passed.
        left_out = next_time(bare, max(left_out, to_utc(day_end)))
    if dates:
        more = " and more" if len(dates) > _SHOWN else ""
        yield f"left out, as excluded: {', '.join(dates[:_SHOWN])}{more}"


def _clocks(transition: Transition) -> str:
    forward = transition.kind is TransitionKind.GAP
    before, after = transition.wall_before, transition.wall_after
    way = "forward" if forward else "back"
    same_day = before.date() == after.date()
    to = f"{after:%H:%M}" if same_day else f"{after:%Y-%m-%d %H:%M}"
    return f"clocks go {way} from {before:%Y-%m-%d %H:%M} to {to}"


def _named(words: list[str]) -> str:
    if len(words) <= _SHOWN:
        return ", ".join(words)
    return f"{', '.join(words[:_SHOWN])} and {len(words) - _SHOWN} more"
