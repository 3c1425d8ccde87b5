"""Many callers at one rate: never over its limit, and nobody without a place."""

from collections import Counter
from datetime import datetime, timedelta

import pytest
from hourbell.adapters.dynamodb import Database, DynamoRates
from hourbell.domain.rates import Rate, RateKind

from tests.conformance.samples import DUE
from tests.conformance.test_races import THREADS, all_at_once, contending

pytestmark = pytest.mark.engine

EACH = 20
LIMITS = [(RateKind.DISPATCHES, 7), (RateKind.TRIGGERS, 90), (RateKind.CATCH_UP, 33)]


@pytest.mark.parametrize(("kind", "limit"), LIMITS)
def test_a_rate_is_never_exceeded_and_moves_just_the_excess(
    engine_database: Database, kind: RateKind, limit: int
) -> None:
    database = contending(engine_database)
    rate = Rate(kind, "acme", limit)

    def reserve(_: int) -> list[datetime | None]:
        return DynamoRates(database).reserve(rate, [DUE] * EACH)

    given = [place for places in all_at_once(reserve) for place in places]

    everyone = THREADS * EACH
    places = [place for place in given if place is not None]
    assert len(places) == everyone, "nobody is dropped"
    seconds = 1 if kind is RateKind.DISPATCHES else 60
    slots = Counter((place - DUE) // timedelta(seconds=seconds) for place in places)
    # All wanted the first slot: each but the last is full, and the rest is the excess.
    full, rest = divmod(everyone, limit)
    assert slots == dict.fromkeys(range(full), limit) | ({full: rest} if rest else {})
    moved = sum(place >= DUE + timedelta(seconds=seconds) for place in places)
    assert moved == everyone - limit
