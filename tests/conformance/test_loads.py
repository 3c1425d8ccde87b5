"""The `Loads` port."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database, DynamoLoads
from hourbell.domain.errors import Permanent, Transient

from tests.conformance.faults import Script, answer, error, scripted_database, timeout
from tests.conformance.worlds import World

# Ahead of the engine's own clock, which deletes what has expired.
HOUR = datetime(2040, 1, 2, 6, tzinfo=UTC)
NEXT = datetime(2040, 1, 2, 7, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def test_what_was_never_counted_is_not_there(world: World) -> None:
    assert world.loads.read([HOUR]) == {}


def test_counts_add_up_minute_by_minute(world: World) -> None:
    world.loads.add({HOUR: 3, HOUR + 59 * MINUTE: 1})
    world.loads.add({HOUR: 4, HOUR + 7 * MINUTE: 100_000})

    assert world.loads.read([HOUR]) == {
        HOUR: 7,
        HOUR + 7 * MINUTE: 100_000,
        HOUR + 59 * MINUTE: 1,
    }


def test_a_repeated_call_counts_twice(world: World) -> None:
    for _ in range(2):
        world.loads.add({HOUR: 3})

    assert world.loads.read([HOUR]) == {HOUR: 6}


def test_minutes_of_several_hours_are_added_in_one_call(world: World) -> None:
    world.loads.add({HOUR + 59 * MINUTE: 1, NEXT: 2})

    assert world.loads.read([NEXT, HOUR]) == {HOUR + 59 * MINUTE: 1, NEXT: 2}
    assert world.loads.read([NEXT]) == {NEXT: 2}


def test_adding_nothing_is_no_fault(world: World) -> None:
    world.loads.add({})

    assert world.loads.read([HOUR]) == {}


def test_a_hundred_hours_are_read_at_once(world: World) -> None:
    hours = [HOUR + timedelta(hours=number) for number in range(100)]
    world.loads.add(dict.fromkeys([hours[0], hours[99]], 1))

    assert set(world.loads.read(hours)) == {hours[0], hours[99]}


class TestOnDynamoDb:
    @pytest.fixture
    def item(self, moto_database: Database) -> dict[str, Any]:
        """The item of an hour all of whose minutes are as full as the design has."""
        full = {HOUR + number * MINUTE: 500_000 for number in range(60)}
        DynamoLoads(moto_database).add(full)
        table = moto_database.tables.control
        (item,) = moto_database.client.scan(TableName=table)["Items"]
        return dict(item)

    def test_an_hour_expires_nine_days_later(self, item: dict[str, Any]) -> None:
        nine_days_later = int(datetime(2040, 1, 11, 6, tzinfo=UTC).timestamp())

        assert item["expires_at"] == {"N": str(nine_days_later)}

    def test_a_full_hour_stays_below_one_write_unit(self, item: dict[str, Any]) -> None:
        assert len([name for name in item if name.startswith("m")]) == 60
        # The digits as text, which is more than what DynamoDB counts.
        sizes = [len(name) + len(*value.values()) for name, value in item.items()]
        assert sum(sizes) < 900

    @pytest.mark.parametrize("fault", [timeout, error("InternalServerError", 500)])
    def test_what_failed_is_not_tried_again(self, fault: Any) -> None:
        script = Script(fault)

        with pytest.raises(Transient):
            DynamoLoads(scripted_database(script)).add({HOUR: 1})

        assert len(script.requests) == 1

    def test_an_hour_is_one_write_of_all_its_minutes(self) -> None:
        script = Script(answer({}), answer({}))

        DynamoLoads(scripted_database(script)).add(
            {HOUR: 1, HOUR + 59 * MINUTE: 2, NEXT: 3}
        )

        keys = [request["Key"]["control_key"]["S"] for request in script.requests]
        assert keys == ["LOAD#20400102T06Z", "LOAD#20400102T07Z"]
        assert {request["Key"]["item"]["S"] for request in script.requests} == {"LOAD"}

    def test_an_item_of_another_schema_is_refused(self) -> None:
        key = {"control_key": {"S": "LOAD#20400102T06Z"}, "item": {"S": "LOAD"}}
        unreadable = key | {"schema": {"N": "9"}, "m00": {"N": "1"}}
        script = Script(answer({"Responses": {"faulty-control": [unreadable]}}))

        with pytest.raises(Permanent):
            DynamoLoads(scripted_database(script)).read([HOUR])
