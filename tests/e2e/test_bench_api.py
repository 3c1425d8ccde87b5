"""A short run of the bench of the API: every route answers, and is measured."""

import pytest

from loadtest.bench.api import FLOOR, Bench, figures, measure
from tests.e2e.api_world import ApiWorld

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.timed]

CALLERS = 2


def test_every_route_is_measured_against_the_floor(api_world: ApiWorld) -> None:
    routes = Bench(api_world.stack).routes()
    measured = [
        measure(route, make, CALLERS, 0.15, warming=0.05)
        for route, make in routes.items()
    ]
    (floor,) = [each.rate for each in measured if each.route == FLOOR]
    shown = figures(measured, {CALLERS: floor})
    assert set(shown) == set(routes)
    assert shown[FLOOR]["2"]["ratio_to_floor"] == 1
    assert all(each["2"]["requests_per_second"] > 0 for each in shown.values())
    assert all(each["2"]["median_ms"] > 0 for each in shown.values())
