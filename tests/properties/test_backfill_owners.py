"""Backfill against a plain model of whose each minute is.

The model walks minute by minute through the version log, and knows a rule only as
"every so many minutes"; it has none of the product's intervals, cron or paging.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from hourbell.domain.definition import ScheduleState, Version
from hourbell.domain.occurrence import Occurrence, State
from hourbell.domain.schedule import Timing
from hourbell.usecases.backfill_values import Backfilled
from hourbell.usecases.change_schedule import pause, resume
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.usecases.test_backfill import fill
from tests.unit.usecases.test_change_schedule import caller, change, current
from tests.unit.usecases.world import MINUTE, SECOND, START, World

BEFORE = 20 * MINUTE

Verdict = tuple[datetime, str | None, str]

steps = st.lists(
    st.tuples(
        st.sampled_from(["edit", "pause", "resume", "pass", "miss"]),
        st.sampled_from([2, 3, 5]),
        st.integers(min_value=1, max_value=900),
    ),
    max_size=12,
)


def every(timing: Timing) -> int:
    return int(timing.expression.removeprefix("*/").split()[0])


def owner(log: list[Version], instant: datetime) -> Version | None:
    """Return the ACTIVE version whose minute it is, by looking at all of them."""
    owners = [
        version
        for version in log
        if version.effective_from is not None
        and version.effective_from <= instant
        and (version.effective_to is None or instant < version.effective_to)
    ]
    assert len(owners) <= 1
    active = [each for each in owners if each.state is ScheduleState.ACTIVE]
    return active[0] if active else None


def foresee(
    world: World, row: Occurrence, last: datetime, known: dict[datetime, str]
) -> list[Verdict]:
    """Return what must be said of every minute, by the model."""
    log = list(world.schedules.version_log(row.schedule_id, limit=1000))
    current_version = log[0]
    states = {each.occurrence_id: each.state for each in world.rows()}
    found: list[Verdict] = []
    instant = START - BEFORE
    while instant < last:
        whose = owner(log, instant)
        version = whose or current_version
        if instant.minute % every(version.definition.timing) == 0:
            name = f"{row.schedule_id}.v{version.version}.{instant:%Y%m%dT%H%M%SZ}"
            name = known.get(instant, name)
            found.append(verdict(world, instant, whose, name, states))
        instant += MINUTE
    return found


def verdict(
    world: World,
    instant: datetime,
    whose: Version | None,
    name: str,
    states: dict[str, State],
) -> Verdict:
    if name in states:
        missed = states[name] is State.MISSED
        return (instant, name, "created" if missed else "exists")
    if whose is not None:
        return (instant, name, told_by_gap(world, instant, whose))
    recent = instant > world.clock.now() - 20 * SECOND
    if recent and current_is_paused_since(world) <= instant:
        return (instant, None, "skipped")
    return (instant, name, "created")


def told_by_gap(world: World, instant: datetime, whose: Version) -> str:
    """Return the outcome for a time without a row, by looking at all gap rows."""
    gaps = [
        each
        for each in world.rows()
        if each.version == whose.version
        and each.covers(instant)
        and each.decision is not None
        and not each.decision.lets_run(instant)
    ]
    assert len(gaps) <= 1
    for gap in gaps:
        # Backfilled itself, it had been worked off before, whatever came after.
        if gap.backfilled_at is not None or gap.state is State.MISSED:
            return "created"
        return {State.CANCELED: "exists", State.PLANNED: "skipped"}.get(
            gap.state, "created"
        )
    return "skipped"


def current_is_paused_since(world: World) -> datetime:
    (schedule,) = world.store.schedules.values()
    begin = world.store.versions[schedule.ref].effective_from
    assert begin is not None
    active = schedule.state is ScheduleState.ACTIVE
    return world.clock.now() if active else begin


def take(world: World, row: Occurrence, step: tuple[str, int, int]) -> None:
    """Take one step of the world's life."""
    kind, minutes, seconds = step
    world.clock.advance(timedelta(seconds=seconds))
    now = world.clock.now()
    if kind == "edit":
        schedule = current(world, row)
        timing = Timing(f"*/{minutes} * * * *")
        change(world, schedule, replace(schedule.definition, timing=timing))
    elif kind == "pause":
        pause(world.changes, caller(world), row.schedule_id, now)
    elif kind == "resume":
        resume(world.changes, caller(world), row.schedule_id, now)
    elif kind == "miss":
        for each in world.rows(State.ENQUEUED)[:1]:
            world.store.put_row(replace(each, state=State.MISSED, sends=0))
    world.scan()
    world.relay_stream()


def said(done: Backfilled) -> list[Verdict]:
    return [(i.scheduled_for, i.occurrence_id, i.outcome.value) for i in done.items]


@settings(max_examples=60, deadline=None)
@given(first=steps, second=steps, limit=st.sampled_from([3, 500]))
def test_every_minute_is_judged_by_whose_it_is(
    first: list[tuple[str, int, int]], second: list[tuple[str, int, int]], limit: int
) -> None:
    world = World()
    row = world.add(Timing("*/2 * * * *"))
    known: dict[datetime, str] = {}
    for phase in (first, second):
        for step in phase:
            take(world, row, step)
        last = world.clock.now()
        expected = foresee(world, row, last, known)
        got: list[Verdict] = []
        begin: datetime | None = START - BEFORE
        while begin is not None and begin < last:
            done = fill(world, row, begin, last, limit=limit)
            got += said(done)
            begin = done.next_from
        assert got == expected
        known |= {
            each.scheduled_for: each.occurrence_id
            for each in world.rows()
            if each.backfilled_at is not None and each.sequence == 0
        }
    live = [r for r in world.rows() if r.state is not State.CANCELED]
    assert len({r.scheduled_for for r in live}) == len(live), "one id for one time"
