"""What the store does at its worst, and what becomes of the places then."""

from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database, DynamoRates
from hourbell.adapters.dynamodb.layout import SCHEMA
from hourbell.domain.errors import Transient
from hourbell.domain.rates import Rate, RateKind

from tests.conformance.samples import DUE, MINUTE

RATE = Rate(RateKind.TRIGGERS, "acme", 2)


class _Meddling:
    """A client before whose writes somebody else writes."""

    def __init__(self, client: Any, meddle: Any) -> None:
        self._client = client
        self._meddle = meddle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def update_item(self, **arguments: Any) -> Any:
        self._meddle()
        return self._client.update_item(**arguments)


def meddled(database: Database, meddle: Any) -> DynamoRates:
    rates = DynamoRates(database)
    rates._database = Database(
        database.tables,
        _Meddling(database.client, meddle),  # type: ignore[arg-type]
        database.single,
        database.backoff,
        database.contended,
    )
    return rates


def test_who_was_second_takes_what_is_left(moto_database: Database) -> None:
    others = iter([[DUE]])

    def meddle() -> None:
        DynamoRates(moto_database).reserve(RATE, next(others, []))

    places = meddled(moto_database, meddle).reserve(RATE, [DUE, DUE])

    assert places[0] == DUE
    assert places[1] == DUE + MINUTE


def test_who_is_always_second_gives_up_for_now(moto_database: Database) -> None:
    wide = Rate(RateKind.TRIGGERS, "acme", 1_000)

    def meddle() -> None:
        DynamoRates(moto_database).reserve(wide, [DUE])

    with pytest.raises(Transient, match="contended"):
        meddled(moto_database, meddle).reserve(wide, [DUE])


def test_a_minute_is_forgotten_a_day_later(moto_database: Database) -> None:
    DynamoRates(moto_database).reserve(RATE, [DUE])
    table = moto_database.tables.control
    (item,) = moto_database.client.scan(TableName=table)["Items"]
    day_later = int(DUE.timestamp()) + 86_400
    assert item == {
        "control_key": {"S": "RATE#triggers#acme#20260309T0630Z"},
        "item": {"S": "RATE"},
        "schema": {"N": str(SCHEMA)},
        "taken": {"M": {"0": {"N": "1"}}},
        "revision": {"N": "1"},
        "expires_at": {"N": str(day_later)},
    }
