"""The place that an occurrence takes is on its row as it was taken, the first too."""

from dataclasses import replace

import pytest
from hourbell.domain.occurrence import Occurrence, Transition
from hourbell.domain.work import Slot
from hourbell.usecases.ports import Change, Write
from hourbell.usecases.work_ports import Deed

from tests.conformance.test_timeline import stored
from tests.conformance.work_samples import claiming, enqueued, running
from tests.conformance.worlds import World

ROW = enqueued()
# The place of the row, what is expected of it, and whether that holds.
EXPECTED = [(0, 0, True), (0, None, False), (None, 0, False), (None, None, True)]


def claiming_place(number: int | None) -> Change:
    """Return the change by which a worker takes ROW, in a place of its tenant."""
    change = claiming(ROW)
    return replace(change, row=replace(change.row, slot=number))


def extending(row: Occurrence, slot: int | None) -> Change:
    """Return the change by which a row stays its worker's that takes a place."""
    return Change(row, Transition.EXTEND, (("slot", slot),))


@pytest.mark.parametrize("number", [None, 0, 1])
def test_a_claim_in_a_deed_keeps_the_place_on_the_row(
    world: World, number: int | None
) -> None:
    world.seed([ROW])
    takes = None if number is None else Slot("acme", number, ROW.occurrence_id)
    change = claiming_place(number)

    assert world.ledger.do(Deed((change,), takes=takes)) is Write.APPLIED

    assert stored(world, ROW) == change.row


@pytest.mark.parametrize("number", [None, 0, 1])
def test_a_packed_claim_keeps_the_place_on_the_row(
    packed_world: World, number: int | None
) -> None:
    packed_world.seed([ROW])
    change = claiming_place(number)

    assert packed_world.timeline.move([change]) == [Write.APPLIED]

    assert stored(packed_world, ROW) == change.row


@pytest.mark.parametrize(("number", "expected", "holds"), EXPECTED)
def test_the_first_place_is_not_taken_for_none(
    world: World, number: int | None, expected: int | None, holds: bool
) -> None:
    row = replace(running(), slot=number)
    world.seed([row])

    answer = world.ledger.do(Deed((extending(row, expected),)))

    assert answer is (Write.APPLIED if holds else Write.LOST)


@pytest.mark.parametrize(("number", "expected", "holds"), EXPECTED)
def test_a_packed_move_does_not_take_the_first_place_for_none(
    packed_world: World, number: int | None, expected: int | None, holds: bool
) -> None:
    row = replace(running(), slot=number)
    packed_world.seed([row])

    answer = packed_world.timeline.move([extending(row, expected)])

    assert answer == [Write.APPLIED if holds else Write.LOST]
