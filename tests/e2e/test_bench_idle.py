"""A small run of the bench: an idle minute costs the same at any time."""

import pytest

from loadtest.bench.idle import LIMIT_DOLLARS, SIZES, measure, price
from loadtest.bench.writes import engine

pytestmark = [pytest.mark.engine, pytest.mark.slow]


def test_an_idle_small_deployment_costs_reads_and_leases_alone() -> None:
    with engine() as session:
        done = measure(session, "small", 2)

    shards, groups = SIZES["small"]
    usage = done.phases["pass"]
    # A lease is taken and given back: twice a minute for each group.
    assert dict(usage.write_units) == {"control.UpdateItem": 2.0 * groups * 2}
    assert done.delivered == 0
    # Every bucket from the watermark to the horizon, and no more than ten of them.
    (queries,) = (n for name, n in usage.calls.items() if name.endswith("Query"))
    assert 5 * shards * 2 <= queries <= 10 * shards * 2
    assert price("small", done, 2)["total_dollars_a_month"] <= LIMIT_DOLLARS
