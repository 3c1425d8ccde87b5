"""Short runs of the bench of the API: each route answers, and is measured."""

import pytest

from loadtest.bench._api_routes import FLOOR, PROBES, Probe, chosen
from loadtest.bench.api import figures, measure_all
from tests.e2e.api_world import ApiWorld

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timed]

# What is read, what is changed again and again, and what is used up by a request.
SOME = (
    "POST /v1/schedules/preview",
    "PATCH /v1/schedules/{schedule_id}",
    "POST /v1/occurrences/complete",
    "POST /v1/admin/parked/{parked_id}/retry",
)


@pytest.mark.parametrize(
    "probes",
    [
        pytest.param(chosen(SOME), id="some"),
        pytest.param(PROBES, id="all", marks=pytest.mark.long),
    ],
)
def test_routes_are_measured_against_the_floor(
    api_world: ApiWorld, probes: tuple[Probe, ...]
) -> None:
    measured = measure_all(api_world.stack, probes, 0.1, warming=0.05)
    floors = {each.concurrency: each.rate for each in measured if each.route == FLOOR}
    shown = figures(measured, floors)
    assert list(shown) == [each.name for each in probes]
    for each in probes:
        assert set(shown[each.name]) == {str(callers) for callers in each.callers}
    assert all(figure["ratio_to_floor"] == 1 for figure in shown[FLOOR].values())
    every = [figure for route in shown.values() for figure in route.values()]
    assert all(figure["requests_per_second"] > 0 for figure in every)
    assert all(figure["median_ms"] > 0 for figure in every)
