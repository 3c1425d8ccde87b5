"""Occurrences: ids, keys, and the state table."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hourbell.domain.errors import InvalidInput
from hourbell.domain.occurrence import (
    OPEN,
    TERMINAL,
    TRANSITIONS,
    Occurrence,
    RowKey,
    State,
    Transition,
    bucket_of,
    jitter_seconds,
    occurrence_id,
    parse_occurrence_id,
    row_key,
)
from hypothesis import given
from hypothesis import strategies as st

NOON = datetime(2026, 3, 9, 12, 0, 30, tzinfo=UTC)
SCHEDULE = "sch" + "0123456789abcdefghjkmnpqrs"


def test_the_id_names_schedule_version_and_time() -> None:
    assert occurrence_id(SCHEDULE, 3, NOON) == f"{SCHEDULE}.v3.20260309T120030Z"


def test_an_id_can_be_read_back() -> None:
    text = occurrence_id(SCHEDULE, 3, NOON)
    assert parse_occurrence_id(text) == (SCHEDULE, 3, NOON, None)


def test_a_manual_run_has_an_id_and_a_key_of_its_own() -> None:
    run = "0123456789abcdef"
    text = occurrence_id(SCHEDULE, 3, NOON, run)
    assert text == f"{SCHEDULE}.v3.20260309T120030Z.r{run}"
    assert parse_occurrence_id(text) == (SCHEDULE, 3, NOON, run)
    plain, own = row_key(SCHEDULE, 3, NOON, 7), row_key(SCHEDULE, 3, NOON, 7, run)
    assert plain.partition == own.partition
    assert own.sort == f"{plain.sort}#r{run}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        SCHEDULE,
        f"{SCHEDULE}.3.20260309T120030Z",
        f"{SCHEDULE}.v0.20260309T120030Z",
        f"{SCHEDULE}.v1.20260309T120030Z\n",
        f"{SCHEDULE}.v\u0663.20260309T120030Z",
        f"{SCHEDULE}.v1.20260230T120030Z",
        f"{SCHEDULE.upper()}.v1.20260309T120030Z",
    ],
)
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        parse_occurrence_id(text)


def test_a_row_lies_in_the_bucket_of_its_minute() -> None:
    key = row_key("schabc", 1, NOON, 7)
    assert key.partition == "20260309T1200Z#0007"
    assert key.sort == "20260309T120030Z#schabc#v1"
    assert RowKey.parse(key.partition, key.sort) == key


def test_a_bucket_is_named_in_utc_whatever_zone_the_instant_is_told_in() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert bucket_of(elsewhere) == bucket_of(NOON) == "20260309T1200Z"


def test_rows_of_a_bucket_sort_by_time() -> None:
    later = NOON + timedelta(seconds=20)
    assert row_key("schz", 1, NOON, 7).sort < row_key("scha", 1, later, 7).sort
    assert bucket_of(later) == bucket_of(NOON)


# Written by hand from the design: which states a move leads from, and to which.
MOVES: dict[str, tuple[str, str]] = {
    "schedule": ("PLANNED", "SCHEDULED"),
    "acknowledge": ("SCHEDULED", "ENQUEUED"),
    "cancel": ("SCHEDULED", "CANCELED"),
    "withdraw": ("PLANNED DEFERRED RETRY_WAIT WAITING_OVERLAP", "CANCELED"),
    "recall": ("PLANNED DEFERRED SCHEDULED ENQUEUED", "CANCELED"),
    "refuse": ("SCHEDULED", "DEAD"),
    "defer": ("PLANNED", "DEFERRED"),
    "miss": ("PLANNED", "MISSED"),
    "release": ("DEFERRED RETRY_WAIT WAITING_OVERLAP", "SCHEDULED"),
    "backfill": ("MISSED", "DEFERRED"),
    "claim": ("SCHEDULED ENQUEUED", "RUNNING"),
    "reclaim": ("RUNNING", "RUNNING"),
    "extend": ("RUNNING", "RUNNING"),
    "succeed": ("RUNNING", "SUCCEEDED"),
    "retry": ("RUNNING", "RETRY_WAIT"),
    "bury": ("RUNNING", "DEAD"),
    "give_up": ("SCHEDULED ENQUEUED", "DEAD"),
    "hold": ("SCHEDULED ENQUEUED", "DEFERRED"),
    "queue": ("SCHEDULED ENQUEUED", "WAITING_OVERLAP"),
    "skip": ("SCHEDULED ENQUEUED", "SKIPPED_OVERLAP"),
    "wake": ("WAITING_OVERLAP", "SCHEDULED"),
    "replay": ("DEAD", "DEFERRED"),
    "abort": (
        "DEFERRED RETRY_WAIT WAITING_OVERLAP SCHEDULED ENQUEUED",
        "CANCELED",
    ),
    "ask_to_stop": ("RUNNING", "RUNNING"),
    "stop": ("RUNNING", "CANCELED"),
    "redrive": ("ENQUEUED", "DEAD"),
    "tell": ("DEAD", "DEAD"),
}


def test_exactly_these_moves_are_allowed() -> None:
    allowed = {
        name.value: (
            {source.value for source in move.sources},
            move.target.value,
        )
        for name, move in TRANSITIONS.items()
    }

    assert allowed == {
        name: (set(sources.split()), target)
        for name, (sources, target) in MOVES.items()
    }


def test_only_a_backfill_and_a_replay_leave_a_terminal_state() -> None:
    left = {
        name: move.sources & TERMINAL
        for name, move in TRANSITIONS.items()
        if move.sources & TERMINAL and {move.target} != move.sources
    }

    assert left == {
        Transition.BACKFILL: {State.MISSED},
        Transition.REPLAY: {State.DEAD},
    }


def test_that_a_dead_letter_is_sent_changes_nothing_else() -> None:
    assert TRANSITIONS[Transition.TELL].writes == ("told_at",)


def test_whoever_cancels_takes_rows_from_its_own_states_only() -> None:
    canceling = {
        name: move.sources
        for name, move in TRANSITIONS.items()
        if move.target is State.CANCELED
    }

    unsent, sent = {State.PLANNED, State.DEFERRED}, {State.SCHEDULED, State.ENQUEUED}
    waiting = {State.DEFERRED, State.RETRY_WAIT, State.WAITING_OVERLAP}
    assert canceling == {
        Transition.CANCEL: {State.SCHEDULED},
        Transition.WITHDRAW: {State.PLANNED} | waiting,
        Transition.RECALL: unsent | sent,
        Transition.ABORT: waiting | sent,
        Transition.STOP: {State.RUNNING},
    }


def test_no_worker_loses_an_occurrence_but_to_a_worker_or_to_its_own_end() -> None:
    leaving = {
        name for name, move in TRANSITIONS.items() if State.RUNNING in move.sources
    }

    assert leaving == {
        *(Transition.RECLAIM, Transition.EXTEND, Transition.SUCCEED),
        *(Transition.RETRY, Transition.BURY, Transition.STOP),
        Transition.ASK_TO_STOP,
    }


def test_open_states_are_not_terminal() -> None:
    assert not OPEN & TERMINAL


def test_transitions_into_terminal_states_set_the_expiry_and_planned_ones_do_not() -> (
    None
):
    for name, move in TRANSITIONS.items():
        # What is in it already has its expiry.
        if move.target in TERMINAL and move.sources != {move.target}:
            assert {"reason", "finished_at", "expires_at"} <= set(move.writes), name
        if move.target is State.SCHEDULED:
            assert "expires_at" not in move.writes, name
        if move.target not in TERMINAL and move.sources & TERMINAL:
            assert {"reason", "finished_at", "expires_at"} <= set(move.writes), name


def test_transitions_write_fields_that_a_row_has() -> None:
    known = {field.name for field in fields(Occurrence)}
    for move in TRANSITIONS.values():
        assert set(move.writes) <= known - {"state"}


@given(st.text(min_size=1, max_size=80), st.integers(min_value=1, max_value=86_400))
def test_jitter_lies_in_the_window_and_never_changes(text: str, window: int) -> None:
    first = jitter_seconds(text, window)
    assert 0 <= first < window
    assert jitter_seconds(text, window) == first


def test_jitter_is_spread_evenly() -> None:
    counts = [0] * 300
    for number in range(30_000):
        counts[jitter_seconds(f"sch{number}.v1.20260309T120000Z", 300)] += 1
    assert max(counts) <= 1.5 * 100
    assert min(counts) >= 0.5 * 100


def test_without_a_window_there_is_no_jitter() -> None:
    assert jitter_seconds("sch.v1.20260309T120000Z", 0) == 0
