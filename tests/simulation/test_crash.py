"""A few lives, stopped at all their port calls; `dev.py crash` has the others."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed

from tests.simulation.crash import enumerate_life, main, missing, summary
from tests.simulation.crash_world import CrashWorld
from tests.simulation.insistent import Insistent
from tests.simulation.lives import every_life

LIVES = {life.name: life for life in every_life()}
# Port calls of a change of the shard count.
MOVING = frozenset({"rows_from", "relocate", "plan_apart", "store"})
# A whole life on time and one that is late, a change, and a run.
FAST = (
    "FIRE_ONCE, window 0, on time, one-time",
    "CATCH_UP, window 0, overdue, recurring",
    "cancel of UNTRACKED, window 0",
    "run now",
)


# Of a failure and what follows: where something is written.
WORKING = frozenset({"do", "move", "post"})


class Careless:
    """A ledger that lets a place be taken whoever has it."""

    def __init__(self, ledger: Any) -> None:
        self._ledger = ledger

    def do(self, deed: Deed) -> Write:
        answer: Write = self._ledger.do(replace(deed, frees=deed.takes))
        return answer


def test_no_crash_of_a_workers_call_loses_or_doubles_work() -> None:
    found = enumerate_life(LIVES["TRACKED, failure, retry"], only=WORKING)

    assert found.violations == []
    assert set(found.calls) == WORKING
    assert found.moves >= {"RUNNING -> RETRY_WAIT", "RUNNING -> SUCCEEDED"}


def test_a_part_of_a_deed_that_could_be_done_again_is_told() -> None:
    world = CrashWorld(LIVES["TRACKED, lane, place and death"])
    place = Slot("acme", 0, "holder")
    deed = Deed((), lane=OverlapLane("lane", "holder", revision=1), takes=place)

    assert Insistent(world.ledger, world).do(deed) is Write.APPLIED
    assert world.log.violations == []

    Insistent(Careless(world.ledger), world).do(replace(deed, lane=None, frees=place))
    told = [each.invariant for each in world.log.violations]
    assert told == ["what is done is not done again"]


@pytest.mark.parametrize("name", FAST)
def test_no_crash_at_any_port_call_loses_anything(name: str) -> None:
    found = enumerate_life(LIVES[name])

    assert found.violations == []
    assert found.points >= 100


@pytest.mark.parametrize(
    "name", ["1 shards to 4 shards, occurrences", "4 shards to 1 shards, occurrences"]
)
def test_no_crash_of_a_mover_loses_or_doubles_a_row(name: str) -> None:
    found = enumerate_life(LIVES[name], only=MOVING)

    assert found.violations == []
    assert set(found.calls) == MOVING


def test_every_combination_of_policies_has_its_life() -> None:
    names = {name for name, life in LIVES.items() if life.policies}

    assert len(names) == 3 * 3 * 2 * 2


def test_a_crash_stops_the_process_where_it_is_told_to() -> None:
    life = LIVES["run now"]
    before, after = CrashWorld(life, 4), CrashWorld(life, 4, after=True)
    before.live()
    after.live()

    assert before.where.split()[0] == "before"
    assert after.where.split() == ["after", before.where.split()[1]]


def test_what_no_life_came_to_is_told() -> None:
    told = summary([enumerate_life(LIVES["run now"])])

    assert "never stopped at take_over" not in missing(told)
    assert "never stopped at record_backfill" in missing(told)
    assert "never saw DEFERRED -> SCHEDULED" in missing(told)


def test_the_command_tells_crash_points_as_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = main(["--memory", "--json", "--life", "run now", "--jobs", "1"])

    told = json.loads(capsys.readouterr().out)
    assert (code, told["violations"], told["lives"]) == (0, 0, 1)
    assert told["crash_points"] == sum(told["calls"].values())
