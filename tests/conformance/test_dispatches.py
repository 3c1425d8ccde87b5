"""The `Timeline` and `Schedules` ports: dispatch rows that let occurrences go."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.definition import ScheduleState
from hourbell.domain.dispatch import Dispatch, DispatchKind, DispatchState
from hourbell.domain.occurrence import Lane, Occurrence, State, Transition
from hourbell.domain.overlap import Overlap
from hourbell.usecases.ports import Backfill, Change, Write

from tests.conformance import samples
from tests.conformance.samples import BUCKET, DUE, MINUTE, NOW, SHARD, planned
from tests.conformance.worlds import World

HOUR = timedelta(hours=1)
EXPIRY = DUE + timedelta(days=15)
RUN = "0123456789abcdef"


def releasing(label: object = "one", run: str | None = None) -> Dispatch:
    """Return the dispatch row of an occurrence of five hours before `DUE`."""
    row = planned(label)
    return Dispatch(
        DispatchKind.RELEASE,
        row.schedule_id,
        row.version,
        row.tenant_id,
        DUE,
        SHARD,
        NOW,
        scheduled_for=DUE - 5 * HOUR,
        run=run,
    )


def done(dispatch: Dispatch) -> Dispatch:
    return replace(dispatch, state=DispatchState.DONE, expires_at=EXPIRY)


def shown(world: World) -> tuple[Dispatch, ...]:
    return world.timeline.page(BUCKET, SHARD, consistent=True).dispatches


def in_order(*dispatches: Dispatch) -> tuple[Dispatch, ...]:
    return tuple(sorted(dispatches, key=lambda each: each.key.sort))


def test_posted_rows_come_back_as_they_were_written(packed_world: World) -> None:
    plain, ran = releasing(), releasing(run=RUN)
    handover = samples.dispatch()

    answers = packed_world.timeline.post([plain, ran, handover])

    assert answers == [Write.APPLIED] * 3
    assert shown(packed_world) == in_order(plain, ran, handover)


def test_a_post_of_a_taken_key_exists_and_changes_nothing(packed_world: World) -> None:
    first = done(releasing())
    packed_world.seed([first])
    again = replace(releasing(), written_at=NOW + MINUTE, tenant_id="other")

    answers = packed_world.timeline.post([releasing("a"), again, releasing("b")])

    assert answers == [Write.APPLIED, Write.EXISTS, Write.APPLIED]
    assert shown(packed_world) == in_order(releasing("a"), first, releasing("b"))


def test_more_than_one_pack_is_posted_and_settled_in_order(packed_world: World) -> None:
    every = [releasing(n) for n in range(60)]
    packed_world.timeline.post(every[20:40])

    assert packed_world.timeline.post(every) == (
        [Write.APPLIED] * 20 + [Write.EXISTS] * 20 + [Write.APPLIED] * 20
    )
    packed_world.timeline.settle([done(each) for each in every[::2]])
    assert packed_world.timeline.settle([done(each) for each in every]) == (
        [Write.LOST, Write.APPLIED] * 30
    )
    assert {each.state for each in shown(packed_world)} == {DispatchState.DONE}


def test_to_post_and_to_settle_nothing_answers_nothing(packed_world: World) -> None:
    assert packed_world.timeline.post([]) == []
    assert packed_world.timeline.settle([]) == []


def test_a_dispatch_key_twice_in_one_call_is_a_fault_of_the_program(
    packed_world: World,
) -> None:
    twice = [releasing(), replace(releasing(), written_at=NOW + MINUTE)]
    with pytest.raises(ValueError, match="twice"):
        packed_world.timeline.post(twice)
    with pytest.raises(ValueError, match="twice"):
        packed_world.timeline.settle(twice)
    assert shown(packed_world) == ()


def test_settling_writes_state_and_expiry_only(packed_world: World) -> None:
    packed_world.seed([releasing(run=RUN)])
    stranger = replace(done(releasing(run=RUN)), tenant_id="other", written_at=DUE)

    assert packed_world.timeline.settle([stranger]) == [Write.APPLIED]

    assert shown(packed_world) == (done(releasing(run=RUN)),)


def test_settling_answers_each_row_for_itself(packed_world: World) -> None:
    pending, settled = releasing("pending"), done(releasing("settled"))
    packed_world.seed([pending, settled])
    later = replace(settled, expires_at=EXPIRY + MINUTE)

    answers = packed_world.timeline.settle(
        [done(releasing("gone")), done(pending), later]
    )

    assert answers == [Write.LOST, Write.APPLIED, Write.LOST]
    assert shown(packed_world) == in_order(done(pending), settled)


MISSED = replace(
    planned(due=DUE - 5 * HOUR),
    state=State.MISSED,
    reason="MISFIRE",
    finished_at=NOW,
    expires_at=EXPIRY,
)
REOPENED = replace(
    MISSED,
    state=State.DEFERRED,
    backfilled_at=NOW,
    overlap=Overlap.QUEUE_ONE,
    available_at=DUE,
    lane=Lane.CATCHUP,
    queue="standard-catchup",
    reason=None,
    finished_at=None,
    expires_at=None,
)
REOPENING = Change(REOPENED, Transition.BACKFILL)


def test_reopening_makes_the_move_and_puts_the_dispatch_row(world: World) -> None:
    world.seed([MISSED])

    assert world.timeline.reopen(REOPENING, releasing()) is Write.APPLIED

    assert world.timeline.read([MISSED.key]) == {MISSED.key: REOPENED}
    assert shown(world) == (releasing(),)


@pytest.mark.parametrize("state", [*sorted(set(State) - {State.MISSED}), None])
def test_what_is_not_missed_is_not_reopened(world: World, state: State | None) -> None:
    before = [] if state is None else [replace(MISSED, state=state)]
    world.seed(before)

    assert world.timeline.reopen(REOPENING, releasing()) is Write.LOST

    assert list(world.timeline.read([MISSED.key]).values()) == before
    assert shown(world) == ()


def test_nothing_is_reopened_over_a_dispatch_row_that_is_there(world: World) -> None:
    world.seed([MISSED, done(releasing())])

    assert world.timeline.reopen(REOPENING, releasing()) is Write.LOST

    assert world.timeline.read([MISSED.key]) == {MISSED.key: MISSED}
    assert shown(world) == (done(releasing()),)


BACKFILL = Backfill(
    samples.schedule_id("one"),
    DUE - 5 * HOUR,
    1,
    NOW,
    "arn:aws:iam::123456789012:role/acme",
    "the outage of March",
)


def create(world: World) -> None:
    world.schedules.create(
        samples.schedule(), samples.current(), samples.planned(), quota=9
    )


def everything(world: World) -> tuple[object, ...]:
    """Return what a backfill may have stored."""
    return (
        world.schedules.backfills(BACKFILL.schedule_id, DUE - 9 * HOUR, DUE),
        world.timeline.read([REOPENED.key]),
        shown(world),
    )


NOTHING: tuple[object, ...] = ((), {}, ())
ALL = ((BACKFILL,), {REOPENED.key: REOPENED}, (releasing(),))


def record(world: World, backfill: Backfill = BACKFILL) -> Write:
    return world.schedules.record_backfill(backfill, REOPENED, releasing())


@pytest.mark.parametrize("paused", [False, True])
def test_a_backfill_its_row_and_its_dispatch_row_are_stored_together(
    world: World, paused: bool
) -> None:
    create(world)
    if paused:
        world.schedules.succeed(samples.succession(state=ScheduleState.PAUSED))
        world.timeline.settle([done(samples.dispatch())])
    before = shown(world)

    assert record(world) is Write.APPLIED

    found, rows, dispatches = everything(world)
    assert (found, rows) == ALL[:2]
    assert dispatches == in_order(*before, releasing())


def test_a_time_is_backfilled_once_under_whatever_version(world: World) -> None:
    create(world)
    record(world)
    under_two: Occurrence = replace(REOPENED, version=2)
    other = replace(releasing(), version=2)

    answer = world.schedules.record_backfill(
        replace(BACKFILL, version=2, reason=None), under_two, other
    )

    assert answer is Write.EXISTS
    assert everything(world) == ALL
    assert world.timeline.read([under_two.key]) == {}


def test_a_time_that_has_a_row_is_not_backfilled(world: World) -> None:
    create(world)
    world.seed([MISSED])

    assert record(world) is Write.EXISTS

    assert everything(world) == ((), {MISSED.key: MISSED}, ())


def test_a_time_whose_dispatch_row_is_there_is_not_backfilled(world: World) -> None:
    create(world)
    world.seed([releasing()])

    assert record(world) is Write.EXISTS

    assert everything(world) == ((), {}, (releasing(),))


@pytest.mark.parametrize("canceled", [True, False])
def test_a_canceled_or_missing_schedule_is_not_backfilled(
    world: World, canceled: bool
) -> None:
    if canceled:
        create(world)
        change = samples.succession(state=ScheduleState.CANCELED)
        assert world.schedules.succeed(change) is Write.APPLIED
    before = shown(world)

    assert record(world) is Write.LOST

    assert everything(world) == ((), {}, before)


def test_backfills_are_told_from_first_to_last_in_order(world: World) -> None:
    create(world)
    times = [DUE - n * HOUR for n in (1, 4, 2, 3)]
    for instant in times:
        row = replace(REOPENED, scheduled_for=instant)
        release = replace(releasing(), scheduled_for=instant)
        backfill = replace(BACKFILL, scheduled_for=instant, reason=None)
        assert world.schedules.record_backfill(backfill, row, release) is Write.APPLIED
    schedule_id = BACKFILL.schedule_id

    found = world.schedules.backfills(schedule_id, DUE - 3 * HOUR, DUE - HOUR)

    told = [(each.scheduled_for, each.reason) for each in found]
    assert told == [(DUE - n * HOUR, None) for n in (3, 2, 1)]
    narrow = DUE - 3 * HOUR + timedelta(seconds=1)
    assert [
        each.scheduled_for
        for each in world.schedules.backfills(schedule_id, narrow, DUE - 2 * HOUR)
    ] == [DUE - 2 * HOUR]
    assert world.schedules.backfills(samples.schedule_id("two"), times[1], DUE) == ()


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_time_whose_row_lies_in_its_other_place_is_not_backfilled(
    world: World, is_taken: bool
) -> None:
    create(world)
    stray = replace(MISSED, shard=REOPENED.shard + 1)
    if is_taken:
        world.seed([stray])

    answer = world.schedules.record_backfill(
        BACKFILL, REOPENED, releasing(), twin=stray.key
    )

    assert answer is (Write.EXISTS if is_taken else Write.APPLIED)
    assert everything(world) == (NOTHING if is_taken else ALL)


def test_a_canceled_schedule_is_not_backfilled_with_another_place_either(
    world: World,
) -> None:
    twin = replace(REOPENED, shard=REOPENED.shard + 1).key

    answer = world.schedules.record_backfill(BACKFILL, REOPENED, releasing(), twin=twin)

    assert answer is Write.LOST
    assert everything(world) == NOTHING
