"""Counting of calls and consumed capacity."""

from collections.abc import Callable, Iterator

import pytest
from hourbell.adapters import sqs
from hourbell.adapters.dynamodb import Database, DynamoSchedules, DynamoTimeline
from hourbell.adapters.metering import CapacityMeter
from hourbell.domain.errors import Permanent
from moto import mock_aws

from tests.conformance import samples
from tests.conformance.faults import Script, answer, error, scripted_database
from tests.conformance.samples import planned


@pytest.fixture
def meter() -> CapacityMeter:
    return CapacityMeter()


@pytest.fixture
def metered(meter: CapacityMeter) -> Iterator[Callable[..., Database]]:
    """Scripted databases whose client the meter counts."""
    database = scripted_database(Script())
    meter.attach(database.client)
    yield lambda *reactions: scripted_database(Script(*reactions))
    meter.detach(database.client)


def consumed(table: str, units: float) -> dict[str, object]:
    return {"TableName": table, "CapacityUnits": units}


def test_calls_and_units_are_counted_by_table_and_operation(
    metered: Callable[..., Database], meter: CapacityMeter
) -> None:
    created = {"ConsumedCapacity": [consumed("s", 6.0), consumed("t", 2.0)]}
    queried = {"Items": [], "ConsumedCapacity": consumed("t", 0.5)}
    database = metered(answer(created), answer(queried), answer(queried))

    DynamoSchedules(database).create(
        samples.schedule(), samples.version(), samples.planned(), quota=1
    )
    for _ in range(2):
        DynamoTimeline(database).page(samples.BUCKET, samples.SHARD)

    assert meter.calls == {
        ("dynamodb", "TransactWriteItems"): 1,
        ("dynamodb", "Query"): 2,
    }
    assert meter.write_units == {
        ("s", "TransactWriteItems"): 6.0,
        ("t", "TransactWriteItems"): 2.0,
    }
    assert meter.read_units == {("t", "Query"): 1.0}
    assert (meter.total_write_units, meter.total_read_units) == (8.0, 1.0)

    meter.reset()
    assert not meter.calls
    assert meter.total_write_units == meter.total_read_units == 0


def test_other_services_are_counted_only(meter: CapacityMeter) -> None:
    with mock_aws():
        client = sqs.connect(meter=meter)
        client.create_queue(QueueName="q")

    assert meter.calls == {("sqs", "CreateQueue"): 1}
    assert meter.total_write_units == 0


def test_packed_writes_are_writes(
    metered: Callable[..., Database], meter: CapacityMeter
) -> None:
    body = {"Responses": [{}, {}], "ConsumedCapacity": [consumed("t", 2.0)]}

    DynamoTimeline(metered(answer(body))).plan([planned("a"), planned("b")])

    assert meter.write_units == {("t", "BatchExecuteStatement"): 2.0}


def test_a_meter_makes_the_calls_ask(metered: Callable[..., Database]) -> None:
    del metered
    script = Script(answer({"Responses": [{}]}))

    DynamoTimeline(scripted_database(script)).plan([planned()])

    assert script.requests[0]["ReturnConsumedCapacity"] == "TOTAL"


def test_a_call_that_failed_is_counted_without_units(
    metered: Callable[..., Database], meter: CapacityMeter
) -> None:
    with pytest.raises(Permanent):
        DynamoSchedules(metered(error("AccessDeniedException"))).find("sch")

    assert meter.calls == {("dynamodb", "GetItem"): 1}
    assert meter.total_read_units == 0


def test_without_a_meter_nothing_is_asked_for() -> None:
    script = Script(answer({"Responses": [{}]}))

    DynamoTimeline(scripted_database(script)).plan([planned()])

    assert "ReturnConsumedCapacity" not in script.requests[0]
