"""A small run of the bench: what each write costs does not depend on the number."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from loadtest.bench._world import GROUPS
from loadtest.bench.writes import Measurement, engine, measure

if TYPE_CHECKING:
    import boto3

pytestmark = [pytest.mark.engine, pytest.mark.slow]

SCHEDULES, MINUTES = 12, 5
OCCURRENCES = SCHEDULES * MINUTES


@pytest.fixture(scope="module")
def session() -> Iterator["boto3.Session"]:
    with engine() as opened:
        yield opened


@pytest.fixture(scope="module")
def packed(session: "boto3.Session") -> Measurement:
    return measure(session, "packed", SCHEDULES, MINUTES)


@pytest.fixture(scope="module")
def transacted(session: "boto3.Session") -> Measurement:
    return measure(session, "transactions", SCHEDULES, MINUTES)


def test_plan_move_and_acknowledgement_cost_one_unit_each(packed: Measurement) -> None:
    phases = packed.steady.phases

    assert packed.steady.delivered == OCCURRENCES
    assert phases["pass"].write_units["timeline.BatchExecuteStatement"] == (
        2 * OCCURRENCES
    )
    assert phases["relay"].write_units == {
        "timeline.BatchExecuteStatement": OCCURRENCES
    }
    assert phases["tick"].write_units == {}


def test_a_pass_writes_its_groups_lease_watermarks_and_loads_once_each(
    packed: Measurement,
) -> None:
    units = packed.steady.phases["pass"].write_units

    # Each group has schedules of every minute, and all minutes lie in one hour.
    assert units["control.UpdateItem"] == 3 * GROUPS * MINUTES
    assert set(units) == {"control.UpdateItem", "timeline.BatchExecuteStatement"}


def test_at_the_benchs_size_an_occurrence_stays_within_three_units_and_a_tenth(
    packed: Measurement,
) -> None:
    units = packed.steady.total.write_units
    per_occurrence = sum(
        count for name, count in units.items() if name.startswith("timeline")
    )
    shared = units["control.UpdateItem"]

    assert per_occurrence / OCCURRENCES + shared / (250 * MINUTES) <= 3.1


def test_a_transaction_costs_twice_what_its_writes_cost(
    packed: Measurement, transacted: Measurement
) -> None:
    ours = packed.steady.phases["pass"].write_units
    theirs = transacted.steady.phases["pass"].write_units

    assert theirs["timeline.TransactWriteItems"] == (
        2 * ours["timeline.BatchExecuteStatement"]
    )
    assert transacted.write_units > packed.write_units


def test_no_row_is_larger_than_a_write_unit(packed: Measurement) -> None:
    assert 200 < packed.largest["timeline"] <= 1024
