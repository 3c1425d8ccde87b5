"""Whatever is sent to the deployed API, its answers are those of the document."""

import pytest

from loadtest.fuzz_api import fuzz, report
from tests.e2e.api_world import ApiWorld

pytestmark = [pytest.mark.e2e, pytest.mark.engine]

CASES = 300
NOTHING_THERE = "POST /v1/admin/parked/{parked_id}/retry"
# A bulk replay that the fuzz has asked for may have been first.
REPLAYED = "POST /v1/occurrences/{occurrence_id}/replay"


def test_no_answer_is_undocumented(api_world: ApiWorld) -> None:
    tally = fuzz(api_world.stack, CASES)
    assert not tally.failures, report(tally)
    assert not tally.forbidden, report(tally)
    assert tally.cases >= CASES
    refused = [
        route
        for route, statuses in tally.routes.items()
        if not any(status < 300 for status in statuses)
    ]
    # Or else the fuzz has not got past the door there; but nothing is parked yet.
    assert set(refused) <= {NOTHING_THERE, REPLAYED}, report(tally)
    assert not set(tally.routes[REPLAYED]) - {200, 202, 400, 404, 409}, report(tally)
