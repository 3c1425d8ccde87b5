"""The `Timeline` port."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchState
from hourbell.domain.occurrence import (
    TRANSITIONS,
    Lane,
    Occurrence,
    RowKey,
    State,
    Transition,
)
from hourbell.usecases.ports import Change, Write

from tests.conformance import samples
from tests.conformance.samples import BUCKET, SHARD, acknowledging, planned, scheduling
from tests.conformance.worlds import World

SECOND = timedelta(seconds=1)


def stored(world: World, row: Occurrence) -> Occurrence:
    return world.timeline.read([row.key])[row.key]


def test_plan_inserts_rows(packed_world: World) -> None:
    rows = [planned(n) for n in range(3)]

    assert packed_world.timeline.plan(rows) == [Write.APPLIED] * 3
    assert packed_world.timeline.read(r.key for r in rows) == {r.key: r for r in rows}


def test_plan_of_a_taken_key_exists_and_changes_nothing(packed_world: World) -> None:
    first = planned("taken")
    packed_world.timeline.plan([first])
    rival = replace(first, sequence=99, tenant_id="other")

    answers = packed_world.timeline.plan([planned("a"), rival, planned("b")])

    assert answers == [Write.APPLIED, Write.EXISTS, Write.APPLIED]
    assert stored(packed_world, first) == first


def test_plan_takes_more_rows_than_one_pack(packed_world: World) -> None:
    rows = [planned(n) for n in range(60)]
    packed_world.timeline.plan(rows[20:40])

    answers = packed_world.timeline.plan(rows)

    expected = [Write.APPLIED] * 20 + [Write.EXISTS] * 20 + [Write.APPLIED] * 20
    assert answers == expected


def test_plan_and_move_of_nothing_answer_nothing(packed_world: World) -> None:
    assert packed_world.timeline.plan([]) == []
    assert packed_world.timeline.move([]) == []


def test_a_key_twice_in_one_call_is_a_fault_of_the_program(packed_world: World) -> None:
    row = planned()
    with pytest.raises(ValueError, match="twice"):
        packed_world.timeline.plan([row, replace(row, sequence=8)])
    with pytest.raises(ValueError, match="twice"):
        packed_world.timeline.move([scheduling(row), samples.canceling(row)])
    assert packed_world.timeline.read([row.key]) == {}


def test_a_life_to_the_queue_stores_what_each_transition_declares(
    packed_world: World,
) -> None:
    row = planned()
    packed_world.timeline.plan([row])

    outbox = scheduling(row)
    assert packed_world.timeline.move([outbox]) == [Write.APPLIED]
    assert stored(packed_world, row) == outbox.row

    sent = acknowledging(outbox.row)
    assert packed_world.timeline.move([sent]) == [Write.APPLIED]
    assert stored(packed_world, row) == sent.row


def test_a_move_writes_no_other_field(packed_world: World) -> None:
    row = planned()
    packed_world.timeline.plan([row])
    stranger = replace(row, tenant_id="other", sequence=99, sends=5, reason="none")

    packed_world.timeline.move([scheduling(stranger)])

    assert stored(packed_world, row) == scheduling(row).row


def test_a_move_clears_a_declared_field_that_is_none(packed_world: World) -> None:
    outbox = scheduling(planned()).row
    packed_world.seed([outbox])
    tracked = replace(acknowledging(outbox).row, expires_at=None)

    packed_world.timeline.move([Change(tracked, Transition.ACKNOWLEDGE)])

    assert stored(packed_world, outbox).expires_at is None
    assert stored(packed_world, outbox) == tracked


def test_a_move_of_a_missing_row_is_lost(packed_world: World) -> None:
    assert packed_world.timeline.move([scheduling(planned())]) == [Write.LOST]
    assert packed_world.timeline.read([planned().key]) == {}


@pytest.mark.parametrize("transition", Transition)
def test_a_move_is_allowed_from_exactly_its_sources(
    packed_world: World, transition: Transition
) -> None:
    rows = {state: replace(planned(state), state=state) for state in State}
    packed_world.seed(list(rows.values()))
    full = replace(
        samples.canceling(acknowledging(scheduling(planned()).row).row).row,
        lane=Lane.STRICT,
    )
    changes = [
        Change(replace(full, schedule_id=row.schedule_id), transition)
        for row in rows.values()
    ]

    answers = packed_world.timeline.move(changes)

    move = TRANSITIONS[transition]
    applied = {
        state
        for state, answer in zip(rows, answers, strict=True)
        if answer is Write.APPLIED
    }
    assert applied == move.sources
    assert set(answers) == {Write.APPLIED, Write.LOST}
    after = packed_world.timeline.read(row.key for row in rows.values())
    for state, row in rows.items():
        expected = move.target if state in move.sources else state
        assert after[row.key].state is expected


def test_moves_are_answered_in_order(packed_world: World) -> None:
    rows = [planned(n) for n in range(30)]
    packed_world.timeline.plan(rows[::2])

    answers = packed_world.timeline.move([scheduling(row) for row in rows])

    assert answers == [Write.APPLIED, Write.LOST] * 15


def pages(world: World, limit: int, *, consistent: bool) -> list[list[Occurrence]]:
    found: list[list[Occurrence]] = []
    after: RowKey | None = None
    while True:
        page = world.timeline.page(
            BUCKET, SHARD, after=after, limit=limit, consistent=consistent
        )
        found.append(list(page.rows))
        after = page.after
        if after is None:
            return found


@pytest.mark.parametrize("consistent", [True, False])
def test_pages_give_every_row_once_in_key_order(world: World, consistent: bool) -> None:
    seconds = [5, 0, 59, 30]
    rows = [
        planned(n, samples.DUE + timedelta(seconds=second))
        for second in seconds
        for n in range(3)
    ]
    world.seed(rows)

    found = pages(world, 5, consistent=consistent)

    assert [row for page in found for row in page] == sorted(
        rows, key=lambda row: row.key.sort
    )
    assert [len(page) for page in found if page] == [5, 5, 2]


def test_a_page_holds_rows_of_its_bucket_and_shard_only(world: World) -> None:
    mine = planned("mine")
    world.seed(
        [
            mine,
            replace(planned("next shard"), shard=SHARD + 1),
            planned("next bucket", samples.DUE + samples.MINUTE),
        ]
    )

    assert world.timeline.page(BUCKET, SHARD).rows == (mine,)


def test_an_empty_bucket_is_one_empty_page(world: World) -> None:
    page = world.timeline.page(BUCKET, SHARD)

    assert page.rows == ()
    assert page.after is None


FULL_ROWS: list[Callable[[Occurrence], Occurrence]] = [
    lambda row: row,
    lambda row: scheduling(row).row,
    lambda row: acknowledging(scheduling(row).row).row,
    lambda row: samples.canceling(row, "SUPERSEDED").row,
]


@pytest.mark.parametrize("make", FULL_ROWS)
def test_a_row_comes_back_as_it_was_written(
    world: World, make: Callable[[Occurrence], Occurrence]
) -> None:
    row = make(planned())
    world.seed([row])

    assert world.timeline.read([row.key]) == {row.key: row}
    assert world.timeline.page(BUCKET, SHARD, consistent=True).rows == (row,)


def test_read_returns_those_that_exist(world: World) -> None:
    row, missing = planned(), planned("missing")
    world.seed([row])

    found = world.timeline.read([row.key, missing.key, row.key])

    assert found == {row.key: row}
    assert world.timeline.read([]) == {}


def test_read_takes_more_than_one_batch(world: World) -> None:
    row = planned("real")
    world.seed([row])

    found = world.timeline.read([*(planned(n).key for n in range(150)), row.key])

    assert found == {row.key: row}


def test_dispatch_rows_come_apart_from_occurrences(world: World) -> None:
    rows = [planned(n, samples.DUE + n * SECOND) for n in range(4)]
    dispatches = [samples.dispatch(n, samples.DUE + n * SECOND) for n in range(3)]
    world.seed([*rows, *dispatches])

    whole = world.timeline.page(BUCKET, SHARD, consistent=True)

    assert list(whole.rows) == rows
    assert list(whole.dispatches) == dispatches
    assert whole.after is None


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_give_every_row_of_both_kinds_once(world: World, limit: int) -> None:
    rows = [planned(n, samples.DUE + n * SECOND) for n in range(3)]
    dispatches = [samples.dispatch(n, samples.DUE + n * SECOND) for n in range(4)]
    world.seed([*rows, *dispatches])

    found: list[Occurrence | Dispatch] = []
    after: RowKey | None = None
    while True:
        page = world.timeline.page(BUCKET, SHARD, after=after, limit=limit)
        assert len(page.rows) + len(page.dispatches) <= limit
        found += [*page.rows, *page.dispatches]
        after = page.after
        if after is None:
            break

    assert len(found) == len(rows) + len(dispatches)
    assert set(found) == {*rows, *dispatches}


def test_read_leaves_dispatch_rows_out(world: World) -> None:
    row, dispatch = planned(), samples.dispatch()
    world.seed([row, dispatch])

    assert world.timeline.read([row.key, dispatch.key]) == {row.key: row}


def test_a_dispatch_row_is_settled_once(packed_world: World) -> None:
    world, dispatch = packed_world, samples.dispatch()
    world.seed([dispatch, planned()])
    expiry = samples.DUE + timedelta(days=15)
    done = replace(dispatch, state=DispatchState.DONE, expires_at=expiry)

    assert world.timeline.settle([done]) == [Write.APPLIED]

    page = world.timeline.page(BUCKET, SHARD, consistent=True)
    assert page.dispatches == (done,)
    later = replace(done, expires_at=expiry + samples.MINUTE)
    assert world.timeline.settle([later]) == [Write.LOST]
    page = world.timeline.page(BUCKET, SHARD, consistent=True)
    assert page.dispatches == (done,)


def test_a_missing_dispatch_row_is_not_settled(packed_world: World) -> None:
    world = packed_world
    assert world.timeline.settle([samples.dispatch()]) == [Write.LOST]
    assert world.timeline.page(BUCKET, SHARD).dispatches == ()


def test_a_move_leaves_a_dispatch_row_alone(packed_world: World) -> None:
    dispatch = samples.dispatch(number=1)
    packed_world.seed([dispatch])

    assert packed_world.timeline.move([scheduling(planned())]) == [Write.LOST]
    assert packed_world.timeline.page(BUCKET, SHARD).dispatches == (dispatch,)


def test_rows_of_both_kinds_are_looked_up_by_their_keys(world: World) -> None:
    row, other = planned("looked up"), planned("another")
    record = samples.dispatch()
    world.seed([row, other, record])

    found = world.timeline.look_up([row.key, record.key, planned("gone").key, row.key])

    assert (found.rows, found.dispatches) == ((row,), (record,))
    assert (found.unreadable, found.after) == ((), None)
    assert world.timeline.look_up([]).rows == ()
