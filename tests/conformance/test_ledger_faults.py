"""The worker plane's writes when the service throttles, fails or loses answers."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hourbell.adapters.dynamodb import Database, DynamoLedger
from hourbell.adapters.dynamodb.layout import SCHEMA
from hourbell.adapters.dynamodb.work_items import encode_attempt, encode_letter
from hourbell.domain.errors import Permanent, Transient
from hourbell.domain.work import OverlapLane, Slot
from hourbell.usecases.ports import Write
from hourbell.usecases.work_ports import Deed

from tests.conformance import samples
from tests.conformance.faults import (
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
from tests.conformance.work_samples import attempt, claiming, enqueued, letter
from tests.conformance.worlds import dynamo_world, still_backoff

FAILED = "ConditionalCheckFailed"
REFUSED = error("ConditionalCheckFailedException")
CLAIM = claiming(enqueued())
SLOT = Slot("acme", 3, CLAIM.row.occurrence_id)
ONE = Deed((CLAIM,))
BOTH = Deed((CLAIM,), frees=SLOT)


def canceled(*codes: str) -> Reaction:
    reasons = [{"Code": code} for code in codes]
    return error("TransactionCanceledException", CancellationReasons=reasons)


def done(deed: Deed, *reactions: Reaction, **settings: Any) -> tuple[Write, Script]:
    script = Script(*reactions)
    database = scripted_database(script, still_backoff(**settings))
    outcome = DynamoLedger(database).do(deed)
    assert script.left == 0
    return outcome, script


def test_a_single_change_is_no_transaction() -> None:
    outcome, script = done(ONE, answer({}))

    assert outcome is Write.APPLIED
    (request,) = script.requests
    assert "TransactItems" not in request
    assert "ConditionExpression" in request


NOTHING_DONE = [
    error("ThrottlingException"),
    error("ProvisionedThroughputExceededException"),
    error("TransactionConflictException"),
]
UNCLEAR: list[Reaction] = [timeout, garbage, error("InternalServerError", 500)]


@pytest.mark.parametrize("fault", NOTHING_DONE)
def test_a_single_change_refused_after_a_throttling_is_lost(fault: Reaction) -> None:
    assert done(ONE, fault, REFUSED)[0] is Write.LOST
    assert done(ONE, fault, answer({}))[0] is Write.APPLIED


@pytest.mark.parametrize("fault", UNCLEAR)
def test_a_single_change_refused_after_a_lost_answer_may_be_done(
    fault: Reaction,
) -> None:
    with pytest.raises(Transient):
        done(ONE, fault, REFUSED)
    assert done(ONE, fault, answer({}))[0] is Write.APPLIED


def test_a_single_change_that_keeps_failing_is_transient() -> None:
    with pytest.raises(Transient) as raised:
        done(ONE, *[NOTHING_DONE[0]] * 3, attempts=3)
    assert raised.value.__cause__ is not None


@pytest.mark.parametrize("deed", [ONE, BOTH])
def test_a_deed_that_the_service_refuses_for_good_is_permanent(deed: Deed) -> None:
    with pytest.raises(Permanent):
        done(deed, error("ValidationException"))


@pytest.mark.parametrize("fault", [*NOTHING_DONE, *UNCLEAR])
def test_a_deed_is_tried_again_under_the_same_token(fault: Reaction) -> None:
    outcome, script = done(BOTH, fault, answer({}))

    assert outcome is Write.APPLIED
    tokens = {request["ClientRequestToken"] for request in script.requests}
    assert len(script.requests) == 2
    assert len(tokens) == 1


def test_a_deed_whose_slot_is_not_there_is_done_without_it() -> None:
    outcome, script = done(BOTH, canceled("None", FAILED), answer({}))

    assert outcome is Write.APPLIED
    first, second = script.requests
    assert second["TransactItems"] == first["TransactItems"][:1]
    assert first["ClientRequestToken"] != second["ClientRequestToken"]


def test_a_deed_whose_row_changes_before_it_is_done_without_the_slot_is_lost() -> None:
    outcome, _ = done(BOTH, canceled("None", FAILED), canceled(FAILED))

    assert outcome is Write.LOST


@pytest.mark.parametrize("codes", [(FAILED, "None"), (FAILED, FAILED)])
def test_a_deed_whose_row_is_not_as_it_must_be_is_lost_at_once(
    codes: tuple[str, ...],
) -> None:
    assert done(BOTH, canceled(*codes))[0] is Write.LOST


def test_a_conflict_at_the_row_is_waited_for() -> None:
    conflict = canceled("TransactionConflict", FAILED)

    assert done(BOTH, conflict, canceled(FAILED, "None"))[0] is Write.LOST
    assert done(BOTH, conflict, answer({}))[0] is Write.APPLIED


LANE = OverlapLane(samples.schedule_id("one"), revision=1)
DEEDS: dict[str, Callable[[Slot], Deed]] = {
    "with a slot to free": lambda slot: Deed((CLAIM,), lane=LANE, frees=slot),
    "without": lambda slot: Deed((CLAIM,), lane=LANE, takes=replace(slot, number=9)),
}


@pytest.mark.engine
@pytest.mark.parametrize("make", DEEDS.values(), ids=DEEDS.keys())
def test_a_deed_whose_answer_was_lost_is_done_once(
    engine_database: Database, make: Callable[[Slot], Deed]
) -> None:
    world = dynamo_world(engine_database)
    world.seed([enqueued()])
    world.ledger.do(Deed((), takes=SLOT))
    script = Script(lost, passed_on)
    script.attach(engine_database.client)
    try:
        outcome = world.ledger.do(make(SLOT))
    finally:
        script.detach(engine_database.client)

    assert (outcome, script.left) == (Write.APPLIED, 0)
    assert world.ledger.lane(LANE.schedule_id) == LANE
    assert world.timeline.read([CLAIM.row.key]) == {CLAIM.row.key: CLAIM.row}


def test_what_cannot_be_read_hides_no_other(moto_database: Database) -> None:
    ledger, row = DynamoLedger(moto_database), enqueued()
    attempts = [attempt(row, number) for number in (1, 2, 3)]
    letters = [letter("one", minutes) for minutes in (1, 2, 3)]
    ledger.do(Deed((), attempts=tuple(attempts), letters=tuple(letters)))
    other = {"schema": {"N": str(SCHEMA + 8)}}
    tables = moto_database.tables
    for table, item in (
        (tables.timeline, encode_attempt(attempts[1])),
        (tables.control, encode_letter(letters[1])),
    ):
        moto_database.client.put_item(TableName=table, Item=item | other)

    assert ledger.attempts(row.key) == (attempts[0], attempts[2])
    found, after = ledger.letters("acme", after=None, limit=9)
    assert (list(found), after) == ([letters[0], letters[2]], None)
