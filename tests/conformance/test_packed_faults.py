"""Packed writes when the service throttles, fails, or loses an answer."""

import logging
from typing import Any

import pytest
from hourbell.adapters.backoff import Backoff
from hourbell.adapters.dynamodb import Database, DynamoTimeline
from hourbell.adapters.dynamodb.packed import PackedWriter
from hourbell.domain.errors import Permanent
from hourbell.domain.occurrence import State
from hourbell.usecases.ports import Write

from tests.conformance.faults import (
    Reaction,
    Script,
    error,
    garbage,
    lost,
    passed_on,
    scripted_database,
    statements,
    timeout,
)
from tests.conformance.samples import planned, scheduling
from tests.conformance.worlds import still_backoff

RETRIED = [
    "ThrottlingError",
    "ProvisionedThroughputExceeded",
    "RequestLimitExceeded",
    "TransactionConflict",
    "InternalServerError",
]
WHOLE: dict[str, Reaction] = {
    "throttled": error("ThrottlingException"),
    "over capacity": error("ProvisionedThroughputExceededException"),
    "internal": error("InternalServerError", 500),
    "unavailable": error("ServiceUnavailable", 503),
    "expired": error("ExpiredTokenException"),
    "timeout": timeout,
    "garbage": garbage,
}


def insert(script: Script, count: int, backoff: Backoff | None = None) -> list[Write]:
    timeline = DynamoTimeline(scripted_database(script, backoff))
    return timeline.plan([planned(n) for n in range(count)])


def update(script: Script, count: int, backoff: Backoff | None = None) -> list[Write]:
    timeline = DynamoTimeline(scripted_database(script, backoff))
    return timeline.move([scheduling(planned(n)) for n in range(count)])


def keys(request: dict[str, Any]) -> list[str]:
    """Return the sort keys that a packed insert names."""
    return [each["Parameters"][1]["S"] for each in request["Statements"]]


def test_each_statement_has_its_own_answer() -> None:
    assert insert(Script(statements(None, "DuplicateItem", None)), 3) == [
        Write.APPLIED,
        Write.EXISTS,
        Write.APPLIED,
    ]
    assert update(Script(statements("ConditionalCheckFailed", None)), 2) == [
        Write.LOST,
        Write.APPLIED,
    ]


@pytest.mark.parametrize("code", RETRIED)
def test_only_undecided_statements_are_tried_again(code: str) -> None:
    script = Script(
        statements(None, code, "DuplicateItem", code), statements(None, "DuplicateItem")
    )

    answers = insert(script, 4)

    assert answers == [Write.APPLIED, Write.APPLIED, Write.EXISTS, Write.EXISTS]
    sorts = [planned(n).key.sort for n in range(4)]
    assert [keys(request) for request in script.requests] == [
        sorts,
        [sorts[1], sorts[3]],
    ]


@pytest.mark.parametrize("code", RETRIED)
def test_what_outlasts_the_attempts_is_unknown_and_never_lost(code: str) -> None:
    script = Script(*[statements(None, code)], *[statements(code)] * 2)

    assert update(script, 2, still_backoff(attempts=3)) == [
        Write.APPLIED,
        Write.UNKNOWN,
    ]
    assert script.left == 0


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE.keys())
def test_a_call_that_failed_as_a_whole_is_tried_again(whole: Reaction) -> None:
    assert update(Script(whole, statements(None, None)), 2) == [Write.APPLIED] * 2


@pytest.mark.parametrize("whole", WHOLE.values(), ids=WHOLE.keys())
def test_a_call_that_keeps_failing_is_unknown(whole: Reaction) -> None:
    script = Script(*[whole] * 4)

    assert update(script, 2, still_backoff(attempts=4)) == [Write.UNKNOWN] * 2
    assert script.left == 0


def test_after_a_failed_call_the_other_packs_wait_for_the_next_round() -> None:
    script = Script(
        statements(*[None] * 25), timeout, statements(*[None] * 25), statements(None)
    )

    assert insert(script, 51) == [Write.APPLIED] * 51
    sizes = [len(request["Statements"]) for request in script.requests]
    assert sizes == [25, 25, 25, 1]


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_a_call_that_is_refused_for_good_raises(code: str) -> None:
    with pytest.raises(Permanent, match=code) as raised:
        insert(Script(error(code)), 2)
    assert raised.value.__cause__ is not None


def test_one_statement_refused_for_good_stops_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    script = Script(statements(None, "ValidationError", None))

    with caplog.at_level(logging.ERROR):
        answers = insert(script, 3)

    assert answers == [Write.APPLIED, Write.UNKNOWN, Write.APPLIED]
    assert "refused" in caplog.text


UNCLEAR: dict[str, Reaction] = {
    "timeout": timeout,
    "statement": statements("InternalServerError"),
    "call": error("InternalServerError", 500),
}


@pytest.mark.parametrize("first", UNCLEAR.values(), ids=UNCLEAR.keys())
def test_after_an_unclear_attempt_a_failed_condition_may_be_our_own_success(
    first: Reaction,
) -> None:
    script = Script(first, statements("ConditionalCheckFailed"))

    assert update(script, 1) == [Write.UNKNOWN]


@pytest.mark.parametrize(
    "first",
    [
        statements("ThrottlingError"),
        error("ThrottlingException"),
        error("RequestLimitExceeded", 503),
    ],
)
def test_after_a_throttled_attempt_a_failed_condition_is_lost(first: Reaction) -> None:
    script = Script(first, statements("ConditionalCheckFailed"))

    assert update(script, 1) == [Write.LOST]


def test_pauses_grow_with_jitter_and_end_at_the_deadline() -> None:
    now = 0.0
    pauses: list[float] = []
    bounds: list[tuple[float, float]] = []

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        pauses.append(seconds)

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high / 2

    backoff = Backoff(
        attempts=9,
        base_seconds=1,
        cap_seconds=4,
        deadline_seconds=6,
        sleep=sleep,
        uniform=uniform,
        monotonic=lambda: now,
    )

    answers = update(Script(*[statements("ThrottlingError")] * 9), 1, backoff)

    assert answers == [Write.UNKNOWN]
    assert bounds == [(0, 1), (0, 2), (0, 4), (0, 4), (0, 4)]
    assert pauses == [0.5, 1, 2, 2]


def test_requests_name_the_table_and_carry_at_most_25_statements() -> None:
    script = Script(*[statements(*[None] * 25)] * 2, statements(None))

    insert(script, 51)

    texts = {each["Statement"] for r in script.requests for each in r["Statements"]}
    assert [len(request["Statements"]) for request in script.requests] == [25, 25, 1]
    assert len(texts) == 1
    assert '"faulty-timeline"' in texts.pop()


@pytest.mark.engine
def test_a_lost_answer_to_an_insert_ends_as_exists(engine_database: Database) -> None:
    script = Script(lost, passed_on)
    script.attach(engine_database.single)
    timeline = DynamoTimeline(engine_database)
    row = planned()

    try:
        answers = timeline.plan([row])
    finally:
        script.detach(engine_database.single)

    assert answers == [Write.EXISTS]
    assert timeline.read([row.key]) == {row.key: row}


@pytest.mark.engine
def test_a_lost_answer_to_a_move_ends_as_unknown_but_is_stored(
    engine_database: Database,
) -> None:
    timeline = DynamoTimeline(engine_database)
    row = planned()
    timeline.plan([row])
    script = Script(lost, passed_on)
    script.attach(engine_database.single)

    try:
        answers = timeline.move([scheduling(row)])
    finally:
        script.detach(engine_database.single)

    assert answers == [Write.UNKNOWN]
    assert timeline.read([row.key])[row.key].state is State.SCHEDULED


def test_a_statement_beyond_the_limit_is_a_fault_of_the_program() -> None:
    database = scripted_database(Script())
    writer = PackedWriter(database.single, "t" * 9000)

    with pytest.raises(ValueError, match="too long"):
        writer.insert([planned()])
