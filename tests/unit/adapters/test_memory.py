"""What the in-memory adapters add to their ports."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hourbell.adapters.memory import (
    FixedClock,
    MemoryDeliveryQueues,
    MemorySchedules,
    MemoryStore,
    MemoryTimeline,
    SeededIds,
    SteppedClock,
)
from hourbell.domain.dispatch import DispatchState
from hourbell.domain.occurrence import State
from hourbell.usecases.ports import Entry, Sent

from tests.conformance import samples
from tests.conformance.samples import acknowledging, planned, scheduling

SECOND = timedelta(seconds=1)


def test_every_write_of_a_row_reaches_the_stream_in_order() -> None:
    store = MemoryStore()
    timeline = MemoryTimeline(store)
    first, second = planned("first"), planned("second")

    MemorySchedules(store).create(
        samples.schedule("first"), samples.version("first"), first, quota=1
    )
    timeline.plan([first, second])
    outbox = scheduling(first)
    timeline.move([outbox, acknowledging(second)])

    assert timeline.stream == [first, second, outbox.row]
    assert store.take_stream() == [first, second, outbox.row]
    assert timeline.stream == []
    assert store.all_rows() == sorted(
        [outbox.row, second], key=lambda row: row.key.sort
    )


def test_dispatch_rows_do_not_reach_the_stream() -> None:
    store = MemoryStore()
    rows = [samples.dispatch(n, samples.DUE + n * SECOND) for n in range(3)]
    for row in reversed(rows):
        store.put_dispatch(row)
    done = replace(rows[0], state=DispatchState.DONE, expires_at=samples.DUE)

    MemoryTimeline(store).settle([done])

    assert store.all_dispatches() == [done, *rows[1:]]
    assert store.all_rows() == store.take_stream() == []


def test_a_delay_is_kept_against_the_clock() -> None:
    clock = FixedClock(samples.NOW)
    queues = MemoryDeliveryQueues(clock)
    queues.send("q", [Entry("a", "late", 2, "t"), Entry("b", "soon", 1, "t")])

    assert queues.receive("q") == []
    clock.advance(SECOND)
    assert [each.entry.body for each in queues.receive("q")] == ["soon"]
    clock.advance(SECOND)
    (late,) = queues.receive("q")
    assert (late.sent_at, late.visible_at) == (samples.NOW, samples.NOW + 2 * SECOND)
    assert queues.receive("q") == []
    assert [each.entry.body for each in queues.accepted] == ["late", "soon"]


def test_a_receive_takes_at_most_its_limit() -> None:
    queues = MemoryDeliveryQueues(FixedClock(samples.NOW))
    queues.send("q", [Entry(f"e{n}", str(n), 0, "t") for n in range(5)])
    queues.send("other", [Entry("e", "not mine", 0, "t")])

    taken = [[d.entry.body for d in queues.receive("q", 2)] for _ in range(4)]

    assert taken == [["0", "1"], ["2", "3"], ["4"], []]


@pytest.mark.parametrize(
    ("body", "delay_seconds"),
    [("", 0), ("\x00", 0), ("\ufffe", 0), ("a\x1b", 0), ("a", 901), ("a", -1)],
)
def test_what_sqs_would_refuse_is_refused(body: str, delay_seconds: int) -> None:
    queues = MemoryDeliveryQueues(FixedClock(samples.NOW))

    answers = queues.send("q", [Entry("a", body, delay_seconds, "t")])

    assert answers == {"a": Sent.REFUSED}
    assert queues.accepted == []


def test_a_fixed_clock_moves_when_told() -> None:
    clock = FixedClock(datetime(2026, 3, 9, 2, tzinfo=timezone(2 * SECOND * 1800)))

    assert clock.now() == clock.now() == datetime(2026, 3, 9, 1, tzinfo=UTC)
    assert clock.now().tzinfo is UTC
    assert clock.advance(SECOND) == clock.now()
    clock.set(samples.NOW)
    assert clock.now() == samples.NOW


def test_a_stepped_clock_moves_with_each_reading() -> None:
    clock = SteppedClock(samples.NOW, SECOND)

    assert [clock.now(), clock.now()] == [samples.NOW, samples.NOW + SECOND]


def test_a_clock_needs_a_zone() -> None:
    with pytest.raises(ValueError, match="zone"):
        FixedClock(datetime(2026, 3, 9))


def test_seeded_ids_repeat_with_the_seed() -> None:
    def draw(seed: int) -> list[str]:
        ids = SeededIds(seed)
        return [ids.schedule_id(), ids.schedule_id(), ids.token(), ids.token()]

    assert draw(7) == draw(7)
    assert len({*draw(7), *draw(8)}) == 8
    assert {len(text) for text in draw(1)} == {29, 32}


def test_the_state_of_a_row_is_the_transitions_target() -> None:
    store = MemoryStore()
    timeline = MemoryTimeline(store)
    timeline.plan([planned()])

    timeline.move([scheduling(planned())])

    assert [row.state for row in store.all_rows()] == [State.SCHEDULED]
