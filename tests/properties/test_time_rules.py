"""Time rules held against plain recomputation."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile

from hourbell.domain.cron import CronExpression, parse
from hourbell.domain.errors import InvalidInput
from hourbell.domain.schedule import (
    DateRange,
    Timing,
    matches,
    next_time,
    previous_time,
    upcoming,
)
from hourbell.domain.zones import Fold, Gap, zone
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.properties.test_cron_oracles import (
    MINUTE,
    ZONES,
    Cron,
    crons,
    daily,
    exclusions,
    read_clock,
    windows,
)


@given(
    data=st.data(),
    cron=st.one_of(daily, daily, crons),
    window=windows(),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
)
def test_times_are_what_the_zones_clock_shows_minute_by_minute(
    data: st.DataObject,
    cron: Cron,
    window: tuple[str, datetime, datetime],
    gap: Gap,
    fold: Fold,
) -> None:
    name, start, end = window
    exclude = data.draw(exclusions(start))
    timing = Timing(cron.text, name, gap, fold, exclude=exclude)
    try:
        parse(cron.text)
    except InvalidInput:
        event("never occurs")
        return

    expected = read_clock(cron, timing, start, end)

    event("times" if expected else "no time")
    assert list(takewhile(lambda at: at < end, upcoming(timing, start))) == expected
    assert walk_back(timing, start, end) == expected
    asked = data.draw(st.integers(1, int((end - start) / MINUTE) - 1))
    instant = start + asked * MINUTE
    assert matches(timing, instant) == (instant in expected)
    assert matches(timing, instant + timedelta(seconds=1)) is False


def walk_back(timing: Timing, start: datetime, end: datetime) -> list[datetime]:
    found: list[datetime] = []
    instant = previous_time(timing, end)
    while instant is not None and instant > start:
        found.append(instant)
        instant = previous_time(timing, instant)
    return found[::-1]


# --- next, previous and matches ----------------------------------------------------


AWS_DAYS = st.sampled_from(
    [
        *("* * ?", "L * ?", "LW * ?", "1W * ?", "31W * ?", "15,L 2,6 ?", "29 2 ?"),
        *("? * 6L", "? * L", "? * MON#1", "? 2 1#5", "? * 3#5", "? 3,10 SUN-MON"),
    ]
)
aws = st.builds(
    "cron({} {} {} {})".format,
    st.sampled_from(["0", "*/20", "30"]),
    st.sampled_from(["0", "2", "1-3", "*", "23"]),
    AWS_DAYS,
    st.sampled_from(["*", "2020-2030", "2027/2"]),
)
ats = st.datetimes(datetime(2009, 1, 1), datetime(2031, 1, 1)).map(
    lambda wall: f"at({wall.replace(microsecond=0).isoformat()})"
)
rates = st.builds(
    "rate({} {})".format, st.integers(1, 90), st.sampled_from(["minutes", "days"])
)
instants = st.datetimes(
    datetime(2009, 1, 1), datetime(2031, 1, 1), timezones=st.just(UTC)
)
timings = st.builds(
    Timing,
    expression=st.one_of(crons.map(lambda cron: cron.text), aws, ats, rates),
    zone=st.sampled_from(ZONES),
    gap=st.sampled_from(Gap),
    fold=st.sampled_from(Fold),
    anchor=instants.map(lambda at: at.replace(microsecond=0)),
    start_at=st.none() | instants,
    end_at=st.none() | instants,
    exclude=st.tuples(
        st.builds(
            lambda first, days: DateRange(first, first + timedelta(days=days)),
            st.dates(date(2009, 1, 1), date(2031, 1, 1)),
            st.integers(0, 900),
        )
    ),
)


@given(timing=timings, after=instants)
@example(  # the fold of a midnight shows an excluded date, the next one, and it again
    timing=Timing(
        "*/30 * * * *",
        "America/St_Johns",
        fold=Fold.BOTH,
        exclude=(DateRange.single(date(2009, 10, 31)),),
    ),
    after=datetime(2009, 10, 31, 1, tzinfo=UTC),
)
def test_next_previous_and_matches_agree(timing: Timing, after: datetime) -> None:
    try:
        following = next_time(timing, after)
    except InvalidInput:
        event("never occurs")
        return
    if following is None:
        event("used up")
        return

    assert following > after
    assert matches(timing, following)
    assert following == next_time(timing, following - timedelta(microseconds=1))
    previous = previous_time(timing, following)
    if previous is not None:
        assert previous <= after
        assert matches(timing, previous)
        assert next_time(timing, previous) == following
    later = next_time(timing, following)
    if later is not None:
        assert previous_time(timing, later) == following


@given(timing=timings, after=instants)
def test_every_time_keeps_its_bounds_and_its_local_fields(
    timing: Timing, after: datetime
) -> None:
    try:
        found = next_time(timing, after)
        unbounded = next_time(replace(timing, start_at=None, end_at=None), after)
    except InvalidInput:
        return
    if found is None:
        return

    assert timing.start_at is None or found >= timing.start_at
    assert timing.end_at is None or found < timing.end_at
    assert unbounded is not None
    assert unbounded <= found
    local = found.astimezone(zone(timing.zone))
    assert not timing.exclude[0].first <= local.date() <= timing.exclude[0].last
    expression = parse(timing.expression)
    if isinstance(expression, CronExpression) and timing.gap is Gap.SKIP:
        wall = local.replace(tzinfo=None)
        assert expression.next_wall(wall - timedelta(microseconds=1)) == wall


@given(timing=timings)
def test_a_timing_survives_its_json(timing: Timing) -> None:
    assert Timing.from_dict(timing.to_dict()) == timing
    assert hash(Timing.from_dict(timing.to_dict())) == hash(timing)
