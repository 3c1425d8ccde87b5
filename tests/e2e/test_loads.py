"""Loads on the deployed stack: both functions may do what they must to them."""

from datetime import UTC, datetime, timedelta

import pytest
from hourbell.adapters.dynamodb import DynamoLoads, connect
from hourbell.adapters.dynamodb.layout import TableNames
from hourbell.domain.load import telling_hours

from tests.e2e.api_world import MINUTELY, SCHEDULES, ApiWorld, Tenant

pytestmark = [pytest.mark.e2e, pytest.mark.engine, pytest.mark.long]

MINUTE = timedelta(minutes=1)
WAIT_SECONDS = 80.0
"""A tick and its pass come once a minute."""


@pytest.fixture
def loads(api_world: ApiWorld) -> DynamoLoads:
    """The statistic, past the functions."""
    stack = api_world.stack
    tables = stack.tables
    names = TableNames(tables["schedules"], tables["timeline"], tables["control"])
    return DynamoLoads(connect(names, session=stack.admin_session()))


@pytest.fixture(scope="module")
def tenant(api_world: ApiWorld) -> Tenant:
    return api_world.tenant("larch")


def test_a_pass_counts_what_it_materialized(
    api_world: ApiWorld, tenant: Tenant, loads: DynamoLoads
) -> None:
    made = tenant.create("counted", MINUTELY)
    assert made.status == 201, made.text
    # Nothing but a pass adds to them; the first one has what lies beyond the horizon.
    hours = telling_hours(datetime.now(UTC) + 5 * MINUTE)

    def is_counted() -> bool:
        return bool(loads.read(hours))

    api_world.stack.wait_for(is_counted, WAIT_SECONDS, "the count of a pass")
    tenant.send("DELETE", f"{SCHEDULES}/{made.document['schedule_id']}")


def test_a_dry_run_tells_the_load_of_a_minute(
    tenant: Tenant, loads: DynamoLoads
) -> None:
    # An hour ago; more than what a stack of some minutes has counted by itself.
    busy = datetime.now(UTC).replace(second=0, microsecond=0) - 60 * MINUTE
    loads.add({busy: 1_000_000, busy - MINUTE: 1_000_000})
    body = {
        "name": "rehearsed",
        "expression": f"{busy.minute} {busy.hour} * * *",
        "handler": "report",
    }
    answer = tenant.send("POST", f"{SCHEDULES}?dry_run=true", body)
    assert answer.status == 200, answer.text
    told = [each["load"] for each in answer.document["times"]]
    # Half of a day's: 720 times the average, less what else was counted.
    assert all(700 < load <= 720 for load in told), told
