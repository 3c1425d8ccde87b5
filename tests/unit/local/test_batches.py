"""Failures of a stream batch: partial, bisected, retried, given up."""

from typing import Any

import pytest
from hourbell.local.batches import (
    EXHAUSTED,
    EXPIRED,
    MAX_BACKOFF_SECONDS,
    Batch,
    Failed,
    FailedFrom,
    Outcome,
    Progress,
    Record,
    Rules,
    Succeeded,
    Unavailable,
    expire,
    read_answer,
    settle,
)
from hypothesis import given
from hypothesis import strategies as st

REPORTING = Rules(report_item_failures=True, max_retries=2)


def records(count: int, created_at: float = 1_000.0) -> tuple[Record, ...]:
    return tuple(Record(f"{number:03}", created_at) for number in range(count))


def reported(*identifiers: Any) -> dict[str, Any]:
    return {"batchItemFailures": [{"itemIdentifier": name} for name in identifiers]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (None, Succeeded()),
        ("text", Succeeded()),
        ({}, Succeeded()),
        ({"batchItemFailures": None}, Succeeded()),
        ({"batchItemFailures": []}, Succeeded()),
        (reported("003", "001"), FailedFrom(1)),
        (reported("000"), FailedFrom(0)),
        (reported("001", "999"), Failed("unknown item identifier '999'")),
        (reported(None), Failed("unknown item identifier ''")),
        ({"batchItemFailures": ["001"]}, Failed("unknown item identifier ''")),
    ],
)
def test_the_answer_says_from_where_a_batch_failed(
    answer: Any, expected: Outcome
) -> None:
    assert read_answer(answer, Batch(records(5)), REPORTING) == expected


def test_an_answer_is_not_read_when_the_mapping_did_not_ask_for_it() -> None:
    outcome = read_answer(reported("001"), Batch(records(5)), Rules())
    assert outcome == Succeeded()


def test_a_processed_batch_is_done() -> None:
    step = settle(Batch(records(3)), Succeeded(), REPORTING)
    assert (step.done, step.rest, step.given_up) == (records(3), (), ())


def test_a_partial_failure_keeps_what_was_processed_and_starts_counting_anew() -> None:
    step = settle(Batch(records(5), failures=2), FailedFrom(2), REPORTING)
    assert step.done == records(5)[:2]
    assert step.rest == (Batch(records(5)[2:], failures=0),)


@pytest.mark.parametrize("outcome", [Failed("boom"), FailedFrom(0)])
def test_without_progress_a_batch_is_retried_whole_with_growing_pauses(
    outcome: Outcome,
) -> None:
    first = settle(Batch(records(3)), outcome, REPORTING)
    (again,) = first.rest
    second = settle(again, outcome, REPORTING)
    assert again == Batch(records(3), failures=1)
    assert 0 < first.backoff_seconds < second.backoff_seconds <= MAX_BACKOFF_SECONDS


def test_after_the_last_retry_the_batch_is_given_up() -> None:
    step = settle(Batch(records(3), failures=2), Failed("boom"), REPORTING)
    assert step.given_up == records(3)
    assert (step.condition, step.calls, step.rest) == (EXHAUSTED, 3, ())


def test_bisecting_isolates_one_poison_record_and_spares_the_others() -> None:
    rules = Rules(bisect=True, max_retries=0)
    left, done, given_up = [Batch(records(7))], [], []
    while left:
        batch = left.pop(0)
        poisoned = any(record.sequence == "004" for record in batch.records)
        step = settle(batch, Failed("boom") if poisoned else Succeeded(), rules)
        left[:0] = step.rest
        done += [record.sequence for record in step.done]
        given_up += [record.sequence for record in step.given_up]
    assert done == ["000", "001", "002", "003", "005", "006"]
    assert given_up == ["004"]


def test_a_function_that_did_not_run_costs_no_attempt() -> None:
    step = settle(Batch(records(2), failures=1), Unavailable("throttled"), REPORTING)
    assert step.rest == (Batch(records(2), failures=1),)
    assert step.backoff_seconds > 0


def test_records_past_their_age_are_given_up_and_the_others_stay() -> None:
    old, fresh = Record("1", 100.0), Record("2", 150.0)
    step = expire(Batch((old, fresh)), Rules(max_age_seconds=60), now=161.0)
    assert (step.given_up, step.condition) == ((old,), EXPIRED)
    assert step.rest == (Batch((fresh,)),)


def test_without_a_limit_a_record_lives_as_long_as_the_stream_keeps_it() -> None:
    batch = Batch((Record("1", 0.0),))
    assert expire(batch, Rules(), now=86_400.0).rest == (batch,)
    assert expire(batch, Rules(), now=86_401.0).rest == ()


outcomes = st.lists(st.sampled_from(["ok", "fail", "partial"]), max_size=30)


@given(st.integers(1, 9), st.booleans(), st.integers(0, 3), outcomes)
def test_every_record_ends_once_and_in_order(
    count: int, bisect: bool, retries: int, scripted: list[str]
) -> None:
    rules = Rules(bisect=bisect, report_item_failures=True, max_retries=retries)
    script = iter(scripted)
    left, ended = [Batch(records(count))], []
    while left:
        batch = left.pop(0)
        kind = next(script, "fail")
        at = len(batch.records) // 2
        outcome: Outcome = Failed("boom")
        if kind == "ok":
            outcome = Succeeded()
        elif kind == "partial":
            outcome = FailedFrom(at)
        step = settle(batch, outcome, rules)
        left[:0] = step.rest
        ended += [record.sequence for record in step.done + step.given_up]
    assert ended == [record.sequence for record in records(count)]


def test_the_checkpoint_stops_before_the_first_unsettled_record() -> None:
    progress = Progress("000")
    for sequence in ("001", "002", "003"):
        progress.read(sequence)
    assert progress.settle(["002", "003"]) is False
    assert progress.checkpoint == "000"
    assert progress.settle(["001"]) is True
    assert progress.checkpoint == "003"
    assert len(progress) == 0


@given(st.permutations(range(12)))
def test_in_whatever_order_records_settle_none_before_the_checkpoint_is_open(
    order: list[int],
) -> None:
    progress = Progress()
    names = [f"{number:03}" for number in range(12)]
    for name in names:
        progress.read(name)
    settled: set[str] = set()
    for number in order:
        settled.add(names[number])
        progress.settle([names[number]])
        reached = names.index(progress.checkpoint) + 1 if progress.checkpoint else 0
        assert set(names[:reached]) <= settled
        assert reached == 12 or names[reached] not in settled
