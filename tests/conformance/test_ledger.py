"""The `Ledger` port: deeds are done whole or not at all."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hourbell.domain.dispatch import Dispatch, DispatchKind
from hourbell.domain.occurrence import Occurrence, RowKey, State, Transition
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.work_ports import Check, Deed

from tests.conformance import samples
from tests.conformance.samples import BUCKET, DUE, MINUTE, NOW, SHARD
from tests.conformance.work_samples import (
    TOKEN,
    attempt,
    burying,
    claiming,
    enqueued,
    full,
    letter,
    replaying,
    running,
)
from tests.conformance.worlds import World

OWNER = samples.schedule_id("one")
ROW = enqueued()
OTHER = enqueued("other")
LANE = OverlapLane(OWNER, ROW.occurrence_id, revision=1)
SLOT = Slot("acme", 3, ROW.occurrence_id)


def watching(row: Occurrence, number: int = 1) -> Dispatch:
    return Dispatch(
        DispatchKind.WATCH,
        row.schedule_id,
        row.version,
        row.tenant_id,
        DUE + MINUTE,
        SHARD,
        NOW,
        scheduled_for=row.scheduled_for,
        run=row.run,
        number=number,
    )


WHOLE = Deed(
    changes=(claiming(ROW),),
    dispatches=(watching(ROW),),
    attempts=(attempt(ROW, 7),),
    lane=LANE,
    takes=SLOT,
    frees=replace(SLOT, number=4),
    letters=(letter("one"),),
    forgets=(letter("old"),),
    checks=(Check(OTHER.key, State.ENQUEUED, 0),),
)
FREED = Deed((), takes=replace(SLOT, number=4), letters=(letter("old"),))


def stored(world: World, row: Occurrence) -> Occurrence:
    return world.timeline.read([row.key])[row.key]


def everything(world: World) -> tuple[object, ...]:
    """Return all that `WHOLE` may have changed."""
    ledger = world.ledger
    return (
        stored(world, ROW),
        stored(world, OTHER),
        world.timeline.page(BUCKET, SHARD, consistent=True).dispatches,
        world.timeline.look_up([watching(ROW).key]).dispatches,
        ledger.attempts(ROW.key),
        ledger.lane(OWNER),
        ledger.slots("acme"),
        ledger.letters("acme", after=None, limit=100),
    )


def ready(world: World) -> None:
    """Store what `WHOLE` needs."""
    world.seed([ROW, OTHER])
    assert world.ledger.do(FREED) is Write.APPLIED


def test_a_deed_does_all_it_says(world: World) -> None:
    ready(world)

    assert world.ledger.do(WHOLE) is Write.APPLIED

    assert everything(world) == (
        claiming(ROW).row,
        OTHER,
        (),
        (watching(ROW),),
        (attempt(ROW, 7),),
        LANE,
        {3: SLOT},
        ([letter("one")], None),
    )


def test_a_deed_of_nothing_is_done(world: World) -> None:
    assert world.ledger.do(Deed(())) is Write.APPLIED
    assert world.ledger.do(Deed((), frees=SLOT)) is Write.APPLIED


OBSTACLES: dict[str, Callable[[World], object]] = {
    "the state": lambda world: world.seed([burying(running()).row]),
    "what is expected": lambda world: world.seed([replace(ROW, attempt=1)]),
    "the dispatch row": lambda world: world.seed([watching(ROW)]),
    "the attempt": lambda world: world.ledger.do(
        Deed((), attempts=(replace(attempt(ROW, 7), worker="w-2"),))
    ),
    "the lane": lambda world: world.ledger.do(
        Deed((), lane=replace(LANE, holder="somebody"))
    ),
    "the slot": lambda world: world.ledger.do(
        Deed((), takes=replace(SLOT, holder="somebody"))
    ),
    "the state of another row": lambda world: world.seed([claiming(OTHER).row]),
    "the attempt of another row": lambda world: world.seed([replace(OTHER, attempt=2)]),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_a_condition_that_fails_leaves_all_as_it_was(
    world: World, obstacle: str
) -> None:
    ready(world)
    OBSTACLES[obstacle](world)
    before = everything(world)

    assert world.ledger.do(WHOLE) is Write.LOST

    assert everything(world) == before


@pytest.mark.parametrize("missing", [ROW, OTHER])
def test_a_row_that_is_not_there_is_in_no_state(
    world: World, missing: Occurrence
) -> None:
    world.seed([OTHER if missing is ROW else ROW])

    assert world.ledger.do(WHOLE) is Write.LOST

    assert world.ledger.slots("acme") == {}
    assert world.timeline.read([missing.key]) == {}


@pytest.mark.parametrize("found", [None, "somebody"])
def test_a_slot_that_is_not_there_or_anothers_keeps_nothing_from_being_done(
    world: World, found: str | None
) -> None:
    world.seed([ROW, OTHER])
    freed = replace(SLOT, number=4)
    there = {
        "somebody": replace(freed, holder="somebody"),
    }
    if found is not None:
        world.ledger.do(Deed((), takes=there[found]))

    assert world.ledger.do(WHOLE) is Write.APPLIED

    left = {} if found is None else {4: there[found]}
    assert world.ledger.slots("acme") == {3: SLOT, **left}
    assert stored(world, ROW) == claiming(ROW).row


def test_a_refusal_is_one_also_when_the_slot_to_free_is_not_there(
    world: World,
) -> None:
    world.seed([ROW, replace(OTHER, attempt=2)])

    assert world.ledger.do(WHOLE) is Write.LOST

    assert stored(world, ROW) == ROW
    assert world.ledger.slots("acme") == {}


def test_a_slot_goes_from_one_occurrence_to_the_next(world: World) -> None:
    ledger, following = world.ledger, replace(SLOT, holder="another")
    handing_on = Deed((), takes=following, frees=SLOT)
    assert ledger.do(Deed((), takes=SLOT)) is Write.APPLIED

    assert ledger.do(handing_on) is Write.APPLIED
    assert ledger.slots("acme") == {3: following}

    # It is another's by now.
    assert ledger.do(handing_on) is Write.LOST
    assert ledger.do(Deed((), frees=following)) is Write.APPLIED
    assert ledger.do(handing_on) is Write.APPLIED
    assert ledger.slots("acme") == {3: following}


def test_slots_are_a_tenants_own(world: World) -> None:
    slots = [replace(SLOT, number=number) for number in (0, 12, 9_999)]
    for slot in [*slots, replace(SLOT, tenant_id="acme2")]:
        assert world.ledger.do(Deed((), takes=slot)) is Write.APPLIED

    assert world.ledger.slots("acme") == {slot.number: slot for slot in slots}
    assert world.ledger.slots("other") == {}


def test_a_lane_changes_from_revision_to_revision(world: World) -> None:
    ledger, lane = world.ledger, OverlapLane(OWNER)
    assert ledger.lane(OWNER) == lane
    for changed in (
        lane.held_by("a"),
        lane.held_by("a").awaited_by("b"),
        lane.held_by("a").awaited_by("b").held_by("b"),
        replace(lane, revision=4),
    ):
        assert ledger.do(Deed((), lane=changed)) is Write.APPLIED
        assert ledger.lane(OWNER) == changed
        assert ledger.do(Deed((), lane=changed)) is Write.LOST
        skipping = replace(changed, holder="c", revision=changed.revision + 2)
        assert ledger.do(Deed((), lane=skipping)) is Write.LOST
        assert ledger.lane(OWNER) == changed
    assert ledger.lane(samples.schedule_id("other")).revision == 0


def test_attempts_come_in_the_order_of_their_numbers(world: World) -> None:
    run = replace(ROW, run="00c0ffee00c0ffee")
    numbers = [10, 2, 1, 100, 9]
    for row in (ROW, run, replace(ROW, version=11)):
        attempts = tuple(attempt(row, number) for number in numbers)
        assert world.ledger.do(Deed((), attempts=attempts)) is Write.APPLIED

    for row in (ROW, run):
        expected = tuple(attempt(row, number) for number in sorted(numbers))
        assert world.ledger.attempts(row.key) == expected
    assert world.ledger.attempts(OTHER.key) == ()


def test_an_attempt_without_a_failure_comes_back(world: World) -> None:
    plain = replace(attempt(ROW, 1), failure=None, worker="")
    world.ledger.do(Deed((), attempts=(plain,)))

    assert world.ledger.attempts(ROW.key) == (plain,)


def test_attempts_are_no_rows_of_a_page(world: World) -> None:
    run = replace(ROW, run="00c0ffee00c0ffee")
    world.seed([ROW, run, samples.dispatch()])
    attempts = tuple(attempt(row, n) for row in (ROW, run) for n in (1, 2, 10))
    world.ledger.do(Deed((), attempts=attempts))

    found: list[object] = []
    after: RowKey | None = None
    while True:
        page = world.timeline.page(BUCKET, SHARD, after=after, limit=2)
        assert page.unreadable == ()
        found += [*page.rows, *page.dispatches]
        after = page.after
        if after is None:
            break
    assert len(found) == 3
    assert set(found) == {ROW, run, samples.dispatch()}
    keys = [replace(each.key, sort=each.sort) for each in attempts]
    page = world.timeline.look_up([*keys, ROW.key])
    assert (page.rows, page.dispatches, page.unreadable) == ((ROW,), (), ())


def test_attempts_are_moved_to_another_shard_with_their_row(world: World) -> None:
    world.seed([ROW])
    attempts = (attempt(ROW, 1), attempt(ROW, 2))
    world.ledger.do(Deed((), attempts=attempts))
    found, _ = world.relocation.rows_from(BUCKET, segment=0, segments=1, after=None)
    assert [(each.is_open, each.is_leaving) for each in found] == [(False, False)] * 3
    assert {each.key.schedule_id for each in found} == {OWNER}

    answers = world.relocation.relocate(found, [11] * 3)

    assert answers == [Write.APPLIED] * 3
    there = replace(ROW, shard=11)
    moved = tuple(replace(each, key=there.key) for each in attempts)
    assert world.ledger.attempts(there.key) == moved
    assert world.ledger.attempts(ROW.key) == ()
    assert world.relocation.relocate(found, [12] * 3) == [Write.LOST] * 3


def test_a_row_with_all_of_its_work_comes_back_as_it_was_written(
    world: World,
) -> None:
    world.seed([full()])

    assert stored(world, full()) == full()


def test_a_single_change_writes_what_it_declares(world: World) -> None:
    world.seed([ROW])
    stranger = claiming(replace(ROW, tenant_id="other", misfire=True))

    assert world.ledger.do(Deed((stranger,))) is Write.APPLIED
    assert stored(world, ROW) == claiming(ROW).row
    assert world.ledger.do(Deed((stranger,))) is Write.LOST
    assert stored(world, ROW) == claiming(ROW).row


@pytest.mark.parametrize("extra", [Deed(()), Deed((), letters=(letter("one"),))])
def test_a_replay_clears_what_it_declares_as_none(world: World, extra: Deed) -> None:
    world.seed([full()])
    change = replaying(full())

    assert world.ledger.do(replace(extra, changes=(change,))) is Write.APPLIED

    assert stored(world, full()) == change.row
    unset = (("begun_at", None), ("told_at", None), ("reason", None))
    release = Change(change.row, Transition.RELEASE, unset)
    assert world.ledger.do(replace(extra, changes=(release,))) is Write.APPLIED


def test_counts_that_are_none_are_as_expected_again(world: World) -> None:
    dead = replace(burying(running()).row, attempt=0, waits=0)
    world.seed([replace(dead, attempts_before=4)])
    change = Change(
        replace(replaying(dead).row, attempts_before=0, waits=0), Transition.REPLAY
    )
    assert world.ledger.do(Deed((change,))) is Write.APPLIED
    assert stored(world, dead) == change.row

    none = tuple((name, 0) for name in ("attempt", "attempts_before", "waits"))
    release = Change(change.row, Transition.RELEASE, none)
    assert world.ledger.do(Deed((release,))) is Write.APPLIED


EXPECTED: list[tuple[str, object, bool]] = [
    ("lease_token", TOKEN, True),
    ("lease_token", "f" * 16, False),
    ("lease_token", None, False),
    ("lease_expires_at", running().lease_expires_at, True),
    ("lease_expires_at", DUE, False),
    ("attempt", 1, True),
    ("attempt", 2, False),
    ("attempt", 0, False),
    ("attempts_before", 0, True),
    ("attempts_before", 1, False),
    ("cancel_requested_at", None, True),
    ("cancel_requested_at", NOW, False),
    ("failure", None, True),
]


@pytest.mark.parametrize(("name", "value", "holds"), EXPECTED)
@pytest.mark.parametrize("extra", [Deed(()), Deed((), letters=(letter("one"),))])
def test_a_stored_field_must_be_as_expected(
    world: World, name: str, value: object, holds: bool, extra: Deed
) -> None:
    row = running()
    world.seed([row])
    wanted = replace(row, lease_expires_at=DUE + 9 * MINUTE)
    change = Change(wanted, Transition.EXTEND, (("worker", "w-1"), (name, value)))

    answer = world.ledger.do(replace(extra, changes=(change,)))

    assert answer is (Write.APPLIED if holds else Write.LOST)
    assert stored(world, row) == (wanted if holds else row)


@pytest.mark.parametrize(("name", "value", "holds"), EXPECTED)
def test_a_packed_move_makes_sure_of_what_is_expected(
    packed_world: World, name: str, value: object, holds: bool
) -> None:
    row = running()
    packed_world.seed([row])
    wanted = replace(row, lease_expires_at=DUE + 9 * MINUTE)
    change = Change(wanted, Transition.EXTEND, (("worker", "w-1"), (name, value)))

    answer = packed_world.timeline.move([change])

    assert answer == [Write.APPLIED if holds else Write.LOST]
    assert stored(packed_world, row) == (wanted if holds else row)


def test_what_a_packed_move_cleared_is_as_expected(packed_world: World) -> None:
    row = replace(full(), attempt=0)
    packed_world.seed([row])
    change = replaying(row)
    assert packed_world.timeline.move([change]) == [Write.APPLIED]
    assert stored(packed_world, row) == change.row

    unset = (("begun_at", None), ("told_at", None), ("attempts_before", 0))
    release = Change(change.row, Transition.RELEASE, unset)
    other = Change(change.row, Transition.RELEASE, (("begun_at", DUE),))
    assert packed_world.timeline.move([other]) == [Write.LOST]
    assert packed_world.ledger.do(Deed((other,))) is Write.LOST
    assert packed_world.timeline.move([release]) == [Write.APPLIED]


def test_what_a_packed_move_cleared_is_as_a_deed_expects(packed_world: World) -> None:
    row = replace(full(), attempt=0)
    packed_world.seed([row])
    change = replaying(row)
    packed_world.timeline.move([change])

    unset = (("begun_at", None), ("told_at", None), ("attempts_before", 0))
    release = Change(change.row, Transition.RELEASE, unset)
    assert packed_world.ledger.do(Deed((release,))) is Write.APPLIED


def test_reopening_makes_sure_of_what_is_expected(world: World) -> None:
    row = burying(running()).row
    world.seed([row])
    other = replace(replaying(row), expects=(("attempt", 2),))
    same = replace(replaying(row), expects=(("attempt", 1), ("told_at", None)))

    assert world.timeline.reopen(other, watching(row)) is Write.LOST
    assert stored(world, row) == row
    assert world.timeline.reopen(same, watching(row)) is Write.APPLIED
    assert stored(world, row) == same.row


REPEATS = [
    Deed((claiming(ROW), burying(running()))),
    Deed((claiming(ROW),), checks=(Check(ROW.key, State.RUNNING, 1),)),
    Deed((), dispatches=(watching(ROW), watching(ROW))),
    Deed((), attempts=(attempt(ROW, 1), attempt(ROW, 1))),
    Deed((), letters=(letter("one"),), forgets=(letter("one"),)),
]


@pytest.mark.parametrize("deed", REPEATS)
def test_a_key_twice_in_a_deed_is_a_fault_of_the_program(
    world: World, deed: Deed
) -> None:
    with pytest.raises(ValueError, match="twice"):
        world.ledger.do(deed)


def test_dispatch_rows_with_numbers_are_told_apart(world: World) -> None:
    run = replace(ROW, run="00c0ffee00c0ffee")
    rows = (watching(ROW), watching(ROW, 2), watching(run, 10), watching(ROW, 0))
    assert world.ledger.do(Deed((), dispatches=rows)) is Write.APPLIED

    found = world.timeline.look_up([row.key for row in rows])

    assert set(found.dispatches) == set(rows)
    assert found.unreadable == ()
