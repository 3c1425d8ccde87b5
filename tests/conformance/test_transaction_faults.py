"""Transactions, leases and reads when the service throttles, fails or loses answers."""

from typing import Any

import pytest
from hourbell.adapters.dynamodb import (
    Database,
    DynamoDirectory,
    DynamoSchedules,
    DynamoShardGroups,
    DynamoTimeline,
)
from hourbell.adapters.dynamodb.row_items import encode_occurrence, row_item_key
from hourbell.adapters.memory import FixedClock
from hourbell.domain.definition import Handler, VersionRef
from hourbell.domain.errors import HourbellError, Permanent, Transient
from hourbell.usecases.ports import Write

from tests.conformance import samples
from tests.conformance.faults import (
    TABLES,
    Reaction,
    Script,
    answer,
    error,
    garbage,
    lost,
    passed_on,
    scripted_database,
    timeout,
)
from tests.conformance.samples import DUE, MINUTE, NOW, planned
from tests.conformance.worlds import still_backoff


def canceled(*codes: str) -> Reaction:
    reasons = [{"Code": code} for code in codes]
    return error("TransactionCanceledException", CancellationReasons=reasons)


PASSING: dict[str, Reaction] = {
    "conflict": canceled("None", "TransactionConflict", "None"),
    "throttled part": canceled("ThrottlingError", "None", "None"),
    "over capacity": canceled("None", "None", "ProvisionedThroughputExceeded"),
    "throttled": error("ThrottlingException"),
    "in progress": error("TransactionInProgressException"),
    "internal": error("InternalServerError", 500),
    "timeout": timeout,
    "garbage": garbage,
}


def create(script: Script, **settings: Any) -> Write:
    database = scripted_database(script, still_backoff(**settings))
    return DynamoSchedules(database).create(
        samples.schedule(), samples.version(), samples.planned()
    )


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_create_is_tried_again_under_the_same_token(fault: Reaction) -> None:
    script = Script(fault, answer({}))

    assert create(script) is Write.APPLIED
    tokens = {request["ClientRequestToken"] for request in script.requests}
    assert len(script.requests) == 2
    assert len(tokens) == 1


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_create_that_keeps_failing_is_transient(fault: Reaction) -> None:
    script = Script(*[fault] * 3)

    with pytest.raises(Transient) as raised:
        create(script, attempts=3)
    assert raised.value.__cause__ is not None
    assert script.left == 0


def test_create_exists_when_a_condition_failed_whatever_else_did() -> None:
    fault = canceled("ConditionalCheckFailed", "TransactionConflict", "None")

    assert create(Script(fault)) is Write.EXISTS


@pytest.mark.parametrize(
    "fault",
    [
        canceled("None", "ValidationError", "None"),
        canceled("ItemCollectionSizeLimitExceeded", "None", "None"),
        error("AccessDeniedException"),
        error("ValidationException"),
    ],
)
def test_create_that_is_refused_for_good_is_permanent(fault: Reaction) -> None:
    with pytest.raises(Permanent) as raised:
        create(Script(fault))
    assert raised.value.__cause__ is not None


@pytest.mark.engine
def test_a_lost_answer_to_create_is_no_wrong_exists(engine_database: Database) -> None:
    script = Script(lost, passed_on)
    script.attach(engine_database.single)
    database = Database(
        engine_database.tables,
        engine_database.single,
        engine_database.single,
        engine_database.backoff,
    )

    try:
        written = DynamoSchedules(database).create(
            samples.schedule(), samples.version(), samples.planned()
        )
    finally:
        script.detach(engine_database.single)

    assert written is Write.APPLIED
    assert DynamoSchedules(engine_database).find(samples.schedule_id("one")) == (
        samples.schedule()
    )


def unprocessed(*rows: int, left: tuple[int, ...] = ()) -> Reaction:
    table = TABLES.timeline
    pending = [row_item_key(planned(n).key) for n in left]
    return answer(
        {
            "Responses": {table: [encode_occurrence(planned(n)) for n in rows]},
            "UnprocessedKeys": {table: {"Keys": pending, "ConsistentRead": True}}
            if left
            else {},
        }
    )


def read(script: Script, count: int) -> set[int]:
    timeline = DynamoTimeline(scripted_database(script, still_backoff(attempts=3)))
    found = timeline.read(planned(n).key for n in range(count))
    return {n for n in range(count) if planned(n).key in found}


def test_unprocessed_keys_are_read_again() -> None:
    script = Script(
        unprocessed(0, left=(1, 2)), unprocessed(2, left=(1,)), unprocessed(1)
    )

    assert read(script, 3) == {0, 1, 2}
    asked = [
        len(request["RequestItems"][TABLES.timeline]["Keys"])
        for request in script.requests
    ]
    assert asked == [3, 2, 1]


def test_keys_that_stay_unprocessed_are_transient() -> None:
    script = Script(*[unprocessed(left=(0,))] * 3)

    with pytest.raises(Transient):
        read(script, 1)
    assert script.left == 0


def calls(database: Database) -> dict[str, Any]:
    clock = FixedClock(NOW)
    groups = DynamoShardGroups(database)
    directory = DynamoDirectory(database, clock)
    schedules = DynamoSchedules(database)
    return {
        "page": lambda: DynamoTimeline(database).page("20260309T0630Z", 1),
        "read": lambda: DynamoTimeline(database).read([planned().key]),
        "find": lambda: schedules.find("sch"),
        "versions": lambda: schedules.versions([VersionRef("s", 1)], consistent=False),
        "tenant_of": lambda: directory.tenant_of("p"),
        "tenants": lambda: directory.tenants(["acme"]),
        "handler": lambda: directory.handler("acme", "h"),
        "ensure": lambda: groups.ensure(1, DUE),
        "acquire": lambda: groups.acquire(1, "a", now=NOW, duration=MINUTE),
    }


NAMES = list(calls(scripted_database(Script())))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (error("ThrottlingException"), Transient),
        (error("InternalServerError", 500), Transient),
        (timeout, Transient),
        (garbage, Transient),
        (error("AccessDeniedException"), Permanent),
        (error("ResourceNotFoundException"), Permanent),
    ],
)
def test_errors_are_translated_by_code(
    name: str, fault: Reaction, expected: type[HourbellError]
) -> None:
    database = scripted_database(Script(fault))

    with pytest.raises(expected) as raised:
        calls(database)[name]()
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("consistent", [True, False])
def test_reads_are_as_consistent_as_asked(consistent: bool) -> None:
    empty = answer({"Items": [], "Responses": {}})
    script = Script(*[empty] * 4)
    database = scripted_database(script)
    schedules, timeline = DynamoSchedules(database), DynamoTimeline(database)

    timeline.page("20260309T0630Z", 1, consistent=consistent)
    schedules.versions([VersionRef("s", 1)], consistent=consistent)
    timeline.read([planned().key])
    schedules.find("sch")

    page, versions, rows, definition = script.requests
    assert page["ConsistentRead"] is consistent
    log = versions["RequestItems"][TABLES.schedules]
    assert log["ConsistentRead"] is consistent
    assert rows["RequestItems"][TABLES.timeline]["ConsistentRead"] is True
    assert definition["ConsistentRead"] is True


def test_ensure_asks_once_per_process_and_only_after_it_worked() -> None:
    script = Script(timeout, error("ConditionalCheckFailedException"))
    groups = DynamoShardGroups(scripted_database(script))

    with pytest.raises(Transient):
        groups.ensure(1, DUE)
    groups.ensure(1, DUE)
    groups.ensure(1, DUE)

    assert len(script.requests) == 2


def test_a_handler_that_exists_is_told_by_the_transaction() -> None:
    database = scripted_database(Script(canceled("ConditionalCheckFailed")))
    directory = DynamoDirectory(database, FixedClock(NOW))

    assert directory.register_handler(Handler("acme", "h")) is Write.EXISTS
