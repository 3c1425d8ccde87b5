"""Short runs of the bench of the API: each route answers, and is measured."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hourbell.local.stack import StackInfo

from loadtest.bench._api_routes import FLOOR, PROBES, Probe, chosen
from loadtest.bench.api import figures, measure_all
from tests.e2e.api_world import ApiWorld, api_world_in

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timed]

# What is read, what is changed again and again, and what a request uses up.
SOME = (
    "POST /v1/schedules/preview",
    "PATCH /v1/schedules/{schedule_id}",
    "DELETE /v1/schedules/{schedule_id}",
)
# Each starts processes of its own.
CALLERS = (2,)


def test_some_routes_are_measured_against_the_floor(api_world: ApiWorld) -> None:
    probes = [replace(each, callers=CALLERS) for each in chosen(SOME)]
    assert len(probes) == len(SOME) + 1
    check(api_world.stack, probes)


@pytest.mark.long
def test_all_routes_are_measured_against_the_floor(tmp_path: Path) -> None:
    with api_world_in(tmp_path) as world:
        check(world.stack, PROBES)


def check(stack: StackInfo, probes: Sequence[Probe]) -> None:
    measured = measure_all(stack, probes, 0.15, warming=0.05)
    floors = {each.concurrency: each.rate for each in measured if each.route == FLOOR}
    shown = figures(measured, floors)
    assert list(shown) == [each.name for each in probes]
    for each in probes:
        assert set(shown[each.name]) == {str(callers) for callers in each.callers}
    assert all(figure["ratio_to_floor"] == 1 for figure in shown[FLOOR].values())
    every = [figure for route in shown.values() for figure in route.values()]
    assert all(figure["requests_per_second"] > 0 for figure in every)
    assert all(figure["median_ms"] > 0 for figure in every)
