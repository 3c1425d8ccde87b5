"""The examples of docs/policies.md, figure by figure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hourbell.domain.misfire import Misfire, MisfirePolicy
from hourbell.domain.occurrence import Lane, State
from hourbell.domain.schedule import Timing

from tests.unit.usecases.world import SECOND, World

PAGE = Path(__file__).parents[3] / "docs" / "policies.md"
HOURLY, MINUTELY = "0 * * * *", "* * * * *"
MINUTE = timedelta(minutes=1)
SKIP = Misfire(MisfirePolicy.SKIP)
ONCE = Misfire(MisfirePolicy.FIRE_ONCE)


def catch_up(limit: int, bound: int | None = None) -> Misfire:
    return Misfire(MisfirePolicy.CATCH_UP, limit, bound)


def at(text: str) -> datetime:
    """Return the instant of `9 13:00` or `10 12:00:02`, in March."""
    day, clock = text.split()
    hour, minute, second = [*map(int, clock.split(":")), 0][:3]
    return datetime(2026, 3, int(day), hour, minute, second, tzinfo=UTC)


@dataclass(frozen=True)
class Outage:
    """No pass after `last` until `back`."""

    last: str
    back: str


TEN_MINUTES = Outage("9 11:55:02", "9 12:05:02")
ONE_DAY = Outage("9 12:00:02", "10 12:00:02")


@dataclass(frozen=True)
class Told:
    """What the page says: which run and when, own rows that are missed, the gap's.

    Attributes:
        runs: first and last time that run, how many, first and last `available_at`.
        gap: first and last time that only the gap row accounts for, how many.
    """

    runs: tuple[str, str, int, str, str] | None
    own: tuple[str, ...]
    gap: tuple[str, str, int] | None = None


BACK_10, BACK_DAY = "9 12:05:02", "10 12:00:02"
FIRST_10 = ("9 11:59", "9 12:00")
FIRST_DAY = ("9 13:00", "9 14:00")
FIRST_MIN = ("9 12:04", "9 12:05")
GAP_1000 = ("9 12:06", "9 19:19", 434)

EXAMPLES = [
    (HOURLY, TEN_MINUTES, SKIP, 600, Told(None, ("9 12:00",))),
    (
        *(HOURLY, TEN_MINUTES, ONCE, 600),
        Told(("9 12:00", "9 12:00", 1, BACK_10, BACK_10), ()),
    ),
    (
        *(HOURLY, TEN_MINUTES, catch_up(3), 600),
        Told(("9 12:00", "9 12:00", 1, BACK_10, BACK_10), ()),
    ),
    (HOURLY, TEN_MINUTES, catch_up(10, 180), 600, Told(None, ("9 12:00",))),
    (
        *(MINUTELY, TEN_MINUTES, SKIP, 600),
        Told(None, FIRST_10, ("9 12:01", "9 12:04", 4)),
    ),
    (
        *(MINUTELY, TEN_MINUTES, ONCE, 600),
        Told(
            ("9 12:04", "9 12:04", 1, BACK_10, BACK_10),
            *(FIRST_10, ("9 12:01", "9 12:03", 3)),
        ),
    ),
    (
        *(MINUTELY, TEN_MINUTES, catch_up(3), 600),
        Told(
            ("9 12:02", "9 12:04", 3, BACK_10, BACK_10),
            *(FIRST_10, ("9 12:01", "9 12:01", 1)),
        ),
    ),
    (
        *(MINUTELY, TEN_MINUTES, catch_up(10), 600),
        Told(("9 11:59", "9 12:04", 6, BACK_10, BACK_10), ()),
    ),
    (
        *(MINUTELY, TEN_MINUTES, catch_up(10), 60),
        Told(("9 11:59", "9 12:04", 6, BACK_10, "9 12:05:07"), ()),
    ),
    (
        *(MINUTELY, TEN_MINUTES, catch_up(10, 180), 600),
        Told(
            ("9 12:03", "9 12:04", 2, BACK_10, BACK_10),
            *(FIRST_10, ("9 12:01", "9 12:02", 2)),
        ),
    ),
    (
        *(HOURLY, ONE_DAY, SKIP, 600),
        Told(None, FIRST_DAY, ("9 15:00", "10 11:00", 21)),
    ),
    (
        *(HOURLY, ONE_DAY, ONCE, 600),
        Told(
            ("10 11:00", "10 11:00", 1, BACK_DAY, BACK_DAY),
            *(FIRST_DAY, ("9 15:00", "10 10:00", 20)),
        ),
    ),
    (
        *(HOURLY, ONE_DAY, catch_up(3), 600),
        Told(
            ("10 09:00", "10 11:00", 3, BACK_DAY, BACK_DAY),
            *(FIRST_DAY, ("9 15:00", "10 08:00", 18)),
        ),
    ),
    (
        *(HOURLY, ONE_DAY, catch_up(1000), 600),
        Told(("9 13:00", "10 11:00", 23, BACK_DAY, "10 12:00:04"), ()),
    ),
    (
        *(HOURLY, ONE_DAY, catch_up(1000, 21_600), 600),
        Told(
            ("10 07:00", "10 11:00", 5, BACK_DAY, BACK_DAY),
            *(FIRST_DAY, ("9 15:00", "10 06:00", 16)),
        ),
    ),
    (
        *(MINUTELY, ONE_DAY, SKIP, 600),
        Told(None, FIRST_MIN, ("9 12:06", "10 11:59", 1434)),
    ),
    (
        *(MINUTELY, ONE_DAY, ONCE, 600),
        Told(
            ("10 11:59", "10 11:59", 1, BACK_DAY, BACK_DAY),
            *(FIRST_MIN, ("9 12:06", "10 11:58", 1433)),
        ),
    ),
    (
        *(MINUTELY, ONE_DAY, catch_up(3), 600),
        Told(
            ("10 11:57", "10 11:59", 3, BACK_DAY, BACK_DAY),
            *(FIRST_MIN, ("9 12:06", "10 11:56", 1431)),
        ),
    ),
    (
        *(MINUTELY, ONE_DAY, catch_up(1000), 600),
        Told(
            ("9 19:20", "10 11:59", 1000, BACK_DAY, "10 12:01:41"), FIRST_MIN, GAP_1000
        ),
    ),
    (
        *(MINUTELY, ONE_DAY, catch_up(1000), 60),
        Told(
            ("9 19:20", "10 11:59", 1000, BACK_DAY, "10 12:16:41"), FIRST_MIN, GAP_1000
        ),
    ),
    (
        *(MINUTELY, ONE_DAY, catch_up(1000, 21_600), 600),
        Told(
            ("10 06:01", "10 11:59", 359, BACK_DAY, "10 12:00:37"),
            *(FIRST_MIN, ("9 12:06", "10 06:00", 1075)),
        ),
    ),
]


def back_from(expression: str, outage: Outage, misfire: Misfire, quota: int) -> World:
    """Return a world right after the first pass that follows an outage."""
    world = World()
    tenant = world.store.tenants["acme"]
    quotas = replace(tenant.quotas, catch_up_per_minute=quota)
    world.store.tenants["acme"] = replace(tenant, quotas=quotas)
    world.clock.set(at(outage.last) - 32 * SECOND)
    world.add(Timing(expression), misfire=misfire)
    world.clock.set(at(outage.last))
    world.scan()
    world.relay_stream()
    world.clock.set(at(outage.back))
    world.scan()
    return world


@pytest.mark.parametrize(
    ("expression", "outage", "misfire", "quota", "told"),
    EXAMPLES,
    ids=[f"{n}" for n in range(len(EXAMPLES))],
)
def test_it_is_as_the_page_says(
    expression: str, outage: Outage, misfire: Misfire, quota: int, told: Told
) -> None:
    world = back_from(expression, outage, misfire, quota)

    rows = {row.scheduled_for: row for row in world.rows()}
    run = [row for row in rows.values() if row.lane is Lane.CATCHUP]
    own = [row.scheduled_for for row in rows.values() if row.state is State.MISSED]
    gaps = [row for row in rows.values() if row.decision is not None]
    covered = [t for t in _minutes(outage) if any(g.covers(t) for g in gaps)]
    if expression == HOURLY:
        covered = [t for t in covered if t.minute == 0]
    bare = [t for t in covered if t not in rows]
    assert own == [at(each) for each in told.own]
    gap = (bare[0], bare[-1], len(bare)) if bare else None
    assert gap == _gap(told)
    times = [row.scheduled_for for row in run]
    available = [row.available_at for row in run]
    if told.runs is None:
        assert run == []
        return
    first, last, count, begin, end = told.runs
    assert (times[0], times[-1], len(times)) == (at(first), at(last), count)
    assert (available[0], available[-1]) == (at(begin), at(end))
    # Evenly spaced in between, in order.
    assert available == [at(begin) + n * 60 // quota * SECOND for n in range(count)]


def _gap(told: Told) -> tuple[datetime, datetime, int] | None:
    if told.gap is None:
        return None
    first, last, count = told.gap
    return at(first), at(last), count


def _minutes(outage: Outage) -> Iterator[datetime]:
    minute = at(outage.last).replace(second=0)
    while minute < at(outage.back):
        yield minute
        minute += MINUTE


def test_159_of_a_thousand_at_one_a_second_are_deferred_at_first() -> None:
    world = back_from(MINUTELY, ONE_DAY, catch_up(1000), 60)

    assert len(world.rows(State.DEFERRED)) == 159


def test_what_is_on_time_is_scheduled_by_the_same_pass() -> None:
    world = back_from(MINUTELY, TEN_MINUTES, SKIP, 600)

    strict = [row for row in world.rows(State.SCHEDULED) if row.lane is Lane.STRICT]
    assert [row.scheduled_for for row in strict] == [
        at("9 12:05") + n * MINUTE for n in range(4)
    ]
    assert [row.scheduled_for for row in world.rows(State.PLANNED)] == [at("9 12:09")]


def test_the_page_has_as_many_examples() -> None:
    """A line that is added to its tables must be tested here, too."""
    text = PAGE.read_text("utf-8")
    section = text[text.index("### Examples") : text.index("### How two machines")]
    lines = re.findall(r"^\| (?:SKIP|FIRE_ONCE|CATCH_UP)", section, re.MULTILINE)

    assert len(lines) == len(EXAMPLES)
