"""Rows that are put, moved and changed at once while the shard count changes."""

from collections import Counter
from dataclasses import replace

import pytest
from hourbell.adapters.dynamodb import Database, DynamoTimeline
from hourbell.adapters.dynamodb.relocation import DynamoRelocation
from hourbell.adapters.dynamodb.row_items import encode_occurrence
from hourbell.domain.occurrence import Occurrence, State
from hourbell.usecases.ports import Write
from hourbell.usecases.shard_ports import Misplaced

from tests.conformance.faults import Script, answer, scripted_database, timeout
from tests.conformance.samples import planned, scheduling
from tests.conformance.test_races import ROWS, THREADS, all_at_once, contending
from tests.conformance.test_relocation import THERE, elsewhere, walk
from tests.conformance.test_transaction_faults import FAILED, canceled
from tests.conformance.worlds import still_backoff


def there(row: Occurrence) -> Occurrence:
    return replace(row, shard=THERE)


@pytest.mark.engine
def test_a_row_is_put_once_in_either_place(engine_database: Database) -> None:
    relocation = DynamoRelocation(contending(engine_database))
    rows = [planned(n) for n in range(10)]

    def put(number: int) -> list[Write]:
        marked = [replace(row, sequence=number) for row in rows]
        if number % 2:
            return [relocation.plan_apart(there(row), row.key) for row in marked]
        return [relocation.plan_apart(row, elsewhere(row.key)) for row in marked]

    results = all_at_once(put)

    timeline = DynamoTimeline(engine_database)
    for index, row in enumerate(rows):
        answers = Counter(result[index] for result in results)
        assert answers == {Write.APPLIED: 1, Write.EXISTS: THREADS - 1}
        winner = next(n for n, r in enumerate(results) if r[index] is Write.APPLIED)
        (stored,) = timeline.read([row.key, elsewhere(row.key)]).values()
        assert stored.sequence == winner
        assert stored.shard == (THERE if winner % 2 else row.shard)


@pytest.mark.engine
def test_a_row_is_either_moved_or_changed(engine_database: Database) -> None:
    """And what was moved is found unchanged, what was changed where it was."""
    timeline = DynamoTimeline(engine_database)
    relocation = DynamoRelocation(contending(engine_database))
    rows = [planned(n) for n in range(ROWS)]
    timeline.plan(rows)
    found = {row.key: row for row in walk(relocation)}

    def work(number: int) -> list[Write]:
        # From both ends, so that they meet.
        mine = rows if number % 4 else rows[::-1]
        if number % 2:
            answers = timeline.move([scheduling(row) for row in mine])
        else:
            answers = [
                relocation.relocate([found[row.key]], [THERE])[0] for row in mine
            ]
        return answers if number % 4 else answers[::-1]

    results = all_at_once(work)

    for index, row in enumerate(rows):
        movers = [results[number][index] for number in range(0, THREADS, 2)]
        changers = [results[number][index] for number in range(1, THREADS, 2)]
        assert (movers + changers).count(Write.APPLIED) == 1
        assert Write.UNKNOWN not in movers + changers
        (stored,) = timeline.read([row.key, elsewhere(row.key)]).values()
        if Write.APPLIED in movers:
            assert stored == there(row)
        else:
            assert (stored.shard, stored.state) == (row.shard, State.SCHEDULED)


@pytest.mark.engine
def test_a_row_is_moved_once_by_many_movers(engine_database: Database) -> None:
    timeline = DynamoTimeline(engine_database)
    relocation = DynamoRelocation(contending(engine_database))
    rows = [planned(n) for n in range(ROWS)]
    timeline.plan(rows)
    found = walk(relocation)

    results = all_at_once(
        lambda _: relocation.relocate(found, [THERE] * ROWS), threads=4
    )

    for answers in zip(*results, strict=True):
        assert Counter(answers) == {Write.APPLIED: 1, Write.LOST: 3}
    assert timeline.read([row.key for row in rows]) == {}
    moved = timeline.read([elsewhere(row.key) for row in rows])
    assert moved == {elsewhere(row.key): there(row) for row in rows}


def on(script: Script, attempts: int = 3) -> DynamoRelocation:
    return DynamoRelocation(scripted_database(script, still_backoff(attempts=attempts)))


def test_a_lost_answer_to_a_plan_is_no_wrong_exists() -> None:
    script = Script(timeout, answer({}))
    row = planned()
    assert on(script).plan_apart(row, elsewhere(row.key)) is Write.APPLIED
    tokens = {request["ClientRequestToken"] for request in script.requests}
    assert len(tokens) == 1


@pytest.mark.parametrize("codes", [(FAILED, "None"), ("None", FAILED)])
def test_whichever_place_is_taken_is_one_answer(codes: tuple[str, str]) -> None:
    row = planned()
    script = Script(canceled(*codes))
    assert on(script).plan_apart(row, elsewhere(row.key)) is Write.EXISTS


def test_a_plan_without_clear_answer_is_unknown() -> None:
    row = planned()
    script = Script(*[timeout] * 3)
    assert on(script).plan_apart(row, elsewhere(row.key)) is Write.UNKNOWN


def told(*rows: Occurrence) -> list[Misplaced]:
    return [
        Misplaced(row.key, row.is_open, False, encode_occurrence(row)) for row in rows
    ]


def test_a_lost_answer_to_a_move_is_no_wrong_lost() -> None:
    script = Script(timeout, answer({}))
    moved = on(script).relocate(told(planned(1), planned(2)), [THERE, THERE])
    assert moved == [Write.APPLIED] * 2
    assert len({request["ClientRequestToken"] for request in script.requests}) == 1


def test_moves_that_failed_together_are_tried_singly() -> None:
    """As when one of the rows is in the hands of a transaction that hangs."""
    script = Script(
        *[canceled("None", "None", "TransactionConflict", "None")] * 3,
        answer({}),
        *[canceled("TransactionConflict", "None")] * 3,
    )
    moved = on(script).relocate(told(planned(1), planned(2)), [THERE, THERE])
    assert moved == [Write.APPLIED, Write.UNKNOWN]
    assert script.left == 0
