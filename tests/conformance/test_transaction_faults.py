"""Transactions, leases and reads when the service throttles, fails or loses answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hourbell.adapters.dynamodb import (
    Database,
    DynamoDirectory,
    DynamoSchedules,
    DynamoShardGroups,
    DynamoTimeline,
)
from hourbell.adapters.dynamodb.client import CONTENDED
from hourbell.adapters.dynamodb.row_items import encode_occurrence, row_item_key
from hourbell.adapters.memory import FixedClock
from hourbell.domain.definition import Handler, Tenant, Tier, VersionRef
from hourbell.domain.errors import HourbellError, Permanent, Transient
from hourbell.domain.occurrence import Transition
from hourbell.usecases.ports import Change, Creation, Write

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
    "conflict before a failed condition": canceled(
        "None", "TransactionConflict", "None", "ConditionalCheckFailed"
    ),
    "throttled part": canceled("ThrottlingError", "None", "None"),
    "over capacity": canceled("None", "None", "ProvisionedThroughputExceeded"),
    "throttled": error("ThrottlingException"),
    "in progress": error("TransactionInProgressException"),
    "internal": error("InternalServerError", 500),
    "timeout": timeout,
    "garbage": garbage,
}


def create_on(database: Database) -> Creation:
    return DynamoSchedules(database).create(
        samples.schedule(), samples.version(), samples.planned(), quota=9
    )


def create(script: Script, **settings: Any) -> Creation:
    return create_on(scripted_database(script, still_backoff(**settings)))


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_create_is_tried_again_under_the_same_token(fault: Reaction) -> None:
    script = Script(fault, answer({}))

    assert create(script) is Creation.CREATED
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


FAILED = "ConditionalCheckFailed"


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ((FAILED, "TransactionConflict", "None"), Creation.EXISTS),
        ((FAILED, FAILED, FAILED, FAILED, FAILED), Creation.EXISTS),
        (("None", FAILED, "None", FAILED, "None"), Creation.EXISTS),
        (("None", "None", FAILED, "None", FAILED), Creation.EXISTS),
        (("None", "None", "None", FAILED, FAILED), Creation.NAME_TAKEN),
        (("None", "None", "None", FAILED, "ThrottlingError"), Creation.NAME_TAKEN),
        (("None", "None", "None", "None", FAILED), Creation.QUOTA_FULL),
    ],
)
def test_the_first_condition_that_failed_decides_what_became_of_a_create(
    codes: tuple[str, ...], expected: Creation
) -> None:
    # A full counter is looked at: places of a former quota may be left.
    script = Script(canceled(*codes), answer({}))

    assert create(script) is expected
    assert len(script.requests) == 1 + (expected is Creation.QUOTA_FULL)


def test_conflicts_at_the_counter_are_borne_for_eight_seconds() -> None:
    pauses: list[float] = []
    contended = replace(
        CONTENDED,
        sleep=pauses.append,
        uniform=lambda _low, high: high,
        monotonic=lambda: sum(pauses),
    )
    conflict = canceled(*["None"] * 4, "TransactionConflict")
    database = scripted_database(Script(*[conflict] * 100))

    with pytest.raises(Transient):
        create_on(replace(database, contended=contended))

    assert 7.5 < sum(pauses) <= 8
    assert max(pauses) <= 0.4


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
        created = create_on(database)
    finally:
        script.detach(engine_database.single)

    assert created is Creation.CREATED
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
        "find_by_name": lambda: schedules.find_by_name("acme", "n"),
        "version_log": lambda: schedules.version_log("sch"),
        "listing": lambda: schedules.listing("acme", after=None, limit=5),
        "count": lambda: schedules.count("acme"),
        "versions": lambda: schedules.versions([VersionRef("s", 1)], consistent=False),
        "tenant_of": lambda: directory.tenant_of("p"),
        "tenants": lambda: directory.tenants(["acme"]),
        "handler": lambda: directory.handler("acme", "h"),
        "find_tenant": lambda: directory.find_tenant("acme"),
        "list_tenants": lambda: directory.list_tenants(after=None, limit=5),
        "principals_of": lambda: directory.principals_of("acme"),
        "handlers": lambda: directory.handlers("acme", after=None, limit=5),
        "named_handlers": lambda: directory.named_handlers([("acme", "h")]),
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


WRITES: dict[str, Callable[[Database], Write]] = {
    "relabel": lambda base: DynamoSchedules(base).relabel(
        samples.schedule(), revision=1
    ),
    "succeed": lambda base: DynamoSchedules(base).succeed(samples.succession()),
    "take_over": lambda base: DynamoSchedules(base).take_over(
        replace(samples.current(), version=2), samples.current().ref, None
    ),
    "reopen": lambda base: DynamoTimeline(base).reopen(
        Change(samples.planned(), Transition.BACKFILL), samples.dispatch()
    ),
    "change_tenant": lambda base: DynamoDirectory(base, FixedClock(NOW)).change_tenant(
        Tenant("acme", Tier.BASIC), revision=1
    ),
    "change_handler": lambda base: DynamoDirectory(
        base, FixedClock(NOW)
    ).change_handler(Handler("acme", "h"), revision=1),
    "remove_principal": lambda base: DynamoDirectory(
        base, FixedClock(NOW)
    ).remove_principal("acme", "p"),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_lost_answer_to_a_change_is_no_wrong_lost(
    write: Callable[[Database], Write],
) -> None:
    script = Script(timeout, answer({}))

    assert write(scripted_database(script)) is Write.APPLIED
    tokens = {request["ClientRequestToken"] for request in script.requests}
    assert len(script.requests) == 2
    assert len(tokens) == 1


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_a_change_whose_condition_failed_is_lost(
    write: Callable[[Database], Write],
) -> None:
    assert write(scripted_database(Script(canceled("None", FAILED)))) is Write.LOST
